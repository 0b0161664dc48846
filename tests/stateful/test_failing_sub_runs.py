"""Sub-runs of `add_scalars` that cannot be written for now: what waits for them is bounded and holds up nothing."""

import errno
import functools
import itertools
import os

import pytest
from event_files import scalars
from storage import PATIENCE_SECS, error
from waiting import wait_until

import tbwriter
from tbwriter._entries import SubRun
from tbwriter._event_file import Place
from tbwriter._runs import Runs, SubRunError

_schemes = itertools.count()
LIMIT = 50_000


class Refusing:
    """Storage in a directory that refuses to make files in the sub-run `loss_bad` as long as it is told to."""

    def __init__(self, directory):
        self.refuses = True
        self.attempts = 0
        self._directory = directory
        scheme = f"refusing-{next(_schemes)}"
        self.url = f"{scheme}://run"
        tbwriter.register_sink(scheme, self._open, self._list)

    def path(self, url):
        return os.path.join(self._directory, url.split("://", 1)[1])

    def _open(self, url, name, header, options):
        if url.endswith("/loss_bad"):
            self.attempts += 1
            if self.refuses:
                raise error(errno.EACCES)
        return tbwriter.open_sink(self.path(url), name=name, header=header)

    def _list(self, url, options):
        return os.listdir(self.path(url)) if os.path.isdir(self.path(url)) else []


@pytest.fixture
def storage(tmp_path):
    return Refusing(tmp_path)


def test_what_waits_for_a_failing_sub_run_is_bounded_and_the_rest_is_counted(storage, caplog):
    runs = Runs(Place(url=storage.url), purge_step=None, clock=lambda: 1700000000.5, coalesce=True)
    for begin in range(0, LIMIT + 2000, 1000):
        runs.add([SubRun("loss_bad", ("loss", 1.0, step, 1.0)) for step in range(begin, begin + 1000)])
        with pytest.raises(SubRunError, match="Permission denied"):
            runs.drain()
    assert (runs.waiting, runs.dropped) == (LIMIT, 2000)
    assert runs.buffered == 0
    assert len([record for record in caplog.records if "newer ones are dropped" in record.getMessage()]) == 1
    storage.refuses = False
    runs.drain()
    assert (runs.waiting, runs.written, runs.dropped) == (0, LIMIT, 2000)
    runs.add([SubRun("loss_bad", ("loss", 1.0, LIMIT, 1.0))])
    runs.drain()
    assert [step for step, _ in scalars(storage.path(storage.url + "/loss_bad"))] == [*range(LIMIT + 1)]
    runs.close(0)


def test_a_failing_sub_run_takes_no_room_in_the_queue_and_no_time_of_the_run(storage, writer_at):
    """Three times what the queue holds waits for the sub-run; the run and its other sub-run are written as ever."""
    writer = writer_at(storage.url, flush_secs=0.05, max_queue_bytes=1 << 17, on_full="raise")
    for step in range(1500):
        writer.add_scalars("loss", {"bad": 1.0, "good": 1.0}, step)
        writer.add_scalar("acc", 1.0, step)
        if step % 50 == 49:
            wait_until(functools.partial(written, storage, step + 1), within=PATIENCE_SECS, what="the rest of the run")
    assert storage.attempts > 10  # it is tried again and again, and none of them made the run wait
    stats = writer.stats()
    assert (stats.queued, stats.dropped, stats.last_error) == (1500, 0, "[Errno 13] Permission denied")
    storage.refuses = False
    assert writer.flush()
    assert len(scalars(storage.path(storage.url + "/loss_bad"))) == 1500


def written(storage, count):
    places = [storage.path(storage.url), storage.path(storage.url + "/loss_good")]
    return [len(scalars(place)) for place in places] == [count, count]


def test_a_flush_says_that_a_sub_run_is_missing_and_stores_the_run(storage, writer_at):
    writer = writer_at(storage.url, flush_secs=3600)
    writer.add_scalars("loss", {"bad": 1.0}, 1)
    writer.add_scalar("acc", 2.0, 1)
    assert not writer.flush(timeout=0.2)
    wait_until(lambda: scalars(storage.path(storage.url), "acc") == [(1, 2.0)], within=PATIENCE_SECS)


def test_an_outage_of_a_sub_run_is_told_once_at_each_end(storage, writer_at, caplog):
    writer = writer_at(storage.url, flush_secs=3600)
    for step in range(3):
        writer.add_scalars("loss", {"bad": 1.0}, step)
        assert not writer.flush(timeout=0.1)
    wait_until(lambda: storage.attempts > 1, within=PATIENCE_SECS)
    storage.refuses = False
    assert writer.flush()
    told = [record.getMessage() for record in caplog.records if record.name == "tbwriter._outage"]
    assert len(told) == 2
    assert "Permission denied" in told[0]
    assert "storage works again" in told[1]


def test_close_tells_the_error_of_a_sub_run(storage, writer_at, caplog):
    writer = writer_at(storage.url, flush_secs=3600)
    writer.add_scalars("loss", {"bad": 1.0}, 1)
    writer.add_scalar("acc", 2.0, 1)
    writer.close(timeout=0.2)
    wait_until(
        lambda: "closed with 1 values not stored: [Errno 13] Permission denied" in caplog.text, within=PATIENCE_SECS
    )
