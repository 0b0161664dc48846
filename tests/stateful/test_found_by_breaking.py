"""Faults that were found by trying to break the writer, each with the right behaviour."""

import enum
import errno
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from event_files import scalars, statuses
from storage import PATIENCE_SECS, Disk
from waiting import wait_until

from tbwriter import EventFileWriter, SinkError, SummaryWriter


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


def test_a_first_batch_larger_than_a_file_may_be_goes_on_in_new_ones(tmp_path):
    program = f"""
    import resource, signal
    from tbwriter import SummaryWriter
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    writer = SummaryWriter({str(tmp_path)!r}, flush_secs=1000.0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    for step in range(2000):
        writer.add_scalar("a", float(step), step)
    print(writer.flush(), writer.stats().written)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", "2000"]
    assert scalars(tmp_path, "a") == [(step, float(step)) for step in range(2000)]
    assert len(statuses(tmp_path)) > 2


@pytest.mark.parametrize("rank", [None, 0])
def test_a_directory_that_is_a_link_to_nowhere_is_told_at_construction(tmp_path, rank):
    (tmp_path / ("run" if rank is None else "rank_0")).symlink_to(tmp_path / "nowhere" / "else")
    with pytest.raises(SinkError, match=r"a link to .*/nowhere/else, which is not there"):
        SummaryWriter(tmp_path / "run" if rank is None else tmp_path, rank=rank)


def test_a_sub_run_that_is_a_link_to_nowhere_holds_up_itself_alone(tmp_path):
    (tmp_path / "m_k").symlink_to(tmp_path / "nowhere")
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalars("m", {"k": 1.0, "j": 2.0}, step)
            writer.add_scalar("a", 1.0, step)
        assert not writer.flush(0.3)
        wait_until(lambda: len(scalars(tmp_path, "a")) == 3, within=PATIENCE_SECS)
        wait_until((tmp_path / "m_j").is_dir, within=PATIENCE_SECS)
        wait_until(lambda: len(scalars(tmp_path / "m_j", "m")) == 3, within=PATIENCE_SECS)
        (tmp_path / "nowhere").mkdir()
        assert writer.flush(PATIENCE_SECS)
    assert scalars(tmp_path / "m_k", "m") == [(step, 1.0) for step in range(3)]


def test_a_directory_that_becomes_a_link_to_nowhere_is_waited_for(tmp_path):
    run = tmp_path / "run"
    with SummaryWriter(run) as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush()
        shutil.rmtree(run)
        run.symlink_to(tmp_path / "nowhere")
        writer.add_scalar("a", 2.0, 2)
        assert not writer.flush(0.3)
        (tmp_path / "nowhere").mkdir()
        assert writer.flush(PATIENCE_SECS)
    assert scalars(run, "a") == [(2, 2.0)]


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
