"""One event loop per process for the drivers of object stores, in a thread of our own.

fsspec has such a loop, but at exit Python's executors take no more work before exit handlers run, and without one no
host name can be looked up: an upload at exit to anything but a numeric address fails. This loop looks names up in
daemon threads, and a forked child begins with a new one.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each call; works as long as daemon threads do."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Run `fn` in a thread of its own."""
        future: Future[_T] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as exc:  # it belongs to whoever waits
                future.set_exception(exc)

        threading.Thread(target=work, name="tbwriter-lookup", daemon=True).start()
        return future


def io_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop of this process."""
    global _loop  # noqa: PLW0603 (one per process)
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _loop.set_default_executor(_DaemonThreads(max_workers=1))
            threading.Thread(target=_loop.run_forever, name="tbwriter-io", daemon=True).start()
        return _loop


def _forget() -> None:
    global _loop, _lock  # noqa: PLW0603 (the parent's thread does not exist here, and may have held the lock)
    _lock = threading.Lock()
    _loop = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
