"""Where curves begin and end: epochs, resumes, early stops, errors."""

import os
import subprocess
import sys

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from event_files import scalars, statuses  # noqa: E402
from mindspore.train.callback._callback import InternalCallbackParam  # noqa: E402
from small import curve, dataset, files, model, starts, train, truth  # noqa: E402

from msbridge import TensorBoardCallback  # noqa: E402
from tbwriter import SummaryWriter  # noqa: E402

pytestmark = pytest.mark.mindspore


class At(ms.train.Callback):
    """Do something at the end of one step."""

    def __init__(self, step, action):
        super().__init__()
        self.step, self.action = step, action

    def on_train_step_end(self, run_context):
        if run_context.original_args().cur_step_num == self.step:
            self.action(run_context)


def fail(_run_context):
    raise KeyError("the user's own")


def test_an_early_stop_closes_the_file_with_every_step_in_it(mode, tmp_path):
    train(model(), 9, TensorBoardCallback(tmp_path, 4), At(6, lambda context: context.request_stop()))
    assert curve(tmp_path, "train/grad_norm")[0] == [1, 2, 3, 4, 5, 6]
    assert statuses(tmp_path, recursive=True) == ["clean"]


def test_an_exception_in_the_training_passes_and_closes_the_file_with_every_step_in_it(mode, tmp_path):
    trained = model()
    reducer = trained.train_network.grad_reducer
    with pytest.raises(KeyError, match="the user's own"):
        train(trained, 9, TensorBoardCallback(tmp_path, 4), At(6, fail))
    assert curve(tmp_path, "train/grad_norm")[0] == [1, 2, 3, 4, 5, 6]
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3, 4, 5, 6]
    assert statuses(tmp_path, recursive=True) == ["clean"]
    assert trained.train_network.grad_reducer is reducer


def test_a_step_that_a_callback_before_breaks_off_costs_no_other_its_norm(mode, tmp_path):
    with pytest.raises(KeyError, match="the user's own"):
        train(model(), 9, At(6, fail), TensorBoardCallback(tmp_path, 4, flush_secs=3600))
    steps, norms = curve(tmp_path, "train/grad_norm")
    assert steps == curve(tmp_path, "train/loss")[0] == curve(tmp_path, "train/learning_rate")[0] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(norms, truth(9)[1][:5], rtol=2e-6)


INTERRUPTED = """
import os, signal, sys
import mindspore as ms
from small import model, train
from msbridge import TensorBoardCallback

class Interrupt(ms.train.Callback):
    def on_train_step_begin(self, run_context):
        if run_context.original_args().cur_step_num == 5:
            os.kill(os.getpid(), getattr(signal, sys.argv[2]))

signal.signal(signal.SIGTERM, signal.default_int_handler)
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
try:
    train(model(), 4000, TensorBoardCallback(sys.argv[1], 4, flush_secs=3600), Interrupt())
except KeyboardInterrupt:
    sys.exit(3)
"""


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_ctrl_c_in_the_middle_of_a_dataset_leaves_every_step_where_sigterm_is_an_exception(tmp_path, sent):
    # MindSpore's handler of SIGINT, installed with the first dataset, sends SIGTERM.
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path), sent]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=env, capture_output=True, timeout=120, check=False).returncode == 3
    steps = curve(tmp_path, "train/loss")[0]
    assert len(steps) >= 4
    assert steps == curve(tmp_path, "train/grad_norm")[0] == list(range(1, len(steps) + 1))


def test_a_writer_of_the_user_is_flushed_and_stays_open(graph, tmp_path):
    with SummaryWriter(tmp_path, flush_secs=1000) as writer:
        with pytest.raises(KeyError):
            train(model(), 5, TensorBoardCallback(None, 1, writer=writer), At(3, fail))
        assert [step for step, _ in scalars(tmp_path, "train/loss")] == [1, 2, 3]
        writer.add_scalar("mine", 1.0, 4)
    assert scalars(tmp_path, "mine") == [(4, 1.0)]


def test_a_resume_by_initial_epoch_goes_on_where_the_epoch_began(mode, tmp_path):
    with pytest.raises(KeyError):
        train(model(), 4, TensorBoardCallback(tmp_path, 1), At(10, fail), epochs=4)
    train(model(), 4, TensorBoardCallback(tmp_path, 1), epochs=4, initial_epoch=2)
    steps, _ = curve(tmp_path, "train/loss")
    assert steps == [*range(1, 11), *range(9, 17)]
    assert starts(tmp_path) == [0, 9]  # steps from 9 on of the first session are void
    assert curve(tmp_path, "train/epoch")[1][-8:].tolist() == [3] * 4 + [4] * 4
    assert curve(tmp_path, "train/grad_norm")[0][-8:] == list(range(9, 17))


