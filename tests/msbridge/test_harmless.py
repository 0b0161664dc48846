"""The training does not notice the callback, whatever happens to it."""

import threading
from pathlib import Path

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

import mindspore.dataset as ds  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from mindspore.experimental import optim  # noqa: E402
from small import curve, dataset, files, model, state, tags, train, truth  # noqa: E402

from msbridge import Collector, GradNorm, Loss, TensorBoardCallback, default_collectors  # noqa: E402
from tbwriter import SinkError, SummaryWriter, sinks  # noqa: E402
from tbwriter.testing import FaultySink, SlowSink  # noqa: E402

pytestmark = pytest.mark.mindspore


class Net(nn.Cell):
    """No convolution and no dropout: on the CPU, MindSpore's differ from run to run with one seed."""

    def __init__(self):
        super().__init__()
        self.first, self.relu = nn.Dense(64, 32, weight_init="xavier_uniform"), nn.ReLU()
        self.norm, self.second = nn.LayerNorm((32,)), nn.Dense(32, 10)

    def construct(self, x):
        return self.second(self.norm(self.relu(self.first(x))))


def trained_state(optimizer, callbacks, steps=6):
    ms.set_seed(7)
    random = np.random.default_rng(0)
    data = ds.NumpySlicesDataset(
        (random.random((8 * steps, 64), "f4"), np.eye(10, dtype="f4")[random.integers(0, 10, 8 * steps)]),
        shuffle=True,  # in an order that MindSpore's seed sets
    ).batch(8)
    net = Net()
    loss = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
    trained = ms.train.Model(net, loss, optimizer(net.trainable_params()))
    trained.train(2, data, callbacks=callbacks, dataset_sink_mode=False)
    return [(name, value) for _, name, value in state(trained.train_network)]


@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_weights_and_optimizer_state_are_bit_for_bit_those_without_the_callback(mode, tmp_path, kind):
    optimizer = {
        "momentum": lambda params: nn.Momentum(params, [0.1] * 6 + [0.01] * 6, 0.9, weight_decay=1e-4),
        "adam": lambda params: nn.Adam(params, nn.CosineDecayLR(1e-4, 1e-2, 12)),
    }[kind]
    plain = trained_state(optimizer, [])
    watched = trained_state(optimizer, [TensorBoardCallback(tmp_path, 2)])
    assert [name for name, _ in watched] == [name for name, _ in plain]
    assert watched == plain
    assert curve(tmp_path, "train/grad_norm")[0] == list(range(1, 13))


def test_a_checkpoint_of_the_running_training_knows_nothing_of_the_tap(mode, tmp_path):
    class Save(ms.train.Callback):
        def on_train_step_end(self, run_context):
            network = run_context.original_args().train_network
            ms.save_checkpoint(network, str(tmp_path / "run.ckpt"))
            self.trainable = [parameter.name for parameter in network.trainable_params()]
            self.reducer = network.grad_reducer

    trained, save = model(), Save()
    names = [parameter.name for parameter in trained.train_network.get_parameters()]
    reducer = trained.train_network.grad_reducer
    train(trained, 3, TensorBoardCallback(tmp_path, 1), save)
    assert list(ms.load_checkpoint(str(tmp_path / "run.ckpt"))) == names
    assert save.trainable == [parameter.name for parameter in trained.train_network.trainable_params()]
    assert save.reducer is not reducer
    assert trained.train_network.grad_reducer is reducer


class Raises(Collector):
    def collect(self, context):
        raise RuntimeError("no such thing")


class WrongShape(Collector):
    def collect(self, context):
        return {"train/wrong": Tensor(np.ones(3, "f4"))}


class WrongType(Collector):
    def collect(self, context):
        return {"train/wrong": "high"}


class WrongTag(Collector):
    def collect(self, context):
        return {7: 1.0}


class NotANumber(Collector):
    def collect(self, context):
        return {"train/nan": float("nan")}


class RaisesLate(Collector):
    def collect(self, context):
        return {"train/late": lambda: {}["no such key"]}


