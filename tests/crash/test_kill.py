"""kill -9 at random moments: at most `flush_secs` of data is gone, and everything before it is readable."""

import heapq
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from children import _HERE, environment
from event_files import event_files, read_file
from killed_at_random import RECORD
from waiting import wait_for_moment

FLUSH_SECS = 0.2
# What the machine may take until it runs the writer's thread, with 16 writers and other programs on few cores.
SLACK_SECS = 1.0
LONGEST_PAUSE_SECS = 0.1
AT_A_TIME = 16
KINDS = ("scalar", "metrics", "series", "rotating", "arrays")


class Nursery:
    """The program that forks the children."""

    def __init__(self):
        self._pids = []
        self._process = subprocess.Popen(
            [sys.executable, str(_HERE / "killed_at_random.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        )

    def child(self, place, kind):
        """Start a child and return its process id."""
        self._process.stdin.write(f"{place}/run\t{place}/journal\t{kind}\t{FLUSH_SECS}\n")
        self._process.stdin.flush()
        self._pids.append(int(self._process.stdout.readline()))
        return self._pids[-1]

    def stop(self):
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)
        self._process.communicate()


@pytest.fixture
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.stop()


def kill_at_random_moments(nursery, tmp_path, count, seed):
    """Let children write and kill each after 0 to 2.5 s; return (place, kind, time of the kill) of each."""
    moments = random.Random(seed)
    killed, alive = [], []  # alive: a heap of (when to kill, pid, place, kind)
    for number in range(count):
        if len(alive) == AT_A_TIME:
            killed.append(kill_next(alive))
        place = tmp_path / str(number)
        place.mkdir()
        kind = KINDS[number % len(KINDS)]
        pid = nursery.child(place, kind)
        heapq.heappush(alive, (time.monotonic() + moments.uniform(0.0, 2.5), pid, place, kind))
    while alive:
        killed.append(kill_next(alive))
    return killed


def kill_next(alive):
    when, pid, place, kind = heapq.heappop(alive)
    wait_for_moment(when)
    os.kill(pid, signal.SIGKILL)
    return place, kind, time.monotonic()


def due_steps(added, killed_at):
    """Return the steps that were added so long before the kill that they must have been flushed.

    A pause in the journal that is longer than a child's own says that the machine stood still: there was no time then.
    """
    due, ran = [], 0.0
    later = killed_at
    for at, step in reversed(added):
        ran += min(later - at, LONGEST_PAUSE_SECS)
        later = at
        if ran > FLUSH_SECS + SLACK_SECS:
            due.append(step)
    return due[::-1]


def check(place, kind, killed_at):
    """Check what one child left; return how many steps had to be there."""
    journal = (place / "journal").read_bytes() if (place / "journal").exists() else b""
    added = list(RECORD.iter_unpack(journal[: len(journal) // RECORD.size * RECORD.size]))
    due = due_steps(added, killed_at)
    must = due[-1] + 1 if due else 0
    got = []
    for path in event_files(place / "run"):
        events, status = read_file(path)
        assert not status.startswith("bad"), (place, kind, path, status)
        assert not events or events[0].file_version == "brain.Event:2"
        got += [(event.step, value.scalar()) for event in events for value in event.values if value.tag == "a"]
    assert got == [(step, float(step)) for step in range(len(got))], (place, kind, "not a prefix")
    assert len(got) >= must, f"{place} ({kind}): {len(got)} steps on disk, at least {must} wanted"
    return must


def check_all(killed):
    wanted = [check(*one) for one in killed]
    assert sum(must > 0 for must in wanted) > len(killed) // 5, "the children died too early to tell anything"


@pytest.mark.slow
def test_kill_9_at_200_random_moments_leaves_all_but_the_last_flush_secs(nursery, tmp_path):
    check_all(kill_at_random_moments(nursery, tmp_path, 200, seed=200))
