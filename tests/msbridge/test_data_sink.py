"""Data-sink mode without the device queue, which no CPU has: MindSpore's own loop around a graph of several steps."""

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Tensor, nn  # noqa: E402
from small import arrays, curve, dataset, model, sgd, state, truth  # noqa: E402

from msbridge import TensorBoardCallback  # noqa: E402

pytestmark = pytest.mark.mindspore


class Sink(nn.Cell):
    """Four steps in one graph around a train cell, as data-sink mode makes it; the host sees the last outputs."""

    def __init__(self, network):
        super().__init__(auto_prefix=False)
        self.network = network

    def construct(self, inputs, labels):
        outputs = self.network(inputs[0], labels[0])
        for step in range(1, 4):
            outputs = self.network(inputs[step], labels[step])
        return outputs


class SinkHelper:
    """What MindSpore's loop asks of a dataset's device queue."""

    def __init__(self, sinks):
        self.sinks = iter(sinks)

    def __iter__(self):
        yield next(self.sinks)

    def sink_size(self):
        return 4

    def continue_send(self): ...
    def stop_send(self): ...
    def release(self): ...


def train_in_sinks(trained, sinks, callbacks, monkeypatch):
    """Run MindSpore's own loop of data-sink mode on the CPU, without the queue."""
    x, y = arrays(4 * sinks)
    inputs, labels = x.reshape(sinks, 4, 4, 3), y.reshape(sinks, 4, 4, 1)
    helper = SinkHelper([(Tensor(each), Tensor(label)) for each, label in zip(inputs, labels, strict=True)])
    graph = Sink(trained.train_network)
    monkeypatch.setattr(trained, "_exec_preprocess", lambda **_: (helper, graph))

    def in_sinks(epoch, data, callback_list, params, initial_epoch, valid_infos):
        trained._train_dataset_sink_process(epoch, data, callback_list, params, 4, initial_epoch, valid_infos)

    monkeypatch.setattr(trained, "_train_process", in_sinks)
    trained.train(sinks, dataset(4), callbacks=callbacks, dataset_sink_mode=True, sink_size=4)
    return graph


@pytest.mark.parametrize("freq", [1, 6, 1000])
def test_every_step_inside_a_sink_is_drawn_from_one_transfer(graph, tmp_path, monkeypatch, transfers, freq):
    trained = model(lambda net: sgd(net, np.linspace(0.1, 0.05, 20).astype("f4").tolist()))
    callbacks, copies = transfers(TensorBoardCallback(tmp_path, freq, flush_secs=0))
    wrapper = train_in_sinks(trained, 5, callbacks, monkeypatch)
    losses, norms = truth(20, np.linspace(0.1, 0.05, 20))
    for tag, want in (
        ("train/loss", losses), ("train/grad_norm", norms), ("train/learning_rate", np.linspace(0.1, 0.05, 20)),
    ):  # fmt: skip
        steps, values = curve(tmp_path, tag)
        assert steps == list(range(1, 21)), tag
        np.testing.assert_allclose(values, want, rtol=2e-5, err_msg=tag)
    assert set(copies.values()) <= {0, 1}
    assert wrapper.network is trained.train_network  # the tap is out again


def test_weights_after_sinks_are_bit_for_bit_those_without_the_callback(graph, tmp_path, monkeypatch):
    def weights(callbacks):
        trained = model()
        train_in_sinks(trained, 3, callbacks, monkeypatch)
        return state(trained.train_network)

    watched = weights([TensorBoardCallback(tmp_path, 1)])
    assert [value for *_, value in watched] == [value for *_, value in weights([])]
    assert curve(tmp_path, "train/loss")[0] == list(range(1, 13))