class Unreadable(Collector):
    def collect(self, context):
        return {"train/unreadable": self}

    def __float__(self):
        raise OSError("cannot tell")

    def item(self):
        raise OSError("cannot tell")


class RaisesInSeries(Collector):
    def series(self, history):
        raise MemoryError("too long")


class RaisesInNote(Collector):
    def note(self, step, outputs):
        raise KeyError("note")


class GivesNoMapping(Collector):
    def collect(self, context):
        return 5


class NoSeries(Collector):
    def series(self, history):
        return {"train/wrong": lambda: 5}


class DerivesNoMapping(Collector):
    def derive(self, found):
        return 5


class DerivesNoSeries(Collector):
    def derive(self, found):
        return {"train/wrong": 5}


class RaisesInAsked(Collector):
    asked = property(lambda self: 1 // 0)

    def collect(self, context):
        return {}


@pytest.mark.parametrize(
    "bad",
    [
        Raises, WrongShape, WrongType, WrongTag, RaisesLate, Unreadable, RaisesInSeries, RaisesInNote, GivesNoMapping,
        NoSeries, DerivesNoMapping, DerivesNoSeries,
    ],
)  # fmt: skip
def test_a_collector_that_fails_is_reported_once_and_dropped(mode, tmp_path, said, bad):
    train(model(), 5, TensorBoardCallback(tmp_path, 1, collectors=[bad(), *default_collectors()]))
    assert len(said()) == 1
    assert said()[0].startswith(f"step 1: {bad.__name__} failed and is dropped: ")
    np.testing.assert_allclose(curve(tmp_path, "train/loss")[1], truth(5)[0], rtol=2e-6)
    assert curve(tmp_path, "train/grad_norm")[0] == [1, 2, 3, 4, 5]


def test_a_collector_that_cannot_tell_whether_it_is_asked_is_dropped(graph, tmp_path, said):
    train(model(), 3, TensorBoardCallback(tmp_path, 1, collectors=[RaisesInAsked(), *default_collectors()]))
    assert said() == [
        "step 0: RaisesInAsked failed and is dropped: ZeroDivisionError: integer division or modulo by zero"
    ]
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3]


class Evaluates(Collector):
    """Give something of an evaluation, or raise."""

    def __init__(self, given):
        super().__init__()
        self.given = given

    def evaluate(self, metrics, results):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def test_collectors_that_fail_in_an_evaluation_are_reported_once_and_dropped(graph, tmp_path, said):
    bad = [Evaluates(given) for given in (5, {"val/text": "s"}, {5: 1.0}, KeyError("none"))]
    trained = model(metrics={"mse": ms.train.MSE()})
    curves = TensorBoardCallback(tmp_path, 1, collectors=[*bad, *default_collectors()])
    trained.fit(3, dataset(2), dataset(2), callbacks=[curves])
    assert len(said()) == len(bad)
    assert all(line.startswith("step 2: Evaluates failed and is dropped: ") for line in said())
    assert curve(tmp_path, "val/mse")[0] == curve(tmp_path, "val/loss")[0] == [2, 4, 6]


def test_a_metric_that_is_no_vector_is_left_out_alone(graph, tmp_path, said):
    class Odd(ms.train.Metric):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def clear(self): ...
        def update(self, *inputs): ...
        def eval(self):
            return self.value

    odd = {"ragged": [[1, 2], [3]], "text": "high", "none": None, "half": Tensor([1.0, 2.0], ms.bfloat16)}
    trained = model(metrics={"mse": ms.train.MSE(), **{name: Odd(value) for name, value in odd.items()}})
    trained.fit(1, dataset(2), dataset(2), callbacks=[TensorBoardCallback(tmp_path, 1)])
    assert not said()
    assert {tag for tag in tags(tmp_path) if tag.startswith("val/")} == {
        "val/mse",
        "val/loss",
        "val/half/0",
        "val/half/1",
    }


