"""Directories named by hyper-parameters, and the short check before a long training."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from event_files import values

from msbridge._run_dir import run_dir


def test_a_directory_is_readable_and_holds_its_parameters(tmp_path):
    path = run_dir(tmp_path / "runs", model="resnet50", dataset="cifar 10", lr=0.1, seed=1, note=None)
    assert path == str(tmp_path / "runs" / "model=resnet50_dataset=cifar-10_lr=0.1_seed=1")
    assert path.parameters == {"model": "resnet50", "dataset": "cifar 10", "lr": 0.1, "seed": 1, "note": None}
    assert json.loads((tmp_path / "runs" / path / "parameters.json").read_text()) == path.parameters


def test_a_list_that_holds_itself_is_stored_up_to_a_depth(tmp_path):
    layers = [1]
    layers += [layers, layers]
    path = run_dir(tmp_path, layers=layers)
    stored = json.loads((tmp_path / path / "parameters.json").read_text())
    assert stored["layers"][:1] == stored["layers"][1][:1] == [1]


def test_the_same_parameters_get_another_directory(tmp_path):
    names = [run_dir(tmp_path, lr=1e-4).rsplit("/", 1)[-1] for _ in range(3)]
    assert names == ["lr=0.0001", "lr=0.0001-2", "lr=0.0001-3"]


def make(base):
    return str(run_dir(base, lr=0.1))


def test_no_two_processes_get_one_directory(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        found = pool.map(make, [str(tmp_path)] * 16)
    assert len(set(found)) == 16


def test_long_and_strange_values_make_a_name_of_bounded_length(tmp_path):
    first = run_dir(tmp_path, text="../x/" * 100, other=1)
    second = run_dir(tmp_path, text="../x/" * 100, other=2)
    assert first != second
    for path in (first, second):
        name = path.removeprefix(f"{tmp_path}/")
        assert "/" not in name
        assert len(name) < 120


@pytest.mark.parametrize("note", ["词" * 200, "é" * 99, "a" + "词" * 99], ids=["cjk", "latin", "mixed"])
def test_a_name_in_any_script_fits_into_any_file_system(tmp_path, note):
    """Of 255 bytes, 143 where a home directory is encrypted; other writers' runs failed there (ray#1463)."""
    for number in (0, 1):
        path = run_dir(tmp_path, number=number, note=note)
        assert len(path.removeprefix(f"{tmp_path}/").encode()) <= 130
        assert json.loads((tmp_path / path / "parameters.json").read_text("utf-8"))["note"] == note
        assert run_dir(tmp_path, number=number, note=note) == f"{path}-2"


def test_a_value_without_a_form_in_utf_8_is_stored_as_json_writes_it(tmp_path):
    path = run_dir(tmp_path, note="a\ud800")
    assert json.loads((tmp_path / path / "parameters.json").read_text("utf-8")) == {"note": "a\ud800"}


def test_a_name_beyond_ascii_is_made_where_the_systems_encoding_is_ascii(tmp_path):
    code = "import sys; from msbridge._run_dir import run_dir; run_dir(sys.argv[1], note='\\u8bcd')"
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=ascii_only, timeout=60)
    assert os.listdir(tmp_path) == ["note=词"]


def test_parameters_of_any_kind_are_stored_as_what_they_are(tmp_path):
    numbers = {"f": np.float32(0.5), "i": np.int64(3), "a": np.arange(3), "n": float("nan"), "t": (1, [2])}
    path = run_dir(tmp_path, **numbers, d={(1, 2): {"x"}}, p=tmp_path, b=np.bool_(True))
    stored = json.loads((tmp_path / path / "parameters.json").read_text())
    assert stored == {
        "f": 0.5, "i": 3, "a": [0, 1, 2], "n": "nan", "t": [1, [2]], "d": {"(1, 2)": ["x"]}, "p": str(tmp_path),
        "b": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("base", "error", "match"),
    [
        (Path("s3://bucket/run"), ValueError, "lost a slash in pathlib"),
        ("nos://bucket/run", ValueError, "no sink serves nos://"),
        (3, TypeError, "base"),
        ("", ValueError, "base is empty"),
    ],
)
def test_a_base_that_is_none_is_refused(base, error, match):
    with pytest.raises(error, match=match):
        run_dir(base, lr=0.1)


