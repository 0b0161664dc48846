"""The bounded queue between the training loop and the writer's thread.

The loop pays one comparison and one `deque.append` for a scalar: everything rare (the queue is filling, full, closed
or belongs to another process) hides behind one number, `threshold`. `deque.append` and `popleft` are atomic, so the
common path takes no lock; the counts of large entries are guarded by the condition.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import Literal

from tbwriter import _clock as time
from tbwriter._entries import Item, values_of
from tbwriter._logger import get_logger
from tbwriter.errors import QueueFullError

_log = get_logger(__name__)

OnFull = Literal["block", "drop", "raise"]

# What an entry of the queue costs in CPython beside what is counted for it, in bytes: all of a scalar or a small group.
ENTRY_BYTES = 240
MIN_BYTES = 8 * ENTRY_BYTES
"""The least that a queue may hold: a quarter of it is room for a large entry itself and a scalar beside its array."""
# Beside large entries, scalars and other small ones, of at most a 64th of the bytes, may take this share more: a batch
# of images that takes seconds to encode must not hold up the curves.
_SMALL = 64
_SPARE = 4
# How often a call that waits for room looks whether storage is what it waits for.
_LOOK_SECS = 0.1
# A worker that is woken this early writes batches that are large enough.
_WAKE_AT = 8192
_ONLY_SCALARS = {tuple}


class EntryQueue:
    """Entries in the order of their `put`, bounded by number and by bytes."""

    def __init__(
        self,
        *,
        max_entries: int,
        max_bytes: int,
        on_full: OnFull,
        block_secs: float,
        wake: Callable[[], None],
        gate: Callable[[], bool],
        encoding: Callable[[], bool] = lambda: False,
        may_wait: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make an empty queue.

        Args:
            max_entries: the most entries that wait.
            max_bytes: the most memory that they may hold. One entry that is larger alone is let in; and small ones
                beside large ones, up to a quarter of `max_bytes` more.
            on_full: "block" waits for room, "drop" leaves the new entry out and counts it, "raise" raises.
            block_secs: the longest wait for storage in one outage, all calls together; then entries are dropped.
            wake: called, from any thread, when the worker should not wait any longer.
            gate: called before each entry once `watch`ed; raises or returns False to leave it out.
            encoding: says whether the worker computes at this moment, so that a wait for room is none for storage.
            may_wait: says whether this thread may wait for room: not the one that makes it.
        """
        self.entries: deque[Item] = deque()
        self.threshold = 0
        """At this length an `append` must go through `put`."""
        self.dropped = 0
        """Values left out because there was no room."""
        self.taken = 0
        """Values that the worker took, and those that it added itself; only it changes this."""
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._on_full = on_full
        self._block_secs = block_secs
        self._block_left = block_secs
        self._wake = wake
        self._gate = gate
        self._encoding = encoding
        self._may_wait = may_wait
        self._watched = False
        self.closed = False
        self._woken = False
        self._told = False
        self._wake_mark = 0
        self._heavy = 0  # bytes held by entries that were put with a size, queued or being stored
        self._most = max_bytes  # that all may hold now, small ones included
        self._spare = max_bytes // _SPARE
        # Entered by itself: an interrupt within Condition.__enter__, which is Python's, would leave it locked for ever.
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._update_threshold()

    def _update_threshold(self) -> None:
        limit = min(self._max_entries, (self._most - self._heavy) // ENTRY_BYTES)
        self._wake_mark = min(limit, _WAKE_AT, self._max_entries // 2)
        self.threshold = -1 if self._watched else limit if self._woken else self._wake_mark

    def put(self, item: Item, size: int = 0, values: int = 1) -> None:
        """Add `item`, or do what is to be done when there is no room for it.

        Args:
            item: the entry.
            size: the memory that it holds, in bytes; 0 for a scalar.
            values: how many values are lost if it is dropped.

        Raises:
            QueueFullError: there is no room and `on_full` is "raise".
        """
        if self._watched and not self._gate():
            return
        tell = False
        with self._lock:
            if not self.closed and (self._has_room(size) or self._wait_for_room(size)):
                self._let_in(item, size)
                return
            if not self.closed:
                self.dropped += values
                tell, self._told = not self._told, True
        if self.closed:
            self._gate()  # raises
        if tell:  # outside of the lock: a handler of the log may do anything
            _log.warning(
                "%s does not keep up: %d entries and %.1f MiB of arrays wait, and there is room for no more; "
                "newer ones are dropped and counted until there is. Said once an outage",
                self._awaited,
                len(self.entries),
                self._heavy / (1 << 20),
            )

    @property
    def _awaited(self) -> str:
        return "encoding" if self._encoding() else "storage"

    def _let_in(self, item: Item, size: int) -> None:
        self._heavy += size
        if not self._is_small(size):
            self._most = max(self._most, self._heavy + self._spare)
        self.entries.append(item)
        if self._woken:
            self._update_threshold()
        elif len(self.entries) > self._wake_mark or self._heavy > self._max_bytes // 4:
            # Up to here large entries cannot lower the threshold below the mark, so it is left alone.
            self._woken = True
            self._wake()
            self._update_threshold()

    def _has_room(self, size: int) -> bool:
        if len(self.entries) >= self._max_entries:
            return False
        if size and not self._heavy:
            return True  # alone it may be larger than the whole queue
        limit = self._most if self._is_small(size) else self._max_bytes
        return self._heavy + len(self.entries) * ENTRY_BYTES + (size or ENTRY_BYTES) <= limit

    def _is_small(self, size: int) -> bool:
        return size * _SMALL <= self._max_bytes

    def _wait_for_room(self, size: int) -> bool:
        self._woken = True
        self._wake()
        if self._on_full == "raise":
            raise QueueFullError(
                f"{len(self.entries)} entries wait for {self._awaited} and max_queue={self._max_entries}, "
                f"max_queue_bytes={self._max_bytes} allow no more; see stats().last_error"
            )
        while self._on_full == "block" and self._block_left > 0 and self._may_wait():
            begin = time.monotonic()
            try:
                if self._room.wait_for(lambda: self._has_room(size) or self.closed, min(self._block_left, _LOOK_SECS)):
                    return not self.closed
            finally:
                if not self._encoding():
                    self._block_left -= time.monotonic() - begin
        return False

    def take(self, most: int) -> tuple[list[Item], bool]:
        """Remove and return up to `most` entries, the oldest first, and whether all are scalars; for the worker."""
        with self._lock:
            items = self._pop(most)
            only_scalars = {*map(type, items)} == _ONLY_SCALARS
            self.taken += len(items) if only_scalars else sum(map(values_of, items))
        return items, only_scalars

    def _pop(self, most: int) -> list[Item]:
        # A loop without bytecode; the worker is the only one that takes.
        return list(itertools.starmap(self.entries.popleft, itertools.repeat((), min(most, len(self.entries)))))

    def drop_all(self) -> None:
        """Remove all entries and count their values as dropped; for the worker."""
        with self._lock:
            self.dropped += sum(map(values_of, self._pop(len(self.entries))))

    def leave_out(self, values: int) -> None:
        """Count values that had no room elsewhere."""
        with self._lock:
            self.dropped += values

    def counts(self) -> tuple[int, int, int]:
        """Return how many values wait, were taken and were left out, at one moment."""
        with self._lock:
            entries, taken, dropped = list(self.entries), self.taken, self.dropped
        return sum(map(values_of, entries)), taken, dropped

    def stored(self, size: int) -> None:
        """Say that of what was taken `size` bytes more are stored: storage works, and there is room; for the worker."""
        with self._lock:
            self._heavy -= size
            self._most = max(self._max_bytes, min(self._most, self._heavy + self._spare))
            self._block_left = self._block_secs
            self._update_threshold()
            self._room.notify_all()

    def all_stored(self, size: int) -> None:
        """As `stored`, of the last that was taken: an outage is over, and the next entries need not be hurried."""
        with self._lock:
            self._woken = False
            self._told = False
            self.stored(size)

    def watch(self) -> None:
        """Send every later entry through `put` and the gate."""
        with self._lock:
            self._watched = True
            self._update_threshold()

    def never_wait(self) -> None:
        """Let no put wait for room: nobody makes any meanwhile."""
        self._block_secs = self._block_left = 0.0

    def close(self) -> None:
        """As `watch`, and let nobody wait for room any more."""
        with self._lock:
            self.closed = True
            self._room.notify_all()
        self.watch()

    def abandon(self) -> None:
        """Be inert in a forked child: no lock and no entry of the parent's."""
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self.entries.clear()
        self._heavy = 0
        self.watch()
