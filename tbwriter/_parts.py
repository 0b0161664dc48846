"""Turn queue entries into what an event file stores, in order: blocks of records, and summaries still to be encoded."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from tbwriter import _record, _summary
from tbwriter._entries import (
    COALESCE_SECS,
    Entry,
    GraphEvent,
    Pending,
    Raw,
    RawSummary,
    Scalars,
    Series,
    unpack_floats,
)
from tbwriter._wall_times import WallTimes

# A point of a series, and its record without the tag at most, in bytes.
_POINT_BYTES = 4 + 8 + 8
_MAX_POINT_BYTES = 64


class Part(NamedTuple):
    """Something to store."""

    records: bytes
    """Whole records; of what is `pending` what it was last encoded to, for one certain file."""
    pending: Pending | Series | GraphEvent | None
    """What is encoded when it is stored: a summary, since only a tag's first in a file has the metadata, and points of
    a series, which take less memory than their records."""
    size: int
    """How many values of the user it holds."""

    @property
    def held(self) -> int:
        """The memory that it holds while it waits, in bytes."""
        if isinstance(self.pending, Series):
            return _POINT_BYTES * self.size
        if isinstance(self.pending, GraphEvent):
            return self.pending.graph.nbytes
        return self.pending.summary.nbytes if self.pending else len(self.records)

    def split(self, at: int) -> tuple[Part, Part]:
        """Return the part up to byte `at`, the end of a record, and the rest."""
        before = self.records[:at]
        size = sum(map(_summary.count_values, _record.bodies(before)))
        return Part(before, None, size), Part(self.records[at:], None, self.size - size)


class PartEncoder:
    """Encode entries; one per event file and thread."""

    def __init__(self, part_bytes: int, wall_times: WallTimes) -> None:
        """Make an encoder whose blocks of records are at most about `part_bytes` long."""
        self._wall_times = wall_times
        self._event = _summary.ScalarEncoder().event
        self._part_bytes = part_bytes
        self._parts: list[Part] = []
        self._block: list[bytes] = []  # records of scalars that are not yet a part
        self._block_bytes = self._block_size = 0
        self._last_group: tuple[str, ...] = ()

    def parts(self, entries: Iterable[Entry], *, coalesce: bool) -> list[Part]:
        """Return the parts of `entries`, in order.

        Neighbouring scalars become one Event, with the first one's wall time, where they have one step and different
        tags and no wall time is moved by more than COALESCE_SECS, and none of those that are given.
        """
        for kind, same in itertools.groupby(entries, type):
            if kind is tuple:
                self._add_plain([*same], coalesce=coalesce)
            else:
                for entry in same:
                    self._add_other(entry)
        self._end_block()
        parts, self._parts = self._parts, []  # what is stored is kept here no longer
        return parts

    def _add_plain(self, scalars: list[Any], *, coalesce: bool) -> None:
        """Add neighbouring scalars.

        Steps mostly bring the same tags again, in the same order. So the last group's tags are tried first, on
        columns, where that takes a few comparisons for all of a group; it is the same result as scalar by scalar.
        """
        tags, values, steps, wall_times = zip(*scalars, strict=True)
        # In order, the first and the last of a group speak for all.
        orderly = (
            coalesce
            and sorted(wall_times) == [*wall_times]
            and sorted(steps) == [*steps]
            and len({*map(type, wall_times)}) == 1
        )
        slack = _slack(wall_times[0])
        count = len(scalars)
        begin = 0
        while begin < count:
            group = self._last_group
            end = begin + len(group)
            if not (
                orderly
                and group
                and end < count
                and tags[begin:end] == group
                and steps[begin] == steps[end - 1]
                and wall_times[end - 1] <= wall_times[begin] + slack
                and (steps[end] != steps[begin] or tags[end] == group[0])
            ):
                end = _group_end(begin, scalars) if coalesce else begin + 1
                group = self._last_group = tags[begin:end]
            self._add_scalars(group, values[begin:end], steps[begin], wall_times[begin])
            begin = end

    def _add_scalars(self, tags: tuple[str, ...], values: Collection[float], step: int, wall_time: float) -> None:
        record = _record.frame(self._event(tags, values, step, self._wall_times.corrected(wall_time)))
        self._block.append(record)
        self._block_bytes += len(record)
        self._block_size += len(tags)
        if self._block_bytes >= self._part_bytes:
            self._end_block()

    def _end_block(self) -> None:
        """Make one part of the records so far: what is done for each part is then done rarely."""
        if self._block:
            self._parts.append(Part(b"".join(self._block), None, self._block_size))
            self._block.clear()
            self._block_bytes = self._block_size = 0

    def _add_other(self, entry: Entry) -> None:
        if isinstance(entry, Scalars):
            self._add_scalars(entry.tags, unpack_floats(entry.values), entry.step, entry.wall_time)
            return
        self._end_block()
        if isinstance(entry, (Pending, GraphEvent)):
            entry = entry._replace(wall_time=self._wall_times.corrected(entry.wall_time))
            self._parts.append(Part(b"", entry, 1))
        elif isinstance(entry, Series):
            self._add_series(entry)
        elif isinstance(entry, Raw):
            self._parts.append(Part(_record.frame(entry.event), None, 1))
        elif isinstance(entry, RawSummary):
            wall_time = self._wall_times.corrected(entry.wall_time)
            self._parts.append(Part(_record.frame(_summary.wrap(entry.summary, entry.step, wall_time)), None, 1))

    def _add_series(self, series: Series) -> None:
        if series.at_once:
            series.wall_times[:] = self._wall_times.corrected(float(series.wall_times[0]))
        size = max(1, self._part_bytes // (_MAX_POINT_BYTES + len(series.tag.encode())))
        for begin in range(0, len(series.values), size):
            columns = (column[begin : begin + size] for column in (series.values, series.steps, series.wall_times))
            block = Series(series.tag, *columns)
            self._parts.append(Part(b"", block, len(block.values)))


def series_records(series: Series) -> bytes:
    """Return the records of the points of a series."""
    blocks = _summary.rows(series.tag, series.values, series.steps, series.wall_times)
    return b"".join(_record.frame_rows(rows.data, rows.varying).tobytes() for rows in blocks)


def left_out_values(parts: Iterable[Part], numbers: Collection[int]) -> int:
    """Return how many values were in records that a sink left out.

    Args:
        parts: what it was given.
        numbers: of these records, from 0 over all parts.
    """
    values = number = 0
    for part in parts:
        for event in _record.bodies(part.records):
            if number in numbers:
                # What is no scalar counts as one value, whatever its record holds.
                values += _summary.count_values(event) if part.size > 1 else 1
            number += 1
    return values


def _slack(wall_time: float) -> float:
    """Return how far coalescing may move a wall time, in seconds."""
    return COALESCE_SECS if type(wall_time) is float else 0.0


def _group_end(begin: int, scalars: Sequence[Any]) -> int:
    """Return the end of the group that begins at `begin`."""
    tag, _, first_step, first_wall_time = scalars[begin]
    tags = {tag}
    for end in range(begin + 1, len(scalars)):
        tag, _, step, wall_time = scalars[end]
        latest = first_wall_time + _slack(wall_time)
        if step != first_step or tag in tags or not first_wall_time <= wall_time <= latest:
            return end
        tags.add(tag)
    return len(scalars)
