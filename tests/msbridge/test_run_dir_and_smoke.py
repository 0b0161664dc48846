"""Directories named by hyper-parameters, and the short check before a long training."""

import json
import multiprocessing

import pytest
from event_files import values

from msbridge._run_dir import run_dir


def test_a_directory_is_readable_and_holds_its_parameters(tmp_path):
    path = run_dir(tmp_path / "runs", model="resnet50", dataset="cifar 10", lr=0.1, seed=1, note=None)
    assert path == str(tmp_path / "runs" / "model=resnet50_dataset=cifar-10_lr=0.1_seed=1")
    assert path.parameters == {"model": "resnet50", "dataset": "cifar 10", "lr": 0.1, "seed": 1, "note": None}
    assert json.loads((tmp_path / "runs" / path / "parameters.json").read_text()) == path.parameters


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
def test_too_few_steps_are_refused():
    import msbridge

    with pytest.raises(ValueError, match="steps must be at least 2, got 1"):
        msbridge.smoke_check(None, None, steps=1)
