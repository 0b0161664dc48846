"""The figures of `python -m benchmarks summaries`: what one call of each method costs the training loop."""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks._measure import alternate, ratio, spread, timer_cost_ns
from benchmarks._results import Figure, Target
from benchmarks._run import FigureMaker
from benchmarks._setting import Setting
from benchmarks._writers import EVENT_FILE, TBWRITER, TENSORBOARDX, TORCH

_MODULES = {TBWRITER: "tbwriter", TENSORBOARDX: "tensorboardX", TORCH: "torch.utils.tensorboard"}
# Without these the peers log an error and store nothing.
_NEEDED = {
    (TENSORBOARDX, "add_audio, a second"): "soundfile",
    (TENSORBOARDX, "add_video, 8 frames of 64 x 64"): "moviepy",
    (TORCH, "add_video, 8 frames of 64 x 64"): "moviepy",
}
_Call = Callable[[Any, int], object]
_IMAGE = "add_image, 512 x 512 RGB"


def _calls() -> dict[str, _Call]:
    """Return {method and what it is given: call with a writer and a step}."""
    random = np.random.default_rng(0)
    values = random.standard_normal(10_000).astype(np.float32)
    # Gradients with a little noise, like a photograph: neither noise alone, which nothing compresses, nor one colour.
    slope = np.linspace(0, 1, 512)
    smooth = np.stack([slope[None] * slope[:, None], slope[None] + 0 * slope[:, None], 1 - slope[:, None] + 0 * slope])
    picture = (np.clip(smooth + random.normal(0, 0.02, smooth.shape), 0, 1) * 255).astype(np.uint8)
    batch = np.stack([picture[:, :128, :128]] * 8)
    boxes = np.array([[10.0, 10.0, 90.0, 90.0], [100.0, 60.0, 200.0, 180.0]])
    video = np.stack([picture[:, :64, :64]] * 8)[None]
    sound = np.sin(np.arange(44_100, dtype=np.float32) / 20)
    words = "**word** " * 100
    labels, predictions = values > 0, np.clip(values / 4 + 0.5, 0, 1)
    vertices, colors = random.random((1, 1000, 3), np.float32), random.integers(0, 256, (1, 1000, 3), np.uint8)
    points, names = random.standard_normal((1000, 64)).astype(np.float32), [f"point {n}" for n in range(1000)]
    layout = {"training": {"loss": ["Multiline", ["loss", "val/loss"]], "rate": ["Margin", ["rate", "low", "high"]]}}
    calls: dict[str, _Call] = {
        "add_scalar": lambda w, step: w.add_scalar("loss", 0.5, step),
        "add_scalars, 3 keys": lambda w, step: w.add_scalars("losses", {"train": 0.5, "val": 0.6, "test": 0.7}, step),
        "add_histogram, 10,000 float32": lambda w, step: w.add_histogram("weights", values, step),
        _IMAGE: lambda w, step: w.add_image("picture", picture, step),
        "add_images, 8 of 128 x 128 RGB": lambda w, step: w.add_images("batch", batch, step),
        "add_image_with_boxes, 512 x 512 RGB": lambda w, step: w.add_image_with_boxes("boxes", picture, boxes, step),
        "add_video, 8 frames of 64 x 64": lambda w, step: w.add_video("video", video, step),
        "add_audio, a second": lambda w, step: w.add_audio("sound", sound, step),
        "add_text, 900 characters": lambda w, step: w.add_text("words", words, step),
        "add_pr_curve, 10,000 predictions": lambda w, step: w.add_pr_curve("curve", labels, predictions, step),
        "add_mesh, 1,000 vertices": lambda w, step: w.add_mesh("mesh", vertices, colors, global_step=step),
        "add_custom_scalars, 2 charts": lambda w, step: w.add_custom_scalars(layout),
        "add_embedding, 1,000 x 64": lambda w, step: w.add_embedding(points, names, global_step=step),
    }
    if importlib.util.find_spec("matplotlib") is not None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Drawing

        drawing = Drawing()
        FigureCanvasAgg(drawing)
        drawing.add_subplot().plot(values[:100])
        calls["add_figure, 640 x 480"] = lambda w, step: w.add_figure("figure", drawing, step, close=False)
    return calls


def _measured(writer: str, calls: Mapping[str, _Call]) -> dict[str, _Call]:
    """Return what of `calls` the writer can do with what is installed."""
    return {
        name: call
        for name, call in calls.items()
        if (writer, name) not in _NEEDED or importlib.util.find_spec(_NEEDED[writer, name]) is not None
    }


def caller(setting: Setting) -> list[Figure]:
    """Measure single calls of each method, the writer having nothing else to do."""
    calls = _calls()
    writers = [TBWRITER, *(peer for peer in setting.peers if peer != EVENT_FILE)]
    repeats = 2 if setting.quick else 10

    def sample(writer: str) -> dict[str, float]:
        opened = importlib.import_module(_MODULES[writer]).SummaryWriter(str(setting.fresh()))
        found = {}
        for name, call in _measured(writer, calls).items():
            call(opened, 0)  # the first loads modules and tells readers of the tag
            opened.flush()
            took = []
            for step in range(1, repeats + 1):
                begin = time.perf_counter_ns()
                call(opened, step)
                took.append(time.perf_counter_ns() - begin)
                opened.flush()
            found[name] = statistics.median(took) / 1e3
        opened.close()
        return found

    samples = alternate(writers, setting.rounds, sample, setting.progress.tick)
    how = (
        f"The median of {repeats} calls, each flushed before the next: no training adds a picture while one is "
        f"still being encoded; {setting.rounds} rounds. Arrays are NumPy's, and tbwriter copies them."
    )
    notes = [f"Two readings of the clock around nothing show {timer_cost_ns():.0f} ns; that is in every number."]
    missing = [
        f"{name.split(',')[0]} of {writer}: without {package} it stores nothing"
        for (writer, name), package in _NEEDED.items()
        if writer in writers and name not in samples[writer][0]
    ]
    if missing:
        notes.append(f"Left out: {'; '.join(missing)}.")
    figures = []
    for writer in writers:
        us = {name: [round_[name] for round_ in samples[writer]] for name in samples[writer][0]}
        ours = {name: [round_[name] for round_ in samples[TBWRITER]] for name in us}
        targets = []
        if writer == TENSORBOARDX:
            over = ratio(us[_IMAGE], ours[_IMAGE])
            targets.append(Target.judge(f"times tbwriter's for {_IMAGE}", "at least", 10, over))
        figures.append(
            Figure(
                name=f"caller_of_{writer}",
                title=f"Caller's time for one call: {writer}",
                unit="us",
                how=how,
                values={name: spread(took) for name, took in us.items()},
                ratios={}
                if writer == TBWRITER
                else {f"{name} / {TBWRITER}": ratio(took, ours[name]) for name, took in us.items()},
                notes=notes,
                targets=targets,
            )
        )
    return figures


FIGURES: dict[str, FigureMaker] = {"caller": caller}
