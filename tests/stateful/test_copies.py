"""The first call to a copy of a writer opens a file, and writes to the log: what comes meanwhile, in its midst too."""

import logging
import pickle
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from event_files import scalars, statuses
from storage import PATIENCE_SECS

from tbwriter import SummaryWriter, WriterClosedError


@contextmanager
def called_while_opening(act):
    """Have `act` called, once, by the line of the log that tells of another open writer."""
    done = []

    class Handler(logging.Handler):
        def emit(self, entry):
            if not done:
                done.append(True)
                act()

    logger, handler = logging.getLogger("tbwriter"), Handler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert done


@pytest.fixture
def writer(writer_at, tmp_path):
    return writer_at(tmp_path)


def in_time(call):
    """Make a call that may never return."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECS)
    assert not thread.is_alive()


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("by", [lambda call: call(), in_time], ids=["a handler above", "another thread"])
def test_what_is_added_while_the_first_call_opens_is_stored_behind_its_own(writer_at, tmp_path, by, asynchronous):
    twin = pickle.loads(pickle.dumps(writer_at(tmp_path, asynchronous=asynchronous)))
    flushed = []

    def add():
        twin.add_scalar("loss", 2.0, 2)
        twin.add_metrics({"loss": 3.0, "b": 1.0}, 3)
        twin.add_histogram("h", np.zeros(100), 3)
        flushed.append(twin.flush())

    with called_while_opening(lambda: by(add)):
        in_time(lambda: twin.add_scalar("loss", 1.0, 1))
    twin.add_scalar("loss", 4.0, 4)
    twin.close()
    assert flushed == [False]
    assert scalars(tmp_path, "loss") == [(step, float(step)) for step in range(1, 5)]
    assert len(statuses(tmp_path)) == 2
    stats = twin.stats()
    assert (stats.queued, stats.written, stats.dropped) == (0, 6, 0)
    assert twin._tb_worker.queue._heavy == 0


def test_a_copy_that_is_closed_while_its_first_call_opens_stores_that_and_takes_no_more(writer, tmp_path):
    twin = pickle.loads(pickle.dumps(writer))
    with called_while_opening(twin.close):
        in_time(lambda: twin.add_scalar("loss", 1.0, 1))
    with pytest.raises(WriterClosedError):
        twin.add_scalar("loss", 2.0, 2)
    twin.close()
    assert scalars(tmp_path) == [(1, 1.0)]


def test_what_waits_for_a_copy_that_never_opens_is_bounded_and_told(tmp_path, caplog):
    with SummaryWriter(tmp_path / "run", on_full="drop", max_queue=10) as writer:
        twin = pickle.loads(pickle.dumps(writer))

        def add_and_break():
            for step in range(15):
                twin.add_scalar("loss", 1.0, step)
            raise KeyboardInterrupt  # Ctrl-C

        with called_while_opening(add_and_break), pytest.raises(KeyboardInterrupt):
            twin.add_scalar("loss", 1.0, 1)
        stats = twin.stats()
        assert (stats.queued, stats.written, stats.dropped) == (10, 0, 5)
        assert not twin.flush()
        twin.close()
    assert twin.stats().dropped == 15
    assert "closed with 10 values not stored: no event file could be created" in caplog.text
