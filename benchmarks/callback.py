"""The figures of `python -m benchmarks callback`: what the callback of msbridge adds to a step of `Model.train`.

Beside MindSpore's SummaryCollector, what people write by hand around TensorBoard's EventFileWriter, and no callback. A
net of LeNet's size on handwritten digits; every step is collected. All cases have a model of their own, compiled
before, and take turns in one process: a block is a training of ten seconds and more, its first steps left out. In a
shorter one what happens once every few seconds, such as msbridge's transfers, would weigh more than in a training of
days.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._block import noise
from benchmarks._digits import CLASSES, digits
from benchmarks._measure import alternate, ratio_of_medians, spread
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting

OURS, BARE, BY_HAND = "msbridge", "no callback", "EventFileWriter by hand, loss alone"
LOSS, DEFAULT = "SummaryCollector, loss alone", "SummaryCollector, its default without landscape"
_CASES = (BARE, OURS, BY_HAND, LOSS, DEFAULT)
_WARM_UP = 3  # steps of a block that are left out
_STEP_US = 3000.0  # the step of which the target is a share
# A step of PyNative mode takes ten times as long; so its epoch has half as many, and its block half as many epochs.
_BATCH = {"graph": 32, "pynative": 64}
_EPOCHS = {"graph": 12, "pynative": 6}

Sample = tuple[float, float]  # mean step, and mean time inside the callback, in us


def graph(setting: Setting) -> list[Figure]:
    """Measure in GRAPH mode."""
    return _figures(setting, "graph")


def pynative(setting: Setting) -> list[Figure]:
    """Measure in PYNATIVE mode."""
    return _figures(setting, "pynative")


def _figures(setting: Setting, mode: str) -> list[Figure]:
    os.environ.setdefault("GLOG_v", "3")
    ms = importlib.import_module("mindspore")
    # MindSpore 2.10 with NumPy 2: the first touch of NumPy's C interface in a process fails, and only the first.
    with contextlib.suppress(SystemError):
        _ = ms.Tensor(1.0) * ms.Tensor(1.0)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    models = {name: model(ms) for name in _CASES}

    epochs = 1 if setting.quick else _EPOCHS[mode]

    def sample(name: str, epochs: int = epochs) -> Sample:
        return block(ms, models[name], made(ms, name, setting.fresh()), _BATCH[mode], epochs)

    for name in _CASES:
        sample(name, epochs=1)  # compiles
    samples = alternate(_CASES, setting.rounds, sample, setting.progress.tick)
    steps = {name: [step for step, _ in found] for name, found in samples.items()}
    inside = {name: [us for _, us in found] for name, found in samples.items() if name != BARE}
    extra = {
        name: [us - bare for us, bare in zip(found, steps[BARE], strict=True)]
        for name, found in steps.items()
        if name != BARE
    }
    bare = statistics.median(steps[BARE])
    how = (
        f"MindSpore's {mode.upper()} mode on the CPU; every step is collected; a step without callback takes "
        f"{bare / 1000:.1f} ms here; {setting.rounds} rounds of {epochs} epochs each. The scalars: loss, "
        "learning rate, gradient norm, step time, samples a second and epoch of msbridge, the loss alone of the others."
    )
    direct = {name: spread(found) for name, found in inside.items()}
    shares = [100 * us / step for us, step in zip(inside[OURS], steps[BARE], strict=True)]
    ratios = {
        f"{name} / {OURS}": found
        for name in inside
        if name != OURS and (found := ratio_of_medians(inside[name], inside[OURS])) is not None
    }
    return [
        Figure(
            name=f"callback_{mode}_inside",
            title=f"Time of a step inside the callback, {mode.upper()} mode",
            unit="us a step",
            how=how,
            values=direct,
            ratios=ratios,
            targets=[
                Target.judge(f"{OURS}, us a step: 3 % of 3 ms", "at most", 0.03 * _STEP_US, direct[OURS]),
                Target.judge(f"{OURS}, % of a step without callback", "at most", 3.0, spread(shares)),
            ],
        ),
        Figure(
            name=f"callback_{mode}_extra",
            title=f"What a callback adds to a step, {mode.upper()} mode",
            unit="us a step",
            how=how + " Whole steps, less those without callback of the same round; what runs inside the graph and in "
            "other threads is in it.",
            values={name: spread(found) for name, found in extra.items()},
            targets=_share_of_default(extra),
            notes=noise(steps[BARE]),
        ),
    ]


def _share_of_default(samples: dict[str, list[float]]) -> list[Target]:
    """Judge msbridge beside SummaryCollector's default, where the latter is surely above 0."""
    share = ratio_of_medians(samples[OURS], samples[DEFAULT])
    return [] if share is None else [Target.judge(f"{OURS} / {DEFAULT}: 1/20", "at most", 1 / 20, share)]


