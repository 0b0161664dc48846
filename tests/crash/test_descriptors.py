"""Descriptors that other parts of the program close, or print into: event files stay whole, and others' files too."""

import os
import sys

import numpy as np
import pytest
from children import run_well
from event_files import event_files, read_file, scalars, statuses

from tbwriter import SummaryWriter

ALL = [(step, float(step)) for step in range(10)]


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors as POSIX does")
@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_what_a_library_prints_while_a_standard_stream_is_closed_is_in_no_file_of_ours(tmp_path, closed):
    """As `python train.py 2>&-` and some daemons start a program; glog, MindSpore's log, knows only the number 2."""
    code = f"""
    import numpy as np

    def library_prints():
        for number in {closed}:
            try:
                os.write(number, b"[WARNING] of a library")
            except OSError:
                pass

    for number in {closed}:
        os.close(number)
    with SummaryWriter(logdir, max_file_size=300) as writer:
        for step in range(10):
            library_prints()
            writer.add_scalar("loss", float(step), step)
            writer.flush()
        writer.add_scalars("group", {{"one": 1.0}}, 1)
        writer.add_embedding(np.eye(2))
        writer.flush()
        library_prints()
    """
    run_well(code, tmp_path)
    assert scalars(tmp_path, "loss") == ALL
    assert statuses(tmp_path) == ["clean"] * len(event_files(tmp_path))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".tsv" for path in files)
    assert not [path for path in files if b"library" in path.read_bytes()]


def closed_elsewhere(directory, *, until):
    """Close the descriptor of the one event file in `directory`, and take its number for a file of the user's."""
    name = str(event_files(directory)[0])
    for number in range(3, until):
        try:
            ours = os.readlink(f"/proc/self/fd/{number}") == name
        except OSError:
            continue
        if ours:
            os.close(number)
            file = open(directory / "checkpoint", "wb+", buffering=0)  # noqa: SIM115 (for the caller)
            assert file.fileno() == number
            return file
    raise AssertionError(f"{name} is not open")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks for the descriptor in /proc")
@pytest.mark.parametrize("ending", ["more", "nothing more"])
def test_a_descriptor_that_another_part_closed_and_the_user_has_now_is_neither_written_nor_closed(tmp_path, ending):
    """As `os.closerange` of daemons does: the next file that is opened, a checkpoint, gets the number."""
    writer = SummaryWriter(tmp_path)
    for step, value in ALL[:5]:
        writer.add_scalar("loss", value, step)
    assert writer.flush()
    with closed_elsewhere(tmp_path, until=1000) as checkpoint:
        checkpoint.write(b"weights" * 1000)
        if ending == "more":
            for step, value in ALL[5:]:
                writer.add_scalar("loss", value, step)
            assert writer.sync()
        writer.close()
        checkpoint.write(b"!")  # it is still open
    assert (tmp_path / "checkpoint").read_bytes() == b"weights" * 1000 + b"!"
    assert scalars(tmp_path, "loss") == (ALL if ending == "more" else ALL[:5])
    assert statuses(tmp_path) == ["clean"]
    assert len(event_files(tmp_path)) == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks for the descriptor in /proc")
def test_a_descriptor_that_another_part_closed_is_opened_again(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.0, 0)
        assert writer.flush()
        closed_elsewhere(tmp_path, until=1000).close()
        writer.add_histogram("weights", np.arange(5.0), 1)
        assert writer.flush()
    events, status = read_file(event_files(tmp_path)[0])
    assert status == "clean"
    assert [value.tag for event in events for value in event.values] == ["loss", "weights"]
    assert len(event_files(tmp_path)) == 1
