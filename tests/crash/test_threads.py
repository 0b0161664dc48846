"""Many threads add to one writer at once."""

import contextlib
import sys
import threading

import numpy as np
import pytest
from event_files import scalars, statuses, steps

from tbwriter import SummaryWriter, WriterClosedError

THREADS = 8


@pytest.fixture
def eager_switching():
    """Let threads change places every 10 us, so that races are met."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(work):
    """Run `work(number)` in 8 threads that start together; raise what one of them raised."""
    barrier = threading.Barrier(THREADS)
    failures = []

    def begin(number):
        try:
            barrier.wait()
            work(number)
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.usefixtures("eager_switching")
def test_eight_threads_lose_and_reorder_nothing_through_add_scalar(tmp_path):
    with SummaryWriter(tmp_path) as writer:

        def work(number):
            for step in range(2000):
                writer.add_scalar(f"tag{number}", float(step), step)

        at_once(work)
    for number in range(THREADS):
        assert scalars(tmp_path, f"tag{number}") == [(step, float(step)) for step in range(2000)]
    assert statuses(tmp_path) == ["clean"]


@pytest.mark.usefixtures("eager_switching")
def test_eight_threads_lose_nothing_of_one_tag(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        at_once(lambda number: [writer.add_scalar("tag", 1.0, number * 2000 + n) for n in range(2000)])
    assert sorted(steps(tmp_path, "tag")) == list(range(16_000))


@pytest.mark.usefixtures("eager_switching")
@pytest.mark.parametrize("options", [{}, {"max_queue": 1000}, {"coalesce": False}, {"max_file_size": 100_000}])
def test_eight_threads_lose_nothing_through_all_ways_mixed(tmp_path, options):
    with SummaryWriter(tmp_path, flush_secs=0.01, **options) as writer:

        def work(number):
            for step in range(0, 1000, 4):
                writer.add_scalar(f"tag{number}", float(step), step)
                writer.add_metrics({f"tag{number}": step + 1.0, f"other{number}": 1.0}, step + 1)
                writer.add_scalar_series(f"tag{number}", np.array([step + 2.0, step + 3.0]), [step + 2, step + 3])
                if step % 100 == 0:
                    writer.add_histogram(f"hist{number}", np.arange(100.0), step)
                    assert writer.flush()

        at_once(work)
    for number in range(THREADS):
        assert scalars(tmp_path, f"tag{number}") == [(step, float(step)) for step in range(1000)]
        assert steps(tmp_path, f"other{number}") == list(range(1, 1000, 4))
    assert set(statuses(tmp_path)) == {"clean"}


@pytest.mark.usefixtures("eager_switching")
@pytest.mark.parametrize("moment", range(0, 2000, 250))
def test_close_by_one_thread_while_others_add_loses_nothing_that_was_added_before(tmp_path, moment):
    """After close() add_scalar raises; of each thread, only the call that close() overtook may be lost."""
    writer = SummaryWriter(tmp_path)
    returned = [0] * THREADS
    reached = threading.Event()

    def work(number):
        if number == 0:
            reached.wait()
            writer.close()
            return
        with contextlib.suppress(WriterClosedError):
            for step in range(4000):
                writer.add_scalar(f"tag{number}", 1.0, step)
                returned[number] += 1
                if step == moment:
                    reached.set()

    at_once(work)
    for number in range(1, THREADS):
        got = steps(tmp_path, f"tag{number}")
        assert got == list(range(len(got)))
        assert returned[number] - 1 <= len(got) <= returned[number] + 1


def test_threads_that_flush_and_close_at_once_end(tmp_path):
    writer = SummaryWriter(tmp_path)

    def work(number):
        for step in range(20):
            writer.add_scalar(f"tag{number}", 1.0, step)
            assert writer.flush()
            assert writer.stats().dropped == 0

    at_once(work)
    at_once(lambda _: writer.close())
    assert len(scalars(tmp_path)) == 160