def model(ms: Any) -> Any:
    """Return a new model of a net of LeNet's size."""
    nn = ms.nn
    ms.set_seed(1)
    net = nn.SequentialCell(
        nn.Conv2d(1, 6, 3, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 3, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(64, 84), nn.ReLU(), nn.Dense(84, 10),
    )  # fmt: skip
    loss = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
    return ms.train.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))


@functools.cache
def _one_hot_digits() -> tuple[Any, Any]:
    images, classes = digits()
    return images, np.eye(CLASSES, dtype=np.float32)[classes]


def block(ms: Any, model: Any, callback: Any, batch: int = 32, epochs: int = 1) -> Sample:
    """Train some epochs; return the means over all but the first steps."""
    ends: list[float] = []
    inside: list[float] = []

    class Before(ms.train.Callback):  # type: ignore[misc]
        def on_train_step_end(self, _run_context: Any) -> None:
            inside.append(-time.perf_counter())

    class After(ms.train.Callback):  # type: ignore[misc]
        def on_train_step_end(self, _run_context: Any) -> None:
            now = time.perf_counter()
            inside[-1] += now
            ends.append(now)

    data = ms.dataset.NumpySlicesDataset(_one_hot_digits(), shuffle=False).batch(batch, drop_remainder=True)
    between = [callback] if callback is not None else []
    model.train(epochs, data, callbacks=[Before(), *between, After()], dataset_sink_mode=False)
    steps = len(ends) - _WARM_UP
    return (ends[-1] - ends[_WARM_UP - 1]) / steps * 1e6, sum(inside[_WARM_UP:]) / steps * 1e6


def made(ms: Any, name: str, directory: Path, freq: int = 1) -> Any:
    """Return a new callback that collects every `freq` steps; None for `BARE`."""
    makers: dict[str, Callable[[], Any]] = {
        BARE: lambda: None,
        OURS: lambda: importlib.import_module("msbridge").TensorBoardCallback(directory, freq),
        BY_HAND: lambda: _by_hand(ms, directory, freq),
        LOSS: lambda: ms.train.SummaryCollector(
            str(directory), freq, {"collect_metric": True}, keep_default_action=False
        ),
        DEFAULT: lambda: ms.train.SummaryCollector(str(directory), freq, {"collect_landscape": None}),
    }
    return makers[name]()


def _by_hand(ms: Any, directory: Path, freq: int) -> Any:
    """Write the loss with TensorBoard's own writer, as its users do."""
    writers = importlib.import_module("tensorboard.summary.writer.event_file_writer")
    events = importlib.import_module("tensorboard.compat.proto.event_pb2")
    summaries = importlib.import_module("tensorboard.compat.proto.summary_pb2")

    class ByHand(ms.train.Callback):  # type: ignore[misc]
        def on_train_begin(self, _run_context: Any) -> None:
            self.writer = writers.EventFileWriter(str(directory))

        def on_train_step_end(self, run_context: Any) -> None:
            params = run_context.original_args()
            if params.cur_step_num % freq:
                return
            value = summaries.Summary.Value(tag="loss", simple_value=float(params.net_outputs.asnumpy()))
            summary = summaries.Summary(value=[value])
            self.writer.add_event(events.Event(step=params.cur_step_num, wall_time=time.time(), summary=summary))

        def on_train_end(self, _run_context: Any) -> None:
            self.writer.close()

    return ByHand()


FIGURES: dict[str, Callable[[Setting], list[Figure]]] = {"graph": graph, "pynative": pynative}
