"""One event loop per process for the drivers of object stores, in a thread of our own.

fsspec has such a loop, but at exit Python's executors take no more work before exit handlers run, and without one no
host name can be looked up: an upload at exit to anything but a numeric address fails. This loop looks names up in
daemon threads, and a forked child begins with a new one.
"""

from __future__ import annotations

import asyncio
import errno
import os
import selectors
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from tbwriter._logger import get_logger

_log = get_logger(__name__)

_T = TypeVar("_T")
IO_THREAD = "tbwriter-io"
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each call; where none can be started, as at the exit of Python 3.12 on, the call waits for it."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Run `fn` in a thread of its own, or here."""
        future: Future[_T] = Future()

        def work() -> None:
            # From here on it cannot be cancelled: nobody else may end what is ended here.
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as exc:  # it belongs to whoever waits
                future.set_exception(exc)

        try:
            threading.Thread(target=work, name="tbwriter-lookup", daemon=True).start()
        except RuntimeError:
            work()
        return future


class _Selector(selectors.DefaultSelector):
    """Forgets all in a forked child: its epoll instance is the parent's too, and must not lose what that waits for."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return what is registered."""
        return super().get_map() if self._pid == os.getpid() else {}


class _Loop(asyncio.SelectorEventLoop):
    """Does not run in a forked child, where drivers that close at exit would wait for it."""

    def __init__(self) -> None:
        self._pid = os.getpid()  # first: the base asks whether it runs
        super().__init__(_Selector())

    def is_running(self) -> bool:
        """Say whether the loop's thread is there."""
        return self._pid == os.getpid() and super().is_running()

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what drivers leave behind in an outage out of the training's log, where asyncio writes a traceback each.

        Whoever made the call has its error, and tells it once.
        """
        _log.debug("%s: %r", context["message"], context.get("exception"))


def io_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop of this process.

    Raises:
        OSError: its thread cannot be started, as at the exit of Python 3.12 on.
    """
    global _loop  # noqa: PLW0603 (one per process)
    with _lock:
        if _loop is None:
            loop = _Loop()
            loop.set_default_executor(_DaemonThreads(max_workers=1))
            try:
                threading.Thread(target=loop.run_forever, name=IO_THREAD, daemon=True).start()
            except RuntimeError as exc:
                loop.close()
                raise OSError(errno.EAGAIN, f"no thread can be started for this store: {exc}; open it earlier") from exc
            _loop = loop
        return _loop


def _forget() -> None:
    global _loop, _lock  # noqa: PLW0603 (the parent's thread does not exist here, and may have held the lock)
    _lock = threading.Lock()
    _loop = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
