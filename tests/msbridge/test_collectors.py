"""Each collector against what NumPy says, from one training per mode."""

import logging
import os
from dataclasses import dataclass, field

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

import mindspore.dataset as ds  # noqa: E402
from conftest import enter  # noqa: E402
from event_files import values  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from small import curve, state, tags  # noqa: E402

import msbridge  # noqa: E402
from msbridge import Collector, TensorBoardCallback, default_collectors  # noqa: E402

pytestmark = pytest.mark.mindspore

STEPS, BATCH = 6, 4


class Net(nn.Cell):
    """Images of one channel to a number, with a summary operator of each kind inside."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.first, self.second = (
            nn.Dense(16, 8, weight_init=0.1, bias_init="zeros"),
            nn.Dense(8, 1, weight_init="ones"),
        )
        self.scalar, self.histogram = ops.ScalarSummary(), ops.HistogramSummary()
        self.image, self.tensor = ops.ImageSummary(), ops.TensorSummary()

    def construct(self, images):
        hidden = self.first(self.flatten(images))
        self.scalar("op/mean", hidden.mean())
        self.histogram("op/hidden", hidden)
        self.image("op/images", images)
        self.tensor("op/tensor", hidden)
        return self.second(hidden)


def batches():
    random = np.random.default_rng(3)
    return random.random((STEPS * BATCH, 1, 4, 4), "f4"), random.random((STEPS * BATCH, 1), "f4")


class Seen(ms.train.Callback):
    """The truth, read by another way at every step's end."""

    def __init__(self):
        super().__init__()
        self.weights, self.moments = [], []

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        optimizer = params.optimizer
        read = lambda found: {p.name: Tensor(p).asnumpy().copy() for p in found}  # noqa: E731
        self.weights.append(read(optimizer.parameters))
        self.moments.append(read(optimizer.moments))


def collectors():
    return [
        *(c for c in default_collectors() if not isinstance(c, msbridge.GradNorm | msbridge.Throughput)),
        msbridge.GradNorm(parameters=".*weight"), msbridge.Throughput(flops_per_step=1e6, peak_flops=1e12),
        msbridge.WeightNorm(parameters=r"second\..*"), msbridge.OptimizerState(parameters=r"moments\.first\.bias"),
        msbridge.WeightHistogram(collect_freq=3), msbridge.GradHistogram(r"first\.weight"),
        msbridge.InputImages(most=3), msbridge.HostMemory(), msbridge.DeviceMemory(),
        msbridge.MovingAverage("train/loss", decay=0.5), msbridge.HyperParameters({"note": "x"}),
        msbridge.Graph(), msbridge.SummaryOps(),
    ]  # fmt: skip


def trained(*callbacks):
    ms.set_seed(1)
    net = Net()
    model = ms.train.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 1e-5, 0.9))
    data = ds.NumpySlicesDataset(batches(), ["x", "y"], shuffle=False).batch(BATCH)
    model.train(1, data, callbacks=list(callbacks), dataset_sink_mode=False)
    return [(name, value) for _, name, value in state(model.train_network)]


@dataclass
class Run:
    mode: str
    directory: object
    seen: Seen
    state: list
    plain: list
    said: list = field(default_factory=list)

    def curve(self, tag):
        return curve(self.directory, tag)

    def values(self, tag):
        """Return {step: Value}."""
        return {step: value for name, step, value in values(self.directory / "rank_0") if name == tag}

    def rows(self, tag):
        """Return {step: rows of left, right, count}."""
        return {
            step: np.array(value.tensor.numbers).reshape(value.tensor.shape) for step, value in self.values(tag).items()
        }


@pytest.fixture(scope="module", params=["graph", "pynative"])
def run(request, tmp_path_factory):
    enter(request.param)
    directory, seen, said = tmp_path_factory.mktemp(request.param), Seen(), []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("msbridge").addHandler(handler)
    try:
        found = trained(TensorBoardCallback(directory, 1, collectors=collectors()), seen)
        plain = trained()
    finally:
        logging.getLogger("msbridge").removeHandler(handler)
    return Run(request.param, directory, seen, found, plain, said)


