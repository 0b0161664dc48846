"""Rules on every step's value, and what they do to a training."""

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from event_files import values  # noqa: E402
from mindspore import nn  # noqa: E402
from small import curve, dataset, model, sgd, train  # noqa: E402

from msbridge import (  # noqa: E402
    MovingAverage,
    RaiseCollectFreq,
    ScaleLearningRate,
    StopTraining,
    TensorBoardCallback,
    default_collectors,
    monitor,
)
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


@pytest.mark.parametrize("order", [1, -1])
def test_frequencies_that_are_raised_and_chosen_at_once_do_not_disturb_each_other(graph, tmp_path, order):
    raising = [RaiseCollectFreq(steps=4), RaiseCollectFreq(steps=10, collect_freq=3)][::order]
    rules = [Above("train/loss", 0, then=raising[0]), Above("train/grad_norm", 0, then=raising[1])]
    curves = TensorBoardCallback(tmp_path, 8, flush_secs=0, alerts=rules)

    class Choose(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 3:
                curves.set_collect_freq(7)

    train(model(), 30, curves, Choose())
    assert curve(tmp_path, "train/epoch")[0] == [1, 2, 3, 4, 5, 6, 7, 9, 14, 21, 28]


def validated(tmp_path, mode_of_it, **arguments):
    trained = model(metrics={"mse": ms.train.MSE()})
    curves = TensorBoardCallback(tmp_path, 1, **arguments)
    if mode_of_it == "fit":
        trained.fit(
            3, dataset(2), dataset(2), callbacks=[curves], dataset_sink_mode=False, valid_dataset_sink_mode=False
        )
    elif mode_of_it == "eval":
        trained.eval(dataset(2), callbacks=[curves], dataset_sink_mode=False)
    else:
        with monitor(curves) as seen:
            for step in range(1, 7):
                seen.step(loss=1.0, lr=0.1, grads=ms.Tensor([1.0]))
                if step % 2 == 0:
                    seen.evaluated({"mse": 1 / step})


@pytest.mark.parametrize("kind", ["fit", "eval", "loop"])
def test_rules_and_averages_see_the_metrics_of_a_validation(graph, tmp_path, said, kind):
    found = []
    rules = [Above("val/mse", 0, then=found.append), Missing("val/mse", 3, then=found.append)]
    validated(tmp_path, kind, alerts=rules, collectors=[*default_collectors(), MovingAverage("val/mse", 0.5)])
    steps, values_ = curve(tmp_path, "val/mse")
    assert steps == ([0] if kind == "eval" else [2, 4, 6])
    assert [(alert.rule, alert.step) for alert in found] == [("Above", steps[0])]
    assert curve(tmp_path, "val/mse/average")[0] == steps
    sums = np.array([sum(0.5 ** (i - k) for k in range(i + 1)) for i in range(len(steps))])
    weighted = [sum(0.5 ** (i - k) * values_[k] for k in range(i + 1)) for i in range(len(steps))]
    np.testing.assert_allclose(curve(tmp_path, "val/mse/average")[1], weighted / sums, rtol=1e-5)
    assert any(tag.startswith("alerts/val/mse") for tag, *_ in values(tmp_path / "rank_0"))
    assert len(said()) == 0, said()


def test_an_alert_on_a_validation_stops_the_training(graph, tmp_path):
    validated(tmp_path, "fit", alerts=[Above("val/mse", 0, then=StopTraining())])
    assert curve(tmp_path, "val/mse")[0] == [2]


def test_who_waits_for_a_tag_in_vain_is_told_of_once(graph, tmp_path, said):
    averages = [MovingAverage("loss"), MovingAverage("train/loss"), MovingAverage("val/f1")]
    curves = TensorBoardCallback(
        tmp_path, 1, collectors=[*default_collectors(), *averages], reduce=["mean"], reduce_tags=["train/loss", "mine"],
        alerts=[NonFinite("grad_norm"), NonFinite(), Above("train/loss", 1e9), Above("val/f1", 1), Missing("b", 99)],
    )  # fmt: skip
    trained = model()
    for _ in range(2):
        train(trained, 4, curves)
    assert sorted(said()) == [
        "Above: no value of 'val/f1' came in the whole training",
        "MovingAverage: no curve is called 'loss', but train/loss is there",
        "MovingAverage: no value of 'val/f1' came in the whole training",
        "NonFinite: no curve is called 'grad_norm', but train/grad_norm is there",
        "reduce: no value of 'mine/mean*' came in the whole training",
    ]


def test_an_action_that_does_nothing_says_so_once(graph, tmp_path, said):
    rules = [Above("train/loss", 0, then=RaiseCollectFreq()), Above("train/grad_norm", 0)]
    rules[1].then = rules[0].then
    train(model(), 2, TensorBoardCallback(tmp_path, 1, flush_secs=0, reduce=["mean"], alerts=rules))
    assert said() == ["RaiseCollectFreq leaves the schedule alone: `reduce` needs one for all ranks"]


def test_wrong_arguments_of_actions_and_alerts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="ScaleLearningRate: factor must be above 0"):
        ScaleLearningRate(0)
    with pytest.raises(ValueError, match="RaiseCollectFreq: steps must be"):
        RaiseCollectFreq(steps=0)
    with pytest.raises(TypeError, match=r"RaiseCollectFreq: steps must be an int, got 2\.5"):
        RaiseCollectFreq(steps=2.5)
    with pytest.raises(ValueError, match="RaiseCollectFreq: collect_freq must be at least 1"):
        RaiseCollectFreq(collect_freq=0)
    with pytest.raises(TypeError, match="ScaleLearningRate: factor must be a number, got 'half'"):
        ScaleLearningRate("half")
    with pytest.raises(ValueError, match="ScaleLearningRate: least must not be negative"):
        ScaleLearningRate(least=-1)
    with pytest.raises(TypeError, match="rules must be Rule objects"):
        TensorBoardCallback(tmp_path, alerts=["loss"])