def test_a_tag_that_two_collectors_give_is_drawn_once(mode, tmp_path, said):
    class Mine(Collector):
        def collect(self, context):
            return {"train/loss": 7.0, "train/mine": 7.0}

    curves = TensorBoardCallback(tmp_path, 1, collectors=[*default_collectors(), GradNorm(".*weight"), Mine()])
    train(model(), 3, curves)
    assert said() == ["step 1: train/loss is drawn already, that of Mine is left out"]
    np.testing.assert_allclose(curve(tmp_path, "train/loss")[1], truth(3)[0], rtol=2e-6)
    for tag in ("train/grad_norm", "grad_norm/dense.weight", "train/mine"):
        assert curve(tmp_path, tag)[0] == [1, 2, 3], tag


def test_a_nan_is_drawn_and_not_an_error(graph, tmp_path, said):
    train(model(), 2, TensorBoardCallback(tmp_path, 1, collectors=[NotANumber()]))
    assert np.isnan(curve(tmp_path, "train/nan")[1]).all()
    assert not said()


def test_a_directory_that_cannot_be_made_is_said_once(mode, tmp_path, said):
    trained, curves = model(), TensorBoardCallback(tmp_path / "file" / "run", 1)
    (tmp_path / "file").write_text("")
    train(trained, 4, curves)
    assert len(said()) == 1
    assert "the TensorBoard callback is switched off, the training goes on" in said()[0]
    assert type(trained.train_network.grad_reducer) is nn.Identity


def test_a_directory_that_cannot_be_made_stops_the_training_when_strict(graph, tmp_path):
    curves = TensorBoardCallback(tmp_path / "file" / "run", 1, strict=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError):
        train(model(), 4, curves)


def test_a_writer_that_its_user_closed_is_said_once(graph, tmp_path, said):
    writer = SummaryWriter(tmp_path)

    class Close(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 2:
                writer.close()

    losses = []

    class Seen(ms.train.Callback):
        def on_train_step_end(self, run_context):
            losses.append(run_context.original_args().cur_step_num)

    train(model(), 6, TensorBoardCallback(None, 1, writer=writer, flush_secs=0), Close(), Seen())
    assert losses == [1, 2, 3, 4, 5, 6]
    assert len([line for line in said() if "switched off" in line]) == 1


@pytest.mark.parametrize(
    "freq",
    [lambda step: 1 // (3 - step), lambda step: 2 if step == 2 else 2.5],
    ids=["raises", "gives no number of steps"],
)
def test_a_collect_freq_that_fails_is_replaced_by_the_default(graph, tmp_path, said, freq):
    train(model(), 21, TensorBoardCallback(tmp_path, freq))
    assert len(said()) == 1
    assert curve(tmp_path, "train/epoch")[0] == [1, 2, 10, 20]


def test_a_second_callback_on_one_directory_says_so_and_writes_nothing(graph, tmp_path, said):
    first, second = TensorBoardCallback(tmp_path, 1), TensorBoardCallback(f"{tmp_path}/", 1, collectors=[Loss()])
    train(model(), 3, first, second)
    assert len(said()) == 1
    assert "another callback writes there" in said()[0]
    assert len(files(tmp_path)) == 1
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3]
    train(model(), 3, TensorBoardCallback(tmp_path, 1, initial_step=3))  # the first has ended
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3, 4, 5, 6]


def test_one_callback_given_twice_counts_once(graph, tmp_path, said):
    callback = TensorBoardCallback(tmp_path, 1)
    trained = model()
    train(trained, 3, callback, callback)
    assert not said()
    assert curve(tmp_path, "train/grad_norm")[0] == curve(tmp_path, "train/epoch")[0] == [1, 2, 3]
    assert type(trained.train_network.grad_reducer) is nn.Identity


def test_two_callbacks_in_one_training_draw_the_same(mode, tmp_path):
    train(model(), 6, TensorBoardCallback(tmp_path / "a", 1), TensorBoardCallback(tmp_path / "b", 4))
    norms = truth(6)[1]
    for name in ("a", "b"):
        steps, values = curve(tmp_path / name, "train/grad_norm")
        assert steps == [1, 2, 3, 4, 5, 6]
        np.testing.assert_allclose(values, norms, rtol=2e-6)


