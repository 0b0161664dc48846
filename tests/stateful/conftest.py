import pytest
from storage import Disk, Gate

import tbwriter


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def writer_at(gate):
    """Make SummaryWriters that are closed when the test ends, whatever it left of their storage."""
    writers = []

    def make(place, **options):
        writers.append(tbwriter.SummaryWriter(place, **options))
        return writers[-1]

    yield make
    gate.open()
    for writer in writers:
        writer.close(timeout=0.2)