def gradients(run):
    """Momentum's accumulator moves by the gradient: m' = 0.9 m + g."""
    before, found = dict.fromkeys(run.seen.moments[0], 0.0), []
    for after in run.seen.moments:
        found.append({name.removeprefix("moments."): after[name] - 0.9 * before[name] for name in after})
        before = after
    return found


def norm(arrays):
    return np.sqrt(sum((array.astype("f8") ** 2).sum() for array in arrays))


def test_weights_and_state_are_bit_for_bit_those_without_the_callback(run):
    assert run.state == run.plain


def test_what_cannot_be_had_is_said_and_nothing_else(run):
    missing = {"device memory is not available"} | ({"MindSpore gives no graph"} if run.mode == "pynative" else set())
    assert {line.split(": ")[1] for line in run.said} == missing
    assert len(run.said) == len(missing)


def test_the_graph_is_that_of_the_compiled_step(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(run.directory / "rank_0"))
    reader.Reload()
    if run.mode == "pynative":
        assert not reader.Tags()["graph"]
        return
    nodes = {node.name: node for node in reader.Graph().node}
    assert {"MatMul", "Parameter", "Load"} <= {node.op for node in nodes.values()}
    assert nodes["Parameters/first.weight"].attr["_output_shapes"].list.shape[0].dim[0].size == 8
    assert {name for node in nodes.values() for name in node.input} <= set(nodes)


def test_gradient_norms_by_parameter_are_those_of_every_step(run):
    for name in ("first.weight", "second.weight"):
        steps, found = run.curve(f"grad_norm/{name}")
        assert steps == list(range(1, STEPS + 1))
        np.testing.assert_allclose(found, [norm([grads[name]]) for grads in gradients(run)], rtol=1e-5)
    assert "grad_norm/first.bias" not in tags(run.directory)
    np.testing.assert_allclose(
        run.curve("train/grad_norm")[1], [norm(grads.values()) for grads in gradients(run)], rtol=1e-5
    )


def test_weight_norms_are_those_after_the_step(run):
    np.testing.assert_allclose(
        run.curve("train/weight_norm")[1], [norm(weights.values()) for weights in run.seen.weights], rtol=1e-6
    )
    found = run.curve("weight_norm/second.weight")[1]
    np.testing.assert_allclose(found, [norm([weights["second.weight"]]) for weights in run.seen.weights], rtol=1e-6)
    assert "weight_norm/first.weight" not in tags(run.directory)


def test_optimizer_state_has_a_norm_for_each_kind(run):
    truth = [norm(moments.values()) for moments in run.seen.moments]
    np.testing.assert_allclose(run.curve("train/optimizer/moments_norm")[1], truth, rtol=1e-6)
    truth = [norm([moments["moments.first.bias"]]) for moments in run.seen.moments]
    np.testing.assert_allclose(run.curve("optimizer_norm/moments.first.bias")[1], truth, rtol=1e-6)


def check_histogram(rows, array):
    """The counts below each edge are right, up to values that lie on it."""
    array = np.sort(array.reshape(-1).astype("f8"))
    assert rows[:, 2].sum() == array.size
    if array[0] == array[-1]:  # one value has a bucket of width 1, as add_histogram gives it
        np.testing.assert_allclose(rows[:, :2], [[array[0] - 0.5, array[0] + 0.5]], rtol=1e-6)
        return
    np.testing.assert_allclose([rows[0, 0], rows[-1, 1]], [array[0], array[-1]], rtol=1e-6)
    slack = 1e-5 * (array[-1] - array[0])
    below = np.cumsum(rows[:, 2])
    assert (below >= np.searchsorted(array, rows[:, 1] - slack, "left")).all()
    assert (below <= np.searchsorted(array, rows[:, 1] + slack, "right")).all()


def test_weight_histograms_come_at_their_own_steps(run):
    names = ["first.weight", "first.bias", "second.weight", "second.bias"]
    for name in names:
        found = run.rows(f"weights/{name}")
        assert sorted(found) == [1, 3, 6]
        for step, rows in found.items():
            check_histogram(rows, run.seen.weights[step - 1][name])


