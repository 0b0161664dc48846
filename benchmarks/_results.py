"""The form of results: what a run measured, as dataclasses that are written to JSON and read back strictly.

These classes are the schema; README.md explains their fields in words.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

SCHEMA = 1
T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """A measured number: the median over rounds, an interval, and every round's own value."""

    median: float
    low: float
    high: float
    interval: Literal["min to max", "bootstrap 95 %", "exact"]
    samples: list[float]


@dataclass(frozen=True)
class Target:
    """What a number has to reach, `bound` `limit` `text`, and whether it does.

    `verdict` is "met" or "missed" when all of the interval lies on one side of `limit`; "unclear, met" and "unclear,
    missed" go by the median.
    """

    text: str
    bound: Literal["at most", "at least"]
    limit: float
    measured: Spread
    verdict: Literal["met", "missed", "unclear, met", "unclear, missed"]

    @classmethod
    def judge(cls, text: str, bound: Literal["at most", "at least"], limit: float, measured: Spread) -> Target:
        """Return the target with its verdict."""
        sign = 1 if bound == "at most" else -1
        good = [sign * value <= sign * limit for value in (measured.low, measured.median, measured.high)]
        if all(good):
            return cls(text, bound, limit, measured, "met")
        if not any(good):
            return cls(text, bound, limit, measured, "missed")
        return cls(text, bound, limit, measured, "unclear, met" if good[1] else "unclear, missed")


@dataclass(frozen=True)
class Figure:
    """One thing that was measured, for one or more writers."""

    name: str
    title: str
    unit: str
    how: str
    values: dict[str, Spread]
    ratios: dict[str, Spread] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Machine:
    """Where it was measured; nothing that names a host or a path."""

    cpu: str
    cores: int
    memory_gib: float
    system: str
    python: str
    file_system: str
    load_before: list[float]
    load_after: list[float]


@dataclass(frozen=True)
class Result:
    """One run of one command."""

    schema: int
    command: str
    begun: str
    complete: bool
    options: dict[str, str]
    commit: str
    machine: Machine
    versions: dict[str, str]
    left_out: dict[str, str]
    figures: list[Figure]

    def save(self, path: Path) -> None:
        """Write to `path`, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        text = json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        try:
            partial.write_text(text + "\n", encoding="utf-8")
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Result:
        """Read what `save` wrote.

        Raises:
            ValueError: it is not JSON, or a field is missing, unknown, of another type or no finite number.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as exc:
            raise ValueError(f"{path.name}: no JSON: {exc}") from exc
        schema = data.get("schema", SCHEMA) if isinstance(data, dict) else SCHEMA
        if schema != SCHEMA:  # first, as its fields may be others
            raise ValueError(f"{path.name}: schema: got {schema!r}, want {SCHEMA}; measure again")
        result: Result = _parse(cls, data, path.name)
        return result


def _parse(kind: Any, data: Any, where: str) -> Any:
    """Return `data`, from JSON, as a `kind`: a dataclass, list, dict, Literal, str, bool, int or float."""
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if not isinstance(data, dict) or set(data) != set(hints):
            raise ValueError(f"{where}: got {_names(data)}, want the fields {sorted(hints)}")
        parts = {name: _parse(hint, data[name], f"{where}: {name}") for name, hint in hints.items()}
        return typing.cast(Any, kind)(**parts)
    if origin is list and isinstance(data, list):
        return [_parse(typing.get_args(kind)[0], item, f"{where}[{i}]") for i, item in enumerate(data)]
    if origin is dict and isinstance(data, dict):
        return {key: _parse(typing.get_args(kind)[1], item, f"{where}[{key!r}]") for key, item in data.items()}
    if origin is Literal and data in typing.get_args(kind):
        return data
    if kind is float and type(data) in (int, float) and math.isfinite(data):
        return float(data)
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias) and type(data) is kind:
        return data
    raise ValueError(f"{where}: got {data!r}, want {kind}")


def _names(data: object) -> object:
    return sorted(data) if isinstance(data, dict) else type(data).__name__
