"""What a spool that fills up still takes: a curve with fewer points instead of one that ends.

The last quarter of the spool is shared out so that it never fills: the less is free, the fewer records are kept, one
of 2, of 4, of 8; and none that are large, which are arrays and images. How long an outage lasts does not matter.
"""

from __future__ import annotations

import math
import os
import threading

from tbwriter.sinks._base import record_sizes

ROOMY = 0.25
_LARGE_BYTES = 4096
_MAX_HALVINGS = 10

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

    @property
    def free(self) -> float:
        """The part that is free, from 0 to 1."""
        return max(0.0, 1.0 - self._used / self.limit)

    def after_fork_in_child(self) -> None:
        """Begin again: the parent's spools are the parent's."""
        self._lock = threading.Lock()
        self._used = 0


disk = Usage(int(os.environ.get("TBWRITER_SPOOL_BYTES") or DISK_BYTES))
memory = Usage(MEMORY_BYTES)


class Thinning:
    """Chooses the records that are kept; one per sink, one thread."""

    def __init__(self) -> None:
        self._seen = 0
        self.dropped = 0
        """Records left out."""

    def keep(self, records: bytes, free: float) -> bytes:
        """Return those of `records`, whole framed records, that go into a spool of which `free`, 0 to 1, is free."""
        if free >= ROOMY:
            return records
        halvings = math.ceil(math.log2(ROOMY / free)) if free > 0 else _MAX_HALVINGS + 1
        kept = []
        begin = 0
        for size in record_sizes(records):
            self._seen += 1
            small = size <= _LARGE_BYTES
            if small and halvings <= _MAX_HALVINGS and self._seen % (1 << halvings) == 0:
                kept.append(records[begin : begin + size])
            else:
                self.dropped += 1
            begin += size
        return b"".join(kept)


def _forget() -> None:
    disk.after_fork_in_child()
    memory.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
