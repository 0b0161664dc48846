"""The writer's thread: takes the queue, encodes, stores, flushes on time, and lives through every fault.

Contract:
- Order is kept. `flush` is a barrier: it returns True when all that was put before it is stored at the asked level.
- A storage error never ends the thread: what could not be stored waits and is tried again, with a growing pause;
  meanwhile the queue fills up to its bounds. The error is logged once an outage and kept in `last_error`.
- After `fork` the child's copy does nothing; the parent's is untouched.
- All attributes belong to the worker's thread, except those guarded by `_cond`, which holds for memory only.
"""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable

from tbwriter._entries import Pending, Raw, Scalars, Series
from tbwriter._queue import EntryQueue, OnFull
from tbwriter._runs import Item, Runs, SubRun
from tbwriter._stats import WriterStats
from tbwriter.errors import SinkError, WriterClosedError
from tbwriter.sinks import Durability

_log = logging.getLogger(__name__)

# The worker encodes so many entries at a time and then sleeps for a moment: sleeping gives up the GIL, which another
# thread would else have to ask for, and wait for up to sys.getswitchinterval() (5 ms). 256 entries take 0.1 ms.
_SLICE = 256
_LONG_SLICE = 1024
_BACKLOG = 8192
_YIELD_SECS = 20e-6
# The timer runs a little early so that encoding and writing are over when flush_secs are.
_EARLY = 0.8
_BUFFERED_BYTES = 1 << 18
_MAX_PAUSE_SECS = 30.0
_FIRST_PAUSE_SECS = 0.1
# A flush without a timeout gives up when the worker has not got on for so long.
_STALLED_SECS = 10.0

_live: weakref.WeakSet[Worker] = weakref.WeakSet()


class _Request:
    def __init__(self, level: Durability) -> None:
        self.level = level
        self.done = False


