"""What a sink is: the place where the records of one run end up.

Threads: one writer thread calls `append`, `roll`, `flush`, `release` and `close`; `status` may be called from any.
Durability: see `Durability`; a sink reports the level it reached and never claims more. Nothing but `flush` above
`OS` may wait for a network; `append` and `roll` never do.
Segments: a run may be stored in several event files, one after the other. The event file decides what begins the
next one, since it alone knows which metadata readers need there; a sink says when it wants one (`roll_due`), or that
it must have one (`SegmentLostError`), or that none would help (`RecordTooLargeError`).
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class Durability(enum.IntEnum):
    """How much the records survive."""

    BUFFER = 0
    """In the memory of the process: lost with it."""
    OS = 1
    """Handed to the operating system, visible to other processes of the machine: survives kill -9."""
    SYNC = 2
    """On the disk or the file server: survives the machine, visible to other clients."""
    REMOTE = 3
    """Acknowledged by an object store."""


@dataclass(frozen=True)
class SinkStatus:
    """Counters of a sink, read at one moment.

    Attributes:
        path: where the current segment is.
        segment: its number, from 0.
        bytes_buffered: accepted and still in memory.
        bytes_os: handed to the operating system, over all segments.
        bytes_remote: up to which byte a remote store has acknowledged everything, over all segments.
        puts: requests that stored something remotely.
        bytes_uploaded: what they carried.
        retries: attempts that failed and were repeated.
        dropped_records: records given up.
        left_out: which of the last append, by their numbers from 0.
        last_error: the newest error in words, or None.
        spool: the local directory that holds what is not yet remote, or None.
    """

    path: str
    segment: int = 0
    bytes_buffered: int = 0
    bytes_os: int = 0
    bytes_remote: int = 0
    puts: int = 0
    bytes_uploaded: int = 0
    retries: int = 0
    dropped_records: int = 0
    left_out: tuple[int, ...] = ()
    last_error: str | None = None
    spool: str | None = None


class Sink(Protocol):
    """Where records go."""

    @property
    def name(self) -> str:
        """The file name of the current segment."""

    @property
    def max_durability(self) -> Durability:
        """The highest level that `flush` can reach."""

    @property
    def visible_at(self) -> Durability:
        """The level at which other processes see the records.

        `REMOTE` says that the sink ships them on threads of its own: then `flush` with a timeout of 0 asks for it and
        returns at once, and `status().bytes_remote` reaches what `bytes_os` was when the store has them all.
        """

    def append(self, records: bytes) -> None:
        """Take whole framed records; all of them, or raise.

        After an error the same `records` are passed again, and the sink goes on where it stopped, so that nothing is
        stored twice; or `roll` is called, and they will not come again.

        Raises:
            SegmentLostError: this segment takes no more; call `roll`, then append what was not accepted.
            RecordTooLargeError: no segment takes the first record that was not accepted; append those behind it.
            OSError: try again later.
        """

    def roll(self, name: str, header: bytes) -> None:
        """End the current segment and begin the segment `name` with the records of `header`.

        Raises:
            FileExistsError: there is such a segment; the current one is ended, call again with another name.
            OSError: try again later.
        """

    def roll_due(self) -> bool:
        """Say whether the sink wants a new segment before the next append."""

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        """Bring everything appended to `level`; return the level that was reached. Errors go to `status`.

        `timeout` is in seconds; a sink that only makes system calls, which cannot be given one, ignores it.
        """

    def release(self) -> None:
        """Give back file handles until the next append; a sink without any does nothing."""

    def status(self) -> SinkStatus:
        """Return counters; from any thread."""

    def close(self, timeout: float = 10.0) -> SinkStatus:
        """End the last segment, within `timeout` seconds. Idempotent, never raises for storage."""


_LENGTH = struct.Struct("<Q")
_AROUND_DATA = 8 + 4 + 4


def record_sizes(records: bytes) -> Iterator[int]:
    """Yield the size of each of whole records, framing included."""
    begin = 0
    while begin < len(records):
        size = int(_LENGTH.unpack_from(records, begin)[0]) + _AROUND_DATA
        yield size
        begin += size


def whole_records(records: bytes | memoryview, limit: int) -> int:
    """Return how many of the first `limit` bytes are whole records (a record tells its own length)."""
    end = 0
    while end + _LENGTH.size <= limit:
        size = int(_LENGTH.unpack_from(records, end)[0]) + _AROUND_DATA
        if end + size > limit:
            break
        end += size
    return end
