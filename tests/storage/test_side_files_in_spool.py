"""Files beside the event files, while the store is away: bounded by the spool, and counted with what is left there."""

import re

import numpy as np
import pytest
from away_store import AwayStore
from waiting import wait_until

from tbwriter import SummaryWriter, ship
from tbwriter.sinks import _thinning

PATIENCE_SECS = 30
LIMIT = 400_000
POINTS = np.zeros((10_000, 3), np.float32)  # 60 kB as text


@pytest.fixture
def store():
    yield AwayStore
    AwayStore.reset()


@pytest.fixture
def writer(store, tmp_path, monkeypatch):
    monkeypatch.setattr(_thinning.disk, "limit", LIMIT)
    with SummaryWriter("away-test://run", spool_dir=tmp_path, flush_secs=0.02) as writer:
        yield writer


def bytes_in(spool):
    return sum(path.stat().st_size for path in spool.rglob("*") if path.is_file())


def embeddings(store):
    return {path.split("/")[3] for path in store.store if path.endswith("tensors.tsv")}


def test_embeddings_fill_no_more_than_the_spool_and_follow_when_the_store_is_back(writer, store, tmp_path, caplog):
    """The last quarter is for curves, as of records; an embedding waits whose table is in and whose points are not."""
    assert writer.flush(PATIENCE_SECS)
    store.away = True
    for number in range(5):
        writer.add_embedding(POINTS, metadata=["a label"] * len(POINTS), tag=f"e{number}")
        writer.add_scalar("a", 1.0, number)
    wait_until(lambda: writer.stats().retries > 3, within=PATIENCE_SECS)
    assert bytes_in(tmp_path) < 0.75 * LIMIT + 10_000
    assert writer.stats().queued >= 3
    store.away = False
    assert writer.flush(PATIENCE_SECS)
    assert (writer.stats().queued, writer.stats().written, writer.stats().dropped) == (0, 10, 0)
    assert embeddings(store) == {f"e{number}" for number in range(5)}
    assert _thinning.disk.free() == 1.0


def test_an_embedding_that_is_larger_than_the_spool_is_dropped_and_holds_up_nothing(writer, store, caplog):
    writer.add_embedding(np.zeros((100_000, 3), np.float32), tag="large")
    writer.add_embedding(POINTS[:10], tag="small")
    assert writer.flush(PATIENCE_SECS)
    assert (writer.stats().written, writer.stats().dropped) == (1, 1)
    assert embeddings(store) == {"small"}
    assert "embedding 'large' cannot be stored and is dropped: the spool has no room for its" in caplog.text


def test_close_tells_of_files_that_are_left_and_ship_sends_them(store, tmp_path, caplog):
    with SummaryWriter("away-test://run", spool_dir=tmp_path, flush_secs=0.02) as writer:
        assert writer.flush(PATIENCE_SECS)
        store.away = True
        writer.add_embedding(POINTS, tag="e")
        wait_until(lambda: writer.stats().written == 1, within=PATIENCE_SECS)
        writer.close(timeout=0.2)
    left = re.search(r"closed with (\d+) bytes not stored; they are in (\S+),", caplog.text)
    assert int(left[1]) > 5 * len(POINTS)
    store.away = False
    ship(tmp_path)
    assert embeddings(store) == {"e"}
    assert _thinning.disk.free() == 1.0