class Worker:
    """One thread that stores what is put into `queue`."""

    def __init__(
        self,
        runs: Runs,
        *,
        flush_secs: float,
        max_entries: int,
        max_bytes: int,
        on_full: OnFull,
        block_secs: float,
        strict: bool,
        asynchronous: bool,
        clock: Callable[[], float],
    ) -> None:
        """Start the thread; with `asynchronous=False` there is none, and every put stores at once."""
        self.queue = EntryQueue(
            max_entries=max_entries,
            max_bytes=max_bytes,
            on_full=on_full,
            block_secs=block_secs,
            wake=self._wake_up,
            gate=self._gate,
        )
        self._runs = runs
        self._flush_secs = flush_secs
        self._strict = strict
        self._asynchronous = asynchronous
        self._clock = clock
        self._pid = os.getpid()
        self._cond = threading.Condition()
        self._wake = False  # guarded by _cond, as all down to the blank line
        self._requests: list[_Request] = []
        self._closing = False
        self._close_by = 0.0
        self._progress = 0
        self._told_fork = False
        self._unraised: OSError | None = None
        self._outage_flushed = False

        self.retries = 0
        self.last_error: str | None = None
        self.latency_secs = 0.0
        self._outage_since: float | None = None
        self._pause_secs = _FIRST_PAUSE_SECS
        self._retry_at = 0.0
        self._last_step = 0
        self._dropped_before = 0
        self._unstored = 0  # the size of entries that were taken and wait in _runs
        self._inline_lock = threading.RLock()
        self._thread: threading.Thread | None = None
        _live.add(self)
        if asynchronous:
            self._thread = threading.Thread(target=self._run, name="tbwriter", daemon=True)
            self._thread.start()
        if strict or not asynchronous:
            self.queue.watch()

    # -- called from any thread

    def _wake_up(self) -> None:
        with self._cond:
            self._wake = True
            self._cond.notify_all()

    def _gate(self) -> bool:
        """Decide about a put while the queue is shut."""
        if self._pid != os.getpid():
            self._tell_fork()
            return False
        if self._closing:
            raise WriterClosedError("the writer is closed: make a new SummaryWriter, or close this one later")
        return True

    def put(self, item: Item, size: int = 0, values: int = 1) -> None:
        """Add an entry by the path that looks at everything; `EntryQueue.put` tells the arguments.

        Raises:
            WriterClosedError: the writer is closed.
            QueueFullError: no room, with `on_full="raise"`.
            SinkError: with strict, from a storage error that no call has raised yet. The entry is in the queue.
        """
        self.queue.put(item, size, values)
        if self._thread is None and not self._closing:
            with self._inline_lock:
                self._cycle()
        if self._strict:
            self._raise_failure()

    def _raise_failure(self) -> None:
        with self._cond:
            failure, self._unraised = self._unraised, None
        if failure is not None:
            raise SinkError(failure.errno, f"storage failed: {failure}; the data is kept and tried again") from failure

    def flush(self, level: Durability, timeout: float | None) -> bool:
        """Wait until all that was put before is stored at `level`.

        Args:
            level: what it shall survive.
            timeout: in seconds; None waits as long as the worker gets on, and gives up 10 s after it stopped to, or
                at once when an earlier flush of the same outage did.

        Returns:
            Whether it is.
        """
        if self._pid != os.getpid():
            self._tell_fork()
            return False
        if self._thread is None:
            with self._inline_lock:
                return self._closing or self._cycle(level, [])
        if threading.current_thread() is self._thread:
            return False  # from a handler of our own log lines
        request = _Request(level)
        with self._cond:
            if self._closing:
                return self._runs.waiting == 0
            self._requests.append(request)
            self._wake = True
            self._cond.notify_all()
            self._await(request, timeout)
            if not request.done and request in self._requests:
                self._requests.remove(request)
        return request.done

    def _await(self, request: _Request, timeout: float | None) -> None:
        if timeout is not None:
            self._cond.wait_for(lambda: request.done, timeout)
            return
        stalled_at = time.monotonic() + _STALLED_SECS
        progress = self._progress
        while not request.done and not (self._outage_flushed and self._outage_since is not None):
            left = stalled_at - time.monotonic()
            if left <= 0:
                self._outage_flushed = True
                return
            self._cond.wait(left)
            if progress != self._progress:
                progress = self._progress
                stalled_at = time.monotonic() + _STALLED_SECS

    def close(self, timeout: float) -> None:
        """Store what is left, within `timeout` seconds, and end the thread. Idempotent."""
        self.start_closing(timeout)
        self.finish_closing(timeout)

    def start_closing(self, timeout: float) -> None:
        """Refuse later puts and let the thread come to its end."""
        if self._pid != os.getpid():
            return
        with self._cond:
            if self._closing:
                return
            self._closing = True
            self._close_by = time.monotonic() + timeout
            self._wake = True
            self._cond.notify_all()
        self.queue.close()
        if self._thread is None:
            with self._inline_lock:
                self._cycle()
                self._runs.close(timeout)

    def finish_closing(self, timeout: float) -> None:
        """Wait for the end of the thread; say what is lost when it does not come."""
        thread = self._thread if self._pid == os.getpid() else None
        if thread is not None and thread is not threading.current_thread():
            # The worker gives up by itself at the deadline; the rest is for the last system call.
            thread.join(timeout + 0.5)
            if thread.is_alive():
                left = len(self.queue.entries) + self._runs.waiting
                _log.error("%s: storage hangs; closed with %d values not stored", self._runs.path, left)
        _live.discard(self)

    def stats(self) -> WriterStats:
        """Return the counters."""
        runs = self._runs
        return WriterStats(
            queued=len(self.queue.entries) + runs.waiting,
            written=runs.written,
            dropped=self.queue.dropped + runs.dropped,
            retries=self.retries,
            bytes=runs.bytes,
            last_error=self.last_error,
            flush_latency_secs=self.latency_secs,
        )

    def _tell_fork(self) -> None:
        if not self._told_fork:
            self._told_fork = True
            _log.warning(
                "this SummaryWriter belongs to process %d and does nothing in its forked child %d: "
                "make one in the child, in a directory of its own",
                self._pid,
                os.getpid(),
            )

    def after_fork_in_child(self) -> None:
        """Make this copy inert: other threads of the parent may have held its locks."""
        self._cond = threading.Condition()
        self._inline_lock = threading.RLock()
        self.queue.abandon()

    # -- the worker's thread

    def _run(self) -> None:
        while True:
            with self._cond:
                if not self._wake:
                    self._cond.wait(self._next_wait())
                self._wake = False
                requests = list(self._requests)
                closing = self._closing
            if not requests and not closing and time.monotonic() < self._retry_at:
                continue
            level = max((request.level for request in requests), default=Durability.OS)
            stored = self._cycle(level, requests)
            if closing and (stored or time.monotonic() >= self._close_by):
                break
            if not stored and (requests or closing):
                # Someone waits for a storage that fails: try more often than the pause says, but do not spin.
                time.sleep(_FIRST_PAUSE_SECS / 2)
                self._wake = True
        self._end()

    def _next_wait(self) -> float:
        if self._outage_since is not None:
            return max(0.0, self._retry_at - time.monotonic())
        return self._flush_secs * _EARLY

    def _cycle(self, level: Durability = Durability.OS, requests: list[_Request] | None = None) -> bool:
        """Take, encode and store what is in the queue now; settle `requests`. Return whether all is stored."""
        begin = time.monotonic()
        left = len(self.queue.entries)
        size = 0
        if not left and not requests and not self._runs.waiting:
            return True
        try:
            self._runs.drain()  # what an outage left comes first
            while left > 0:
                items = self.queue.take(min(left, _LONG_SLICE if left > _BACKLOG else _SLICE))
                left -= len(items)
                size += sum(map(_weight, items))
                self._runs.add(items)
                self._last_step = _step(items[-1], self._last_step)
                if self._runs.buffered >= _BUFFERED_BYTES:
                    self._runs.drain()
                self._note_progress()
                if left > 0 and self._asynchronous:
                    time.sleep(_YIELD_SECS)
            reached = self._runs.flush(level)
        except OSError as exc:
            self._unstored += size
            self._failed(exc)
            return False
        except Exception as exc:
            # Not storage: a fault of ours. What was taken is lost, the thread lives on.
            _log.exception("the writer failed on %d values; they are left out", self._runs.waiting)
            self.last_error = repr(exc)
            self._runs.discard()
            reached = False
        self._succeeded(size, begin)
        with self._cond:
            for request in requests or ():
                request.done = reached
                self._requests.remove(request) if request in self._requests else None
            self._cond.notify_all()
        return reached

    def _note_progress(self) -> None:
        with self._cond:
            self._progress += 1

    def _failed(self, exc: OSError) -> None:
        now = time.monotonic()
        self.retries += 1
        self.last_error = str(exc)
        with self._cond:
            self._unraised = exc
            if self._outage_since is None:
                self._outage_since = now
                self._outage_flushed = False
                first = True
            else:
                first = False
        if first:
            _log.warning("%s: storage fails, the data waits and is tried again: %s", self._runs.path, exc)
        self._retry_at = now + self._pause_secs * random.uniform(0.5, 1.0)
        self._pause_secs = min(self._pause_secs * 2, _MAX_PAUSE_SECS)

    def _succeeded(self, size: int, begin: float) -> None:
        now = time.monotonic()
        self.latency_secs = now - begin
        self.queue.stored(size + self._unstored)
        self._unstored = 0
        if self._outage_since is not None:
            _log.warning("%s: storage is back after %.1f s", self._runs.path, now - self._outage_since)
            with self._cond:
                self._outage_since = None
                self._progress += 1
            self._pause_secs = _FIRST_PAUSE_SECS
            self._retry_at = 0.0
        dropped = self.queue.dropped
        if dropped > self._dropped_before:
            # The curve has a hole: draw it.
            self._dropped_before = dropped
            entry = Scalars(("tbwriter/dropped",), (float(dropped),), self._last_step, self._clock())
            self._runs.add([entry])

    def _end(self) -> None:
        left = len(self.queue.entries) + self._runs.waiting
        self._runs.close(max(0.0, self._close_by - time.monotonic()))
        if left:
            _log.error("%s: closed with %d values not stored: %s", self._runs.path, left, self.last_error)


