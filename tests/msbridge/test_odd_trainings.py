"""Trainings that are put together in other ways: the curves are right or said to be missing, the weights the same."""

import copy
import pickle
import threading

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from mindspore.train.callback._callback import InternalCallbackParam  # noqa: E402
from small import Line, curve, model, sgd, state, tags, train, truth  # noqa: E402

from msbridge import Loss, LossScale, StopTraining, TensorBoardCallback  # noqa: E402
from tbwriter.watch import Above  # noqa: E402

pytestmark = pytest.mark.mindspore


class EverySecond(nn.TrainOneStepCell):
    """Sum up gradients, and reduce and use them at every second step."""

    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.sums = self.weights.clone("sums", init="zeros")
        self.calls = Parameter(Tensor(0, ms.int32), name="calls", requires_grad=False)
        self.hyper, self.assign_add, self.assign = ops.HyperMap(), ops.AssignAdd(), ops.Assign()

    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads = self.grad(self.network, self.weights)(*inputs, ops.ones_like(loss))
        self.hyper(self.assign_add, self.sums, grads)
        self.calls += 1
        if self.calls % 2 == 0:
            self.optimizer(self.grad_reducer(self.hyper(ops.identity, self.sums)))
            self.hyper(self.assign, self.sums, self.hyper(ops.zeros_like, self.sums))
        return loss


def accumulated(callbacks):
    net = Line()
    cell = EverySecond(nn.WithLossCell(net, nn.MSELoss()), sgd(net))
    train(ms.train.Model(cell), 8, *callbacks)
    return [value for *_, value in state(net)]


def test_accumulated_gradients_have_a_norm_where_they_are_used(mode, tmp_path, said):
    plain = accumulated([])
    assert accumulated([TensorBoardCallback(tmp_path, 2)]) == plain
    assert not said()
    assert curve(tmp_path, "train/loss")[0] == list(range(1, 9))
    steps, norms = curve(tmp_path, "train/grad_norm")
    assert steps
    assert set(steps) <= set(range(1, 9))
    assert np.isfinite(norms).all()


@pytest.mark.parametrize("level", ["O2", "auto"])
def test_mixed_precision_with_a_loss_scale_draws_what_it_trains_with(graph, tmp_path, said, level):
    def weights(*callbacks):
        manager = ms.amp.FixedLossScaleManager(64.0, drop_overflow_update=False)
        optimizer = lambda net: nn.SGD(net.trainable_params(), 0.1, loss_scale=64.0)  # noqa: E731
        trained = model(optimizer, amp_level=level, loss_scale_manager=manager)
        train(trained, 4, *callbacks)
        return [value for *_, value in state(trained.train_network)]

    assert weights(TensorBoardCallback(tmp_path, 1)) == weights()
    assert not said()
    losses, norms = truth(4)
    np.testing.assert_allclose(curve(tmp_path, "train/loss")[1], losses, rtol=2e-2)
    np.testing.assert_allclose(curve(tmp_path, "train/grad_norm")[1], norms, rtol=2e-2)


class Pair(nn.Cell):
    """A network of two losses, of which the first is trained."""

    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net, self.loss = net, nn.MSELoss()

    def construct(self, x, y):
        loss = self.loss(self.net(x), y)
        return loss, 2 * loss


class OfPair(nn.Cell):
    """A train cell whose gradients have another name, and which returns both losses."""

    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = Pair(net), sgd(net)
        self.step_gradient = ops.value_and_grad(self.network, None, self.optimizer.parameters, has_aux=True)

    def construct(self, x, y):
        losses, changes = self.step_gradient(x, y)
        self.optimizer(changes)
        return losses


def test_a_train_cell_of_another_making_with_two_losses_draws_the_first(mode, tmp_path, said):
    train(ms.train.Model(OfPair(Line())), 4, TensorBoardCallback(tmp_path, 1))
    np.testing.assert_allclose(curve(tmp_path, "train/loss")[1], truth(4)[0], rtol=2e-6)
    assert said() == ["step 1: grad_norm is not available: OfPair has no grad_reducer"]
    assert "train/overflow" not in tags(tmp_path)


