"""What is larger than the system lets any file be: left out, counted and told, and nothing waits for it."""

import contextlib
import errno
import resource
import signal

import numpy as np
import pytest
from away_store import AwayStore
from event_files import read_bytes, scalars, statuses, values
from storage import PATIENCE_SECS

from tbwriter import RecordTooLargeError, SummaryWriter, _record
from tbwriter.sinks import FileSink
from tbwriter.sinks._spool import DiskSpool

LIMIT = 20_000
LARGE = np.zeros(LIMIT, np.uint8)


@contextlib.contextmanager
def limit(size):
    """Let no file of this process grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_record_larger_than_a_file_may_be_is_left_out_and_what_follows_is_stored(tmp_path, caplog):
    with limit(LIMIT), SummaryWriter(tmp_path, flush_secs=1000.0) as writer:
        for step in range(3):
            writer.add_scalar("before", 1.0, step)
            writer.add_tensor("large", LARGE, step)
            writer.add_tensor("small", LARGE[:100], step)
            writer.add_scalar("after", 2.0, step)
        assert writer.flush(PATIENCE_SECS)
        stats = writer.stats()
        assert (stats.queued, stats.written, stats.dropped) == (0, 9, 3)
    assert scalars(tmp_path, "before") == [(step, 1.0) for step in range(3)]
    assert scalars(tmp_path, "after") == [(step, 2.0) for step in range(3)]
    assert [step for tag, step, _ in values(tmp_path) if tag == "small"] == [0, 1, 2]
    assert set(statuses(tmp_path)) == {"clean"}
    assert caplog.text.count("larger than a file may be here") == 1
    assert "tag 'large'" in caplog.text


@pytest.mark.parametrize("size", [200, 1000, LIMIT], ids=lambda size: f"limit {size}")
def test_of_blocks_of_records_only_those_are_left_out_that_fit_nowhere(tmp_path, size):
    """Scalars come in blocks of many records, and series too."""
    with SummaryWriter(tmp_path, flush_secs=1000.0, coalesce=False) as writer, limit(size):
        for step in range(50):
            writer.add_scalar("a", float(step), step)
            writer.add_scalar("x" * LIMIT, float(step), step)
        writer.add_scalar_series("s", np.arange(200), np.arange(200))
        assert writer.flush(PATIENCE_SECS)
        assert (writer.stats().queued, writer.stats().written, writer.stats().dropped) == (0, 250, 50)
    assert scalars(tmp_path, "a") == [(step, float(step)) for step in range(50)]
    assert scalars(tmp_path, "s") == [(step, float(step)) for step in range(200)]


def test_a_record_too_large_for_a_shared_file_system_takes_no_other_with_it(tmp_path):
    """There a chunk that a limit cuts is not yet synced, and so not yet stored."""
    small, large = _record.frame(bytes(3000)), _record.frame(bytes(LIMIT))
    sink = FileSink(str(tmp_path), name="events.out.tfevents.1", header=b"", shared=True)
    with limit(LIMIT):
        sink.append(small)
        with pytest.raises(OSError, match="File too large") as lost:
            sink.append(small + large)
        assert lost.value.accepted == len(small)
        sink.roll("events.out.tfevents.2", b"")
        with pytest.raises(RecordTooLargeError, match="File too large"):
            sink.append(large + small)
        sink.append(small)
    sink.close()
    stored = {path.name[-1]: path.read_bytes() for path in tmp_path.iterdir()}
    assert stored == {"1": small * 2, "2": small}


def test_an_embedding_whose_file_would_be_too_large_holds_up_nothing(tmp_path):
    with limit(LIMIT), SummaryWriter(tmp_path, flush_secs=1000.0) as writer:
        writer.add_embedding(np.zeros((LIMIT, 3)), tag="large")
        writer.add_embedding(np.zeros((3, 3)), tag="small")
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush(PATIENCE_SECS)
        assert (writer.stats().written, writer.stats().dropped) == (2, 1)
    assert scalars(tmp_path) == [(1, 1.0)]
    assert "small" in (tmp_path / "projector_config.pbtxt").read_text()
    assert not list(tmp_path.rglob("*.part"))


@pytest.fixture
def away_store():
    yield AwayStore
    AwayStore.reset()


def test_a_record_larger_than_a_file_of_the_spool_may_be_is_left_out(tmp_path, away_store):
    with limit(LIMIT), SummaryWriter("away-test://run", spool_dir=tmp_path, flush_secs=1000.0) as writer:
        writer.add_scalar("a", 1.0, 1)
        writer.add_tensor("large", LARGE, 1)
        writer.add_scalar("a", 2.0, 2)
        assert writer.flush(PATIENCE_SECS)
        assert (writer.stats().written, writer.stats().dropped) == (2, 1)
    objects = [read_bytes(file.getvalue())[0] for _, file in sorted(away_store.store.items())]
    stored = [(value.tag, event.step) for events in objects for event in events for value in event.values]
    assert stored == [("a", 1), ("a", 2)]


def test_a_side_file_that_the_spool_cannot_take_leaves_nothing_of_itself(tmp_path):
    """Or each attempt would take more of a disk that is full."""
    spool = DiskSpool(tmp_path, "s3://bucket/run", {}, name="events.out.tfevents.1", header=b"")
    with limit(LIMIT), pytest.raises(OSError, match="File too large") as raised:
        spool.put_side(1, "tensors.tsv", bytes(2 * LIMIT))
    assert raised.value.errno == errno.EFBIG
    assert not list(tmp_path.rglob("*.part"))
    spool.close()
