"""The bounds of the queue, with a storage that is held: what waits, what is dropped, and who is told."""

import logging
import threading
import time

import numpy as np
import pytest
from event_files import scalars, values
from storage import PATIENCE_SECS, slow
from waiting import wait_until

from tbwriter import QueueFullError, WriterClosedError

MIB = 1 << 20


@pytest.fixture
def held(tmp_path, gate, writer_at):
    """Make a writer whose worker sits in an append, with one value; the queue behind it is empty."""

    def make(**options):
        writer = writer_at(slow(tmp_path, gate), **{"flush_secs": 3600.0, **options})
        hold(writer, gate)
        return writer

    return make


def hold(writer, gate):
    gate.shut()
    writer.add_scalar("held", 0.0, 0)
    writer.flush(timeout=0)
    gate.wait_for_arrival()


def let_go(writer, gate):
    gate.open()
    assert writer.flush(PATIENCE_SECS)


def add_steps(writer, steps):
    for step in steps:
        writer.add_scalar("loss", float(step), step)


# ---- drop


def test_drop_keeps_the_oldest_and_counts_the_rest(held, gate, tmp_path):
    writer = held(on_full="drop", max_queue=10)
    add_steps(writer, range(15))
    assert (writer.stats().queued, writer.stats().dropped) == (11, 5)
    let_go(writer, gate)
    assert scalars(tmp_path / "run", "loss") == [(step, float(step)) for step in range(10)]


def test_drop_never_waits(held):
    writer = held(on_full="drop", max_queue=1, block_secs=3600.0)
    add_steps(writer, range(1000))
    assert writer.stats().dropped == 999


def test_a_hole_in_the_curves_is_shown_by_a_scalar_at_its_step(held, gate, tmp_path):
    writer = held(on_full="drop", max_queue=10)
    add_steps(writer, range(100, 115))
    let_go(writer, gate)
    assert scalars(tmp_path / "run", "tbwriter/dropped") == [(109, 5.0)]


def test_the_scalar_of_dropped_values_grows_and_comes_only_when_it_grew(held, gate, tmp_path):
    writer = held(on_full="drop", max_queue=10)
    add_steps(writer, range(12))
    let_go(writer, gate)
    add_steps(writer, range(12, 20))
    assert writer.flush(PATIENCE_SECS)
    hold(writer, gate)
    add_steps(writer, range(20, 33))
    let_go(writer, gate)
    assert [value for _, value in scalars(tmp_path / "run", "tbwriter/dropped")] == [2.0, 5.0]


def test_without_drops_there_is_no_scalar_about_them(held, gate, tmp_path):
    writer = held(on_full="drop", max_queue=10)
    add_steps(writer, range(10))
    let_go(writer, gate)
    assert scalars(tmp_path / "run", "tbwriter/dropped") == []


def test_dropped_counts_every_value_of_an_entry(held):
    writer = held(on_full="drop", max_queue=1)
    writer.add_scalar("a", 1.0, 1)
    writer.add_metrics({"b": 1.0, "c": 2.0, "d": 3.0}, 1)
    writer.add_scalar_series("e", np.zeros(100), np.arange(100))
    writer.add_histogram("f", [1.0], 1)
    assert writer.stats().dropped == 104


def test_dropping_is_told_once_an_outage(held, gate, caplog):
    writer = held(on_full="drop", max_queue=5)
    add_steps(writer, range(50))
    let_go(writer, gate)
    hold(writer, gate)
    add_steps(writer, range(50))
    said = [entry for entry in caplog.records if "storage does not keep up" in entry.getMessage()]
    assert len(said) == 2
    assert {(entry.levelno, entry.name.split(".")[0]) for entry in said} == {(logging.WARNING, "tbwriter")}


# ---- raise


def test_raise_says_how_much_waits_and_what_the_limits_are(held):
    writer = held(on_full="raise", max_queue=10)
    add_steps(writer, range(10))
    with pytest.raises(QueueFullError, match=r"10 entries wait for storage and max_queue=10, max_queue_bytes=67108864"):
        writer.add_scalar("loss", 10.0, 10)


def test_raise_keeps_what_was_there_and_goes_on_when_there_is_room(held, gate, tmp_path):
    writer = held(on_full="raise", max_queue=10)
    add_steps(writer, range(10))
    with pytest.raises(QueueFullError):
        writer.add_scalar("loss", 10.0, 10)
    let_go(writer, gate)
    writer.add_scalar("loss", 11.0, 11)
    assert writer.flush(PATIENCE_SECS)
    assert [step for step, _ in scalars(tmp_path / "run", "loss")] == [*range(10), 11]
    assert writer.stats().dropped == 0