def test_a_resume_by_initial_step_goes_on_behind_it(graph, tmp_path):
    train(model(), 4, TensorBoardCallback(tmp_path, 3, initial_step=100))
    assert curve(tmp_path, "train/epoch")[0] == [101, 102]  # the first step always, then 102 % 3 == 0
    assert curve(tmp_path, "train/grad_norm")[0] == [101, 102, 103, 104]
    assert starts(tmp_path) == [101]


def test_purge_step_wins_over_what_the_resume_would_void(graph, tmp_path):
    train(model(), 2, TensorBoardCallback(tmp_path, 1, initial_step=100, purge_step=50))
    assert starts(tmp_path) == [50]


def test_one_callback_in_two_trainings_draws_one_curve(mode, tmp_path):
    trained, callback = model(), TensorBoardCallback(tmp_path, 1)
    train(trained, 4, callback)
    train(trained, 4, callback)
    steps, values = curve(tmp_path, "train/grad_norm")
    assert steps == list(range(1, 9))
    np.testing.assert_allclose(values, truth(4, epochs=2)[1], rtol=2e-5)
    assert starts(tmp_path) == [0, 5]


def test_a_second_training_that_counts_epochs_on_is_not_counted_twice(graph, tmp_path):
    trained, callback = model(), TensorBoardCallback(tmp_path, 1)
    train(trained, 4, callback, epochs=1)
    train(trained, 4, callback, epochs=2, initial_epoch=1)
    assert curve(tmp_path, "train/loss")[0] == list(range(1, 9))


def test_an_evaluation_with_the_callback_of_the_training_is_drawn_at_its_last_step(graph, tmp_path):
    trained, callback = model(metrics={"mse": ms.train.MSE()}), TensorBoardCallback(tmp_path, 1)
    trained.eval(dataset(2), callbacks=[callback])
    train(trained, 3, callback)
    trained.eval(dataset(2), callbacks=[callback])
    assert curve(tmp_path, "val/mse")[0] == [0, 3]
    assert starts(tmp_path) == [1]  # the training voids nothing of the evaluation before it


def test_files_rotate_inside_a_training_without_a_gap(graph, tmp_path):
    train(model(), 120, TensorBoardCallback(tmp_path, 1, max_file_size=4000))
    assert len(files(tmp_path)) > 2
    assert curve(tmp_path, "train/loss")[0] == list(range(1, 121))
    assert curve(tmp_path, "train/grad_norm")[0] == list(range(1, 121))


def test_a_relative_directory_is_where_it_was_when_the_callback_was_made(graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    callback = TensorBoardCallback("run", 1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    train(model(), 2, callback)
    assert curve(tmp_path / "run", "train/loss")[0] == [1, 2]


def test_steps_of_a_sink_are_counted_and_every_norm_is_drawn(graph, tmp_path):
    """Data-sink mode has no CPU: the callback is called as MindSpore would, once for five steps."""
    trained = model()
    cell = trained.train_network
    callback = TensorBoardCallback(tmp_path, 7)
    params = InternalCallbackParam(
        cur_step_num=0, train_network=cell, optimizer=cell.optimizer, batch_num=5, cur_epoch_num=1,
        dataset_sink_mode=True, sink_size=5, train_dataset=dataset(5), train_dataset_element=[],
    )  # fmt: skip
    context = ms.train.RunContext(params)
    batches = list(dataset(20).create_tuple_iterator())
    with callback:
        callback.on_train_begin(context)
        for sink in range(4):
            params.cur_epoch_num = sink + 1
            callback.on_train_epoch_begin(context)
            params.cur_step_num += 5
            callback.on_train_step_begin(context)
            for batch in batches[sink * 5 : sink * 5 + 5]:
                params.net_outputs = cell(*batch)
            callback.on_train_step_end(context)
        callback.on_train_end(context)
    losses, norms = truth(20)
    steps, values = curve(tmp_path, "train/grad_norm")
    assert steps == list(range(1, 21))
    np.testing.assert_allclose(values, norms, rtol=2e-5)
    # Collected: the first sink, and those that hold step 7 and step 14; the loss is of each sink's last step.
    assert curve(tmp_path, "train/epoch")[0] == [5, 10, 15]
    assert curve(tmp_path, "train/loss")[0] == [5, 10, 15, 20]
    np.testing.assert_allclose(curve(tmp_path, "train/loss")[1], losses[[4, 9, 14, 19]], rtol=2e-5)
    seconds = curve(tmp_path, "train/step_time")[1]
    np.testing.assert_allclose(curve(tmp_path, "train/samples_per_sec")[1], 4 / seconds, rtol=1e-5)
