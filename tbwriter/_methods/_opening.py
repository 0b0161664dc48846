"""The first call that adds to a copy of a writer: it opens it, and nobody who adds meanwhile waits for that.

Opening is I/O, and writes lines to the log. Whoever adds meanwhile may be above that very call, in a handler of a
signal or of the log, or hold a lock that it needs: so what comes is kept, and that call hands it on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from tbwriter._async import Worker
from tbwriter._entries import Item
from tbwriter._queue import ENTRY_BYTES
from tbwriter.errors import QueueFullError, SinkError

Put = tuple[Item, int, int]
"""The arguments of `Worker.put`."""


class Opening:
    """Opens once; what is added before that is over waits, in order. From any thread."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        """Keep at most so many entries, of at most so many bytes, while one opens."""
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._turn = threading.Lock()  # of who opens; nobody waits for it
        self._opener: int | None = None  # the thread of that
        self._tried = threading.Event()
        # Guarded by _lock, which is held for memory only:
        self._lock = threading.RLock()
        self._worker: Worker | None = None
        self._waiting: deque[Put] = deque()
        self._bytes = 0
        self.dropped = 0
        """Values for which there was no room."""

    @property
    def queued(self) -> int:
        """How many values wait."""
        with self._lock:
            return sum(values for _, _, values in self._waiting)

    @property
    def is_over(self) -> bool:
        """Whether nothing waits for a call that opens."""
        return not (self._turn.locked() or self._waiting)

    def give_up(self) -> int:
        """Drop what waits, unless a call is at that; return how many values these were."""
        with self._lock:
            if self._turn.locked():
                return 0
            values = self.queued
            self.dropped += values
            self._waiting.clear()
            return values

    def put(self, first: Put, make: Callable[[], Worker], begin: Callable[[Worker], None]) -> None:
        """Open, and add `first` and what came meanwhile; or keep `first` for the call that is at that.

        Args:
            first: what is added.
            make: opens; called without a lock.
            begin: called once all is handed on, with a lock held: from then on nothing is to come here.

        Raises:
            SinkError, QueueFullError: as `make` and `Worker.put`. What others added then waits for the next call.
        """
        if self._turn.acquire(blocking=False):
            self._opener = threading.get_ident()
            try:
                self._open(first, make, begin)
            finally:
                self._turn.release()
                self._tried.set()
        elif not self._keep(first):
            assert self._worker is not None
            self._worker.put(*first)

    def wait(self, secs: float) -> None:
        """Wait, at most so long, while another thread opens: at exit, where it may be gone before it handed all on."""
        if self._opener != threading.get_ident():
            self._tried.wait(secs)

    def _keep(self, put: Put) -> bool:
        """Have it wait for the call that opens; False where that is over."""
        _, size, values = put
        size = size or ENTRY_BYTES
        with self._lock:
            if self._worker is not None:
                return False
            if len(self._waiting) < self._max_entries and self._bytes + size <= self._max_bytes:
                self._waiting.append(put)
                self._bytes += size
            else:
                self.dropped += values
        return True

    def _open(self, first: Put, make: Callable[[], Worker], begin: Callable[[Worker], None]) -> None:
        if self._worker is not None:  # a handler was faster
            self._worker.put(*first)
            return
        worker = make()
        errors: list[Exception] = []
        waiting = [first]
        try:
            while True:
                for put in waiting:
                    try:
                        worker.put(*put)
                    except (SinkError, QueueFullError) as exc:  # noqa: PERF203 (the others go in all the same)
                        errors.append(exc)
                with self._lock:
                    waiting = [*self._waiting]
                    self._waiting.clear()
                    self._bytes = 0
                    if not waiting and self._worker is not None:
                        break  # looked at once more: a handler may have come in between
                    if not waiting:
                        self._worker = worker
                        begin(worker)
        finally:
            self._worker = worker
            begin(worker)
            worker.queue.leave_out(self.dropped)
            self.dropped = 0
        if errors:
            raise errors[0]
