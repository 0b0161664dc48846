"""Train a small convolutional net on handwritten digits, and look at its curves.

python demo/digits.py [--logdir DIR]: 1797 real images of 8 x 8 pixels, which scikit-learn brings along; MindSpore on
the CPU; every curve written by msbridge, read back by TensorBoard's own reader.
"""

import argparse
import contextlib
import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

os.environ.setdefault("GLOG_v", "3")  # MindSpore's errors only

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import plotext
from mindspore import nn
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.datasets import load_digits
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from msbridge import TensorBoardCallback

EPOCHS, BATCH, VALIDATION = 8, 32, 360
COLLECT_FREQ = 5
SEED = 1

Curve = tuple[list[int], list[float]]


class Digits(nn.Cell):
    """Two convolutions and two dense layers: 8 x 8 pixels to 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(1, 16, 3, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(16, 32, 3, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Flatten(), nn.Dense(32 * 2 * 2, 64), nn.ReLU(), nn.Dense(64, 10),
        )  # fmt: skip

    def construct(self, images: ms.Tensor) -> ms.Tensor:
        """Give one logit per class."""
        return self.layers(images)


class ShowProgress(ms.train.Callback):
    """A bar that follows the training's steps."""

    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self.progress = progress
        self.task = progress.add_task("training", total=steps)

    def on_train_step_end(self, run_context: ms.train.RunContext) -> None:
        """Move the bar."""
        self.progress.update(self.task, completed=run_context.original_args().cur_step_num)


def datasets() -> tuple[ds.Dataset, ds.Dataset]:
    """Split the digits into batches for training and for validation."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.images))
    images = (digits.images[order, None] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)

    def batches(part: slice, *, shuffle: bool) -> ds.Dataset:
        source = list(zip(images[part], [np.array(label) for label in labels[part]], strict=True))
        return ds.GeneratorDataset(source, ["image", "label"], shuffle=shuffle).batch(BATCH)

    return batches(slice(VALIDATION, None), shuffle=True), batches(slice(VALIDATION), shuffle=False)


def train(logdir: str, console: Console) -> None:
    """Train with validation after every epoch; the curves go to `logdir`."""
    ms.set_seed(SEED)
    training, validation = datasets()
    steps = EPOCHS * training.get_dataset_size()
    net = Digits()
    rate = nn.cosine_decay_lr(0.001, 0.1, steps, training.get_dataset_size(), EPOCHS)
    model = ms.train.Model(
        net,
        nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        nn.Momentum(net.trainable_params(), rate, 0.9),
        metrics={"accuracy": ms.train.Accuracy()},
    )
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        callbacks = [TensorBoardCallback(logdir, COLLECT_FREQ), ShowProgress(progress, steps)]
        model.fit(EPOCHS, training, validation, callbacks=callbacks)


def read(directory: str) -> dict[str, Curve]:
    """Read every scalar back, with TensorBoard's reader and without thinning."""
    reader = EventAccumulator(directory, size_guidance={"scalars": 0})
    reader.Reload()
    found = {}
    for tag in reader.Tags()["scalars"]:
        points = reader.Scalars(tag)
        found[tag] = [point.step for point in points], [point.value for point in points]
    return found


def table(curves: Mapping[str, Curve]) -> Table:
    """List tags, points, and the first and last value."""
    shown = Table(title="read back by TensorBoard", title_justify="left")
    shown.add_column("tag", no_wrap=True, min_width=max(map(len, curves)))
    for name in ("points", "steps", "first value", "last value"):
        shown.add_column(name, justify="right")
    for tag, (steps, values) in sorted(curves.items()):
        shown.add_row(tag, str(len(steps)), f"{steps[0]} to {steps[-1]}", f"{values[0]:.5g}", f"{values[-1]:.5g}")
    return shown


def draw(curves: Mapping[str, Curve], console: Console) -> None:
    """Draw the three curves one looks at first."""
    for tag in ("train/loss", "train/learning_rate", "train/grad_norm"):
        figure = plotext.figure.clear()
        figure.plot_size(min(console.width, 100), 14)
        figure.title(f"{tag}, {len(curves[tag][0])} points")
        figure.draw(figure.signal(*curves[tag]))
        # The terminal's own colours, dark or light.
        console.print(plotext.uncolorize(figure.build().string()), markup=False, highlight=False)


def command(logdir: str) -> str:
    """Give the line that shows `logdir` in this shell: `make demo` installs into an environment off the PATH."""
    beside = Path(sys.executable).with_name("tensorboard")
    on_path = shutil.which("tensorboard")
    if not beside.exists() or (on_path and Path(on_path).resolve() == beside.resolve()):
        program = "tensorboard"
    else:
        program = os.path.relpath(beside) if beside.is_relative_to(Path.cwd()) else str(beside)
    return shlex.join([program, "--logdir", logdir])


def main() -> None:
    """Train, read back, show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logdir", default=time.strftime("runs/digits-%Y%m%d-%H%M%S"), help="default: %(default)s")
    logdir = parser.parse_args().logdir
    console = Console()
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    console.print(f"[bold]MindSpore {ms.__version__} on the CPU: {EPOCHS} epochs of handwritten digits[/bold]")
    if int(np.__version__.split(".")[0]) >= 2:
        # On stderr, where MindSpore prints some 50 lines of a traceback once, as it compiles the net.
        Console(stderr=True).print(
            "MindSpore may now print a traceback, 'A module that was compiled using NumPy 1.x': nothing is wrong, the "
            "training goes on"
        )
    began = time.perf_counter()
    train(logdir, console)
    console.print(f"trained in {time.perf_counter() - began:.1f} s, curves in {logdir}/rank_0\n")
    curves = read(f"{logdir}/rank_0")
    console.print(table(curves))
    draw(curves, console)
    console.print(
        f"\nEvery {COLLECT_FREQ}th of {curves['train/grad_norm'][0][-1]} steps was collected. The gradient norm of "
        "each step in between was kept on the device and came along."
    )
    console.print("To look further:\n")
    console.print(f"    {command(logdir)}\n", style="bold", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
