"""What users' own unit tests put in the place of the system."""

import os

from event_files import scalars
from pyfakefs.fake_filesystem_unittest import Patcher

import tbwriter
from tbwriter import SummaryWriter

ALL = [(step, float(step)) for step in range(10)]


def test_pyfakefs_has_the_files_and_the_real_system_none(tmp_path):
    """Its handles are numbers of its own: a real write would go to whatever real file has the number."""
    real = [open(tmp_path / str(number), "wb") for number in range(20)]  # noqa: SIM115 (their numbers matter)
    with Patcher() as patcher:
        patcher.fs.create_dir("/fake")
        with SummaryWriter("/fake/run", max_file_size=300) as writer:
            for step, value in ALL:
                writer.add_scalar("loss", value, step)
                assert writer.flush(timeout=20)
        stored = [
            (event.step, value.scalar())
            for event in tbwriter.read_events("/fake/run")
            for value in event.values
            if value.tag == "loss"
        ]
        assert len(os.listdir("/fake/run")) > 1
    assert stored == ALL
    assert not os.path.exists("/fake")
    for file in real:
        file.close()
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b""}


def test_a_writer_that_outlives_pyfakefs_touches_no_file_that_is_not_its_own(tmp_path):
    real = [open(tmp_path / str(number), "wb") for number in range(20)]  # noqa: SIM115
    with Patcher() as patcher:
        patcher.fs.create_dir(str(tmp_path / "run"))
        writer = SummaryWriter(tmp_path / "run")
        writer.add_scalar("loss", 0.0, 0)
        assert writer.flush(timeout=20)
    for step, value in ALL[1:]:
        writer.add_scalar("loss", value, step)
    writer.close()
    for file in real:
        file.close()
    assert {path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == {b""}
    assert scalars(tmp_path / "run", "loss") == ALL[1:]