def _weight(item: Item) -> int:
    """Return the size with which `item` was put."""
    if type(item) is tuple:
        return 0
    return size_of(item)


def size_of(item: Item) -> int:
    """Return the memory that an entry other than a scalar holds, in bytes, as the queue counts it."""
    if isinstance(item, SubRun):
        return 300 + (0 if type(item.entry) is tuple else size_of(item.entry))
    if isinstance(item, Scalars):
        return 200 + 40 * len(item.tags)
    if isinstance(item, Series):
        return 200 + 20 * len(item.values)
    if isinstance(item, Pending):
        return 200 + item.summary.nbytes
    assert isinstance(item, Raw)
    return 100 + len(item.event)


def _step(item: Item, otherwise: int) -> int:
    if isinstance(item, SubRun):
        return _step(item.entry, otherwise)
    if isinstance(item, (Scalars, Pending)):
        return item.step
    return item[2] if type(item) is tuple else otherwise


@atexit.register
def _close_all() -> None:
    """Store what is left of every open writer: exit handlers run while daemon threads still do."""
    workers = [worker for worker in _live if worker._pid == os.getpid()]
    deadline = time.monotonic() + _STALLED_SECS
    for worker in workers:
        worker.start_closing(_STALLED_SECS)
    for worker in workers:
        worker.finish_closing(max(0.0, deadline - time.monotonic()))


def _after_fork_in_child() -> None:
    for worker in list(_live):
        worker.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
