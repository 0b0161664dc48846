"""Turn queue entries into what an event file stores, in order: blocks of records, and summaries still to be encoded."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from tbwriter import _record, _summary
from tbwriter._entries import Entry, Pending, Raw, Scalars, Series


class Part(NamedTuple):
    """Something to store."""

    records: bytes
    """Whole records; of a `pending` summary what it was last encoded to, for one certain file."""
    pending: Pending | None
    """A summary whose record depends on the file it comes to stand in: only a tag's first there has the metadata."""
    size: int
    """How many values of the user it holds."""

    @property
    def held(self) -> int:
        """The memory that it holds while it waits, in bytes."""
        return self.pending.summary.nbytes if self.pending else len(self.records)

    def split(self, at: int) -> tuple[Part, Part]:
        """Return the part up to byte `at`, the end of a record, and the rest; values are shared out by records."""
        before, behind = self.records[:at], self.records[at:]
        records = _record.count(before)
        size = self.size * records // (records + _record.count(behind))
        return Part(before, None, size), Part(behind, None, self.size - size)


class PartEncoder:
    """Encode entries; one per event file and thread."""

    def __init__(self, part_bytes: int) -> None:
        """Make an encoder whose blocks of records are at most about `part_bytes` long."""
        self._event = _summary.ScalarEncoder().event
        self._part_bytes = part_bytes
        self._parts: list[Part] = []
        self._block: list[bytes] = []  # records of scalars that are not yet a part
        self._block_bytes = self._block_size = 0

    def parts(self, entries: Iterable[Entry], *, coalesce: bool) -> list[Part]:
        """Return the parts of `entries`, in order.

        Neighbouring scalars become one Event, with the first one's wall time, where they have one step and different
        tags and no wall time is moved by more than its entry allows.
        """
        self._parts = []
        group: dict[str, float] = {}
        group_step, group_wall_time = 0, 0.0
        for entry in entries:
            if type(entry) is tuple:
                tag, value, step, wall_time, slack = entry  # type: ignore[misc]  # no NamedTuple is a plain tuple
                if group:
                    if (
                        coalesce
                        and step == group_step
                        and tag not in group
                        and group_wall_time <= wall_time <= group_wall_time + slack
                    ):
                        group[tag] = value
                        continue
                    self._add_scalars(tuple(group), group.values(), group_step, group_wall_time)
                group = {tag: value}
                group_step, group_wall_time = step, wall_time
            else:
                if group:
                    self._add_scalars(tuple(group), group.values(), group_step, group_wall_time)
                    group = {}
                self._add_other(entry)
        if group:
            self._add_scalars(tuple(group), group.values(), group_step, group_wall_time)
        self._end_block()
        return self._parts

    def _add_scalars(self, tags: tuple[str, ...], values: Collection[float], step: int, wall_time: float) -> None:
        record = _record.frame(self._event(tags, values, step, wall_time))
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
            self._add_scalars(*entry)
            return
        self._end_block()
        if isinstance(entry, Pending):
            self._parts.append(Part(b"", entry, 1))
        elif isinstance(entry, Series):
            for rows in _summary.rows(entry.tag, entry.values, entry.steps, entry.wall_times):
                step = max(1, self._part_bytes // (rows.data.shape[1] + 16))
                for begin in range(0, len(rows.data), step):
                    block = rows.data[begin : begin + step]
                    self._parts.append(Part(_record.frame_rows(block, rows.varying).tobytes(), None, len(block)))
        elif isinstance(entry, Raw):
            self._parts.append(Part(_record.frame(entry.event), None, 1))
