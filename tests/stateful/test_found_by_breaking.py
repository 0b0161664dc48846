"""Faults that were found by trying to break the writer, each with the right behaviour."""

import enum
import errno

import numpy as np
import pytest
from event_files import scalars, statuses
from storage import Disk

from tbwriter import EventFileWriter, SummaryWriter


class Tag(str, enum.Enum):
    LOSS = "train/loss"


def test_a_str_enum_is_its_text(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar(Tag.LOSS, 1.0, 1)
        writer.add_scalars("m", {Tag.LOSS: 2.0}, 1)
    assert scalars(tmp_path, "train/loss") == [(1, 1.0)]
    assert scalars(tmp_path / "m_train" / "loss", "m") == [(1, 2.0)]


def test_a_number_whose_float_raises_anything_is_refused_by_tag(tmp_path):
    class Rogue:
        def __float__(self):
            raise RuntimeError("no")

    with SummaryWriter(tmp_path) as writer, pytest.raises(TypeError, match="tag 'a': got Rogue"):
        writer.add_scalar("a", Rogue(), 1)


def test_a_masked_number_is_nan(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("a", np.ma.masked_array([1.0], mask=[True]).mean(), 1)
    ((step, value),) = scalars(tmp_path, "a")
    assert step == 1
    assert np.isnan(value)


@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["huge", "minus huge"])
def test_an_int_of_thousands_of_digits_is_stored_as_infinity(tmp_path, number):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("a", number, 1)
        with pytest.raises(ValueError, match="tag 'a': step must lie within int64"):
            writer.add_scalar("a", 1.0, number)
    assert scalars(tmp_path, "a") == [(1, np.inf if number > 0 else -np.inf)]


def test_a_message_that_serialises_to_text_is_refused_alone(tmp_path):
    class Wrong:
        wall_time = 1.0

        def SerializeToString(self):
            return "text"

    with EventFileWriter(tmp_path) as writer:
        with pytest.raises(TypeError, match="SerializeToString must give bytes"):
            writer.add_event(Wrong())
        writer.add_event(b"")
    assert statuses(tmp_path) == ["clean"]


def test_a_sub_run_that_cannot_be_written_any_more_does_not_hold_up_the_run(tmp_path):
    """Its directory is replaced by a file."""
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("m", {"a": 1.0, "b": 1.0}, 1)
        assert writer.flush()
        for file in (tmp_path / "m_a").iterdir():
            file.unlink()
        (tmp_path / "m_a").rmdir()
        (tmp_path / "m_a").write_bytes(b"")
        writer.add_scalars("m", {"a": 2.0, "b": 2.0}, 2)
        writer.flush()
        writer.add_scalar("loss", 3.0, 3)
        writer.add_scalars("m", {"b": 3.0}, 3)
        assert writer.flush()
        assert writer.stats().dropped >= 1
    assert scalars(tmp_path, "loss") == [(3, 3.0)]
    assert scalars(tmp_path / "m_b", "m") == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_file_that_may_not_grow_is_followed_by_a_new_one(tmp_path, monkeypatch):
    with SummaryWriter(tmp_path, flush_secs=1000.0) as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush()
        Disk(monkeypatch).plan("pwrite", OSError(errno.EFBIG, "File too large"))
        writer.add_scalar("a", 2.0, 2)
        assert writer.flush()
    assert scalars(tmp_path, "a") == [(1, 1.0), (2, 2.0)]
    assert len(statuses(tmp_path)) == 2


def test_a_file_that_another_program_cuts_is_followed_by_a_new_one_without_a_hole(tmp_path):
    with SummaryWriter(tmp_path, flush_secs=1000.0) as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush()
        (file,) = tmp_path.iterdir()
        with open(file, "r+b") as handle:
            handle.truncate(0)
        writer.add_scalar("a", 2.0, 2)
        assert writer.flush()
    assert scalars(tmp_path, "a") == [(2, 2.0)]
    assert set(statuses(tmp_path)) == {"clean"}
