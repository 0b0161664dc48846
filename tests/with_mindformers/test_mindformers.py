"""MindFormers 1.9 with MindSpore 2.9, the real ones, on the CPU, in an environment of their own."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("GLOG_v", "3")
os.environ.setdefault("LOCAL_DEFAULT_PATH", tempfile.mkdtemp())  # where MindFormers puts its logs when it is imported
pytest.importorskip("mindformers")
sys.path.insert(0, str(Path(__file__).parents[1] / "msbridge"))

import mindspore as ms
import numpy as np
from event_files import scalars
from mindformers.core.callback.build_callback import build_callback
from mindformers.core.callback.callback import MFLossMonitor, TrainingStateMonitor
from mindformers.tools.register import MindFormerConfig
from mindformers.utils import tensorboard
from mindspore import Tensor, nn, ops
from small import BATCH, Line, dataset, model, truth

import msbridge.mindformers

pytestmark = pytest.mark.mindspore


@pytest.fixture(autouse=True)
def graph():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)


@pytest.fixture
def writer(tmp_path):
    """MindFormers' own way to its writer, after `install`."""
    msbridge.mindformers.install()
    section = MindFormerConfig(
        tensorboard_dir=str(tmp_path / "rank_0"), tensorboard_queue_size=10, log_loss_scale_to_tensorboard=True,
        log_timers_to_tensorboard=True,
    )  # fmt: skip
    tensorboard._set_tensorboard_writer(section)
    tensorboard.update_tensorboard_args(section)
    yield tensorboard.get_tensorboard_writer()
    tensorboard._unset_tensorboard_writer()


def train(trained, steps, *callbacks, epochs=1, **options):
    trained.train(epochs, dataset(steps), callbacks=list(callbacks), dataset_sink_mode=False, **options)


def test_the_yaml_entry_builds_the_callback_and_draws(tmp_path):
    (callback,) = build_callback(
        [{"type": "TensorBoardMonitor", "summary_dir": str(tmp_path), "collect_freq": 2, "keep_default_action": True}]
    )
    train(model(), 4, callback)
    losses, norms = truth(4)
    found = dict(scalars(tmp_path / "rank_0", "train/loss"))
    np.testing.assert_allclose([found[step] for step in range(1, 5)], losses, rtol=2e-6)
    found = dict(scalars(tmp_path / "rank_0", "train/grad_norm"))
    np.testing.assert_allclose([found[step] for step in range(1, 5)], norms, rtol=2e-6)


def test_the_keys_are_those_of_summary_monitor():
    import inspect

    from mindformers.core.callback.callback import SummaryMonitor

    wanted = set(inspect.signature(SummaryMonitor.__new__).parameters)
    assert wanted - {"cls"} <= set(inspect.signature(msbridge.mindformers.TensorBoardMonitor.__init__).parameters)


def test_install_puts_tbwriter_where_mindformers_reads_its_writer(writer, tmp_path):
    assert isinstance(writer, msbridge.mindformers.Writer)
    monitor = MFLossMonitor(per_print_times=1, origin_epochs=1, dataset_size=4, global_batch_size=BATCH)
    assert monitor.tensor_writer is writer
    # The step returns the loss alone: no gradient norm, no loss scale. With tensorboardX this ends the training.
    train(model(), 4, monitor)
    tensorboard._unset_tensorboard_writer()
    losses, _ = truth(4)
    found = scalars(tmp_path / "rank_0", "loss")
    assert [step for step, _ in found] == [1, 2, 3, 4]
    np.testing.assert_allclose([value for _, value in found], losses, rtol=2e-6)
    assert scalars(tmp_path / "rank_0", "batch-size") == [(step, BATCH) for step in range(1, 5)]
    assert not scalars(tmp_path / "rank_0", "grad-norm")


class StepCell(nn.TrainOneStepCell):
    """A step that returns what MindFormers' own does: loss, overflow, loss scale, learning rate, gradient norm."""

    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads = self.grad_no_sens(self.network, self.weights)(*inputs)
        grads = self.grad_reducer(grads)
        norm = ops.sqrt(ops.square(grads[0]).sum() + ops.square(grads[1]).sum())
        loss = ops.depend(loss, self.optimizer(grads))
        return loss, Tensor(False), Tensor(1024.0, ms.float32), self.optimizer.learning_rate, norm


def test_what_a_step_returns_is_drawn_by_both_ways_at_one_step(writer, tmp_path):
    net = Line()
    cell = StepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    monitor = MFLossMonitor(per_print_times=1, origin_epochs=2, dataset_size=3, global_batch_size=BATCH)
    callback = build_callback([{"type": "TensorBoardMonitor", "summary_dir": str(tmp_path / "ours")}])[0]
    train(ms.train.Model(cell), 3, monitor, callback, epochs=2)
    tensorboard._unset_tensorboard_writer()
    _, norms = truth(3, epochs=2)
    for directory, tag in ((tmp_path / "rank_0", "grad-norm"), (tmp_path / "ours" / "rank_0", "train/grad_norm")):
        found = dict(scalars(directory, tag))
        assert sorted(found) == [1, 2, 3, 4, 5, 6], tag
        np.testing.assert_allclose([found[step] for step in range(1, 7)], norms, rtol=1e-5)
    assert {value for _, value in scalars(tmp_path / "rank_0", "loss-scale")} == {1024.0}


def test_training_state_counts_on_after_a_resume(writer, tmp_path):
    written = []
    state = TrainingStateMonitor.__new__(TrainingStateMonitor)
    state.initial_step = 100
    state.outputer = {"tensorboard": lambda tag, data, step: written.append((tag, data, step))}
    state._output("weight_norm", 1.5, 3, ["tensorboard"])
    assert written == [("weight_norm", 1.5, 103)]
    msbridge.mindformers.install()  # once more changes nothing
    state._output("weight_norm", 1.5, 4, ["tensorboard"])
    assert written[1:] == [("weight_norm", 1.5, 104)]


def test_storage_that_cannot_be_written_stops_no_training(tmp_path, caplog):
    msbridge.mindformers.install()
    (tmp_path / "file").write_text("")
    writer = tensorboard.SummaryWriter(log_dir=str(tmp_path / "file" / "run"), max_queue=10)
    writer.add_scalar("loss", 1.0, global_step=1)
    writer.close()
    assert "nothing is written, the training goes on" in caplog.text
