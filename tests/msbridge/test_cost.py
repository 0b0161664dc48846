"""One copy from the device for a collected step, none for another."""

import importlib

import pytest

ms = pytest.importorskip("mindspore")

from mindspore import nn, ops  # noqa: E402
from small import curve, model, sgd, train  # noqa: E402

from msbridge import TensorBoardCallback  # noqa: E402

pytestmark = pytest.mark.mindspore


@pytest.mark.parametrize("rate", ["constant", "list", "cosine"])
def test_a_collected_step_costs_one_transfer_and_any_other_none(mode, tmp_path, transfers, rate):
    rate = {"constant": 0.1, "list": [0.1] * 12, "cosine": nn.CosineDecayLR(0.01, 0.1, 12)}[rate]
    callbacks, copies = transfers(TensorBoardCallback(tmp_path, 5, flush_secs=0))
    train(model(lambda net: sgd(net, rate)), 12, *callbacks)
    assert copies == {step: int(step in {1, 5, 10}) for step in range(1, 13)}
    for tag in ("train/loss", "train/learning_rate", "train/grad_norm"):
        assert curve(tmp_path, tag)[0] == list(range(1, 13)), tag


def test_operators_of_transfers_meet_few_shapes_however_many_steps_lie_between(mode, tmp_path, monkeypatch):
    """A shape that is new takes an operator milliseconds, on some devices seconds."""
    from msbridge import _device

    stack, concat, shapes, calls = _device._stack, _device._concat, [], []
    monkeypatch.setattr(_device, "_stack", lambda parts: shapes.append(len(parts)) or stack(parts))
    monkeypatch.setattr(_device, "_concat", lambda parts: calls.append(tuple(p.size for p in parts)) or concat(parts))
    ends = [2, 5, 9, 16, 30, 51, 90]
    train(model(), 90, TensorBoardCallback(tmp_path, lambda step: step in ends, flush_secs=0))
    assert set(shapes) == {8, 64}
    assert len(calls) == 1 + len(ends)  # with the stack of losses the one operator of each
    assert len(set(calls)) == 2
    assert curve(tmp_path, "train/loss")[0] == list(range(1, 91))


def test_collections_that_follow_each_other_share_a_transfer(mode, tmp_path, transfers):
    callbacks, copies = transfers(TensorBoardCallback(tmp_path, 1, flush_secs=1000))
    train(model(), 12, *callbacks)
    assert copies == {step: int(step == 1) for step in range(1, 13)}
    for tag in ("train/loss", "train/learning_rate", "train/grad_norm", "train/epoch"):
        assert curve(tmp_path, tag)[0] == list(range(1, 13)), tag


def test_steps_of_two_epochs_share_a_transfer(mode, tmp_path, transfers):
    callbacks, copies = transfers(TensorBoardCallback(tmp_path, {0: 4, 5: 1000}, flush_secs=0))
    train(model(), 6, *callbacks, epochs=2)
    assert {step for step, count in copies.items() if count} == {1, 4}
    assert curve(tmp_path, "train/grad_norm")[0] == list(range(1, 13))


def test_a_ring_that_fills_up_between_collections_is_not_copied_to_the_host(mode, tmp_path, transfers, monkeypatch):
    monkeypatch.setattr("msbridge._install._RING_STEPS", 4)
    callbacks, copies = transfers(TensorBoardCallback(tmp_path, 20, flush_secs=0))
    train(model(), 20, *callbacks)
    assert {step for step, count in copies.items() if count} == {1, 20}
    assert set(copies.values()) == {0, 1}
    assert curve(tmp_path, "train/grad_norm")[0] == list(range(1, 21))


def test_a_rank_that_does_not_write_reads_nothing(graph, tmp_path, transfers):
    callbacks, copies = transfers(TensorBoardCallback(tmp_path, 1, ranks=[3]))
    train(model(), 3, *callbacks)
    assert copies == {1: 0, 2: 0, 3: 0}
    assert not list(tmp_path.iterdir())


def test_the_schedule_can_change_while_training_runs(graph, tmp_path, transfers):
    callback = TensorBoardCallback(tmp_path, {0: 2, 6: 5}, flush_secs=0)

    class Change(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 11:
                callback.set_collect_freq(lambda step: step in {13, 16})

    callbacks, copies = transfers(callback)
    train(model(), 16, *callbacks, Change())
    assert [step for step, count in copies.items() if count] == [1, 2, 4, 10, 13, 16]
    assert curve(tmp_path, "train/epoch")[0] == [1, 2, 4, 10, 13, 16]


def test_the_tap_adds_no_operator_to_the_gradients(mode):
    """What goes into the tap comes out: the very objects in PyNative mode, equal ones in a graph."""
    from msbridge._tap import GradTap

    tap = GradTap(nn.Identity(), {}, None, 1.0, 8)
    grads = (ops.ones(3), ops.ones((2, 2)))
    if mode == "pynative":
        assert tap(grads) is grads
    else:
        assert [grad.asnumpy().tolist() for grad in nn.Cell.__call__(tap, grads)] == [[1] * 3, [[1] * 2] * 2]


def test_the_noting_is_compiled_once_and_not_every_step(mode, tmp_path):
    try:
        api = importlib.import_module("mindspore.graph.api")
    except ImportError:  # MindSpore 2.7
        api = importlib.import_module("mindspore.common.api")
    compiled = []

    class Count(ms.train.Callback):
        def on_train_step_end(self, run_context):
            compiled.append(len(api.ms_compile_cache))

    train(model(), 6, TensorBoardCallback(tmp_path, 3), Count())
    assert compiled[1] == compiled[-1]
