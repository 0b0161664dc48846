"""Without a thread, a signal handler that adds or closes while a call is storing."""

import os
import signal
import subprocess
import sys

import pytest
from event_files import scalars, statuses

from tbwriter import SummaryWriter, WriterClosedError


@pytest.fixture
def in_the_midst(monkeypatch):
    """Have a handler run inside the next write of the disk; returns a function that sets it."""
    real, handlers = os.pwrite, []

    def pwrite(*arguments):
        if handlers:
            handlers.pop()
            signal.raise_signal(signal.SIGUSR1)  # Python runs the handler before the next line
        return real(*arguments)

    def set_handler(handler):
        signal.signal(signal.SIGUSR1, lambda *_: handler())
        handlers.append(handler)

    before = signal.getsignal(signal.SIGUSR1)
    monkeypatch.setattr(os, "pwrite", pwrite)
    yield set_handler
    signal.signal(signal.SIGUSR1, before)


def test_what_a_handler_adds_is_stored_by_the_call_that_it_interrupts(in_the_midst, tmp_path):
    writer = SummaryWriter(tmp_path, asynchronous=False)

    def handler():
        writer.add_scalar("a", 10.0, 10)
        said.append(writer.flush())

    said = []
    in_the_midst(handler)
    writer.add_scalar("a", 1.0, 1)
    assert said == [False]  # a flush in the midst of a write cannot be one
    assert scalars(tmp_path) == [(1, 1.0), (10, 10.0)]
    assert writer.flush()
    writer.close()
    assert statuses(tmp_path) == ["clean"]
    assert writer.stats().dropped == 0


def test_a_writer_that_a_handler_closes_is_closed_by_the_call_that_it_interrupts(in_the_midst, tmp_path):
    writer = SummaryWriter(tmp_path, asynchronous=False)

    def handler():
        writer.add_scalar("a", 10.0, 10)
        writer.close()

    in_the_midst(handler)
    writer.add_scalar("a", 1.0, 1)
    assert scalars(tmp_path) == [(1, 1.0), (10, 10.0)]
    with pytest.raises(WriterClosedError):
        writer.add_scalar("a", 2.0, 2)
    assert writer.flush()
    assert writer.stats().dropped == 0


def test_a_handler_that_closes_and_raises_leaves_the_rest_to_the_next_close(in_the_midst, tmp_path):
    writer = SummaryWriter(tmp_path, asynchronous=False)

    def handler():
        writer.close()
        raise KeyboardInterrupt

    in_the_midst(handler)
    with pytest.raises(KeyboardInterrupt):
        writer.add_scalar("a", 1.0, 1)
    writer._tb_worker.close(1.0)  # as the exit of the process does
    assert scalars(tmp_path) == [(1, 1.0)]
    assert statuses(tmp_path) == ["clean"]


INTERRUPTED = """
import random, signal, sys, time
import numpy as np
from tbwriter import SummaryWriter

def interrupt(*_):
    raise KeyboardInterrupt

array = np.zeros(3000, np.uint8)
signal.signal(signal.SIGALRM, interrupt)
writer = SummaryWriter(sys.argv[1], flush_secs=0.02)  # so that the worker often wants the lock too
for _ in range(600):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.005))
            until = time.monotonic() + 0.1  # Python drops what is raised within a weak reference's callback
            while time.monotonic() < until:
                writer.add_tensor("x", array, 1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # no later than here
    except KeyboardInterrupt:
        pass
writer.add_scalar("last", 1.0, 1)
print(writer.flush(30.0))
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timer")
def test_ctrl_c_at_any_moment_within_a_call_leaves_no_lock_behind(tmp_path):
    """One of the 600 within the entry of a lock would have nothing stored from then on."""
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED, tmp_path], capture_output=True, text=True, check=False)
    assert ended.stdout == "True\n", ended.stderr
    assert scalars(tmp_path, "last") == [(1, 1.0)]
