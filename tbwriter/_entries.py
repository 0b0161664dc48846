"""What waits in the queue between the training loop and the writer's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tbwriter import _summary

COALESCE_SECS = 0.1
"""Scalars of one step whose wall times lie this close together share an Event."""


class Scalars(NamedTuple):
    """Several scalars of one step: one Event."""

    tags: tuple[str, ...]
    values: Sequence[float]
    step: int
    wall_time: float


class Series(NamedTuple):
    """Many points of one scalar: one Event each, encoded together."""

    tag: str
    values: Any
    steps: Any
    wall_times: Any


class Pending(NamedTuple):
    """Any other summary; it is encoded when it is stored."""

    summary: _summary.Summary
    step: int
    wall_time: float


class Raw(NamedTuple):
    """A serialised Event."""

    event: bytes


Scalar = tuple[str, float, int, float, float]
"""The common case as a plain tuple: tag, value, step, wall time, and how far the wall time may be moved, in seconds."""

Entry = Scalar | Scalars | Series | Pending | Raw


class SubRun(NamedTuple):
    """An entry for the sub-run in the directory `name` below the run's own."""

    name: str
    entry: Entry


class Points(NamedTuple):
    """Points for the projector: files beside the event file."""

    embedding: _summary.Embedding


Item = Entry | SubRun | Points


def size_of(item: Item) -> int:
    """Return the memory that an item holds, in bytes, as the queue counts it; 0 for a scalar, counted by number."""
    if isinstance(item, SubRun):
        return 300 + size_of(item.entry)
    if isinstance(item, Scalars):
        return 200 + 40 * len(item.tags)
    if isinstance(item, Series):
        return 200 + 20 * len(item.values)
    if isinstance(item, Pending):
        return 200 + item.summary.nbytes
    if isinstance(item, Raw):
        return 100 + len(item.event)
    if isinstance(item, Points):
        return 200 + item.embedding.nbytes
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
    if isinstance(item, (Scalars, Pending)):
        return item.step
    return None if isinstance(item, (Series, Raw, Points)) else item[2]
