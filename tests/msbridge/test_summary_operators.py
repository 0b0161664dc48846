"""MindSpore's summary operators in a network, as users write them and not only as its guide does."""

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from event_files import values  # noqa: E402
from mindspore import nn, ops  # noqa: E402
from small import Line, curve, sgd, state, train  # noqa: E402

from msbridge import Loss, SummaryOps, TensorBoardCallback  # noqa: E402

pytestmark = pytest.mark.mindspore


class Told(nn.Cell):
    """A net that tells of itself: one name for two kinds, and a scalar that is none."""

    def __init__(self, *, wrong):
        super().__init__()
        self.net, self.wrong = Line(), wrong
        self.scalar, self.histogram = ops.ScalarSummary(), ops.HistogramSummary()

    def construct(self, x):
        out = self.net(x)
        self.scalar("out", out.sum())
        self.histogram("out", out)
        self.scalar("mean of x", x.mean())
        if self.wrong:
            self.scalar("wrong", x.sum(0))
        return out


def trained(*callbacks, wrong):
    net = Told(wrong=wrong)
    train(ms.train.Model(net, nn.MSELoss(), sgd(net)), 4, *callbacks)
    return [value for *_, value in state(net)]


def test_one_that_cannot_be_drawn_leaves_the_others_and_the_next_training_alone(mode, tmp_path, said):
    for name, wrong in (("a", True), ("b", False)):
        curves = TensorBoardCallback(tmp_path / name, 2, collectors=[Loss(), SummaryOps()])
        assert trained(curves, wrong=wrong) == trained(wrong=wrong)
        assert curve(tmp_path / name, "mean of x")[0] == [1, 2, 4]
        assert curve(tmp_path / name, "out/scalar")[0] == [1, 2, 4]
        histograms = [step for tag, step, _ in values(tmp_path / name / "rank_0") if tag == "out/histogram"]
        assert histograms == [1, 2, 4]
    assert len(said()) == 1, said()
    assert "the summary operator 'wrong' is left out: ValueError" in said()[0]


def test_the_keys_of_a_summary_collector_draw_them_too(mode, tmp_path):
    curves = TensorBoardCallback(
        tmp_path, 2, collect_specified_data={"collect_metric": True}, keep_default_action=False
    )
    trained(curves, wrong=False)
    assert curve(tmp_path, "mean of x")[0] == [1, 2, 4]
    assert np.isfinite(curve(tmp_path, "out/scalar")[1]).all()


def test_they_cost_no_transfer_at_steps_that_are_not_collected(mode, tmp_path, transfers):
    callbacks, copies = transfers(TensorBoardCallback(tmp_path, 3, collectors=[Loss(), SummaryOps()]))
    trained(*callbacks, wrong=False)
    assert [copies[step] for step in (2, 4)] == [0, 0]