def test_gradient_histograms_are_those_of_the_step(run):
    found = run.rows("gradients/first.weight")
    assert sorted(found) == list(range(1, STEPS + 1))
    for step, rows in found.items():
        assert rows[:, 2].sum() == 128
        truth = gradients(run)[step - 1]["first.weight"]
        np.testing.assert_allclose([rows[0, 0], rows[-1, 1]], [truth.min(), truth.max()], rtol=2e-4)
    assert "gradients/second.weight" not in tags(run.directory)


def test_the_moving_average_is_that_of_every_loss(run):
    losses, total, weight, truth = run.curve("train/loss")[1], 0.0, 0.0, []
    for loss in losses:
        total, weight = 0.5 * total + 0.5 * loss, 0.5 * weight + 0.5
        truth.append(total / weight)
    assert run.curve("train/loss/average")[0] == list(range(1, STEPS + 1))
    np.testing.assert_allclose(run.curve("train/loss/average")[1], truth, rtol=1e-6)


def test_utilisation_is_flops_over_time_and_peak(run):
    seconds = run.curve("train/step_time")[1]
    np.testing.assert_allclose(run.curve("train/tflops_per_sec")[1], 1e-6 / seconds, rtol=1e-5)
    np.testing.assert_allclose(run.curve("train/model_flops_utilization")[1], 1e-6 / seconds, rtol=1e-5)


def test_input_images_are_the_first_of_the_batch(run):
    for tag in ("input/images", "op/images"):
        found = run.values(tag)
        assert sorted(found) == list(range(1, STEPS + 1)), tag
        assert all(value.plugin == "images" for value in found.values())


def test_summary_operators_are_drawn_as_what_they_are(run):
    images, _ = batches()
    hidden = images[:BATCH].reshape(BATCH, 16).astype("f8") @ np.full((16, 8), 0.1)
    steps, means = run.curve("op/mean")
    assert steps == list(range(1, STEPS + 1))
    np.testing.assert_allclose(means[0], hidden.mean(), rtol=1e-5)
    check_histogram(run.rows("op/hidden")[1], hidden)
    tensor = run.values("op/tensor")[1].tensor
    np.testing.assert_allclose(np.array(tensor.numbers).reshape(tensor.shape), hidden, rtol=1e-5)


def test_host_memory_is_that_of_the_process(run):
    now, peak = run.curve("memory/host_mib")[1], run.curve("memory/host_peak_mib")[1]
    assert (now > 50).all()
    assert (now <= peak + 1).all()
    assert peak[-1] < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def test_hyper_parameters_are_a_row(run):
    row = [value for tag, _, value in values(run.directory / "rank_0") if value.plugin == "hparams"]
    assert row
    content = b"".join(value.plugin_content for value in row)
    for text in (b"note", b"learning_rate", b"optimizer", b"Momentum", b"loss_function", b"MSELoss", b"batch_size"):
        assert text in content, text


def test_a_histogram_of_any_size_moves_half_a_kilobyte(graph):
    from msbridge._device import Transfer
    from msbridge._histogram import count

    random = np.random.default_rng(0)
    for array in (
        random.standard_normal(1000).astype("f4"), np.ones(5, "f4"), np.arange(64, dtype="i4"),
        (1 + 1e-4 * random.standard_normal(1000)).astype("f4"), random.random((3, 5)).astype("f2"),
    ):  # fmt: skip
        transfer = Transfer()
        counted = count(Tensor(array), transfer)
        transfer.seal()
        assert sum(part.nbytes for part in transfer._parts) <= 1024
        transfer.run()
        found = counted()
        width = np.linspace(found.minimum, found.maximum, 65)
        if found.maximum > found.minimum:
            check_histogram(np.stack([width[:-1], width[1:], found.counts], 1), array)
        assert (found.counts.sum(), found.nan, found.inf) == (array.size, 0, 0)


