"""The options of the command line that set how much is measured, and on what."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._stores import LOCAL, MEMORY, NAMES, NONE, SLOW5
from benchmarks._writers import TAGS

DEFAULTS: dict[str, dict[str, Any]] = {
    "encode": {"rounds": 7},
    "read": {"rounds": 5},
    "collect_freq": {"block_steps": 100, "freqs": (1, 2, 5, 10, 50, 100)},
    "sinks": {"rounds": 5},
    "callback": {"rounds": 5},
    "soak": {"minutes": 60.0},
}
"""What a command measures by default, where that is not Setting's."""

FULL: dict[str, dict[str, Any]] = {"soak": {"minutes": 2.0}}
"""What `--full` measures where that is less, to end within the hour."""

ALONE = frozenset({"encode", "read", "callback", "sinks", "ranks", "soak"})
"""Commands that measure tbwriter alone."""

QUICK: dict[str, Any] = {
    "scalars": 5000, "rounds": 2, "block_steps": 20, "blocks": 2, "memory_scalars": 200_000, "freqs": (1, 10),
    "step_ms": 1.0, "sinks": (NONE, MEMORY, LOCAL, SLOW5), "most_ranks": 4, "minutes": 0.05, "quick": True,
}  # fmt: skip
"""What `--quick` measures."""


def names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a parser of names, separated by commas, that are all `known`."""
    known = list(known)

    def parse(text: str) -> list[str]:
        found = list(dict.fromkeys(text.split(",")))
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; want some of {', '.join(known)}")
        return found

    return parse


def _at_least(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be an integer of at least {least:,}, got {text!r}")
        return int(text)

    return parse


_positive = _at_least(1)


def _duration(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return number


def _positives(text: str) -> list[int]:
    return list(dict.fromkeys(_positive(part) for part in text.split(",")))


def _place(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("must be a path or a URL, got nothing")
    return text


def folder(text: str) -> Path:
    """Return the directory `text`, into which files can be written."""
    if not (Path(text).is_dir() and os.access(text, os.W_OK)):
        raise argparse.ArgumentTypeError(f"must be a directory that can be written, got {text!r}")
    return Path(text)


def file(text: str) -> Path:
    """Return the file `text`, after its directory was made: better now than after an hour."""
    path = Path(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writable = os.access(path.parent, os.W_OK) and not path.is_dir()
    except OSError as exc:
        raise argparse.ArgumentTypeError(f"must be a file that can be written: {exc}") from exc
    if not writable:
        raise argparse.ArgumentTypeError(f"must be a file that can be written, got {text!r}")
    return path


@dataclass(frozen=True)
class Option:
    """An option that sets a field of `Setting`.

    Attributes:
        name: on the command line, without dashes.
        field: of `Setting`.
        parse: makes the field's value of the text.
        text: says what it is.
        commands: which have it; None for all. Those of the tour can stand without a command.
    """

    name: str
    field: str
    parse: Callable[[str], Any]
    text: str
    commands: frozenset[str] | None = None

    def of(self, command: str) -> bool:
        """Tell whether `command` has it."""
        return self.commands is None or command in self.commands

    def add_to(self, parser: argparse.ArgumentParser, default: Any) -> None:
        """Add it to the parser of a command whose setting has `default`; what is not given is not in the namespace."""
        value = ",".join(map(str, default)) if isinstance(default, (tuple, list)) else default
        text = self.text if value is None else f"{self.text}; default {value}"
        metavar = self.name.upper().replace("-", "_")
        parser.add_argument(
            f"--{self.name}", dest=self.field, type=self.parse, metavar=metavar, help=text, default=argparse.SUPPRESS
        )


_a_step = _at_least(len(TAGS))

_LOOPS = frozenset({"write", "collect_freq", "tour"})
_ON_STORES = frozenset({"collect_freq", "sinks", "ranks", "tour"})

OPTIONS = (
    Option("rounds", "rounds", _positive, "samples of each figure and writer"),
    Option("scalars", "scalars", _a_step, "in one sample", frozenset({"encode", "read", "write", "sinks"})),
    Option("scalars", "step_scalars", _positive, "in a collected step", frozenset({"collect_freq", "tour"})),
    Option("freqs", "freqs", _positives, "values of collect_freq", frozenset({"collect_freq", "tour"})),
    Option("step-ms", "step_ms", _duration, "length of a loop's step", _LOOPS),
    Option("blocks", "blocks", _positive, "of each loop and writer", _LOOPS | {"sinks"}),
    Option("block-steps", "block_steps", _positive, "steps in a block", _LOOPS),
    Option("memory-scalars", "memory_scalars", _at_least(10_000), "of the longest run", frozenset({"write", "sinks"})),
    Option("sinks", "sinks", names(NAMES), f"some of {', '.join(NAMES)}", _ON_STORES),
    Option("logdir", "logdir", _place, "a path or URL of your storage, measured as well; files stay there", _ON_STORES),
    Option("ranks", "most_ranks", _positive, "the most processes that write at once", frozenset({"ranks"})),
    Option("minutes", "minutes", _duration, "how long", frozenset({"soak"})),
)