# ---- block


def test_block_waits_for_room_and_loses_nothing(held, gate, tmp_path):
    writer = held(on_full="block", max_queue=1000, block_secs=PATIENCE_SECS)
    add_steps(writer, range(1000))
    waiting = threading.Thread(target=add_steps, args=(writer, range(1000, 1500)))
    waiting.start()
    gate.open()
    waiting.join()
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path / "run", "loss") == [(step, float(step)) for step in range(1500)]
    assert writer.stats().dropped == 0


def test_block_waits_no_longer_than_block_secs_for_all_calls_of_an_outage_together(held):
    writer = held(on_full="block", max_queue=1000, block_secs=0.2)
    add_steps(writer, range(1000))
    begin = time.monotonic()
    add_steps(writer, range(1000, 1500))
    took = time.monotonic() - begin
    assert writer.stats().dropped == 500
    # 500 waits of 0.2 s each would be 100 s.
    assert 0.2 <= took < 50


def test_block_waits_again_in_the_next_outage(held, gate):
    writer = held(on_full="block", max_queue=1000, block_secs=0.2)
    for outage in range(2):
        if outage:
            let_go(writer, gate)
            hold(writer, gate)
        add_steps(writer, range(1000))
        begin = time.monotonic()
        writer.add_scalar("loss", 0.0, 0)
        assert time.monotonic() - begin >= 0.2
    assert writer.stats().dropped == 2


def test_block_of_0_seconds_drops_at_once(held):
    writer = held(on_full="block", max_queue=1000, block_secs=0.0)
    add_steps(writer, range(2000))
    assert writer.stats().dropped == 1000


def test_a_call_that_waits_for_room_is_let_go_by_close(held):
    writer = held(on_full="block", max_queue=1000, block_secs=3600.0)
    add_steps(writer, range(1000))
    raised = []

    def add():
        try:
            add_steps(writer, [1000])
        except WriterClosedError as exc:
            raised.append(exc)

    waiting = threading.Thread(target=add, daemon=True)
    waiting.start()
    writer.close(timeout=0)
    waiting.join(PATIENCE_SECS)
    assert not waiting.is_alive()
    assert len(raised) == 1


# ---- bytes


