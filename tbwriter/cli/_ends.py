"""How a command ends before its time: by SIGTERM, or because nobody reads its output any more."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM end this process with its exit code as Ctrl-C does, so that no half-written file stays behind."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    # Whoever called us may have a use of its own for the signal.
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def reader_has_gone() -> bool:
    """Say whether it is our own output that nobody reads, and not a connection to some store that broke."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return bool(poll.poll(0))
    except (OSError, ValueError, AttributeError):  # closed, in memory, or no poll, as on Windows
        return False


def silence(stream: TextIO) -> None:
    """Have what is still to be written to a stream go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