def test_a_file_url_is_a_directory_as_any_other(tmp_path):
    assert run_dir(f"file://{tmp_path}/runs", lr=0.1) == f"{tmp_path}/runs/lr=0.1"


def test_a_tilde_without_a_home_directory_is_refused_and_makes_no_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^base begins with '~nobody-of-this-name', and there is no such home"):
        run_dir("~nobody-of-this-name/runs", lr=0.1)
    assert [*tmp_path.iterdir()] == []


def test_below_a_url_nothing_is_made_and_no_two_names_are_alike():
    names = {run_dir("s3://bucket/runs/", lr=0.1) for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("s3://bucket/runs/lr=0.1-") for name in names)


@pytest.mark.mindspore
def test_the_callback_draws_the_parameters_of_its_directory(graph, tmp_path):
    from small import model, train

    from msbridge import TensorBoardCallback

    path = run_dir(tmp_path, lr=0.1, kind="line")
    train(model(), 2, TensorBoardCallback(path, 1))
    row = [value for _, _, value in values(f"{path}/rank_0") if value.plugin == "hparams"]
    assert b"kind" in b"".join(value.plugin_content for value in row)


@pytest.mark.mindspore
def test_a_sound_training_passes_the_check(graph, tmp_path):
    from small import dataset, model

    import msbridge

    report = msbridge.smoke_check(model(), dataset(4), steps=10)
    assert report.ok, report
    assert report.steps == 10
    assert report.points["train/grad_norm"] == 10
    assert "train/loss: 10 points" in str(report)


@pytest.mark.mindspore
def test_a_missing_curve_is_named_with_the_reason(graph, tmp_path):
    from small import dataset, model, sgd

    import msbridge

    report = msbridge.smoke_check(
        model(lambda net: sgd(net, 1e30)), dataset(4), steps=6,
        expected=["train/loss", "train/weight_norm", "train/tokens_per_sec", "memory/device_peak"],
        collectors=[msbridge.Loss(), msbridge.DeviceMemory(), msbridge.Throughput()],
    )  # fmt: skip
    assert not report.ok
    assert report.missing["train/weight_norm"] == "no collector draws it"
    assert report.missing["train/tokens_per_sec"] == "tokens_per_step is not given"
    assert "train/loss" not in report.missing
    assert "values are not finite" in report.suspicious["train/loss"]


@pytest.mark.mindspore
def test_what_is_no_scalar_counts_as_drawn_and_a_reason_is_of_its_own_curve(graph, tmp_path):
    from small import dataset, model

    import msbridge

    report = msbridge.smoke_check(
        model(), dataset(4), steps=4,
        expected=["weights/dense.weight", "graph", "loss", "gradients/dense.bias", "val/loss", "weights/none"],
        collectors=[
            msbridge.Loss(), msbridge.WeightHistogram("dense"), msbridge.GradHistogram("nothing"), msbridge.Graph(),
        ],
    )  # fmt: skip
    assert report.points == {"train/loss": 4, "weights/dense.weight": 4, "weights/dense.bias": 4, "graph": 1}
    assert set(report.missing) == {"loss", "gradients/dense.bias", "val/loss", "weights/none"}
    assert report.missing["loss"] == "it is called train/loss"
    assert "no gradients are drawn: no trained parameter matches 'nothing'" in report.missing["gradients/dense.bias"]
    assert report.missing["val/loss"] == "this check makes no evaluation"
    assert report.missing["weights/none"] == "no collector draws it"


@pytest.mark.mindspore
def test_too_few_steps_are_refused():
    import msbridge

    with pytest.raises(ValueError, match="steps must be at least 2, got 1"):
        msbridge.smoke_check(None, None, steps=1)
    with pytest.raises(TypeError, match=r"smoke_check: steps must be an int, got 2\.5"):
        msbridge.smoke_check(None, None, steps=2.5)
    with pytest.raises(TypeError, match="smoke_check: expected must be a list of tags, got 'train/loss'"):
        msbridge.smoke_check(None, None, expected="train/loss")
