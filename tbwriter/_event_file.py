"""The event file of one run: its header, metadata and rotation, and which records are still to be stored.

One thread at a time. `add` encodes, `drain` stores; when storage raises, everything not yet stored stays here and the
next `drain` goes on, so that a fault loses nothing and repeats nothing.

Over 300 lines: what a file holds, what waits and when the next file begins are one account, kept in one place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tbwriter import _clock as time
from tbwriter import _record, _summary, sinks
from tbwriter._entries import Entry, GraphEvent, Pending, Series
from tbwriter._logger import get_logger
from tbwriter._naming import file_name, second_of, session_starts
from tbwriter._parts import Part, PartEncoder, left_out_values, series_records
from tbwriter._wall_times import WallTimes
from tbwriter.errors import RecordTooLargeError, SegmentLostError

_log = get_logger(__name__)
_T = TypeVar("_T")

# One write: small enough that a slow disk is felt soon, large enough that a flush is one system call.
_CHUNK_BYTES = 1 << 18
_PART_BYTES = 1 << 16
_NO_LIMIT = 1 << 62
# So many names may be taken by others between a look into a directory and the new file.
_MOST_RIVALS = 1000


@dataclass(frozen=True)
class Place:
    """Where event files of one writer go and how they are named."""

    # In no repr, as they may hold credentials.
    url: str = field(repr=False)
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    suffix: str = ""
    max_file_bytes: int | None = None
    max_file_age_secs: float | None = None
    rotates_on_flush: bool = False
    """Whether a file ends with each flush that somebody asks for."""
    pid: int = 0
    host: str = "localhost"
    spool_dir: str | None = None
    shipper: sinks.Shipper = "thread"
    marks_sessions: bool = True
    """Whether a session begins with a SessionLog START."""
    probe: bool = True
    """Whether an object store is asked before the first file: not from the worker's thread, which waits for none."""
    second: int | None = None
    """What new names carry instead of the clock's second. Sub-runs take the run's own: that was chosen after a look
    at what is there, so that also names which nobody can look at sort after those of the sessions before."""


def _visible_at(sink: sinks.Sink) -> sinks.Durability:
    """Return the level at which others see the records; one that does not say shows them at once."""
    return getattr(sink, "visible_at", sinks.Durability.OS)


def _is_more_than_os(level: sinks.Durability | None) -> bool:
    """Say whether somebody asks for more than the timer does; None is where others see it."""
    return level is None or level > sinks.Durability.OS


class Shipment:
    """Records on their way to a store that a sink ships to on threads of its own; may be asked from any thread."""

    def __init__(self, sink: sinks.Sink, mark: int) -> None:
        self._sink = sink
        self._mark = mark

    @property
    def shipped(self) -> int:
        """How many bytes have arrived, of this shipment and of what was before it."""
        return self._sink.status().bytes_remote

    @property
    def arrived(self) -> bool:
        """Whether all have."""
        return self.shipped >= self._mark