def test_a_training_after_the_watched_one_runs_unwatched(mode, tmp_path):
    trained = model()
    train(trained, 3, TensorBoardCallback(tmp_path, 1))
    size = sum(path.stat().st_size for path in files(tmp_path))
    train(trained, 3)
    assert sum(path.stat().st_size for path in files(tmp_path)) == size


def test_a_graph_that_was_compiled_before_is_left_as_it_is(graph, tmp_path, said):
    trained = model()
    train(trained, 3)
    train(trained, 3, TensorBoardCallback(tmp_path, 1))
    assert len(said()) == 1
    assert "was compiled before" in said()[0]
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3]
    assert "train/grad_norm" not in tags(tmp_path)


def test_a_second_callback_finds_the_tap_that_the_graph_was_compiled_with(graph, tmp_path, said):
    trained = model()
    train(trained, 3, TensorBoardCallback(tmp_path / "a", 1))
    train(trained, 3, TensorBoardCallback(tmp_path / "b", 1, collectors=[Loss(), GradNorm()]))
    assert not said()
    assert curve(tmp_path / "b", "train/grad_norm")[0] == [1, 2, 3]


def test_a_reducer_that_runs_twice_a_step_is_drawn_at_collected_steps(mode, tmp_path):
    class Twice(nn.TrainOneStepCell):
        def construct(self, *inputs):
            loss = self.network(*inputs)
            grads = self.grad_no_sens(self.network, self.weights)(*inputs)
            grads = self.grad_reducer(self.grad_reducer(grads))
            return loss, self.optimizer(grads)

    net = model().train_network.network
    cell = Twice(net, nn.SGD(net.trainable_params(), 0.1))
    trained = ms.train.Model(cell)
    trained.train(1, dataset(6), callbacks=[TensorBoardCallback(tmp_path, 3)], dataset_sink_mode=False)
    steps, values = curve(tmp_path, "train/grad_norm")
    assert steps == [1, 3, 6]
    np.testing.assert_allclose(values, truth(6)[1][[0, 2, 5]], rtol=2e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"collect_freq": 0}, ValueError, "collect_freq must be at least 1, got 0"),
        ({"collect_freq": 1.5}, TypeError, "collect_freq must be an int"),
        ({"collect_freq": {100: 10}}, ValueError, "what holds from step 0 on"),
        ({"ranks": "some"}, ValueError, "ranks must be"),
        ({"ranks": [-1]}, ValueError, "ranks must not be negative"),
        ({"collectors": [Loss]}, TypeError, "collectors must be Collector objects"),
        ({"tokens_per_step": 1.5}, TypeError, "tokens_per_step must be an int"),
        ({"collectors": Loss()}, TypeError, "collectors must be a list of Collector objects"),
        ({"alerts": None}, TypeError, "alerts must be a list of rules"),
        ({"reduce_tags": "train/loss"}, TypeError, "reduce_tags must be a list of tags, got 'train/loss'"),
        ({"reduce_tags": [1]}, TypeError, "reduce_tags must be tags, got 1"),
        ({"writer": 3}, TypeError, "writer must be a tbwriter.SummaryWriter, got 3"),
        ({"strict": "no"}, TypeError, "strict must be a bool"),
        ({"initial_step": -1}, ValueError, "initial_step must not be negative"),
        ({"max_file_size": -1}, ValueError, "max_file_size"),
        ({"summary_dir": None}, TypeError, "summary_dir must be a directory"),
        ({"summary_dir": ""}, ValueError, "summary_dir is empty"),
        ({"summary_dir": Path("s3://bucket/run")}, ValueError, "lost a slash in pathlib"),
        ({"summary_dir": 5}, TypeError, "summary_dir must be a directory .* got 5"),
        ({"flush_secs": "soon"}, TypeError, "flush_secs"),
    ],
)
def test_a_wrong_argument_raises_in_the_constructor(tmp_path, arguments, error, match):
    with pytest.raises(error, match=match):
        TensorBoardCallback(**{"summary_dir": tmp_path, **arguments})