def test_a_histogram_is_counted_in_pieces_and_leaves_out_what_is_not_finite(graph, monkeypatch):
    from msbridge import _histogram
    from msbridge._device import Transfer

    monkeypatch.setattr(_histogram, "_PIECE", 7)
    array = np.array([*range(20), np.nan, np.inf, -np.inf, np.nan], "f4")
    transfer = Transfer()
    counted = _histogram.count(Tensor(array), transfer)
    transfer.run()
    found = counted()
    assert (found.minimum, found.maximum, found.counts.sum(), found.nan, found.inf) == (0, 19, 20, 2, 2)


def test_micro_batch_losses_are_drawn_beside_their_mean(mode, tmp_path):
    class Vector(nn.Cell):
        def construct(self, logits, labels):
            return ops.square(logits - labels).reshape((-1,))

    from small import model, train

    train(model(loss=Vector()), 3, TensorBoardCallback(tmp_path, 1, collectors=[msbridge.Loss(micro_batches=True)]))
    parts = np.array([curve(tmp_path, f"train/loss/micro_{index}")[1] for index in range(4)])
    np.testing.assert_allclose(parts.mean(0), curve(tmp_path, "train/loss")[1], rtol=1e-6)
    assert len(np.unique(parts)) > 4


def test_a_collector_has_steps_of_its_own(graph, tmp_path):
    from small import model, train

    class Own(Collector):
        def collect(self, context):
            return {"own": context.step}

    train(model(), 9, TensorBoardCallback(tmp_path, 4, collectors=[Own({0: 3}), msbridge.Epoch()]))
    assert curve(tmp_path, "own")[0] == [1, 3, 6, 9]
    assert curve(tmp_path, "train/epoch")[0] == [1, 4, 8]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: msbridge.WeightNorm(parameters="("), "WeightNorm: parameters must be a regular expression"),
        (lambda: msbridge.GradHistogram(parameters=3), "GradHistogram: parameters must be a regular expression"),
        (lambda: msbridge.GradHistogram(None), "GradHistogram: parameters must be a regular expression, got None"),
        (lambda: msbridge.Throughput("fast"), "Throughput: flops_per_step must be a number, got 'fast'"),
        (lambda: msbridge.Throughput(1.0, float("inf")), "Throughput: peak_flops must be finite"),
        (lambda: msbridge.Loss(micro_batches=4), "Loss: micro_batches must be a bool, got 4"),
        (lambda: msbridge.InputImages(most="all"), "InputImages: most must be an int"),
        (lambda: msbridge.MovingAverage("a", decay="b"), "MovingAverage: decay must be a number"),
        (lambda: msbridge.MovingAverage("a", decay=1), "MovingAverage: decay must be"),
        (lambda: msbridge.InputImages(most=0), "InputImages: most must be"),
        (lambda: msbridge.Throughput(peak_flops=1.0), "peak_flops means nothing without flops_per_step"),
        (lambda: msbridge.HyperParameters([1]), "HyperParameters: values must be a dict"),
        (lambda: msbridge.WeightHistogram(collect_freq=0), "collect_freq must be at least 1"),
    ],
)
def test_a_wrong_argument_of_a_collector_raises_where_it_is_made(make, match):
    with pytest.raises((TypeError, ValueError), match=match):
        make()


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({3: 1.0}, "record: a tag must be a text"),
        ({"a": "high"}, "record: tag 'a': want a number"),
        ({"a": np.ones(3)}, r"record: tag 'a': want one element, got shape \(3,\)"),
    ],
)
def test_a_wrong_value_raises_where_it_is_recorded(tmp_path, values, match):
    with pytest.raises((TypeError, ValueError), match=match):
        TensorBoardCallback(tmp_path).record(values)


def test_host_memory_is_what_is_resident_now_and_the_peak_stays():
    def collect():
        found = msbridge.HostMemory().collect(None)
        return found["memory/host_mib"], found["memory/host_peak_mib"]

    before, peak_before = collect()
    held = np.ones(256 << 17)  # 256 MiB
    during, peak = collect()
    del held
    after, peak_after = collect()
    assert during - before > 200
    assert during - after > 200
    assert peak_after == pytest.approx(peak, abs=1)
    assert peak >= during
    assert peak_before >= before
