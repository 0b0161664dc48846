"""Loops without Model: the same curves."""

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from event_files import values  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402
from small import Line, arrays, curve, sgd, starts, state, tags, truth  # noqa: E402

import msbridge  # noqa: E402
from msbridge import InputImages, StopTraining, TensorBoardCallback, WeightNorm, default_collectors  # noqa: E402
from tbwriter.watch import NonFinite  # noqa: E402

pytestmark = pytest.mark.mindspore

STEPS = 8


def loop(curves, rate=0.1, tell=None, **options):
    """Train as MindSpore's guide does, with value_and_grad; return the network."""
    net = Line()
    optimizer, loss_fn = sgd(net, rate), nn.MSELoss()

    def loss_of(x, y):
        return loss_fn(net(x), y)

    forward = ms.value_and_grad(loss_of, None, optimizer.parameters)
    x, y = (np.split(array, STEPS) for array in arrays(STEPS))
    if curves is None:
        for batch, label in zip(x, y, strict=True):
            _, grads = forward(Tensor(batch), Tensor(label))
            optimizer(grads)
        return net
    with msbridge.monitor(curves, optimizer=optimizer, network=net, **options) as seen:
        for index, (batch, label) in enumerate(zip(x, y, strict=True)):
            loss, grads = forward(Tensor(batch), Tensor(label))
            optimizer(grads)
            seen.step(loss=loss, grads=grads, inputs=Tensor(batch), epoch=1 + index // 4)
            if tell:
                tell(seen, index + 1)
            if seen.stop_requested:
                break
    return net


def test_a_loop_of_ones_own_draws_every_step(mode, tmp_path):
    def tell(seen, step):
        if step < STEPS:
            seen.record({"mine": step})
        if step == 4:
            seen.evaluated({"accuracy": 0.5})

    # flush_secs=0: the evaluation at step 4 finds everything written already.
    collectors = [*default_collectors(), WeightNorm()]
    net = loop(TensorBoardCallback(tmp_path, 4, collectors=collectors, flush_secs=0), tell=tell)
    losses, norms = truth(STEPS)
    for tag, want in (("train/loss", losses), ("train/grad_norm", norms)):
        steps, found = curve(tmp_path, tag)
        assert steps == list(range(1, STEPS + 1)), tag
        np.testing.assert_allclose(found, want, rtol=2e-6, err_msg=tag)
    assert curve(tmp_path, "train/learning_rate") == ([1, 4, 8], pytest.approx([0.1] * 3))
    assert curve(tmp_path, "train/epoch")[1].tolist() == [1, 1, 2]
    assert curve(tmp_path, "mine") == ([4, 8], pytest.approx([3, 7]))
    assert curve(tmp_path, "val/accuracy") == ([4], pytest.approx([0.5]))
    seconds = curve(tmp_path, "train/step_time")[1]
    np.testing.assert_allclose(curve(tmp_path, "train/samples_per_sec")[1], 4 / seconds, rtol=1e-5)
    norm = np.sqrt(sum((p.asnumpy() ** 2).sum() for p in net.trainable_params()))
    np.testing.assert_allclose(curve(tmp_path, "train/weight_norm")[1][-1], norm, rtol=1e-6)


def test_the_weights_are_bit_for_bit_those_without(mode, tmp_path):
    watched, plain = loop(tmp_path), loop(None)
    assert [value for *_, value in state(watched)] == [value for *_, value in state(plain)]


def test_a_resumed_loop_goes_on_from_its_step(graph, tmp_path):
    loop(tmp_path, collect_freq=1)
    loop(tmp_path, collect_freq=1, initial_step=5)
    assert curve(tmp_path, "train/epoch")[0] == [*range(1, 9), *range(6, 14)]
    assert starts(tmp_path) == [0, 6]


def test_an_alert_stops_the_loop_and_an_error_of_the_loop_passes(graph, tmp_path):
    curves = TensorBoardCallback(tmp_path / "a", 1, flush_secs=0, alerts=[NonFinite(then=StopTraining())])
    loop(curves, rate=1e30)
    assert len(curve(tmp_path / "a", "train/loss")[0]) < STEPS

    def fail(_seen, step):
        if step == 3:
            raise KeyError("the user's own")

    with pytest.raises(KeyError, match="the user's own"):
        loop(tmp_path / "b", tell=fail)
    assert curve(tmp_path / "b", "train/loss")[0] == [1, 2, 3]


def test_a_step_without_anything_is_no_error(graph, tmp_path, said):
    with msbridge.monitor(tmp_path, 1) as seen:
        for _ in range(3):
            seen.step()
    assert sorted(line.split(": ")[1] for line in said()) == [
        "grad_norm is not available", "no learning rate", "the train step returns no loss",
    ]  # fmt: skip
    assert {"train/epoch", "train/step_time"} <= tags(tmp_path)


def test_what_is_given_at_some_steps_only_is_drawn_at_these(mode, tmp_path, said):
    image = np.zeros((2, 3, 4, 4), "f4")
    with msbridge.monitor(TensorBoardCallback(tmp_path, 1, collectors=[*default_collectors(), InputImages()])) as seen:
        for step in range(1, 9):
            given = {"loss": 1.0, "lr": 0.1, "grads": Tensor([3.0, 4.0]), "inputs": {"x": image}}
            seen.step(**given if step in {3, 6} else {})
    for tag, want in (("train/loss", 1.0), ("train/learning_rate", 0.1), ("train/grad_norm", 5.0)):
        assert curve(tmp_path, tag) == ([3, 6], pytest.approx([want] * 2)), tag
    assert [step for tag, step, _ in values(tmp_path / "rank_0") if tag == "input/images"] == [3, 6]
    assert len(said()) == 4, said()  # each once, at the first step


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a, b: {"a": a, "b": b},
        lambda a, b: [a.asnumpy(), b.asnumpy().astype("f8")],
        lambda a, b: ((a,), [b], ()),
        lambda a, b: (None, a, {"x": (b, None)}),
        lambda a, b: (a.astype(ms.float16), b),
    ],
)
def test_gradients_in_any_container_have_the_same_norm(graph, tmp_path, said, wrap):
    with msbridge.monitor(tmp_path, 1) as seen:
        seen.step(loss=1.0, lr=0.1, grads=wrap(Tensor([[3.0], [0.0]]), Tensor(4.0)))
    assert curve(tmp_path, "train/grad_norm")[1] == pytest.approx([5.0])
    assert not said()


def test_gradients_of_which_there_is_no_norm_are_said_once(graph, tmp_path, said):
    with msbridge.monitor(tmp_path, 1) as seen:
        for _ in range(3):
            seen.step(loss=1.0, lr=0.1, grads=["no", "tensors"])
    assert said() == ["step 1: grad_norm is not available: TypeError: grads: want tensors, got str"]
    assert curve(tmp_path, "train/loss") == ([1, 2, 3], pytest.approx([1.0] * 3))
    assert curve(tmp_path, "train/learning_rate") == ([1, 2, 3], pytest.approx([0.1] * 3))


def test_initial_step_beside_a_callback_is_refused(tmp_path):
    with (
        pytest.raises(ValueError, match="initial_step belongs to the TensorBoardCallback"),
        msbridge.monitor(TensorBoardCallback(tmp_path), initial_step=3),
    ):
        pass
