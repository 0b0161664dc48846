"""`export_scalars_to_json`: what add_scalars stored, in the form of tensorboardX."""

import json
import math

import numpy as np
import pytest

from tbwriter import SummaryWriter


def exported(writer, path):
    writer.export_scalars_to_json(path)
    # Whatever JavaScript reads: no bare NaN.
    return json.loads(path.read_text(), parse_constant=pytest.fail)


@pytest.fixture(params=["a directory", "a URL"])
def log_dir(request, tmp_path):
    return str(tmp_path / "run") if request.param == "a directory" else f"memory://{tmp_path.name}/run"


def test_each_curve_of_add_scalars_has_its_wall_times_steps_and_values(log_dir, tmp_path):
    with SummaryWriter(log_dir) as writer:
        for step in range(3):
            writer.add_scalars("loss/all", {"train": step / 4, "a/b": -1.0}, step, walltime=100.0 + step)
        writer.add_scalars("other", {"train": 8.0}, 7, walltime=5.0)
        writer.add_scalar("alone", 1.0, 1)
        curves = exported(writer, tmp_path / "curves.json")
    place = writer.get_logdir()
    assert curves == {
        f"{place}/loss/all/train": [[100.0, 0, 0.0], [101.0, 1, 0.25], [102.0, 2, 0.5]],
        f"{place}/loss/all/a/b": [[100.0, 0, -1.0], [101.0, 1, -1.0], [102.0, 2, -1.0]],
        f"{place}/other/train": [[5.0, 7, 8.0]],
    }


def test_what_json_has_no_number_for_is_a_text(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        for step, value in enumerate([math.nan, math.inf, -np.inf]):
            writer.add_scalars("loss", {"a": value}, step)
        (points,) = exported(writer, tmp_path / "curves.json").values()
    assert [value for _, _, value in points] == ["nan", "inf", "-inf"]


def test_it_is_called_as_often_as_wanted_and_after_the_end_too(tmp_path):
    writer = SummaryWriter(tmp_path / "run")
    assert exported(writer, tmp_path / "curves.json") == {}
    for step in range(3):
        writer.add_scalars("loss", {"a": 1.0}, step)
        assert [len(points) for points in exported(writer, tmp_path / "curves.json").values()] == [step + 1]
    writer.close()
    assert [len(points) for points in exported(writer, tmp_path / "curves.json").values()] == [3]


def test_a_writer_that_stores_nothing_exports_nothing(tmp_path):
    with SummaryWriter(tmp_path / "run", write_to_disk=False) as writer:
        writer.add_scalars("loss", {"a": 1.0}, 1)
        assert exported(writer, tmp_path / "curves.json") == {}


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer, pytest.raises(FileNotFoundError):
        writer.export_scalars_to_json(tmp_path / "nowhere" / "curves.json")
