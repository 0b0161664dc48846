"""flush(), sync() and close(): what is there when they return, and when they give up."""

import json

import numpy as np
import pytest
from children import run_well
from event_files import event_files, read_bytes, scalars, statuses, steps, values
from waiting import wait_until

from tbwriter import SummaryWriter


def test_all_that_was_added_before_flush_is_readable_when_it_returns(tmp_path):
    with SummaryWriter(tmp_path, flush_secs=3600) as writer:
        (path,) = event_files(tmp_path)
        found = []
        for end in range(1000, 10_001, 1000):
            for step in range(end - 1000, end):
                writer.add_scalar("a", float(step), step)
            flushed = writer.flush()
            found.append((flushed, path.read_bytes()))  # at once: parsing would give the writer time
    counted = [(flushed, sum(len(event.values) for event in read_bytes(data)[0])) for flushed, data in found]
    assert counted == [(True, end) for end in range(1000, 10_001, 1000)]


def test_all_kinds_are_readable_when_flush_returns(tmp_path):
    with SummaryWriter(tmp_path, flush_secs=3600) as writer:
        for step in range(20):
            writer.add_histogram("h", np.arange(10.0), step)
            writer.add_text("t", "word", step)
            writer.add_image("i", np.zeros((3, 4, 4), np.uint8), step)
            writer.add_scalar("a", 1.0, step)
            writer.add_metrics({"b": 1.0}, step)
            writer.add_scalar_series("c", [1.0], [step])
            writer.add_scalars("d", {"x": 1.0}, step)
        assert writer.flush(timeout=60) is True
        assert len(values(tmp_path)) == 120
        assert len(scalars(tmp_path / "d_x")) == 20


def test_sync_returns_when_all_is_on_disk(tmp_path):
    with SummaryWriter(tmp_path, flush_secs=3600) as writer:
        for step in range(300):
            writer.add_scalar("a", float(step), step)
        assert writer.sync() is True
        assert steps(tmp_path, "a") == list(range(300))


def test_an_idle_writer_is_flushed_by_its_timer(tmp_path):
    """0.1 s, and 10 s for a busy machine."""
    with SummaryWriter(tmp_path, flush_secs=0.1) as writer:
        for begin in (0, 10):
            for step in range(begin, begin + 10):
                writer.add_scalar("a", float(step), step)
            wait_until(lambda: len(steps(tmp_path, "a")) == begin + 10, within=10)  # noqa: B023


def test_two_flushes_in_a_row_and_one_after_close_return_true(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("a", 1.0, 1)
    assert [writer.flush(), writer.flush()] == [True, True]
    writer.close()
    assert writer.flush() is True


# Every write to an event file waits for ever once `hang` is set.
HANGING = """
import json
hang = threading.Event()
def hooked(real):
    def write(handle, *args):
        if hang.is_set() and "tfevents" in os.readlink(f"/proc/self/fd/{handle}"):
            threading.Event().wait()
        return real(handle, *args)
    return write
os.write, os.pwrite = hooked(os.write), hooked(os.pwrite)
writer = SummaryWriter(logdir, flush_secs=0.05)
writer.add_scalar("a", 0.0, 0)
writer.flush()
hang.set()
for step in range(1, 100):
    writer.add_scalar("a", float(step), step)
begin = time.monotonic()
"""


@pytest.mark.parametrize("call", ["writer.flush(timeout=0.5)", "writer.sync(timeout=0.5)", "writer.close(timeout=0.5)"])
def test_a_deadline_holds_when_storage_hangs(tmp_path, call):
    """0.5 s, 0.5 s for the last system call, and 9 s for a busy machine."""
    code = f"""
result = {call}
say(json.dumps([bool(result), time.monotonic() - begin]))
os._exit(0)
"""
    result, took = json.loads(run_well(HANGING + code, tmp_path))
    assert result is False
    assert 0.4 < took < 10
    assert scalars(tmp_path, "a") == [(0, 0.0)]


def test_adding_never_waits_for_a_storage_that_hangs(tmp_path):
    code = """
longest = 0.0
for step in range(20_000):
    begin = time.monotonic()
    writer.add_scalar("a", 1.0, step)
    longest = max(longest, time.monotonic() - begin)
say(json.dumps(longest))
os._exit(0)
"""
    # A call that waited for the storage would never return; one that waited for room in the queue, only after 5 s.
    assert json.loads(run_well(HANGING + code, tmp_path)) < 4.5


def test_close_after_a_close_that_gave_up_returns_at_once(tmp_path):
    code = """
writer.close(timeout=0.2)
begin = time.monotonic()
writer.close()
say(json.dumps(time.monotonic() - begin))
os._exit(0)
"""
    # One that waited again would take 10 s.
    assert json.loads(run_well(HANGING + code, tmp_path)) < 9.0


def test_with_drop_a_full_queue_loses_only_what_it_counts(tmp_path):
    code = """
class Held:
    def wait(self): release.wait()
release = threading.Event()
real = os.pwrite
os.pwrite = lambda *args: (release.wait(), real(*args))[1]
os.write, real_write = (lambda handle, data: (release.wait(), real_write(handle, data))[1]
    if handle > 2 else real_write(handle, data)), os.write
release.set()
import json
writer = SummaryWriter(logdir, flush_secs=0.05, max_queue=1000, on_full="drop")
writer.flush()
release.clear()
for step in range(5000):
    writer.add_scalar("a", float(step), step)
release.set()
writer.close()
say(json.dumps(writer.stats().dropped))
"""
    dropped = json.loads(run_well(code, tmp_path))
    assert dropped > 0
    assert len(steps(tmp_path, "a")) + dropped == 5000
    assert statuses(tmp_path) == ["clean"]
