"""Rules on every step's value, and what they do to a training."""

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from event_files import values  # noqa: E402
from mindspore import nn  # noqa: E402
from small import curve, model, sgd, train  # noqa: E402

from msbridge import RaiseCollectFreq, ScaleLearningRate, StopTraining, TensorBoardCallback  # noqa: E402
from tbwriter.watch import Above, Below, Missing, NonFinite  # noqa: E402

pytestmark = pytest.mark.mindspore


def test_a_rule_sees_the_steps_between_collections(mode, tmp_path):
    falling = np.linspace(0.1, 0.05, 40).astype("f4").tolist()
    found = []
    rules = [Below("train/learning_rate", falling[24], then=found.append), Missing("val/loss", 30, then=found.append)]
    train(model(lambda net: sgd(net, falling)), 40, TensorBoardCallback(tmp_path, 20, alerts=rules))
    assert ("train/learning_rate", 26) in {(alert.tag, alert.step) for alert in found}
    assert [alert.tag for alert in found if alert.rule == "Missing"] == ["val/loss"]
    texts = [step for tag, step, _ in values(tmp_path / "rank_0") if tag.startswith("alerts/train/learning_rate")]
    assert texts == [26]


def test_stop_training_stops_and_closes(mode, tmp_path, said):
    steps = []

    class Seen(ms.train.Callback):
        def on_train_step_end(self, run_context):
            steps.append(run_context.original_args().cur_step_num)

    diverging = model(lambda net: sgd(net, 1e18))
    curves = TensorBoardCallback(tmp_path, 1, flush_secs=0, alerts=[NonFinite("train/*", then=StopTraining())])
    train(diverging, 40, curves, Seen())
    assert len(steps) < 40
    assert any("the training is stopped" in line for line in said())
    assert curve(tmp_path, "train/loss")[0] == steps


def test_stop_training_says_when_it_comes_after_the_last_step(mode, tmp_path, said):
    # No value comes to the host before the end: one collection, and an interval that does not pass.
    alerts = [NonFinite("train/loss", then=StopTraining())]
    curves = TensorBoardCallback(tmp_path, 1000, flush_secs=3600, alerts=alerts)
    train(model(lambda net: sgd(net, 1e18)), 40, curves)
    assert len(curve(tmp_path, "train/loss")[0]) == 40
    assert any("StopTraining came too late, the training was over" in line for line in said())
    assert not any("the training is stopped" in line for line in said())


def test_the_learning_rate_is_scaled_down_to_its_least(mode, tmp_path):
    rule = Above("train/epoch", 0, then=[ScaleLearningRate(0.5), ScaleLearningRate(0.1, least=0.04)])
    train(model(), 4, TensorBoardCallback(tmp_path, 1, flush_secs=0, alerts=[rule]))
    np.testing.assert_allclose(curve(tmp_path, "train/learning_rate")[1], [0.1, 0.04, 0.04, 0.04], rtol=1e-6)


def test_a_schedule_is_left_alone_and_said(graph, tmp_path, said):
    rule = Above("train/epoch", 0, then=ScaleLearningRate(0.5))
    trained = model(lambda net: nn.SGD(net.trainable_params(), [0.1] * 3))
    train(trained, 3, TensorBoardCallback(tmp_path, 1, alerts=[rule]))
    assert any("leaves a schedule alone" in line for line in said())
    np.testing.assert_allclose(curve(tmp_path, "train/learning_rate")[1], [0.1] * 3, rtol=1e-6)


def test_the_frequency_is_raised_for_a_while_and_set_back(graph, tmp_path):
    rule = Above("train/epoch", 0, then=RaiseCollectFreq(steps=4))
    train(model(), 20, TensorBoardCallback(tmp_path, 8, flush_secs=0, alerts=[rule]))
    assert curve(tmp_path, "train/epoch")[0] == [1, 2, 3, 4, 5, 8, 16]


def test_wrong_arguments_of_actions_and_alerts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="ScaleLearningRate: factor must be above 0"):
        ScaleLearningRate(0)
    with pytest.raises(ValueError, match="RaiseCollectFreq: steps must be"):
        RaiseCollectFreq(steps=0)
    with pytest.raises(TypeError, match="rules must be Rule objects"):
        TensorBoardCallback(tmp_path, alerts=["loss"])
