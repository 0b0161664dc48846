"""The worker: flush as a barrier, the timer, outages, faults, close, threads, garbage collection."""

import dataclasses
import errno
import gc
import logging
import math
import os
import signal
import threading
import time
import weakref
from collections import Counter
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from event_files import event_files, read_file, scalars, statuses, values
from storage import IO_ERROR, NO_SPACE, PATIENCE_SECS, Disk, Faults, error, faulty, slow, through
from waiting import wait_until

import tbwriter
from tbwriter import Durability, QueueFullError, SinkError, SummaryWriter, WriterClosedError, WriterStats, _runs
from tbwriter._async import Worker
from tbwriter._entries import Pending, size_of
from tbwriter.testing import FaultySink

# What never comes in a test.
NEVER_SECS = 3600.0


@pytest.fixture
def faults():
    return Faults()


@pytest.fixture
def failing(tmp_path, faults, writer_at):
    """Make a writer whose appends fail from now on."""

    def make(exc=NO_SPACE, **options):
        writer = writer_at(faulty(tmp_path, faults), **{"flush_secs": NEVER_SECS, **options})
        faults.error = exc
        return writer

    return make


@pytest.fixture
def hung(tmp_path, gate, writer_at):
    """Make a writer whose storage answers no more."""

    def make(**options):
        writer = writer_at(slow(tmp_path, gate), **{"flush_secs": NEVER_SECS, **options})
        gate.shut()
        return writer

    return make


@contextmanager
def ctrl_c(after=lambda: None):
    """Press Ctrl-C in the main thread until it raises; once `after` has returned.

    Only one press raises, so that none lands behind the `except` that waits for it, where it would end the tests.
    """
    main = threading.get_ident()
    ended = threading.Event()
    raised = False

    def interrupt(*_):
        nonlocal raised
        if not raised:
            raised = True
            raise KeyboardInterrupt

    def press():
        after()
        while not ended.wait(0.05):
            signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, interrupt)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGINT, before)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "tbwriter"]


