"""The disk of the spool fails while the store is away: what is sent in the end is whole, and every value is counted."""

import os
import subprocess

import pytest
from away_store import AwayStore
from event_files import read_bytes
from needs import cannot_run
from waiting import wait_until

from tbwriter import SummaryWriter

COUNT = 1000


@pytest.fixture
def store():
    yield AwayStore
    AwayStore.reset()


def stored_values(store):
    """Return [(tag, step)] of all objects, by name; each must be whole."""
    found = []
    for _, file in sorted(store.store.items()):
        events, status = read_bytes(file.getvalue())
        assert status == "clean"
        found += [(value.tag, event.step) for event in events for value in event.values]
    return found


@pytest.mark.parametrize("full", [False, True], ids=["roomy", "nearly full"])
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "ESTALE"])
def test_faults_of_the_spools_disk_tear_nothing_and_every_value_is_counted(mount, store, monkeypatch, full, fault):
    from tbwriter.sinks import _thinning

    if full:
        monkeypatch.setattr(_thinning.disk, "limit", 20_000)
    with SummaryWriter("away-test://run", spool_dir=mount.path / "spool", flush_secs=0.02) as writer:
        store.away = True
        for begin in range(0, COUNT, 100):
            mount.fail("write", fault, times=1 + begin // 100 % 4, short=40 + begin % 90)
            for step in range(begin, begin + 100):
                writer.add_scalar("a", float(step), step)
            wait_until(lambda: writer.stats().queued == 0, within=30, what="all in the spool")
        if full:
            monkeypatch.setattr(_thinning.disk, "limit", 1 << 30)
        store.away = False
        assert writer.flush(30)
    found = stored_values(store)
    steps = [step for tag, step in found if tag == "a"]
    assert steps == sorted(set(steps))
    stats = writer.stats()
    assert stats.written == len(found)
    # The writer's own curve of what is dropped may lose points too.
    assert 0 <= len(steps) + stats.dropped - COUNT <= (30 if full else 0)
    assert (stats.dropped > 0) is full


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 128 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        cannot_run("cannot mount a tmpfs")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("away", [True, False], ids=["and the store is away for a while", "while the store is there"])
def test_a_spools_disk_that_is_full_is_free_again_when_the_store_has_what_fills_it(store, small_disk, away):
    """Three times as much as fits; the file that grows is the one that fills the disk."""
    count = 10_000
    with SummaryWriter("away-test://run", spool_dir=small_disk, flush_secs=0.02) as writer:
        store.away = away
        for step in range(count):
            writer.add_scalar("a", float(step), step)
        wait_until(lambda: writer.stats().retries > 0 or not away, within=30, what="a full disk")
        store.away = False
        wait_until(lambda: writer.stats().queued == 0, within=60, what="room for the rest")
        assert writer.flush(30)
    assert [step for tag, step in stored_values(store) if tag == "a"] == list(range(count))
    assert writer.stats().dropped == 0
    # A segment that holds nothing but its header would show that each attempt begins one.
    assert all(read_bytes(file.getvalue())[0][-1].values for file in store.store.values())
