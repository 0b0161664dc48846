"""SummaryCollector's keys, honoured, mapped, or refused with a reason."""

import pytest

ms = pytest.importorskip("mindspore")

from event_files import values  # noqa: E402
from small import model, tags, train  # noqa: E402

from msbridge import Epoch, TensorBoardCallback  # noqa: E402

pytestmark = pytest.mark.mindspore


def kinds(**keys):
    return {type(collector).__name__ for collector in TensorBoardCallback("unused", **keys)._collectors}


DEFAULT = {"Loss", "LearningRate", "GradNorm", "LossScale", "Throughput", "Epoch", "EvalMetrics"}
SUMMARY = DEFAULT | {"Graph", "HyperParameters", "InputImages", "SummaryOps", "WeightHistogram"}


@pytest.mark.parametrize(
    ("keys", "want"),
    [
        ({}, DEFAULT),
        ({"collect_specified_data": {}}, SUMMARY),
        ({"collect_specified_data": {"collect_graph": False, "collect_metric": False}}, SUMMARY - {"Graph", "Loss"}),
        ({"collect_specified_data": {"collect_metric": True}, "keep_default_action": False}, {"Loss", "SummaryOps"}),
        (
            {"collect_specified_data": {"histogram_regular": "x"}, "keep_default_action": False},
            {"SummaryOps", "WeightHistogram"},
        ),
        ({"keep_default_action": False}, {"SummaryOps"}),
        ({"custom_lineage_data": {"a": 1}}, DEFAULT | {"HyperParameters"}),
        ({"num_process": 32, "max_file_size": 1 << 20}, DEFAULT),
        ({"collect_specified_data": {"collect_landscape": None, "collect_dataset_graph": False}}, SUMMARY),
    ],
)
def test_keys_choose_collectors(keys, want):
    assert kinds(**keys) == want


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"collect_specified_data": {"collect_landscape": {"unit": "step"}}}, "collect_landscape is not supported: it"),
        ({"collect_specified_data": {"collect_dataset_graph": True}}, "collect_dataset_graph is not supported"),
        ({"collect_specified_data": {"collect_metrics": True}}, "has no key 'collect_metrics', want some of"),
        ({"collect_specified_data": {"collect_graph": 1}}, "collect_graph must be a bool, got 1"),
        ({"collect_specified_data": ["collect_graph"]}, "collect_specified_data must be a dict"),
        ({"collect_specified_data": {}, "collectors": [Epoch()]}, "collectors and collect_specified_data"),
        ({"custom_lineage_data": {"a": []}}, "custom_lineage_data must map texts to texts or numbers"),
        ({"export_options": {"tensor_format": "npy"}}, "export_options=.* is not supported"),
        ({"export_options": 1}, "export_options must be a dict, got 1"),
        ({"num_process": "32"}, "num_process must be an int"),
        ({"num_process": 0}, "num_process must be at least 1, got 0"),
        ({"keep_default_action": None}, "keep_default_action must be a bool, got None"),
        ({"collect_specified_data": {123: True}}, "collect_specified_data: a key must be a text, got 123"),
        ({"collect_tensor_freq": 0}, "collect_tensor_freq must be at least 1, got 0"),
        ({"collect_tensor_freq": {5: 1}}, "collect_tensor_freq: a schedule must say"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_a_reason(keys, match):
    with pytest.raises((TypeError, ValueError), match=match):
        TensorBoardCallback("unused", **keys)


@pytest.mark.parametrize("below", ["", "run", "deep/run"])
def test_a_file_where_the_directory_should_be_is_refused(tmp_path, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="summary_dir must be a directory"):
        TensorBoardCallback(tmp_path / "file" / below)


def test_the_keys_of_a_summary_collector_draw_what_it_draws(graph, tmp_path):
    callback = TensorBoardCallback(
        summary_dir=tmp_path, collect_freq=2, keep_default_action=False, collect_tensor_freq=3,
        collect_specified_data={"collect_metric": True, "histogram_regular": "^dense.*", "collect_train_lineage": True},
        custom_lineage_data={"note": "mine"},
    )  # fmt: skip
    train(model(), 6, callback)
    assert {tag for tag in tags(tmp_path) if not tag.startswith("_hparams_")} == {
        "train/loss", "weights/dense.weight", "weights/dense.bias"
    }  # fmt: skip
    steps = [step for tag, step, _ in values(tmp_path / "rank_0") if tag == "weights/dense.weight"]
    assert steps == [1, 3, 6]
    assert not list(tmp_path.rglob("*.ckpt"))
