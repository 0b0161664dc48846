"""The writer's thread: takes the queue, encodes, stores, flushes on time, and lives through every fault.

Contract:
- Order is kept. `flush` is a barrier: it returns True when all that was put before it is stored at the asked level.
- A storage error never ends the thread: what could not be stored waits and is tried again, with a growing pause;
  meanwhile the queue fills up to its bounds. The error is logged once an outage and kept in `stats`.
- After `fork` the child's copy does nothing; the parent's is untouched.
- `_lock`, which is `_cond`'s, guards what is said to be guarded, and is held for memory only, never across I/O.
  Everything else belongs to the worker's thread.

Over 300 lines: the two sides of one handover, the callers' and the thread's, which share a condition and are only
understood together.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence

from tbwriter import _clock as time
from tbwriter import _live
from tbwriter._entries import Item, Scalars, pack_floats, size_of, step_of
from tbwriter._event_file import Shipment
from tbwriter._logger import get_logger
from tbwriter._outage import Outage
from tbwriter._queue import EntryQueue, OnFull
from tbwriter._runs import Runs, SubRunError
from tbwriter._stats import WriterStats
from tbwriter.errors import SinkError, WriterClosedError
from tbwriter.sinks import Durability

_log = get_logger(__name__)

# The worker encodes so many entries at a time and then sleeps for a moment: sleeping gives up the GIL, which another
# thread would else have to ask for, and wait for up to sys.getswitchinterval() (5 ms). 1024 scalars take 0.4 ms; every
# slice costs a handover of the GIL, tens of microseconds of processor time in a loop that holds it.
_SLICE = 1024
_YIELD_SECS = 20e-6
# The timer runs a little early so that encoding and writing are over when flush_secs are.
_EARLY = 0.8
_BUFFERED_BYTES = 1 << 18
# Storage that fails is tried this often while somebody waits for it.
_URGENT_PAUSE_SECS = 0.05
# A flush without a timeout gives up when the worker has neither got on nor computed for so long.
_STALLED_SECS = 10.0
# What the last system call of a closing worker may take beyond its deadline.
_GRACE_SECS = 0.5
# How often the worker looks whether a store has what a flush waits for.
_LOOK_SECS = 0.005
# Longer waits overflow the system's clock.
_FOREVER_SECS = 1e8


class _Request:
    """A flush that waits; `reached` is None until it is known."""

    def __init__(self, level: Durability | None) -> None:
        self.level = level
        self.reached: bool | None = None
        self.shipments: list[Shipment] = []
        """What it waits for after all has been stored here."""

    @property
    def shipped(self) -> int:
        """What has arrived at the stores that it waits for, in bytes."""
        return sum(shipment.shipped for shipment in self.shipments)


def _highest(requests: Sequence[_Request]) -> Durability | None:
    """Return a level that satisfies all: None, what others see, is `OS` or more."""
    levels = [request.level for request in requests]
    above = [level for level in levels if level is not None and level > Durability.OS]
    return max(above) if above else None if None in levels else Durability.OS


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
        """Start the thread; with `asynchronous=False` there is none, and every put stores at once.

        So it is at the exit of the process, when nobody is left to close a writer.
        """
        asynchronous = asynchronous and not _live.exit_began()
        self.queue = EntryQueue(
            max_entries=max_entries,
            max_bytes=max_bytes,
            on_full=on_full,
            block_secs=min(block_secs, _FOREVER_SECS) if asynchronous else 0.0,
            wake=self._wake_up,
            gate=self._gate,
            encoding=lambda: self._runs.encoding,
            may_wait=lambda: threading.current_thread() is not self._thread,
        )
        self.url = runs.url
        self._runs = runs
        runs.stored = self._release
        self._flush_secs = min(flush_secs, _FOREVER_SECS)
        self._strict = strict
        self._clock = clock
        self._pid = os.getpid()
        self._told_fork = False
        self._hangs = False  # a close has given up on the thread
        self._lost = 0  # values given up by close

        # Guarded by _lock, which is entered by itself: Condition.__enter__ is Python's, and an interrupt within it
        # would leave it locked for ever.
        self._lock = threading.RLock()
        self._cond = threading.Condition(self._lock)
        self._wake = False
        self._requests: list[_Request] = []
        self._closing = False
        self._over = False  # the thread has done all that it will do
        self._close_by = 0.0
        self._progress = 0  # grows whenever the worker gets on
        self._unraised: OSError | None = None  # for strict
        self._given_up = False  # a flush has waited in vain, and the worker has not got on since
        self._shipping: list[_Request] = []  # stored here, and on their way to a store
        self._shipped_in_vain = -1  # what had arrived when a flush gave up waiting for a store

        self._outage = Outage()
        self._sub_outage = Outage()  # of sub-runs alone, which holds up nothing else
        self._latency_secs = 0.0
        self._last_step = 0
        self._dropped_told = 0
        self._thinned = 0  # values that full spools did not take, at the last look
        self._spoilt = 0  # values that a fault of ours has lost
        self._cycle_at = time.monotonic() + self._flush_secs * _EARLY  # when the next cycle is due by itself
        self._unstored = 0  # the size of entries that were taken and wait in _runs

        self._inline_lock = threading.RLock()
        self._storing = False  # a call is at work without a thread, and a signal handler may be above it
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="tbwriter", daemon=True) if asynchronous else None
        if self._thread is not None:
            self._start(self._thread)
        if strict or self._thread is None:
            self.queue.watch()
        _live.add(self)

    def _start(self, thread: threading.Thread) -> None:
        """Start the thread, or go on without where none can be started: in other handlers of the process's exit."""
        try:
            thread.start()
        except RuntimeError as exc:
            self._thread = None
            self.queue.never_wait()
            _log.warning("%s: no thread can be started (%s): every call stores by itself", self._runs.path, exc)

    # -- called from any thread

    def put(self, item: Item, size: int = 0, values: int = 1) -> None:
        """Add an item by the path that looks at everything; `EntryQueue.put` tells the arguments.

        Raises:
            WriterClosedError: the writer is closed; or it has no thread, and the interpreter ends while others stand
                still, perhaps with what this needs.
            QueueFullError: no room, with `on_full="raise"`.
            SinkError: with strict, from a storage error that no call has raised yet. The item is in the queue.
        """
        is_inline = self._thread is None and self._is_ours()
        if is_inline and _live.others_stand_still():
            raise WriterClosedError
        self.queue.put(item, size, values)
        if is_inline:
            if _live.exit_began():  # nobody closes this writer, and what it spooled would stay here
                self.flush(None, _live.late_secs())
            else:
                self._store_inline(())
        if self._strict:
            with self._lock:
                failure, self._unraised = self._unraised, None
            if failure is not None:
                message = f"storage failed: {failure}; the data is kept and tried again"
                raise SinkError(failure.errno, message) from failure

    def _wake_up(self) -> None:
        with self._lock:
            self._wake = True
            self._cond.notify_all()

    def _gate(self) -> bool:
        """Decide about a put into a queue that is watched."""
        if not self._is_ours():
            self._tell_fork()
            return False
        if self.queue.closed:
            raise WriterClosedError
        return True

    @property
    def is_open(self) -> bool:
        """Whether things can still be added, in this process."""
        return self._is_ours() and not self.queue.closed

    def _is_ours(self) -> bool:
        return self._pid == os.getpid()

    def _tell_fork(self) -> None:
        if not self._told_fork:
            self._told_fork = True
            _log.warning(
                "this SummaryWriter belongs to process %d and does nothing in its forked child %d: "
                "make one in the child, in a directory of its own",
                self._pid,
                os.getpid(),
            )

    def flush(self, level: Durability | None, timeout: float | None) -> bool:
        """Wait until all that was put before is stored at `level`.

        Args:
            level: what it shall survive; None is to be seen by other processes.
            timeout: in seconds; None waits as long as the worker gets on, and gives up 10 s after it stopped to, or
                at once when an earlier flush of the same outage did.

        Returns:
            Whether it is.
        """
        if not self._is_ours():
            self._tell_fork()
            return False
        request = _Request(level)
        if self._thread is None:
            if _live.others_stand_still():
                return False
            with self._inline_lock:
                if self._ended:
                    return self._closed_well(level)
                return self._store_inline((request,)) and self._ship(request, timeout)
        if threading.current_thread() is self._thread:
            return False  # from a handler of our own log lines
        with self._lock:
            if self._closing:
                return self._runs.waiting == 0 and not self.queue.entries and self._closed_well(level)
            self._requests.append(request)
            self._wake = True
            self._cond.notify_all()
            try:
                self._await(request, timeout)
            finally:
                for waiting in (self._requests, self._shipping):
                    if request in waiting:
                        waiting.remove(request)
        return bool(request.reached)

    def _store_inline(self, requests: Sequence[_Request]) -> bool:
        """Do the thread's work in the caller; return whether all is stored.

        A signal handler's call returns at once: the call that it interrupts stores what it added, and ends the writer
        if it asked for that.
        """
        with self._inline_lock:
            while not self._storing:
                self._storing = True
                try:
                    stored = self._cycle(requests)
                    if self._closing and not self._ended and not (stored and self.queue.entries):
                        self._end()
                finally:
                    self._storing = False
                if not (stored and self.queue.entries):
                    return stored
        return False

    def _await(self, request: _Request, timeout: float | None) -> None:
        if timeout is not None:
            self._cond.wait_for(lambda: request.reached is not None, min(timeout, _FOREVER_SECS))
            return
        progress = self._progress_of(request)
        give_up_at = time.monotonic() + _STALLED_SECS
        while request.reached is None and not self._waits_in_vain(request):
            left = give_up_at - time.monotonic()
            if left > 0:
                self._cond.wait(left)
            elif progress == self._progress_of(request) and not self._runs.encoding:
                if request.shipments:
                    self._shipped_in_vain = request.shipped
                else:
                    self._given_up = True
                return
            if progress != self._progress_of(request) or self._runs.encoding:
                progress = self._progress_of(request)
                give_up_at = time.monotonic() + _STALLED_SECS

    def _progress_of(self, request: _Request) -> tuple[int, ...]:
        """Return numbers that change when what a flush waits for gets on."""
        if request.shipments:
            return (request.shipped,)
        return (self._progress, self._runs.bytes)

    def _waits_in_vain(self, request: _Request) -> bool:
        """Say whether an earlier flush has given up on what this one waits for, and nothing has changed since."""
        if request.shipments:
            return request.shipped == self._shipped_in_vain
        return self._given_up

    def _ship(self, request: _Request, timeout: float | None) -> bool:
        """Wait in the caller, without a thread of ours, until a store has what `flush` has just asked it to take."""
        deadline = time.monotonic() + (_STALLED_SECS if timeout is None else timeout)
        while not all(shipment.arrived for shipment in request.shipments):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_SECS)
        return True

    def _closed_well(self, level: Durability | None) -> bool:
        """Say whether close stored everything at `level`."""
        return self._lost == 0 and all(shipment.arrived for shipment in self._runs.shipments(level))

    def close(self, timeout: float) -> None:
        """Store what is left, within `timeout` seconds, and end the thread. Idempotent."""
        self.start_closing(timeout)
        self.finish_closing(timeout)

    def start_closing(self, timeout: float) -> None:
        """Refuse later puts and let the thread come to its end."""
        if not self._is_ours():
            return
        # First of all: what is let in after the worker has seen _closing would never be stored.
        self.queue.close()
        with self._lock:
            if self._closing and (self._thread is not None or self._ended):
                return
            self._closing = True
            self._close_by = time.monotonic() + min(timeout, _FOREVER_SECS)
            self._wake = True
            self._cond.notify_all()
        if self._thread is None and not _live.others_stand_still():
            self._store_inline(())

    def finish_closing(self, timeout: float) -> None:
        """Wait for the end of the thread; say what is lost when it does not come."""
        thread = self._thread
        if thread is None and not self._ended and self._is_ours():
            return  # the call that a signal handler interrupts ends it, or else the exit
        ours = self._is_ours() and thread is not threading.current_thread()
        if thread is not None and ours and not self._hangs:
            # Not by thread.join: one that Ctrl-C interrupts lets Python 3.10 to 3.12 take the thread for ended.
            with self._lock:
                over = self._cond.wait_for(lambda: self._over, min(timeout, _FOREVER_SECS) + _GRACE_SECS)
            if over:
                thread.join(_GRACE_SECS)
            else:
                self._hangs = True
                reason = "encoding takes longer than close waits" if self._runs.encoding else "storage hangs"
                _log.error("%s: %s; closed with %d values not stored", self._runs.path, reason, self.stats().queued)
        _live.remove(self)

    def stats(self) -> WriterStats:
        """Return the counters: whatever the thread does meanwhile, each value is in one of them."""
        runs = self._runs
        # Before those of the queue, or what was put and stored in between would be missing there.
        written, lost = runs.written, runs.dropped + self._spoilt
        waiting, taken, left_out = self.queue.counts()
        return WriterStats(
            queued=waiting + taken - written - lost,
            written=written,
            dropped=left_out + lost,
            retries=self._outage.errors + self._sub_outage.errors + runs.failed_uploads(),
            bytes=runs.bytes,
            last_error=self._outage.last_error or self._sub_outage.last_error or runs.last_error(),
            flush_latency_secs=self._latency_secs,
        )

    def after_fork_in_child(self) -> None:
        """Make this copy inert: other threads of the parent may have held its locks."""
        self._lock = threading.RLock()
        self._cond = threading.Condition(self._lock)
        self._inline_lock = threading.RLock()
        self.queue.abandon()

    # -- the worker's thread

    def _run(self) -> None:
        try:
            self._work()
        finally:
            with self._lock:
                self._over = True
                self._cond.notify_all()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._wake:
                    self._cond.wait(self._wait_secs())
                looks_only = not self._wake and self._shipping and time.monotonic() < self._cycle_at
                self._wake = False
                requests = tuple(self._requests)
                closing = self._closing
                self._settle_shipped()
            if looks_only:
                continue
            urgent = closing or bool(requests)
            if not urgent and time.monotonic() < self._outage.retry_at:
                continue
            stored = self._cycle(requests)
            if closing and (stored or time.monotonic() >= self._close_by):
                break
            if urgent and not stored:
                time.sleep(_URGENT_PAUSE_SECS)
                self._wake_up()
        self._end()

    def _wait_secs(self) -> float:
        now = time.monotonic()
        at = self._cycle_at if self._outage.since is None else self._outage.retry_at
        return max(0.0, min(at - now, _LOOK_SECS) if self._shipping else at - now)

    def _settle_shipped(self) -> None:
        """Let those flushes return whose records have arrived at their stores; with _cond held."""
        for request in [one for one in self._shipping if all(shipment.arrived for shipment in one.shipments)]:
            request.reached = True
            self._shipping.remove(request)
            self._cond.notify_all()

    def _cycle(self, requests: Sequence[_Request]) -> bool:
        """Take, encode and store what is in the queue now, and settle `requests`; return whether all is stored."""
        begin = time.monotonic()
        self._cycle_at = begin + self._flush_secs * _EARLY
        if not (self.queue.entries or requests or self._runs.waiting):
            return True
        level = _highest(requests)
        try:
            with contextlib.suppress(SubRunError):  # the run itself goes on; flush raises it again
                self._runs.drain()  # what an outage left comes first
            self._take_all()
            reached = self._runs.flush(level)
        except SubRunError as exc:
            # The run itself is stored and goes on.
            with self._lock:
                self._unraised = exc
            self._sub_outage.failed(exc, self._runs.path)
            self._outage.ended(self._runs.path)
            self._release(over=True)
            return False
        except OSError as exc:
            with self._lock:
                self._unraised = exc
            self._outage.failed(exc, self._runs.path, self._runs.written)
            return False
        except Exception:
            # Not storage: a fault of ours. What was taken is lost and counted; the thread lives on.
            _log.exception("%s: %d values cannot be written and are left out", self._runs.path, self._runs.waiting)
            self._runs.discard()
            self._spoilt = self.queue.taken - self._runs.written - self._runs.dropped
            reached = False
        self._outage.ended(self._runs.path)
        self._sub_outage.ended(self._runs.path)
        self._release(over=True)
        self._latency_secs = time.monotonic() - begin
        with self._lock:
            self._progress += 1
            self._given_up = False
            for request in requests:
                request.shipments = self._runs.shipments(request.level) if reached else []
                if request.shipments and self._thread is not None:
                    self._shipping.append(request)
                else:
                    request.reached = reached
                if request in self._requests:
                    self._requests.remove(request)
            self._cond.notify_all()
        return reached

    def _release(self, *, over: bool = False) -> None:
        """Give back the room in the queue of what was taken and is stored; `over` at the end of a cycle."""
        held = min(self._runs.held, self._unstored)
        stored, self._unstored = self._unstored - held, held
        if over:
            self.queue.all_stored(stored)
        elif stored:
            self.queue.stored(stored)

    def _take_all(self) -> None:
        """Encode what is in the queue now, in slices."""
        left = len(self.queue.entries)
        while left > 0:
            items, only_scalars = self.queue.take(min(left, _SLICE))
            left -= len(items)
            step = step_of(items[-1])
            self._last_step = self._last_step if step is None else step
            if only_scalars:
                self._runs.add_scalars(items)
            else:
                self._unstored += sum(map(size_of, items))
                self._runs.add(items)
            if self._runs.buffered >= _BUFFERED_BYTES:
                with contextlib.suppress(SubRunError):
                    self._runs.drain()
            with self._lock:
                self._progress += 1
            if left > 0 and self._thread is not None:
                time.sleep(_YIELD_SECS)
        thinned, self._thinned = self._thinned, self._runs.thinned
        dropped = self.queue.dropped + self._spoilt + thinned
        # A spool that still drops would drop this too.
        if dropped > self._dropped_told and thinned == self._thinned:
            # The curves have a hole: this one shows where.
            self._dropped_told = dropped
            self.queue.taken += 1
            self._runs.add([Scalars(("tbwriter/dropped",), pack_floats([dropped]), self._last_step, self._clock())])

    def _end(self) -> None:
        self._ended = True
        before = self.queue.dropped + self._runs.dropped
        self.queue.drop_all()
        self._runs.close(max(0.0, self._close_by - time.monotonic()))
        lost = self._lost = self.queue.dropped + self._runs.dropped - before
        with self._lock:
            for request in [*self._requests, *self._shipping]:
                request.reached = lost == 0 and all(shipment.arrived for shipment in request.shipments)
            self._cond.notify_all()
        if lost:
            reason = self._outage.reason or self._sub_outage.reason or "there was no time left"
            _log.error("%s: closed with %d values not stored: %s", self._runs.path, lost, reason)
