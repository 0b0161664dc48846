"""Everything that must be done at exit or after a fork, over all workers of the process.

One exit handler and one fork handler, however many writers come and go.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Iterable
from typing import Protocol

from tbwriter import _clock as time
from tbwriter._imported import imported
from tbwriter.sinks import Durability

EXIT_SECS = 10.0
"""The longest time that an exit of the process waits for storage, over all writers."""

HURRIED_SECS = 2.0
"""The same after a Ctrl-C that comes during that."""


class Closable(Protocol):
    """A worker, as far as this module is concerned."""

    url: str
    """The directory that it writes to."""

    @property
    def is_open(self) -> bool:
        """Whether things can still be added."""

    def flush(self, level: Durability | None, timeout: float | None) -> bool:
        """Wait until what was added is stored at `level`."""

    def start_closing(self, timeout: float) -> None:
        """Begin to end; must not block."""

    def finish_closing(self, timeout: float) -> None:
        """Wait for the end."""

    def after_fork_in_child(self) -> None:
        """Become inert."""


_live: weakref.WeakSet[Closable] = weakref.WeakSet()
_exit_began_at: list[float] = []  # on the monotonic clock; nothing before
_finalized: set[int] = set()  # pids of children that have the finalizer


def add(worker: Closable) -> None:
    """Have `worker` closed at exit."""
    _live.add(worker)
    _close_in_child_of_multiprocessing()


def _close_in_child_of_multiprocessing() -> None:
    """Such a child ends by os._exit, which skips exit handlers, but runs multiprocessing's own finalizers."""
    finalize = imported("multiprocessing.util", "Finalize")
    parent_process = imported("multiprocessing.process", "parent_process")
    if finalize is None or parent_process is None or parent_process() is None or os.getpid() in _finalized:
        return
    _finalized.add(os.getpid())
    finalize(None, _close_all, exitpriority=0)


def runs_script_again() -> bool:
    """Say whether this is a process that multiprocessing is just beginning.

    By spawn and by fork server it runs the top level of the script again, and with it what makes a writer there.
    """
    current_process = imported("multiprocessing.process", "current_process")
    return current_process is not None and getattr(current_process(), "_inheriting", False)


def open_ones() -> list[Closable]:
    """Return the open writers of this process."""
    return [worker for worker in list(_live) if worker.is_open]


def has_open(url: str) -> bool:
    """Say whether an open writer of this process writes to `url`."""
    return any(worker.url == url for worker in open_ones())


def exit_began() -> bool:
    """Say whether the writers of this process were closed at its exit: nobody will close a later one."""
    return bool(_exit_began_at)


def late_secs() -> float:
    """Return how long writers that are used after that may still wait for a store, over all of them."""
    return max(0.0, _exit_began_at[0] + 2 * EXIT_SECS - time.monotonic())


def others_stand_still() -> bool:
    """Say whether the interpreter ends and threads stand where it found them, perhaps with our locks: wait for none."""
    return sys.is_finalizing() and threading.active_count() > 1


def remove(worker: Closable) -> None:
    """Forget a closed worker."""
    _live.discard(worker)


@atexit.register
def _close_all() -> None:
    """Store what is left of every open writer; exit handlers run while daemon threads still do."""
    _exit_began_at.append(time.monotonic())
    workers = list(_live)
    deadline = time.monotonic() + EXIT_SECS
    for worker in workers:
        worker.start_closing(EXIT_SECS)
    try:
        _finish(workers, deadline)
    except KeyboardInterrupt:  # often pressed twice, and the second comes here; the next one ends the wait
        _finish(workers, min(deadline, time.monotonic() + HURRIED_SECS))


def _finish(workers: Iterable[Closable], deadline: float) -> None:
    for worker in workers:
        worker.finish_closing(max(0.0, deadline - time.monotonic()))


def _after_fork_in_child() -> None:
    for worker in list(_live):
        worker.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
