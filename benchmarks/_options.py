"""The options of the command line that set how much is measured, and on what."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks._stores import NAMES

DEFAULTS: dict[str, dict[str, Any]] = {
    "encode": {"rounds": 7},
    "read": {"rounds": 5},
    "collect_freq": {"block_steps": 100},
    "sinks": {"rounds": 5},
    "callback": {"rounds": 5},
}
"""What a command measures by default, where that is not Setting's."""

ALONE = frozenset({"encode", "read", "callback", "sinks", "ranks", "soak"})
"""Commands that measure tbwriter alone."""

QUICK: dict[str, Any] = {
    "scalars": 5000, "rounds": 2, "block_steps": 20, "blocks": 2, "memory_scalars": 200_000, "freqs": (1, 10),
    "step_ms": 1.0, "sinks": ("none", "memory", "local", "slow5"), "most_ranks": 4, "minutes": 0.05, "quick": True,
}  # fmt: skip
"""What `--quick` measures."""


def names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a parser of names, separated by commas, that are all `known`."""
    known = list(known)

    def parse(text: str) -> list[str]:
        found = text.split(",")
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; want some of {', '.join(known)}")
        return found

    return parse


def _positive(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def _duration(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return number


def _positives(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


@dataclass(frozen=True)
class Option:
    """An option that sets a field of `Setting`.

    Attributes:
        name: on the command line, without dashes.
        field: of `Setting`.
        parse: makes the field's value of the text.
        text: says what it is.
        commands: which have it; None for all.
    """

    name: str
    field: str
    parse: Callable[[str], Any]
    text: str
    commands: frozenset[str] | None = None

    def add_to(self, parser: argparse.ArgumentParser, default: Any) -> None:
        """Add it to the parser of a command whose setting has `default`."""
        value = ",".join(map(str, default)) if isinstance(default, tuple) else default
        text = self.text if value is None else f"{self.text}; default {value}"
        parser.add_argument(f"--{self.name}", dest=self.field, type=self.parse, metavar=self.name.upper(), help=text)


_LOOPS = frozenset({"write", "collect_freq", "tour"})
_ON_STORES = frozenset({"collect_freq", "sinks", "ranks", "tour"})

OPTIONS = (
    Option("rounds", "rounds", _positive, "samples of each figure and writer"),
    Option("scalars", "scalars", _positive, "in one sample", frozenset({"encode", "read", "write", "sinks"})),
    Option("scalars", "step_scalars", _positive, "in a collected step", frozenset({"collect_freq"})),
    Option("freqs", "freqs", _positives, "values of collect_freq", frozenset({"collect_freq", "tour"})),
    Option("step-ms", "step_ms", _duration, "length of a loop's step", _LOOPS),
    Option("blocks", "blocks", _positive, "of each loop and writer", _LOOPS | {"sinks"}),
    Option("block-steps", "block_steps", _positive, "steps in a block", _LOOPS),
    Option("memory-scalars", "memory_scalars", _positive, "of the longest run", frozenset({"write", "sinks"})),
    Option("sinks", "sinks", names(NAMES), f"some of {', '.join(NAMES)}", _ON_STORES),
    Option("logdir", "logdir", str, "a path or URL of your storage, measured as well; files stay there", _ON_STORES),
    Option("ranks", "most_ranks", _positive, "the most processes that write at once", frozenset({"ranks"})),
    Option("minutes", "minutes", _duration, "how long", frozenset({"soak"})),
)
