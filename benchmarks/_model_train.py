"""What a callback adds to `Model.train` of MindSpore on the CPU: a real net, real data, and blocks that take turns.

A block is one training of a new model: every callback changes the graph in its own way, so compiling is part of each
training, and is left out of the time. What is inside a callback is measured by two callbacks, one before it and one
behind it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks._block import Block
from benchmarks._digits import CLASSES, digits
from benchmarks._measure import alternate
from benchmarks._overhead import Found, Loop, below, figures
from benchmarks._results import Figure
from benchmarks._setting import Setting
from benchmarks._writers import EVENT_FILE, TBWRITER

COLLECTOR, COLLECTOR_LOSS = "SummaryCollector", "SummaryCollector, loss alone"
_BATCH = 32
_WARM_STEPS = 10
_STEPS, _QUICK_STEPS = 90, 15


@dataclass(frozen=True)
class _Case:
    label: str
    freq: int


def missing() -> str:
    """Return what is missing; "" when nothing is."""
    return "" if importlib.util.find_spec("mindspore") else "mindspore not installed"


def training(setting: Setting, freqs: list[int]) -> list[Figure]:
    """Measure tbwriter's callback, the least that writes the loss with EventFileWriter, and SummaryCollector."""
    os.environ.setdefault("GLOG_v", "3")  # MindSpore's errors only
    import mindspore as ms

    # MindSpore 2.10 with NumPy 2: the first touch of NumPy's C interface in a process fails, and only the first.
    with contextlib.suppress(SystemError):
        _ = ms.Tensor(1.0) * ms.Tensor(1.0)
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    makers: dict[str, Callable[[str, int], Any]] = {TBWRITER: _ours, COLLECTOR: _collector, COLLECTOR_LOSS: _loss_alone}
    if EVENT_FILE in setting.peers:
        makers[EVENT_FILE] = _event_file
    steps = _QUICK_STEPS if setting.quick else _STEPS
    rounds = 1 if setting.quick else setting.blocks
    cases = [_Case(label, freq) for label in makers for freq in freqs]

    def sample(case: _Case | None) -> Block:
        callback = None if case is None else makers[case.label](str(setting.fresh()), case.freq)
        return _train(callback, steps)

    found = alternate([None, *cases], rounds, sample, setting.progress.tick)
    bare = found.pop(None)
    loop = Loop(
        "mindspore",
        "Model.train of MindSpore",
        f"A small convolutional net on the CPU, graph mode, {_BATCH} images of 8 x 8 pixels a step; every callback "
        f"with its defaults. Each block is a training of its own, without its first {_WARM_STEPS} steps.",
        lambda: None,
        others_delay=False,
    )
    blocks = {(case.label, case.freq): found[case] for case in cases}
    result = Found(loop, bare, blocks)
    direct = below(result.direct, [TBWRITER], [COLLECTOR], 1 / 20, "us a step above 1/20 of")
    direct += below(
        result.direct, [TBWRITER], [EVENT_FILE] if EVENT_FILE in makers else [], 1 / 5, "us a step above 1/5 of"
    )
    size = replace(setting, block_steps=steps - _WARM_STEPS, blocks=rounds)
    return figures(size, result, direct=direct)


def _train(callback: Any, steps: int) -> Block:
    """Train a new model; return what its steps took, those of the beginning left out."""
    import mindspore as ms
    from mindspore import nn

    before, after = _clocks()
    net = nn.SequentialCell(
        nn.Conv2d(1, 16, 3, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(16, 32, 3, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(32 * 2 * 2, 64), nn.ReLU(), nn.Dense(64, CLASSES),
    )  # fmt: skip
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.train.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    images, labels = digits()
    rows = list(zip(images, [np.array(label) for label in labels], strict=True))
    data = ms.dataset.GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(_BATCH, drop_remainder=True)
    batches = len(rows) // _BATCH
    callbacks = [before, *([] if callback is None else [callback]), after]
    model.train(-(-steps // batches), data.take(min(steps, batches)), callbacks=callbacks, dataset_sink_mode=False)
    begins, ends = before.at[_WARM_STEPS:], after.at[_WARM_STEPS:]
    count = len(ends) - 1
    inside = sum(end - begin for begin, end in zip(begins[1:], ends[1:], strict=True))
    wall = (ends[-1] - ends[0]) / count * 1e6
    return Block(wall, 0.0, 0.0, 0.0, inside / count * 1e6, 0.0)


def _clocks() -> tuple[Any, Any]:
    """Return two callbacks that note in `at` when a step ends."""
    from mindspore.train import Callback

    class Clock(Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.at: list[float] = []

        def on_train_step_end(self, run_context: Any) -> None:
            del run_context
            self.at.append(time.perf_counter())

    return Clock(), Clock()


def _ours(directory: str, freq: int) -> Any:
    from msbridge import TensorBoardCallback

    return TensorBoardCallback(directory, freq)


def _collector(directory: str, freq: int) -> Any:
    import mindspore as ms

    return ms.SummaryCollector(directory, collect_freq=freq)


def _loss_alone(directory: str, freq: int) -> Any:
    import mindspore as ms

    return ms.SummaryCollector(
        directory, collect_freq=freq, keep_default_action=False, collect_specified_data={"collect_metric": True}
    )


def _event_file(directory: str, freq: int) -> Any:
    """Return the least that draws the loss: one Event for each collected step."""
    from mindspore.train import Callback

    from benchmarks._writers import open_writer

    class WriteLoss(Callback):  # type: ignore[misc]
        def on_train_begin(self, run_context: Any) -> None:
            del run_context
            self.logger = open_writer(EVENT_FILE, directory)

        def on_train_step_end(self, run_context: Any) -> None:
            arguments = run_context.original_args()
            if arguments.cur_step_num % freq == 0:
                loss = float(arguments.net_outputs.asnumpy())
                self.logger.add_scalar("train/loss", loss, arguments.cur_step_num)

        def on_train_end(self, run_context: Any) -> None:
            del run_context
            self.logger.close()

    return WriteLoss()
