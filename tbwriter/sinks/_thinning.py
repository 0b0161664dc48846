"""What a spool that fills up still takes: a curve with fewer points instead of one that ends.

The last quarter of the spool is shared out in twelve parts: in the first one record of 2 is kept, then one of 4, one of
8; and none that are large, which are arrays and images. So the last quarter holds a thousand times more of a curve.
"""

from __future__ import annotations

import math
import os
import threading
from typing import NamedTuple

from tbwriter._logger import get_logger
from tbwriter.sinks._base import record_sizes

_log = get_logger(__name__)

ROOMY = 0.25
_LARGE_BYTES = 4096
_HALVINGS = 12

DISK_BYTES = 1 << 30
MEMORY_BYTES = 64 << 20


class Usage:
    """Bytes that wait, over all spools of one kind in this process."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._used = 0

    def add(self, size: int) -> None:
        """Count `size` more bytes; negative for less."""
        with self._lock:
            self._used += size

    def free(self, more: int = 0) -> float:
        """Return the part that is free, from 0 to 1, if there were `more` bytes."""
        return max(0.0, 1.0 - (self._used + more) / self.limit)

    def after_fork_in_child(self) -> None:
        """Begin again: the parent's spools are the parent's."""
        self._lock = threading.Lock()
        self._used = 0


def _disk_bytes() -> int:
    given = os.environ.get("TBWRITER_SPOOL_BYTES") or str(DISK_BYTES)
    if given.strip().isdecimal() and int(given) > 0:
        return int(given)
    _log.warning("TBWRITER_SPOOL_BYTES must be a number of bytes, as 1073741824, got %r; %d it is", given, DISK_BYTES)
    return DISK_BYTES


disk = Usage(_disk_bytes())
memory = Usage(MEMORY_BYTES)


class Choice(NamedTuple):
    """Of some records those that are kept."""

    kept: bytes
    left_out: tuple[int, ...] = ()
    """The numbers of the others, from 0."""

    def up_to(self, records: bytes, size: int) -> tuple[int, tuple[int, ...]]:
        """Return the end in `records`, and what is left out before it, where `size` bytes of `kept` were stored."""
        end = at = count = 0
        left_out = set(self.left_out)
        for number, length in enumerate(record_sizes(records)):
            at += length
            if number in left_out:
                continue
            size -= length
            if size < 0:
                break
            end, count = at, number
        return end, tuple(number for number in self.left_out if number < count)


class Thinning:
    """Chooses the records that are kept; one per sink, one thread."""

    def __init__(self) -> None:
        self._seen = 0

    def choose(self, records: bytes, usage: Usage) -> Choice:
        """Choose those of `records`, whole framed records, that go into a spool of `usage`."""
        if usage.free(len(records)) >= ROOMY:
            return Choice(records)
        kept, left_out = [], []
        size = begin = 0
        for number, length in enumerate(record_sizes(records)):
            self._seen += 1
            halvings = _halvings(usage.free(size + length))
            # What is large is an array or an image.
            large = halvings and length > _LARGE_BYTES
            if large or halvings > _HALVINGS or self._seen % (1 << halvings):
                left_out.append(number)
            else:
                kept.append(records[begin : begin + length])
                size += length
            begin += length
        return Choice(b"".join(kept), tuple(left_out))


def _halvings(free: float) -> int:
    """Return n, where one record of 2**n is kept while this part of the spool is free."""
    if free >= ROOMY:
        return 0
    return math.ceil(_HALVINGS * (1 - free / ROOMY)) if free > 0 else _HALVINGS + 1


def _forget() -> None:
    disk.after_fork_in_child()
    memory.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
