"""Trainings that are put together in other ways: the curves are right or said to be missing, the weights the same."""

import copy
import pickle
import threading

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from small import Line, curve, model, sgd, state, tags, train, truth  # noqa: E402

from msbridge import TensorBoardCallback  # noqa: E402

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


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda callback: pickle.loads(pickle.dumps(callback))])
def test_a_callback_that_was_not_used_yet_may_be_copied(graph, tmp_path, twin):
    train(model(), 3, twin(TensorBoardCallback(tmp_path, {0: 1, 3: 2})))
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3]