def test_the_frequency_may_be_changed_by_another_thread_at_any_moment(graph, tmp_path, said):
    callback, ended = TensorBoardCallback(tmp_path, 1), threading.Event()

    def change():
        freq = 1
        while not ended.is_set():
            freq = freq % 7 + 1
            callback.set_collect_freq(freq)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        train(model(), 40, callback)
    finally:
        ended.set()
        thread.join()
    assert not said()
    assert curve(tmp_path, "train/loss")[0] == list(range(1, 41))
    assert curve(tmp_path, "train/epoch")[0][0] == 1


TWINS = [copy.copy, copy.deepcopy, lambda callback: pickle.loads(pickle.dumps(callback))]


@pytest.mark.parametrize("twin", TWINS)
def test_a_callback_may_be_copied_before_and_after_a_training_but_not_in_it(graph, tmp_path, twin):
    refused = []

    class Copy(ms.train.Callback):
        def on_train_step_end(self, run_context):
            with pytest.raises(TypeError, match="cannot be copied while its training runs"):
                twin(curves)
            refused.append(run_context.original_args().cur_step_num)

    curves = twin(TensorBoardCallback(tmp_path, {0: 1, 3: 2}, alerts=[Above("train/epoch", 1, then=StopTraining())]))
    trained = model(metrics={"mse": ms.train.MSE()})
    train(trained, 3, curves, Copy())
    assert refused == [1, 2, 3]
    train(trained, 3, twin(curves))
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3, 4, 5, 6]


def test_a_training_inside_the_watched_one_is_said_and_leaves_its_curves_alone(mode, tmp_path, said):
    inner = model()

    class Inside(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 2:
                train(inner, 2, curves)

    trained, curves = model(), TensorBoardCallback(tmp_path, 1)
    reducers = trained.train_network.grad_reducer, inner.train_network.grad_reducer
    train(trained, 4, curves, Inside())
    assert said() == ["a training inside the watched one is not drawn: it needs a callback of its own"]
    for tag, want in zip(("train/loss", "train/grad_norm"), truth(4), strict=True):
        assert curve(tmp_path, tag)[0] == [1, 2, 3, 4]
        np.testing.assert_allclose(curve(tmp_path, tag)[1], want, rtol=2e-5)
    assert reducers == (trained.train_network.grad_reducer, inner.train_network.grad_reducer)


def test_two_trainings_inside_one_with_block_draw_one_curve_and_leave_no_tap(mode, tmp_path, said):
    first, second = model(), model()
    with TensorBoardCallback(tmp_path, 1) as curves:
        train(first, 3, curves)
        train(second, 3, curves)
    assert not said()
    assert curve(tmp_path, "train/grad_norm")[0] == curve(tmp_path, "train/loss")[0] == [1, 2, 3, 4, 5, 6]
    for trained in (first, second):
        assert type(trained.train_network.grad_reducer) is nn.Identity


ODD = {
    "nested": lambda loss: ((loss, (loss, loss)), loss),
    "list": lambda loss: [loss, loss],
    "vector": lambda loss: ops.stack([loss, loss]),
    "double": lambda loss: ops.cast(loss, ms.float64),
    "one flag": lambda loss: (loss, Tensor([False]), Tensor([2.0], ms.float32)),
    "none": lambda loss: None,
    "nothing": lambda loss: (),
    "mapping": lambda loss: {"loss": loss},
    "empty": lambda loss: ops.zeros((0,), ms.float32),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_outputs_of_a_step_are_drawn_or_said_once(graph, tmp_path, said, kind):
    """MindSpore's own cells give none of these: the callback is called as Model would."""
    losses = [Tensor(value, ms.float32) for value in (0.5, 0.25, 0.125)]
    params = InternalCallbackParam(
        cur_step_num=0, train_network=nn.Identity(), batch_num=3, cur_epoch_num=1, train_dataset_element=[losses[0]]
    )
    context = ms.train.RunContext(params)
    with TensorBoardCallback(tmp_path, 1, collectors=[Loss(), LossScale()]) as curves:
        curves.on_train_begin(context)
        curves.on_train_epoch_begin(context)
        for loss in losses:
            params.cur_step_num += 1
            params.net_outputs = ODD[kind](loss)
            curves.on_train_step_end(context)
    drawn = curve(tmp_path, "train/loss")[1].tolist()
    assert (drawn, len(said())) in [([0.5, 0.25, 0.125], 0), ([], 1)]
    assert bool(drawn) == (kind not in {"none", "nothing", "mapping", "empty"})