def in_time(call):
    """Return what a call returns that may wait for ever."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(PATIENCE_SECS)
    assert not thread.is_alive()
    return results[0]


def fail_once(writer):
    """Have the worker try to store what there is, and fail."""
    before = writer.stats().retries
    writer.flush(timeout=0)
    wait_until(lambda: writer.stats().retries > before, within=PATIENCE_SECS, what="a failed attempt")


# ---- flush and sync


def test_what_was_added_before_a_flush_is_in_the_file_when_it_returns(writer_at, tmp_path):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    for step in range(1000):
        writer.add_scalar("loss", float(step), step)
        if step % 100 == 99:
            assert writer.flush()
            assert len(scalars(tmp_path, "loss")) == step + 1


def test_a_flush_of_nothing_is_done_at_once(writer_at, tmp_path):
    assert writer_at(tmp_path, flush_secs=NEVER_SECS).flush()


def test_flushes_of_many_threads_all_return(writer_at, tmp_path):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    results = []

    def work(number):
        for step in range(20):
            writer.add_scalar(f"t{number}", float(step), step)
            results.append((writer.flush(PATIENCE_SECS), len(scalars(tmp_path, f"t{number}")) == step + 1))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    assert results == [(True, True)] * 160


@pytest.mark.parametrize("call", ["flush", "sync"])
def test_a_flush_gives_up_at_its_timeout_when_storage_hangs(hung, call):
    writer = hung()
    writer.add_scalar("loss", 1.0, 1)
    assert getattr(writer, call)(timeout=0.1) is False


def test_a_flush_gives_up_at_its_timeout_when_storage_fails(failing):
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush(timeout=0.1) is False


def test_a_flush_that_gave_up_lost_nothing(hung, gate, tmp_path):
    writer = hung()
    writer.add_scalar("loss", 1.0, 1)
    assert not writer.flush(timeout=0)
    gate.open()
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path / "run") == [(1, 1.0)]


def test_a_flush_waits_through_an_outage_that_ends_within_its_timeout(failing, faults, tmp_path):
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    thread = threading.Thread(
        target=lambda: (wait_until(lambda: faults.attempts >= 3, within=PATIENCE_SECS), setattr(faults, "error", None))
    )
    thread.start()
    assert writer.flush(PATIENCE_SECS)
    thread.join()
    assert scalars(tmp_path / "run") == [(1, 1.0)]


def test_a_flush_without_a_timeout_gives_up_when_failing_storage_gets_nowhere(failing, monkeypatch):
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", 0.3)
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush() is False


def test_a_flush_without_a_timeout_gives_up_when_hung_storage_gets_nowhere(hung, monkeypatch):
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", 0.3)
    writer = hung()
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush() is False


def test_a_second_flush_of_an_outage_does_not_wait_again(failing, monkeypatch):
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", 0.3)
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush() is False
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", NEVER_SECS)
    assert in_time(writer.flush) is False


def test_a_second_flush_does_not_wait_again_while_storage_hangs(hung, monkeypatch):
    """A loop that flushes each epoch would else stand still for 10 s each time."""
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", 0.3)
    writer = hung()
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush() is False
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", NEVER_SECS)
    assert in_time(writer.flush) is False


def test_the_first_flush_of_the_next_outage_waits_again(failing, faults, monkeypatch):
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", 0.3)
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    assert not writer.flush()
    faults.error = None
    assert writer.flush(PATIENCE_SECS)
    faults.error = NO_SPACE
    writer.add_scalar("loss", 2.0, 2)
    begin = time.monotonic()
    assert not writer.flush()
    assert time.monotonic() - begin >= 0.3


def test_a_flush_without_a_timeout_waits_as_long_as_storage_gets_on(tmp_path, gate, writer_at, monkeypatch):
    """Whenever it looks, one more of ten pieces is stored; together they take longer than a standstill may."""
    monkeypatch.setattr("tbwriter._async._STALLED_SECS", 0.05)
    passes, looks = threading.Semaphore(0), []
    writer = writer_at(slow(tmp_path, lambda _: passes.acquire()), flush_secs=NEVER_SECS)
    for step in range(10):
        writer.add_text("t", "x" * 300_000, step)
    real = Worker._progress_of

    def store_one_more(worker, request):
        if len(looks) < 10 and worker._runs.written == len(looks):
            looks.append(time.monotonic())
            passes.release()
            while worker._runs.written < len(looks):
                worker._cond.wait(0.01)  # which lets go of the lock that the worker needs
        elif len(looks) == 10:
            passes.release(10)
        return real(worker, request)

    monkeypatch.setattr(Worker, "_progress_of", store_one_more)
    try:
        assert in_time(writer.flush) is True
    finally:
        passes.release(100)
    assert writer.stats().written == 10
    assert looks[-1] - looks[0] > 0.05


@pytest.mark.parametrize("timeout", [1e12, math.inf])
@pytest.mark.parametrize("call", ["flush", "sync", "close"])
def test_a_timeout_of_any_length_is_taken(writer_at, tmp_path, call, timeout):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    writer.add_scalar("loss", 1.0, 1)
    getattr(writer, call)(timeout=timeout)
    assert scalars(tmp_path) == [(1, 1.0)]


def test_sync_brings_the_data_to_the_disk(writer_at, tmp_path, monkeypatch):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    disk = Disk(monkeypatch)
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush()
    assert disk.count("fdatasync") == 0
    assert writer.sync()
    assert disk.count("fdatasync") == 1


def test_what_was_synced_survives_the_machine(tmp_path, writer_at):
    sinks = []

    def wrap(sink, header):
        sinks.append(FaultySink(sink, lambda call, number: None, header=header))
        return sinks[-1]

    writer = writer_at(through(tmp_path, wrap), flush_secs=NEVER_SECS)
    writer.add_scalar("loss", 1.0, 1)
    assert writer.sync()
    writer.add_scalar("loss", 2.0, 2)
    assert writer.flush()
    ((name, data),) = sinks[0].survivors().items()
    (path,) = event_files(tmp_path / "run")
    assert (path.name, path.read_bytes()[: len(data)]) == (name, data)
    assert len(data) < path.stat().st_size


def test_a_sync_that_the_disk_refuses_says_so_without_waiting_for_its_timeout(writer_at, tmp_path, monkeypatch):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    disk = Disk(monkeypatch)
    writer.add_scalar("loss", 1.0, 1)
    disk.plan("fdatasync", *[IO_ERROR] * 1000)
    assert in_time(lambda: writer.sync(timeout=NEVER_SECS)) is False


def test_a_sync_that_the_disk_refuses_is_told_by_the_counters(writer_at, tmp_path, monkeypatch):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    disk = Disk(monkeypatch)
    writer.add_scalar("loss", 1.0, 1)
    disk.plan("fdatasync", *[IO_ERROR] * 1000)
    assert not writer.sync(timeout=PATIENCE_SECS)
    assert "Input/output error" in str(writer.stats().last_error)


def test_sync_reaches_what_memory_can(writer_at):
    writer = writer_at("memory://test-worker-sync")
    writer.add_scalar("loss", 1.0, 1)
    assert writer.sync()


# ---- the timer


def test_an_idle_writer_is_flushed_by_its_timer(writer_at, tmp_path):
    writer = writer_at(tmp_path, flush_secs=0.2)
    writer.add_scalar("loss", 1.0, 1)
    wait_until(lambda: scalars(tmp_path) == [(1, 1.0)], within=PATIENCE_SECS)
    writer.add_scalar("loss", 2.0, 2)
    wait_until(lambda: scalars(tmp_path) == [(1, 1.0), (2, 2.0)], within=PATIENCE_SECS)


def test_a_timer_of_0_seconds_works(writer_at, tmp_path):
    writer = writer_at(tmp_path, flush_secs=0)
    writer.add_scalar("loss", 1.0, 1)
    wait_until(lambda: scalars(tmp_path) == [(1, 1.0)], within=PATIENCE_SECS)


@pytest.mark.parametrize("flush_secs", [1e9, 1e12, 2.0**63])
def test_a_timer_of_any_length_works(writer_at, tmp_path, flush_secs):
    writer = writer_at(tmp_path, flush_secs=flush_secs)
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path) == [(1, 1.0)]


def test_a_longest_wait_for_room_of_any_length_works(hung, gate):
    writer = hung(max_queue=1000, block_secs=2.0**63)
    opening = threading.Timer(0.2, gate.open)
    opening.start()
    for step in range(3000):
        writer.add_scalar("loss", 0.0, step)
    opening.join()
    assert writer.flush(PATIENCE_SECS)
    assert writer.stats().written == 3000


def test_an_idle_writer_touches_no_storage(tmp_path, writer_at):
    calls = []
    writer = writer_at(faulty(tmp_path, lambda call, number: calls.append(call)), flush_secs=0.01)
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush()
    done = len(calls)
    # The timer fires some forty times meanwhile.
    threading.Event().wait(0.4)
    assert len(calls) == done


# ---- outages


def test_after_an_outage_everything_is_there_once_and_in_order(failing, faults, tmp_path):
    writer = failing(flush_secs=0.02)
    for step in range(300):
        writer.add_scalar("loss", float(step), step)
    wait_until(lambda: faults.attempts >= 2, within=PATIENCE_SECS)
    for step in range(300, 600):
        writer.add_scalar("loss", float(step), step)
    faults.error = None
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path / "run") == [(step, float(step)) for step in range(600)]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EDQUOT, errno.ETIMEDOUT, errno.EPERM])
def test_no_storage_error_reaches_the_caller_or_ends_the_worker(failing, faults, tmp_path, number):
    writer = failing(error(number))
    writer.add_scalar("loss", 1.0, 1)
    assert not writer.flush(timeout=0.1)
    writer.add_scalar("loss", 2.0, 2)
    faults.error = None
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path / "run") == [(1, 1.0), (2, 2.0)]


def test_an_outage_heals_without_another_call(failing, faults, tmp_path):
    writer = failing(flush_secs=0.02)
    writer.add_scalar("loss", 1.0, 1)
    wait_until(lambda: faults.attempts >= 1, within=PATIENCE_SECS)
    faults.error = None
    wait_until(lambda: scalars(tmp_path / "run") == [(1, 1.0)], within=PATIENCE_SECS)


def test_attempts_become_rarer_while_nobody_waits(failing, faults):
    """Pauses double from 0.1 s, shortened by jitter to a half at most: 0.05 + 0.1 + 0.2 + 0.4 are over after 0.75 s."""
    writer = failing(flush_secs=0.01)
    writer.add_scalar("loss", 1.0, 1)
    wait_until(lambda: faults.attempts >= 5, within=PATIENCE_SECS)
    assert faults.times[4] - faults.times[0] >= 0.75


def test_adding_does_not_hasten_the_attempts(failing, faults):
    writer = failing(flush_secs=0.01, max_queue=1000, on_full="drop")
    for step in range(5000):
        writer.add_scalar("loss", 1.0, step)
    wait_until(lambda: faults.attempts >= 1, within=PATIENCE_SECS)
    for step in range(50_000):
        writer.add_scalar("loss", 1.0, step)
    assert faults.attempts < 10


def test_an_outage_is_told_once_at_each_end(failing, faults, caplog):
    writer = failing(flush_secs=0.01)
    writer.add_scalar("loss", 1.0, 1)
    wait_until(lambda: faults.attempts >= 4, within=PATIENCE_SECS)
    faults.error = None
    assert writer.flush(PATIENCE_SECS)
    messages = [entry.getMessage() for entry in caplog.records]
    assert len(messages) == 2
    assert "storage fails, the data waits and is tried again: [Errno 28] No space left on device" in messages[0]
    assert "storage works again after" in messages[1]


def test_the_next_outage_is_told_again(failing, faults, caplog):
    writer = failing()
    for step in range(3):
        faults.error = NO_SPACE
        writer.add_scalar("loss", 1.0, step)
        fail_once(writer)
        faults.error = None
        assert writer.flush(PATIENCE_SECS)
    assert sum("storage fails" in entry.getMessage() for entry in caplog.records) == 3


def test_the_log_names_the_file(failing, caplog, tmp_path):
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    fail_once(writer)
    wait_until(lambda: caplog.records, within=PATIENCE_SECS)
    assert caplog.records[0].getMessage().startswith(str(event_files(tmp_path / "run")[0]))


def test_the_counters_tell_an_outage(failing, faults):
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    writer.flush(timeout=0)
    wait_until(lambda: writer.stats().retries >= 2, within=PATIENCE_SECS)
    stats = writer.stats()
    assert (stats.queued, stats.written, stats.dropped) == (1, 0, 0)
    assert stats.retries <= faults.attempts  # which may have grown since
    assert stats.last_error == "[Errno 28] No space left on device"


@pytest.mark.parametrize("key", ["in the way", "in the way/below", "x" * 300])
def test_a_sub_run_whose_directory_can_never_be_made_does_not_hold_up_the_run(writer_at, tmp_path, key):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    (tmp_path / "loss_in the way").write_bytes(b"a file where a directory should be")
    writer.add_scalars("loss", {key: 1.0, "good": 2.0}, 1)
    assert writer.flush(PATIENCE_SECS)
    writer.add_scalar("acc", 3.0, 1)
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path, "acc") == [(1, 3.0)]
    assert scalars(tmp_path / "loss_good", "loss") == [(1, 2.0)]


# ---- strict


def test_strict_raises_the_storage_error_at_the_next_call_and_loses_nothing(failing, faults, tmp_path):
    writer = failing(strict=True)
    writer.add_scalar("loss", 1.0, 1)
    fail_once(writer)
    with pytest.raises(SinkError, match=r"storage failed: .*No space left on device; the data is kept") as raised:
        writer.add_scalar("loss", 2.0, 2)
    assert raised.value.__cause__ is NO_SPACE
    assert raised.value.errno == errno.ENOSPC
    faults.error = None
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path / "run") == [(1, 1.0), (2, 2.0)]


def test_strict_raises_an_error_once(failing, faults):
    writer = failing(strict=True)
    writer.add_scalar("loss", 1.0, 1)
    fail_once(writer)
    faults.error = None
    writer.flush(PATIENCE_SECS)
    with pytest.raises(SinkError):
        writer.add_scalar("loss", 2.0, 2)
    writer.add_scalar("loss", 3.0, 3)


@pytest.mark.parametrize(
    "add",
    [
        lambda writer: writer.add_metrics({"a": 1.0}, 1),
        lambda writer: writer.add_histogram("h", [1.0], 1),
        lambda writer: writer.add_text("t", "words", 1),
        lambda writer: writer.add_scalars("m", {"a": 1.0}, 1),
        lambda writer: writer.add_scalar_series("s", [1.0], [1]),
    ],
)
def test_strict_raises_in_every_add(failing, add):
    writer = failing(strict=True)
    writer.add_scalar("loss", 1.0, 1)
    fail_once(writer)
    with pytest.raises(SinkError):
        add(writer)


def test_strict_says_nothing_while_storage_works(writer_at, tmp_path):
    writer = writer_at(tmp_path, strict=True)
    for step in range(100):
        writer.add_scalar("loss", float(step), step)
    writer.close()
    assert len(scalars(tmp_path)) == 100


# ---- faults that are not storage's


def test_a_summary_that_cannot_be_encoded_is_left_out_alone(writer_at, tmp_path, monkeypatch, caplog):
    image = pytest.importorskip("PIL.Image")

    def save(*_, **__):
        raise MemoryError("no memory for a picture")

    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    monkeypatch.setattr(image.Image, "save", save)
    writer.add_scalar("before", 1.0, 1)
    for step in range(3):
        writer.add_image("picture", np.zeros((3, 2, 2)), step)
    writer.add_scalar("after", 2.0, 1)
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path) == [(1, 1.0), (1, 2.0)]
    assert (writer.stats().written, writer.stats().dropped, writer.stats().queued) == (2, 3, 0)
    said = [entry.getMessage() for entry in caplog.records]
    assert said == ["tag 'picture' cannot be encoded and is left out: no memory for a picture. Said once for this tag"]


def test_the_first_image_after_one_that_could_not_be_encoded_has_the_metadata(writer_at, tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    real = image.Image.save
    fails = [True, False]

    def save(*arguments, **options):
        if fails.pop(0):
            raise MemoryError("no memory for a picture")
        return real(*arguments, **options)

    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    monkeypatch.setattr(image.Image, "save", save)
    writer.add_image("picture", np.zeros((3, 2, 2)), 1)
    writer.add_image("picture", np.zeros((3, 2, 2)), 2)
    assert writer.flush(PATIENCE_SECS)
    ((tag, step, value),) = values(tmp_path)
    assert (tag, step, value.has_metadata, value.plugin) == ("picture", 2, True, "images")


def test_a_sink_that_raises_anything_does_not_end_the_worker(failing, faults, tmp_path, caplog):
    writer = failing(RuntimeError("a fault of the sink"))
    writer.add_scalar("loss", 1.0, 1)
    assert not writer.flush(PATIENCE_SECS)
    faults.error = None
    writer.add_scalar("loss", 2.0, 2)
    assert writer.flush(PATIENCE_SECS)
    assert (2, 2.0) in scalars(tmp_path / "run")
    assert writer.stats().written + writer.stats().dropped == 2
    assert "a fault of the sink" in caplog.text


def test_a_flush_of_values_that_were_given_up_says_so_without_waiting_for_its_timeout(failing):
    writer = failing(RuntimeError("a fault of the sink"))
    writer.add_scalar("loss", 1.0, 1)
    assert in_time(lambda: writer.flush(timeout=NEVER_SECS)) is False


# ---- close


def test_close_stores_everything_and_ends_the_thread(tmp_path):
    before = threads()
    writer = SummaryWriter(tmp_path, flush_secs=NEVER_SECS)
    for step in range(5000):
        writer.add_scalar("loss", float(step), step)
    writer.close()
    assert len(scalars(tmp_path)) == 5000
    assert threads() == before


def test_close_can_be_called_again(writer_at, tmp_path):
    writer = writer_at(tmp_path)
    writer.add_scalar("loss", 1.0, 1)
    for _ in range(3):
        writer.close()
    assert scalars(tmp_path) == [(1, 1.0)]
    assert statuses(tmp_path) == ["clean"]


@pytest.mark.parametrize(
    "add",
    [
        lambda writer: writer.add_scalar("loss", 1.0, 1),
        lambda writer: writer.add_metrics({"loss": 1.0}, 1),
        lambda writer: writer.add_scalar_series("loss", [1.0], [1]),
        lambda writer: writer.add_scalars("m", {"a": 1.0}, 1),
        lambda writer: writer.add_histogram("h", [1.0], 1),
        lambda writer: writer.add_text("t", "words", 1),
        lambda writer: writer.add_metrics({}, 1),
        lambda writer: writer.add_scalars("m", {}, 1),
        lambda writer: writer.add_scalar_series("loss", [], []),
    ],
)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_adding_to_a_closed_writer_raises_each_time(writer_at, tmp_path, add, asynchronous):
    writer = writer_at(tmp_path, asynchronous=asynchronous)
    writer.add_scalar("loss", 0.0, 0)
    writer.close()
    size = event_files(tmp_path)[0].stat().st_size
    for _ in range(2):
        with pytest.raises(WriterClosedError, match="the writer is closed: make a new SummaryWriter"):
            add(writer)
    assert [path.stat().st_size for path in event_files(tmp_path, recursive=True)] == [size]


def test_flush_of_a_closed_writer_returns_true_when_all_was_stored(writer_at, tmp_path):
    writer = writer_at(tmp_path)
    writer.add_scalar("loss", 1.0, 1)
    writer.close()
    assert writer.flush()
    assert writer.sync()


def test_flush_of_a_closed_writer_returns_false_when_something_was_lost(failing):
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    writer.close(timeout=0.2)
    assert writer.flush() is False


def test_close_gives_up_at_its_deadline_when_storage_hangs(hung, caplog):
    writer = hung()
    writer.add_scalar("loss", 1.0, 1)
    in_time(lambda: writer.close(timeout=0.2))
    assert "storage hangs; closed with 1 values not stored" in caplog.text


def test_close_gives_up_at_its_deadline_when_storage_fails_and_says_what_is_lost(failing, caplog):
    writer = failing()
    for step in range(7):
        writer.add_scalar("loss", 1.0, step)
    in_time(lambda: writer.close(timeout=0.2))
    told = "closed with 7 values not stored: [Errno 28] No space left on device"
    wait_until(lambda: told in caplog.text, within=PATIENCE_SECS)  # of a thread that comes late


def test_what_close_gives_up_is_counted_as_dropped(failing):
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    writer.flush(timeout=0.1)  # taken from the queue
    for step in range(6):
        writer.add_scalar("loss", 1.0, step)  # waiting in it
    writer.close(timeout=0.2)
    wait_until(lambda: writer.stats().queued == 0, within=PATIENCE_SECS)  # of a thread that comes late
    assert (writer.stats().written, writer.stats().dropped) == (0, 7)


def test_close_waits_through_an_outage_that_ends_before_its_deadline(failing, faults, tmp_path):
    writer = failing()
    writer.add_scalar("loss", 1.0, 1)
    thread = threading.Thread(
        target=lambda: (wait_until(lambda: faults.attempts >= 3, within=PATIENCE_SECS), setattr(faults, "error", None))
    )
    thread.start()
    writer.close(timeout=PATIENCE_SECS)
    thread.join()
    assert scalars(tmp_path / "run") == [(1, 1.0)]


def test_close_within_an_outage_leaves_a_readable_file(writer_at, tmp_path, monkeypatch):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    writer.add_scalar("loss", 1.0, 1)
    assert writer.flush()
    disk = Disk(monkeypatch)
    disk.plan("pwrite", 10, *[NO_SPACE] * 1000)
    writer.add_scalar("loss", 2.0, 2)
    writer.close(timeout=0.2)
    wait_until(lambda: statuses(tmp_path) == ["clean"], within=PATIENCE_SECS)  # of a thread that comes late
    assert scalars(tmp_path) == [(1, 1.0)]


def test_threads_and_handles_do_not_grow_with_writers(tmp_path):
    before = threads()
    for number in range(20):
        with SummaryWriter(tmp_path / str(number)) as writer:
            writer.add_scalar("loss", 1.0, 1)
    assert threads() == before


# ---- writers that nobody closes


def test_a_writer_that_is_forgotten_stores_everything_and_ends_its_thread(tmp_path):
    before = threads()
    writer = SummaryWriter(tmp_path, flush_secs=NEVER_SECS)
    for step in range(100):
        writer.add_scalar("loss", float(step), step)
    gone = weakref.ref(writer)
    del writer
    gc.collect()
    assert gone() is None
    wait_until(lambda: threads() == before, within=PATIENCE_SECS)
    assert scalars(tmp_path) == [(step, float(step)) for step in range(100)]


def test_a_writer_without_a_thread_that_is_forgotten_closes_its_file(tmp_path):
    writer = SummaryWriter(tmp_path, asynchronous=False)
    writer.add_scalar("loss", 1.0, 1)
    del writer
    gc.collect()
    assert scalars(tmp_path) == [(1, 1.0)]


# ---- without a thread


def test_without_a_thread_every_call_stores(writer_at, tmp_path):
    before = threads()
    writer = writer_at(tmp_path, asynchronous=False, flush_secs=NEVER_SECS)
    assert threads() == before
    for step in range(5):
        writer.add_scalar("loss", float(step), step)
        assert len(scalars(tmp_path)) == step + 1


def test_without_a_thread_an_outage_keeps_the_data(tmp_path, faults, writer_at):
    writer = writer_at(faulty(tmp_path, faults), asynchronous=False)
    faults.error = NO_SPACE
    for step in range(5):
        writer.add_scalar("loss", float(step), step)
    assert not writer.flush()
    faults.error = None
    assert writer.flush()
    assert scalars(tmp_path / "run") == [(step, float(step)) for step in range(5)]


def test_without_a_thread_strict_raises_in_the_call_itself(tmp_path, faults, writer_at):
    writer = writer_at(faulty(tmp_path, faults), asynchronous=False, strict=True)
    faults.error = NO_SPACE
    with pytest.raises(SinkError, match="No space left"):
        writer.add_scalar("loss", 1.0, 1)
    faults.error = None
    writer.add_scalar("loss", 2.0, 2)
    assert scalars(tmp_path / "run") == [(1, 1.0), (2, 2.0)]


def test_without_a_thread_a_full_queue_is_not_waited_for(tmp_path, faults, writer_at):
    """Nobody else empties it."""
    writer = writer_at(faulty(tmp_path, faults), asynchronous=False, max_queue=1000, block_secs=NEVER_SECS)
    faults.error = NO_SPACE
    writer.add_scalar_series("s", np.zeros(10), np.arange(10))
    in_time(lambda: [writer.add_scalar("loss", 1.0, step) for step in range(1100)])


def test_without_a_thread_eight_threads_lose_nothing(writer_at, tmp_path):
    writer = writer_at(tmp_path, asynchronous=False)
    add_from_threads(writer, 50)
    assert sorted(scalars(tmp_path, "t3")) == [(step, float(step)) for step in range(50)]
    assert writer.stats().written == 400


# ---- threads and interrupts


def add_from_threads(writer, steps):
    def work(number):
        for step in range(steps):
            writer.add_scalar(f"t{number}", float(step), step)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()


def test_eight_threads_lose_nothing_and_keep_the_order_of_each(writer_at, tmp_path):
    writer = writer_at(tmp_path, flush_secs=0.01, max_queue=1000, block_secs=PATIENCE_SECS)
    add_from_threads(writer, 2000)
    writer.close()
    found = {f"t{number}": [] for number in range(8)}
    for tag, step, _ in values(tmp_path):
        found[tag].append(step)
    assert found == {f"t{number}": list(range(2000)) for number in range(8)}


def test_adding_within_a_handler_of_the_writers_own_log_lines_does_not_deadlock(failing, faults, tmp_path):
    """As a program does that counts its warnings in TensorBoard."""
    writer = failing(flush_secs=0.01)
    heard = threading.Event()

    class Handler(logging.Handler):
        def emit(self, entry):
            writer.add_scalar("warnings", 1.0, 1)
            writer.flush(timeout=5)
            heard.set()

    logger, handler = logging.getLogger("tbwriter"), Handler()
    logger.addHandler(handler)
    try:
        writer.add_scalar("loss", 1.0, 1)
        assert heard.wait(PATIENCE_SECS)
        faults.error = None
        assert writer.flush(PATIENCE_SECS)
    finally:
        logger.removeHandler(handler)
    writer.close()
    assert scalars(tmp_path / "run", "loss") == [(1, 1.0)]
    # One at the begin of the outage, one at its end.
    assert scalars(tmp_path / "run", "warnings") == [(1, 1.0), (1, 1.0)]


def test_a_handler_may_close_the_writer_from_its_own_thread(failing, tmp_path):
    writer = failing(flush_secs=0.01)
    closed = threading.Event()

    class Handler(logging.Handler):
        def emit(self, entry):
            if not closed.is_set():
                writer.close(timeout=0.1)
                closed.set()

    logger, handler = logging.getLogger("tbwriter"), Handler()
    logger.addHandler(handler)
    try:
        writer.add_scalar("loss", 1.0, 1)
        assert closed.wait(PATIENCE_SECS)
    finally:
        logger.removeHandler(handler)
    with pytest.raises(WriterClosedError):
        writer.add_scalar("loss", 2.0, 2)


class Interrupts:
    """A number during whose conversion the user presses Ctrl-C."""

    def __float__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "add",
    [
        lambda writer: writer.add_scalar("loss", Interrupts(), 1),
        lambda writer: writer.add_scalar("loss", 1.0, 1, walltime=Interrupts()),
        lambda writer: writer.add_metrics({"loss": Interrupts()}, 1),
        lambda writer: writer.add_scalars("m", {"a": 1.0, "b": Interrupts()}, 1),
    ],
)
def test_ctrl_c_within_a_conversion_leaves_the_writer_usable_and_adds_nothing(writer_at, tmp_path, add):
    writer = writer_at(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        add(writer)
    writer.add_scalar("loss", 2.0, 2)
    writer.close()
    assert scalars(tmp_path) == [(2, 2.0)]
    assert len(event_files(tmp_path, recursive=True)) == 1


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals between threads")
def test_ctrl_c_within_a_wait_for_room_leaves_the_writer_usable(hung, gate, tmp_path):
    writer = hung(max_queue=1000, block_secs=NEVER_SECS)
    for step in range(1000):
        writer.add_scalar("loss", float(step), step)
    gate.wait_for_arrival()  # the worker was woken when the queue was half full; it may have taken some of it
    added = 1000
    with ctrl_c(), suppress(KeyboardInterrupt):
        for step in range(1000, 3000):
            writer.add_scalar("loss", float(step), step)
            added = step + 1
    assert added < 3000
    gate.open()
    writer.add_scalar("last", 1.0, 1)
    assert writer.flush(PATIENCE_SECS)
    got = scalars(tmp_path / "run", "loss")
    assert got[:added] == [(step, float(step)) for step in range(added)]
    assert len(got) <= added + 1
    assert scalars(tmp_path / "run", "last") == [(1, 1.0)]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals between threads")
def test_ctrl_c_within_a_flush_leaves_the_writer_usable(hung, gate, tmp_path):
    writer = hung()
    writer.add_scalar("loss", 1.0, 1)
    with ctrl_c(after=gate.wait_for_arrival), pytest.raises(KeyboardInterrupt):
        writer.flush()
    gate.open()
    assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path / "run") == [(1, 1.0)]


# ---- entries that take long to encode


def begin_encoding(writer, summary, gate):
    """Have the worker encode `summary`, which waits for the gate."""
    gate.shut()
    entry = Pending(summary, 0, 1.0)
    writer._tb_put(entry, size_of(entry))
    gate.wait_for_arrival()


class Slow:
    """A summary that takes long to encode."""

    tag, nbytes = "slow", 1 << 20

    def __init__(self, gate):
        self.gate = gate

    def values(self, first):
        self.gate(None)
        return []


class Unencodable:
    tag = "unencodable"
    nbytes = 0

    def values(self, first):
        raise ValueError("no")


def test_a_call_that_waits_for_an_encoding_waits_for_no_storage(writer_at, gate, tmp_path):
    writer = writer_at(tmp_path, max_queue_bytes=1 << 20, block_secs=0.2)
    begin_encoding(writer, Slow(gate), gate)
    thread = threading.Thread(target=writer.add_histogram, args=("weights", np.zeros(100_000), 1))
    thread.start()
    thread.join(1.0)
    assert thread.is_alive()
    assert writer.stats().dropped == 0
    gate.open()
    thread.join(PATIENCE_SECS)
    assert writer.flush(PATIENCE_SECS)
    assert writer.stats().dropped == 0


def test_the_worker_waits_for_no_room_that_only_it_can_make(writer_at, gate, tmp_path):
    """A handler of the log may add to the writer within a line that the worker logs while it encodes."""
    writer = writer_at(tmp_path, max_queue=1000)

    class Logging(Slow):
        def values(self, first):
            super().values(first)
            for step in range(1001):
                writer.add_scalar("from the handler", 1.0, step)
            return []

    begin_encoding(writer, Logging(gate), gate)
    gate.open()
    assert writer.flush(PATIENCE_SECS)


@pytest.mark.parametrize("options", [{"block_secs": 0}, {"on_full": "drop"}], ids=["block", "drop"])
def test_a_full_queue_behind_an_encoding_is_not_called_slow_storage(writer_at, gate, tmp_path, caplog, options):
    writer = writer_at(tmp_path, max_queue_bytes=1 << 20, **options)
    begin_encoding(writer, Slow(gate), gate)
    writer.add_histogram("weights", np.zeros(100_000), 1)
    assert writer.stats().dropped == 1
    assert "encoding does not keep up" in caplog.text
    assert "storage" not in caplog.text


def test_raise_names_the_encoding_that_is_waited_for(writer_at, gate, tmp_path):
    writer = writer_at(tmp_path, max_queue_bytes=1 << 20, on_full="raise")
    begin_encoding(writer, Slow(gate), gate)
    with pytest.raises(QueueFullError, match="entries wait for encoding"):
        writer.add_histogram("weights", np.zeros(100_000), 1)


def test_a_close_that_gives_up_on_an_encoding_does_not_say_that_storage_hangs(writer_at, gate, tmp_path, caplog):
    writer = writer_at(tmp_path)
    begin_encoding(writer, Slow(gate), gate)
    writer.close(timeout=0.1)
    assert "encoding takes longer than close waits; closed with 1 values not stored" in caplog.text


def test_an_encoding_that_never_ends_holds_nobody_for_ever(writer_at, gate, tmp_path, monkeypatch):
    monkeypatch.setattr(_runs, "_LONGEST_ENCODING_SECS", 0.1)
    writer = writer_at(tmp_path, max_queue_bytes=1 << 20, block_secs=0.1)
    begin_encoding(writer, Slow(gate), gate)
    writer.add_histogram("weights", np.zeros(100_000), 1)
    assert writer.stats().dropped == 1


@pytest.mark.parametrize(
    "add",
    [
        lambda writer: writer.add_scalar("d", 1.0, 1, summary_description="words"),
        lambda writer: writer.add_scalars("m", {"a": 1.0}, 1),
        lambda writer: writer.add_metrics({f"m{i}": 1.0 for i in range(50)}, 1),
        lambda writer: writer.add_scalar_series("s", np.zeros(200), np.arange(200)),
        lambda writer: writer.add_histogram("h", np.zeros(10), 1),
        lambda writer: writer.add_text("t", "words", 1),
        lambda writer: writer.add_tensor("x", np.zeros(10), 1),
        lambda writer: writer.add_pr_curve("p", [0, 1], [0.1, 0.9], 1),
        lambda writer: writer.add_mesh("v", np.zeros((3, 3))),
        lambda writer: writer.add_hparams({"lr": 0.1}, {"best": 1.0}),
        lambda writer: writer.add_embedding(np.zeros((3, 2))),
        lambda writer: writer.add_custom_scalars({"a": {"b": ["Multiline", ["c"]]}}),
        lambda writer: writer.add_graph(b""),
        lambda writer: writer.file_writer.add_summary(b""),
    ],
)
def test_the_queue_gives_back_what_an_entry_took(writer_at, tmp_path, add):
    writer = writer_at(tmp_path)
    for _ in range(2):
        add(writer)
    assert writer.flush(PATIENCE_SECS)
    assert writer._tb_worker.queue._heavy == 0


def test_scalars_have_room_beside_an_entry_that_is_larger_than_the_queue(hung, gate, tmp_path):
    writer = hung(max_queue_bytes=1 << 20, on_full="raise")
    writer.add_histogram("large", np.zeros(300_000), 0)  # 2.4 MB, and storage takes nothing
    for step in range(200):
        writer.add_scalar("loss", float(step), step)
        writer.add_metrics({f"metric/{i}": 1.0 for i in range(20)}, step)
    gate.open()
    assert writer.flush(PATIENCE_SECS)
    assert len(scalars(tmp_path / "run", "loss")) == 200
    assert writer.stats().dropped == 0


def test_a_small_queue_is_not_filled_by_large_entries_alone(hung, gate, tmp_path):
    writer = hung(max_queue_bytes=1 << 20, on_full="drop")
    for step in range(30):
        writer.add_histogram("weights", np.zeros(10_000), step)  # 80 kB each
    left_out = writer.stats().dropped
    assert 15 < left_out < 25
    for step in range(500):
        writer.add_scalar("loss", float(step), step)
    assert writer.stats().dropped == left_out
    gate.open()
    assert writer.flush(PATIENCE_SECS)


# ---- counters


def test_the_counters_of_a_new_writer(writer_at, tmp_path):
    writer = writer_at(tmp_path)
    (path,) = event_files(tmp_path)
    assert writer.stats() == WriterStats(
        queued=0, written=0, dropped=0, retries=0, bytes=path.stat().st_size, last_error=None, flush_latency_secs=0.0
    )


def test_the_counters_count_values_not_events(writer_at, tmp_path):
    writer = writer_at(tmp_path, flush_secs=NEVER_SECS)
    writer.add_scalar("a", 1.0, 1)
    writer.add_metrics({"b": 1.0, "c": 2.0}, 1)
    writer.add_scalar_series("d", np.zeros(10), np.arange(10))
    writer.add_scalars("e", {"x": 1.0, "y": 2.0}, 1)
    writer.add_histogram("h", [1.0], 1)
    writer.add_text("t", "words", 1)
    assert writer.flush()
    stats = writer.stats()
    assert (stats.queued, stats.written, stats.dropped, stats.retries) == (0, 17, 0, 0)
    assert stats.bytes == sum(path.stat().st_size for path in event_files(tmp_path, recursive=True))
    assert 0.0 < stats.flush_latency_secs < PATIENCE_SECS


def test_queued_counts_values_too(hung):
    writer = hung()
    writer.add_metrics({"b": 1.0, "c": 2.0}, 1)
    assert writer.stats().queued == 2


def test_the_counters_add_up_at_any_moment_of_the_worker(tmp_path, writer_at, faults):
    """Looked at within every call that the worker makes: each value is queued, written or dropped."""
    sums, lowest = Counter(), []

    def look(*_):
        # With the queue's lock held by this thread, no other one could look.
        if lowest and not writer._tb_worker.queue._lock._is_owned():
            stats = writer.stats()
            sums[stats.queued + stats.written + stats.dropped] += 1
            lowest[0] = min(lowest[0], stats.queued, stats.written, stats.dropped)

    threading.setprofile(look)
    try:
        writer = writer_at(faulty(tmp_path, faults), flush_secs=NEVER_SECS)
    finally:
        threading.setprofile(None)
    (tmp_path / "run").joinpath("m_b").write_bytes(b"")  # where a sub-run's directory should be
    for step in range(30):
        writer.add_scalar("a", 1.0, step)
        writer.add_metrics({"b": 1.0, "c": 2.0}, step)
        writer.add_scalars("m", {"a": 1.0, "b": 1.0}, step)
        writer.add_text("t", "words", step)
    writer.add_scalar_series("s", np.zeros(200), np.arange(200))
    entry = Pending(Unencodable(), 0, 1.0)
    writer._tb_put(entry, size_of(entry))
    lowest.append(0)
    assert writer.flush(PATIENCE_SECS)
    assert writer.stats().dropped == 31
    faults.error = RuntimeError("a fault of the sink")
    lowest.clear()
    for step in range(300):
        writer.add_scalar("a", 1.0, step)
    before, total = dict(sums), sum(dataclasses.astuple(writer.stats())[:3])
    lowest.append(0)
    assert not writer.flush(PATIENCE_SECS)
    lowest.clear()
    assert set(before) == {30 * 6 + 201}
    assert set(sums) - set(before) == {total}
    assert min(sums.values()) > 100


def test_the_counters_cannot_be_changed(writer_at, tmp_path):
    with pytest.raises(AttributeError):
        writer_at(tmp_path).stats().written = 5


def test_a_writer_starts_one_thread_that_does_not_keep_the_process(writer_at, tmp_path):
    before = threads()
    writer_at(tmp_path)
    (thread,) = set(threads()) - set(before)
    assert thread.daemon


def test_version_of_every_file_is_written_before_the_constructor_returns(writer_at, tmp_path):
    writer_at(tmp_path, flush_secs=NEVER_SECS)
    (path,) = event_files(tmp_path)
    assert read_file(path)[0][0].file_version == "brain.Event:2"


def test_construction_fails_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SinkError, match="cannot create an event file") as raised:
        SummaryWriter(tmp_path / "file" / "run")
    assert raised.value.errno == errno.ENOTDIR
    assert isinstance(raised.value.__cause__, OSError)


def test_the_level_of_sync_is_one_that_a_file_reaches():
    assert Durability.SYNC < Durability.REMOTE
    assert tbwriter.sinks.FileSink.max_durability is Durability.SYNC


def test_the_process_id_is_in_the_name(writer_at, tmp_path):
    writer_at(tmp_path)
    assert f".{os.getpid()}." in event_files(tmp_path)[0].name