def test_the_queue_is_bounded_in_bytes_too(held, gate, tmp_path):
    """Three arrays of 1 MiB and what is counted beside them fit into 4 MiB, a fourth does not."""
    writer = held(on_full="drop", max_queue_bytes=4 * MIB)
    for step in range(6):
        writer.add_histogram("w", np.full(MIB // 4, step, np.float32), step)
    assert writer.stats().dropped == 3
    let_go(writer, gate)
    assert [step for tag, step, _ in values(tmp_path / "run") if tag == "w"] == [0, 1, 2]


def test_arrays_that_are_being_stored_still_count(held, gate):
    writer = held(on_full="drop", max_queue_bytes=4 * MIB)
    let_go(writer, gate)
    gate.shut()
    for step in range(3):
        writer.add_histogram("w", np.zeros(MIB // 4, np.float32), step)
    writer.flush(timeout=0)
    gate.wait_for_arrival()
    writer.add_histogram("w", np.zeros(MIB // 4, np.float32), 3)
    assert writer.stats().dropped == 1


def test_stored_arrays_make_room(held, gate):
    writer = held(on_full="drop", max_queue_bytes=4 * MIB)
    for _ in range(4):
        let_go(writer, gate)
        hold(writer, gate)
        for step in range(3):
            writer.add_histogram("w", np.zeros(MIB // 4, np.float32), step)
    assert writer.stats().dropped == 0


@pytest.fixture
def stepwise(tmp_path, writer_at):
    """Make a writer whose storage takes a call for each `passes.release()`."""
    passes = threading.Semaphore(0)

    def make(**options):
        return writer_at(slow(tmp_path, lambda _: passes.acquire()), flush_secs=3600.0, **options), passes

    yield make
    passes.release(10_000)


def test_what_is_stored_makes_room_before_all_that_was_taken_is(stepwise):
    """Or slow storage that keeps up would look like one that hangs: a queue takes it longer than `block_secs`."""
    writer, passes = stepwise(max_queue_bytes=4 * MIB, block_secs=3600.0)
    writer.add_scalar("first", 0.0, 0)
    writer.flush(timeout=0)
    wait_until(lambda: not writer._tb_worker.queue.entries, within=PATIENCE_SECS)
    for step in range(3):  # taken together, when the first is stored
        writer.add_tensor("t", np.zeros(MIB, np.uint8), step)
    waiting = threading.Thread(target=writer.add_tensor, args=("t", np.zeros(MIB, np.uint8), 3), daemon=True)
    waiting.start()
    passes.release(3)  # the first, its flush, and one of the three
    waiting.join(PATIENCE_SECS)
    assert not waiting.is_alive()
    stats = writer.stats()
    assert (stats.written, stats.dropped) == (2, 0)


def test_room_that_is_made_piece_by_piece_is_no_more_than_there_was(stepwise):
    """What is small may take more beside what is large, and only there."""
    size = 32 * 1024
    writer, passes = stepwise(max_queue_bytes=4 * MIB, on_full="drop")
    for _ in range(20):
        before = writer.stats()
        while writer.stats().dropped == before.dropped:
            writer.add_tensor("t", np.zeros(size, np.uint8), 0)
        assert writer.stats().queued * size <= 4 * MIB
        passes.release(2)  # one may be a flush
        wait_until(lambda before=before: writer.stats().written > before.written, within=PATIENCE_SECS)


def test_an_array_that_is_larger_than_the_queue_is_let_in_alone(held, gate, tmp_path):
    writer = held(on_full="drop", max_queue_bytes=MIB)
    writer.add_histogram("large", np.zeros(MIB, np.float32), 1)
    writer.add_histogram("second", np.zeros(MIB, np.float32), 1)
    let_go(writer, gate)
    assert writer.stats().dropped == 1
    assert [tag for tag, _, _ in values(tmp_path / "run")] == ["held", "large", "tbwriter/dropped"]


def test_scalars_count_against_the_bytes_too(held):
    """A scalar counts 240 bytes, what its tuple, float, step and time hold in CPython."""
    writer = held(on_full="drop", max_queue_bytes=240 * 100)
    add_steps(writer, range(150))
    assert 49 <= writer.stats().dropped <= 50  # the last one may stand on the edge


def test_the_smallest_queue_has_room_for_a_scalar_beside_a_large_entry(held, gate, tmp_path):
    writer = held(on_full="drop", max_queue_bytes=1920)
    writer.add_histogram("large", np.zeros(MIB), 0)
    add_steps(writer, range(2))
    assert writer.stats().dropped == 1
    let_go(writer, gate)
    add_steps(writer, range(2, 5))
    assert writer.flush(PATIENCE_SECS)
    assert [step for step, _ in scalars(tmp_path / "run", "loss")] == [0, 2, 3, 4]


def test_a_queue_full_of_scalars_takes_no_more_metrics(held):
    writer = held(on_full="drop", max_queue_bytes=240 * 100)
    writer.add_metrics({"m": 1.0}, 1)
    add_steps(writer, range(150))
    before = writer.stats().dropped
    for step in range(10):
        writer.add_metrics({"m": 1.0}, step)
    assert writer.stats().dropped == before + 10


# ---- waking the worker


def test_a_queue_that_fills_is_taken_before_it_is_full_and_before_the_timer(writer_at, tmp_path):
    """Or a burst that is twice as long as the queue would wait for the timer, here an hour."""
    writer = writer_at(tmp_path, flush_secs=3600.0, max_queue=2000, block_secs=PATIENCE_SECS)
    add_steps(writer, range(10_000))
    assert writer.flush(PATIENCE_SECS)
    assert writer.stats().written == 10_000


def test_large_arrays_are_taken_before_the_timer(writer_at, tmp_path):
    writer = writer_at(tmp_path, flush_secs=3600.0, max_queue_bytes=4 * MIB, block_secs=PATIENCE_SECS)
    for step in range(12):
        writer.add_histogram("w", np.zeros(MIB // 4, np.float32), step)
    assert writer.flush(PATIENCE_SECS)
    assert (writer.stats().written, writer.stats().dropped) == (12, 0)


# ---- locks


def test_the_warning_about_drops_is_written_without_a_lock_that_adding_needs(held):
    """A handler of the log is I/O, and another thread may add to the writer within it."""
    writer = held(on_full="drop", max_queue=1)
    writer.add_scalar("a", 1.0, 1)
    added = threading.Event()

    class Handler(logging.Handler):
        def emit(self, entry):
            other = threading.Thread(target=lambda: (writer.add_scalar("b", 1.0, 1), added.set()), daemon=True)
            other.start()
            other.join(PATIENCE_SECS)

    logger, handler = logging.getLogger("tbwriter"), Handler()
    logger.addHandler(handler)
    try:
        writer.add_scalar("a", 2.0, 2)
        assert added.is_set()
    finally:
        logger.removeHandler(handler)
