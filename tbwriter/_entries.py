"""What waits in the queue between the training loop and the writer's thread."""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any, NamedTuple

from tbwriter import _summary

COALESCE_SECS = 0.1
"""Scalars of one step whose wall times lie this close together share an Event. Those that a user gave must be equal."""


# What the objects around a summary's data take: the summary, its array's header and those of views, tuples, numbers.
_PENDING_BYTES = 600
SUB_RUN_BYTES = 100
"""What an entry for a sub-run takes beyond a scalar's, in bytes."""
SMALL_GROUP = 16
"""So many scalars of one step, packed, hold no more memory than one alone: they are counted by number."""


class Scalars(NamedTuple):
    """Several scalars of one step: one Event."""

    tags: tuple[str, ...]
    values: bytes
    """As `pack_floats` makes them: the queue then holds a sixth of what as many floats take."""
    step: int
    wall_time: float


def pack_floats(values: Collection[float]) -> bytes:
    """Return numbers within float32's range, infinite or NaN, as little-endian float32."""
    return struct.pack(f"<{len(values)}f", *values)


def unpack_floats(values: bytes) -> tuple[float, ...]:
    """Undo `pack_floats`."""
    return struct.unpack(f"<{len(values) // 4}f", values)


class Series(NamedTuple):
    """Many points of one scalar: one Event each, encoded together."""

    tag: str
    values: Any
    steps: Any
    wall_times: Any
    at_once: bool = False
    """Whether the wall times are one of the clock's."""


class Pending(NamedTuple):
    """Any other summary; it is encoded when it is stored."""

    summary: _summary.Summary
    step: int
    wall_time: float

    @property
    def tag(self) -> str:
        """The tag under which it is stored."""
        return self.summary.tag


class GraphEvent(NamedTuple):
    """A graph; it is encoded when it is stored."""

    graph: _summary.Graph
    step: int
    wall_time: float

    @property
    def tag(self) -> str:
        """What it is called where others are called by their tag."""
        return "graph"


class Raw(NamedTuple):
    """A serialised Event."""

    event: bytes


class RawSummary(NamedTuple):
    """A serialised Summary."""

    summary: bytes
    step: int
    wall_time: float


Scalar = tuple[str, float, int, float]
"""The common case as a plain tuple: tag, value, step and wall time."""

Entry = Scalar | Scalars | Series | Pending | GraphEvent | Raw | RawSummary


class SubRun(NamedTuple):
    """An entry for the sub-run in the directory `name` below the run's own."""

    name: str
    entry: Entry


class Points(NamedTuple):
    """Points for the projector: files beside the event file."""

    embedding: _summary.Embedding


Item = Entry | SubRun | Points


def size_of(item: Item) -> int:
    """Return the memory that an item holds, in bytes, as the queue counts it; 0 for what is counted by number."""
    if isinstance(item, SubRun):
        return SUB_RUN_BYTES + size_of(item.entry)
    if isinstance(item, Scalars):
        return 0 if len(item.tags) <= SMALL_GROUP else 200 + 12 * len(item.tags)
    if isinstance(item, Series):
        return 600 + 20 * len(item.values)
    if isinstance(item, Pending):
        return _PENDING_BYTES + item.summary.nbytes
    if isinstance(item, GraphEvent):
        return _PENDING_BYTES + item.graph.nbytes
    if isinstance(item, Raw):
        return 100 + len(item.event)
    if isinstance(item, RawSummary):
        return 100 + len(item.summary)
    if isinstance(item, Points):
        return _PENDING_BYTES + item.embedding.nbytes
    return 0


def values_of(item: Item) -> int:
    """Return how many values of the user an item holds."""
    if isinstance(item, Scalars):
        return len(item.tags)
    return len(item.values) if isinstance(item, Series) else 1


def step_of(item: Item) -> int | None:
    """Return the step of an item, where it has one."""
    if isinstance(item, SubRun):
        return step_of(item.entry)
    if isinstance(item, (Scalars, Pending, GraphEvent, RawSummary)):
        return item.step
    return None if isinstance(item, (Series, Raw, Points)) else item[2]
