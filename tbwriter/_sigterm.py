"""What a scheduler's SIGTERM may do first: bring everything to where others see it."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

from tbwriter import _clock as time
from tbwriter import _live

_before: list[Any] = []
"""The handler before ours; empty until there is ours."""


def flush_on_sigterm() -> None:
    """Have SIGTERM flush every open writer of this process first, within 10 s in all, and then do what it did before.

    Without it a SIGTERM that nobody handles ends Python at once: what is older than `flush_secs` is stored, and what
    goes to an object store waits in the spool, which a container takes with it. Forked children are unaffected. Install
    a handler of your own before this, or call this one from it.

    Raises:
        ValueError: not called from the main thread.
        RuntimeError: SIGTERM has a handler that is not Python's and could not be called.
    """
    before = signal.getsignal(signal.SIGTERM)
    if before is _flush_and_go_on:
        return
    if before is None:
        raise RuntimeError("SIGTERM has a handler that Python cannot call: flush from that one")
    signal.signal(signal.SIGTERM, _flush_and_go_on)
    _before[:] = [before]


def _flush_and_go_on(number: int, frame: FrameType | None) -> None:
    deadline = time.monotonic() + _live.EXIT_SECS
    for worker in _live.open_ones():
        worker.flush(None, max(0.0, deadline - time.monotonic()))
    (before,) = _before
    if callable(before):
        before(number, frame)
    elif before == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