def test_sparse_gradients_are_left_alone_and_said(graph, tmp_path, said):
    class Words(nn.Cell):
        def __init__(self):
            super().__init__()
            self.table, self.dense = nn.EmbeddingLookup(10, 4, target="CPU", sparse=True), nn.Dense(4, 1)

        def construct(self, x):
            return self.dense(self.table(x).sum(1))

    random = np.random.default_rng(0)
    words = (random.integers(0, 10, (12, 3)).astype("i4"), random.random((12, 1), "f4"))
    net = Words()
    optimizer = nn.LazyAdam(net.trainable_params(), 0.1)
    optimizer.target = "CPU"
    trained = ms.train.Model(net, nn.MSELoss(), optimizer)
    data = ds.NumpySlicesDataset(words, shuffle=False).batch(4)
    trained.train(1, data, callbacks=[TensorBoardCallback(tmp_path, 1)], dataset_sink_mode=False)
    assert len(said()) == 1
    assert "gives sparse gradients" in said()[0]
    assert curve(tmp_path, "train/learning_rate")[0] == [1, 2, 3]
    assert curve(tmp_path, "train/loss")[0] == [1, 2, 3]


def test_a_sparse_operator_that_construct_makes_on_the_spot_is_found(graph):
    from msbridge._install import NoTapError, install

    class Words(nn.Cell):
        def __init__(self):
            super().__init__()
            self.words = ms.Parameter(Tensor(np.ones((10, 4), "f4")), name="words")

        def construct(self, x):
            return ops.SparseGatherV2()(self.words, x, 0)

    net = Words()
    cell = nn.TrainOneStepCell(net, nn.LazyAdam(net.trainable_params(), 0.1))
    with pytest.raises(NoTapError, match=r"SparseGatherV2 in Words.construct gives sparse gradients"):
        install(cell, cell.optimizer, 1)


def test_an_experimental_optimizer_and_a_single_parameter_are_drawn_too(mode, tmp_path):
    net = nn.Dense(3, 1, weight_init="ones", has_bias=False)
    optimizer = optim.SGD(net.trainable_params(), lr=0.1)
    trained = ms.train.Model(nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer))
    train(trained, 3, TensorBoardCallback(tmp_path, 2))
    assert curve(tmp_path, "train/grad_norm")[0] == [1, 2, 3]
    np.testing.assert_allclose(curve(tmp_path, "train/learning_rate")[1], [0.1] * 3, rtol=1e-6)


def test_a_graph_from_the_compile_cache_is_left_alone(graph, monkeypatch):
    from msbridge._install import NoTapError, install

    cell = model().train_network
    monkeypatch.setenv("MS_COMPILER_CACHE_ENABLE", "1")
    with pytest.raises(NoTapError, match="compile cache"):
        install(cell, cell.optimizer, 1)
    assert type(cell.grad_reducer) is nn.Identity


def test_storage_that_hangs_or_fails_holds_up_no_step_and_raises_nothing(graph, monkeypatch):
    monkeypatch.setattr("msbridge.callback._CLOSE_SECS", 0.1)
    free, asked = threading.Event(), threading.Event()

    def hang(_secs):
        asked.set()
        free.wait(30)

    class Count(ms.train.Callback):
        seen = 0

        def on_train_step_end(self, run_context):
            self.seen += 1

    def opened(url, name, header, options):
        memory = sinks.open_sink("memory://hang", name=name, header=header)
        failing = FaultySink(memory, lambda _call, number: OSError("gone") if number > 4 else None)
        return SlowSink(failing, 0.0, sleep=hang)

    sinks.register_sink("bridge-hangs", opened, lambda _url, _options: [])
    plain, watched, seen = model(), model(), Count()
    train(plain, 40)
    try:
        train(watched, 40, TensorBoardCallback("bridge-hangs://run", 1, flush_secs=0), seen)
    finally:
        free.set()
    assert asked.is_set()
    assert seen.seen == 40
    assert [v for *_, v in state(watched.train_network)] == [v for *_, v in state(plain.train_network)]