class EventFile:
    """The event files of one run and one session, written one after the other."""

    def __init__(self, place: Place, *, purge_step: int | None, clock: Callable[[], float]) -> None:
        """Create the first file, with its header.

        Args:
            place: where.
            purge_step: the step at which this session resumes an earlier one, whose later points are void; None to
                void nothing.
            clock: returns seconds since 1970.

        Raises:
            OSError: storage refuses.
        """
        self._place = place
        self._clock = clock
        # A file can end between any two parts, so they are small beside it.
        self._wall_times = WallTimes()
        self._encoder = PartEncoder(min(_PART_BYTES, self._limit // 8), self._wall_times)
        self._described: set[str] = set()  # tags whose metadata the current file has
        self._failed: set[str] = set()  # tags that could not be encoded, for the log
        self._told_too_large = False
        self._parts: deque[Part] = deque()
        self._chunk: list[Part] = []  # taken from _parts and offered to the sink, not yet accepted
        self._chunk_bytes = b""
        self._roll_needed = False
        self.encoding_since: float | None = None
        """Since when, of `time.monotonic`, a summary is being encoded."""
        self.buffered = 0
        """Memory held by what waits, in bytes."""
        self.waiting = 0
        """Values that were added and are not stored yet."""
        self.written = 0
        """Values that were stored."""
        self.dropped = 0
        """Values that could not be encoded, that a full spool or no file takes, or that were given up at close."""
        self.thinned = 0
        """Of these, what a full spool did not take."""
        self.bytes = 0
        """What was stored, headers included, in bytes."""
        until = sinks.patience(place.url)
        existing, complete = sinks.names_before(
            place.url, place.storage_options, spool_dir=place.spool_dir, probe=place.probe, until=until
        )
        starts = session_starts(existing if complete else None, purge_step) if place.marks_sessions else []
        header = self._header(starts)
        self._sink = self._open(existing, header, until)
        self.second = second_of(self._sink.name)
        """Which the name of the first file carries."""
        self._file_bytes = self._header_bytes = self.bytes = len(header)
        self._begun_at = clock()

    @property
    def path(self) -> str:
        """Where the current file is."""
        return self._sink.status().path

    def add(self, entries: Iterable[Entry], *, coalesce: bool) -> None:
        """Encode `entries`, in order; no I/O.

        Args:
            entries: in the order in which they were added.
            coalesce: whether neighbouring scalars of one step share an Event.
        """
        for part in self._encoder.parts(entries, coalesce=coalesce):
            self._parts.append(part)
            self.waiting += part.size
            self.buffered += part.held

    def drain(self, stored: Callable[[], object] = lambda: None) -> None:
        """Store everything that was added, and call `stored` after each piece.

        Raises:
            OSError: storage failed; call again to go on where it stopped.
        """
        while self._parts or self._chunk:
            if self._roll_needed:
                self._roll()
            if not self._chunk:
                self._fill_chunk()
            if self._chunk:
                self._store_chunk()
                stored()

    @property
    def _limit(self) -> int:
        return self._place.max_file_bytes or _NO_LIMIT

    def _fill_chunk(self) -> None:
        """Move parts into the chunk, up to its size and the room in the file; ask for a new file where that is none."""
        room = self._limit - self._file_bytes
        fresh = self._file_bytes <= self._header_bytes
        if not fresh and (self._sink.roll_due() or self._is_old()):
            self._roll_needed = True
            return
        size = 0
        records = []
        while self._parts and size < _CHUNK_BYTES:
            part = self._parts[0]
            described = None
            if part.pending:
                self.encoding_since = time.monotonic()
                try:
                    with np.errstate(all="ignore"):  # without a thread of ours the user's own np.seterr holds here
                        record, described = self._encode(part.pending)
                except Exception as exc:  # one summary must not end the writer
                    self._drop(self._parts.popleft(), exc)
                    continue
                finally:
                    self.encoding_since = None
                part = part._replace(records=record)
            if size + len(part.records) > room and not (fresh and not size):
                self._roll_needed = not self._chunk
                break
            if described:
                self._described.add(described)
            self._parts.popleft()
            self._chunk.append(part)
            records.append(part.records)
            size += len(part.records)
        self._chunk_bytes = b"".join(records)

    def _is_old(self) -> bool:
        age = self._place.max_file_age_secs
        return age is not None and self._clock() - self._begun_at >= age

    def _encode(self, pending: Pending | Series | GraphEvent) -> tuple[bytes, str | None]:
        """Return the records, empty where there is nothing to show, and the tag whose metadata they have then shown."""
        if isinstance(pending, Series):
            return series_records(pending), None
        if isinstance(pending, GraphEvent):
            return _record.frame(pending.graph.event(pending.step, pending.wall_time)), None
        summary = pending.summary
        values = summary.values(summary.tag not in self._described)
        if not values:
            return b"", None
        event = _summary.event(values, pending.step, pending.wall_time)
        return _record.frame(event), summary.tag if values[0].tag == summary.tag else None

    def _drop(self, part: Part, exc: Exception) -> None:
        assert part.pending is not None
        self._count_dropped(part)
        tag = part.pending.tag
        if tag not in self._failed:
            self._failed.add(tag)
            shown = _summary.shown(tag)
            _log.warning("tag %s cannot be encoded and is left out: %s. Said once for this tag", shown, exc)

    def _drop_first_record(self, exc: RecordTooLargeError) -> None:
        """Leave out the first record that waits, which no file takes."""
        part = self._parts.popleft()
        size = _record.first_size(part.records)
        if size < len(part.records):
            part, rest = self._split(part, size)
            self._parts.appendleft(rest)
        self._count_dropped(part)
        if not self._told_too_large:
            self._told_too_large = True
            _log.warning(
                "a record of %d bytes%s is larger than a file may be here, and is left out and counted as dropped: "
                "%s. Said once a run",
                size,
                f" (tag {_summary.shown(part.pending.tag)})" if part.pending else "",
                exc,
            )

    def _count_dropped(self, part: Part) -> None:
        self.dropped += part.size
        self.waiting -= part.size
        self.buffered -= part.held

    def _store_chunk(self) -> None:
        if self._chunk_bytes:
            try:
                self._sink.append(self._chunk_bytes)
            except SegmentLostError as lost:
                fresh = self._file_bytes <= self._header_bytes
                self._take_back(lost.accepted, self._sink.status().left_out)
                self._roll_needed = True
                if fresh and not lost.accepted:
                    raise  # a new file that takes nothing: another one at once would not either
                _log.warning("%s; going on in a new file", lost)
                return
            except RecordTooLargeError as exc:
                self._take_back(exc.accepted, self._sink.status().left_out)
                self._drop_first_record(exc)
                return
        self._accepted(self._chunk, self._sink.status().left_out if self._chunk_bytes else ())
        self._chunk = []
        self._chunk_bytes = b""

    def _take_back(self, accepted: int, left_out: Collection[int] = ()) -> None:
        """Keep the first `accepted` bytes, whole records; the rest goes back, to be encoded for the next file."""
        chunk, self._chunk, self._chunk_bytes = self._chunk, [], b""
        kept = 0
        while kept < len(chunk) and len(chunk[kept].records) <= accepted:
            accepted -= len(chunk[kept].records)
            kept += 1
        if accepted:
            chunk[kept : kept + 1] = self._split(chunk[kept], accepted)
            kept += 1
        self._accepted(chunk[:kept], left_out)
        self._parts.extendleft(reversed(chunk[kept:]))

    def _split(self, part: Part, at: int) -> tuple[Part, Part]:
        before, after = part.split(at)
        self.buffered += before.held + after.held - part.held
        return before, after

    def _accepted(self, parts: Sequence[Part], left_out: Collection[int]) -> None:
        """Count what the sink took; of its records, which are numbered from 0, it left some out."""
        count = sum(part.size for part in parts)
        lost = left_out_values(parts, left_out) if left_out else 0
        self.waiting -= count
        self.written += count - lost
        self.dropped += lost
        self.thinned += lost
        self.buffered -= sum(part.held for part in parts)
        self._stored(sum(len(part.records) for part in parts))

    def _stored(self, size: int) -> None:
        self.bytes += size
        self._file_bytes += size

    # -- files

    def _header(self, starts: Sequence[int] = ()) -> bytes:
        now = self._wall_times.shifted(self._clock())
        events = [_summary.file_version(now), *(_summary.session_start(step, now) for step in starts)]
        return b"".join(map(_record.frame, events))

    def _next_name(self, existing: Iterable[str], previous: str | None) -> str:
        place = self._place
        now = self._clock() if place.second is None else place.second
        return file_name(existing, now=now, host=place.host, pid=place.pid, suffix=place.suffix, previous=previous)

    def _create(self, existing: list[str], previous: str | None, make: Callable[[str], _T]) -> _T:
        """Call `make` with one name after the other until no other writer was faster, and return what it does."""
        for _ in range(_MOST_RIVALS):
            name = self._next_name(existing, previous)
            try:
                return make(name)
            except FileExistsError:
                existing.append(name)
                previous = None
        return make(self._next_name(existing, None))  # or the sink means something else by it

    def _open(self, existing: list[str], header: bytes, until: float) -> sinks.Sink:
        place = self._place
        return self._create(
            existing,
            None,
            lambda name: sinks.open_at(
                place.url,
                name=name,
                header=header,
                storage_options=place.storage_options,
                spool_dir=place.spool_dir,
                probe=place.probe,
                shipper=place.shipper,
                until=until,
            ),
        )

    def _roll(self) -> None:
        # Where others see the records only later, no listing shows what they do now, and one would wait for a network.
        existing = [] if self._is_remote else sinks.list_names(self._place.url, self._place.storage_options)
        header = self._header()
        self._create(existing, self._sink.name, lambda name: self._sink.roll(name, header))
        self._roll_needed = False
        self._described.clear()
        self._file_bytes = self._header_bytes = len(header)
        self._begun_at = self._clock()
        self.bytes += len(header)

    def flush(self, level: sinks.Durability | None) -> bool:
        """Drain and bring everything to `level`, as far as the sink can; None is where other processes see it.

        A sink that ships on threads of its own is only asked to: `shipment` tells when it has.

        Returns:
            False where the sink fell short.

        Raises:
            OSError: as `drain`.
        """
        self.drain()
        sink = self._sink
        asked = _is_more_than_os(level)
        level = min(_visible_at(sink) if level is None else level, sink.max_durability)
        if self._is_remote:
            if self._ships(level):
                sink.flush(level, 0.0)
            return True  # the spool has it
        reached = sink.flush(level) >= level
        if asked and self._place.rotates_on_flush and self._file_bytes > self._header_bytes:
            sink.release()  # there are file systems that show a file when it is closed
            self._roll_needed = True
        return reached

    def ship(self) -> None:
        """Ask for what was stored so far to be shipped at once, if the sink ships at all; do not wait."""
        if self._ships(None):
            self._sink.flush(sinks.Durability.REMOTE, 0.0)

    def shipment(self, level: sinks.Durability | None) -> Shipment | None:
        """Return what is on its way after `flush`; None where `flush` waited for everything itself."""
        return Shipment(self._sink, self._sink.status().bytes_os) if self._ships(level) else None

    def _ships(self, level: sinks.Durability | None) -> bool:
        return self._is_remote and _is_more_than_os(level)

    @property
    def _is_remote(self) -> bool:
        """Whether others see the records only once threads of the sink's own have shipped them."""
        return _visible_at(self._sink) >= sinks.Durability.REMOTE

    def release(self) -> None:
        """Give back file handles until there is something to store."""
        self._sink.release()

    def status(self) -> sinks.SinkStatus:
        """Return the sink's counters; from any thread."""
        return self._sink.status()

    @property
    def failed_uploads(self) -> int:
        """How many attempts of the sink's own threads to reach a store failed; from any thread."""
        return self._sink.status().retries if self._is_remote else 0

    def close(self, timeout: float) -> None:
        """Close the file; what is not stored by now is dropped, and what a spool holds stays there."""
        before = self._sink.status().bytes_os
        after = self._sink.close(timeout).bytes_os
        # Of an append that failed half-way, the sink keeps the whole records; they need not be the first of the chunk
        # where a full spool had left some out.
        self._take_back(_record.whole(self._chunk_bytes, after - before))
        self.discard()

    def discard(self) -> None:
        """Give up what is not stored, and count it."""
        self.dropped += self.waiting
        self.waiting = self.buffered = 0
        self._parts.clear()
        self._chunk = []
