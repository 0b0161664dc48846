"""The threads that talk to a store: at most four for each store, shared by all sinks of the process that use it.

One thread per writer would mean hundreds with `add_scalars`; one for all would let a store that hangs hold up the
others; a few per store hide its latency, and a store that hangs holds up itself alone. A job is run by one thread at
a time. Threads are started when there is work and end when there is no job left. Where none can be started, as at the
exit of Python 3.12 on, whoever brings work or waits for it does it.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

from tbwriter import _clock as time
from tbwriter._logger import get_logger

_log = get_logger(__name__)

_MAX_THREADS = 4


class Job(Protocol):
    """Something that has work for a store now and then."""

    def step(self) -> float | None:
        """Do one piece of work, if any is due.

        Returns:
            Seconds until the next call, unless woken before; None to be never called again.
        """


class Uploader:
    """Runs jobs when they are due."""

    def __init__(self) -> None:
        self._reset()
        _uploaders.add(self)

    def _reset(self) -> None:
        self._cond = threading.Condition()
        # Guarded by _cond:
        self._due: dict[Job, float] = {}
        self._running: set[Job] = set()
        self._woken: set[Job] = set()  # of the running ones
        self._threads = 0
        self._idle = 0

    def add(self, job: Job) -> None:
        """Take a job; its first step is due now."""
        with self._cond:
            self._due[job] = 0.0
            self._provide_thread()
        self.work_here()

    def wake(self, job: Job) -> None:
        """Make a job's step due now."""
        with self._cond:
            if job in self._running:
                self._woken.add(job)
            elif job in self._due:
                self._due[job] = 0.0
                self._provide_thread()
        self.work_here()

    def withdraw(self, job: Job) -> bool:
        """Take a job away, if no thread is in its step; return whether it is."""
        with self._cond:
            if job in self._running:
                return False
            self._due.pop(job, None)
            return True

    def _provide_thread(self) -> None:
        if self._idle:
            self._cond.notify()
        elif self._threads < _MAX_THREADS:
            self._threads += 1
            try:
                threading.Thread(target=self._work, name="tbwriter-upload", daemon=True).start()
            except RuntimeError:
                self._threads -= 1

    def work_here(self, over: Callable[[], bool] = lambda: False, secs: float = 0.0) -> None:
        """Do the work in the caller, if there is no thread for it.

        Args:
            over: the caller waits for this to become true.
            secs: at most so long; 0 does only what is due now.
        """
        with self._cond:
            if self._threads:
                return
            self._threads += 1
        self._work(over, time.monotonic() + secs)

    def _work(self, over: Callable[[], bool] = lambda: False, until: float = math.inf) -> None:
        with self._cond:
            while self._due and not over():
                job = self._next_due(until)
                if job is None:
                    if time.monotonic() >= until:
                        break
                    continue
                self._running.add(job)
                if len(self._due) > len(self._running) and not self._idle:
                    self._provide_thread()  # for what falls due while this step takes its time
                self._cond.release()
                try:
                    pause = self._step(job)
                finally:
                    self._cond.acquire()
                    self._running.discard(job)
                if pause is None:
                    self._due.pop(job, None)
                else:
                    self._due[job] = 0.0 if job in self._woken else time.monotonic() + pause
                self._woken.discard(job)
            self._threads -= 1
            self._cond.notify_all()  # the others have nothing to do either

    def _next_due(self, until: float) -> Job | None:
        """Return a job that is due, or wait, at the longest until the moment `until`, and return None."""
        waiting = [(due, job) for job, due in self._due.items() if job not in self._running]
        now = time.monotonic()
        due, job = min(waiting, key=lambda item: item[0], default=(None, None))
        if due is not None and due <= now:
            if self._idle and sum(when <= now for when, _ in waiting) > 1:
                self._cond.notify()
            return job
        self._idle += 1
        try:
            wake_at = min(until, math.inf if due is None else due)
            self._cond.wait(None if wake_at == math.inf else max(0.0, wake_at - now))
        finally:
            self._idle -= 1
        return None

    @staticmethod
    def _step(job: Job) -> float | None:
        try:
            return job.step()
        except Exception:
            _log.exception("a fault of tbwriter's: this upload is tried again in a minute")
            return 60.0

    def after_fork_in_child(self) -> None:
        """Begin again without the parent's threads and jobs."""
        self._reset()


_uploaders: weakref.WeakSet[Uploader] = weakref.WeakSet()


def _forget() -> None:
    for uploader in list(_uploaders):
        uploader.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
