"""Draw the figure of docs/curves.md: one small network, trained well and in three wrong ways.

python docs/draw_curves.py: a network with one hidden layer, in NumPy, learns to read the handwritten digits that
scikit-learn brings along. Its curves go through tbwriter and come back through read_events. Same bytes every time.
"""

import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from tbwriter import SummaryWriter, read_events

STEPS, BATCH, HIDDEN, SEED = 300, 64, 32, 1
WARM_UP = 50
RUNS = {
    "as it should be": (0.5, False),
    "does not fall:\nlearning rate 1000 times too small": (0.0005, False),
    "jumps:\nlearning rate 8 times too large": (4.0, False),
    "falls, then rises:\nlearning rate grows without end": (0.5, True),
}
TAGS = ("train/loss", "train/learning_rate", "train/grad_norm")
LIMITS = {"train/loss": (0.03, 60), "train/learning_rate": (1e-5, 1e3), "train/grad_norm": (1e-2, 30)}
TARGET = Path(__file__).with_name("images") / "curves.svg"


def train(writer: SummaryWriter, rate: float, *, growing: bool) -> None:
    """Train with stochastic gradient descent and write the three curves of every step."""
    digits = load_digits()
    pixels, labels = digits.data / 16, digits.target
    rng = np.random.default_rng(SEED)
    first = rng.normal(scale=0.1, size=(pixels.shape[1], HIDDEN))
    second = rng.normal(scale=0.1, size=(HIDDEN, 10))
    for step in range(1, STEPS + 1):
        now = rate * 1.02**step if growing else rate * min(1, step / WARM_UP)
        chosen = rng.integers(len(pixels), size=BATCH)
        x, y = pixels[chosen], labels[chosen]
        hidden = np.tanh(x @ first)
        logits = hidden @ second
        logits -= logits.max(axis=1, keepdims=True)
        probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        loss = -np.log(np.maximum(probability[np.arange(BATCH), y], 1e-12)).mean()
        probability[np.arange(BATCH), y] -= 1
        to_second = hidden.T @ probability / BATCH
        to_first = x.T @ ((probability @ second.T) * (1 - hidden**2)) / BATCH
        norm = np.sqrt((to_first**2).sum() + (to_second**2).sum())
        writer.add_metrics(dict(zip(TAGS, (loss, now, norm), strict=True)), step)
        first -= now * to_first
        second -= now * to_second


def curves(rate: float, *, growing: bool) -> dict[str, tuple[list[int], list[float]]]:
    """Train, and read the curves back: tag -> steps and values."""
    found: dict[str, tuple[list[int], list[float]]] = {tag: ([], []) for tag in TAGS}
    with tempfile.TemporaryDirectory() as directory:
        with SummaryWriter(directory) as writer:
            train(writer, rate, growing=growing)
        for event in read_events(directory):
            for value in event.values:
                found[value.tag][0].append(event.step)
                found[value.tag][1].append(value.scalar() or 0.0)
    return found


def main() -> None:
    """Draw a column for each run and a row for each curve."""
    mpl.rcParams |= {"svg.hashsalt": "curves", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"}
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    axes = figure.subplots(len(TAGS), len(RUNS), sharex=True)
    for column, (title, (rate, growing)) in enumerate(RUNS.items()):
        for row, (tag, (steps, values)) in enumerate(curves(rate, growing=growing).items()):
            panel = axes[row, column]
            panel.plot(steps, values, linewidth=1, color="#e8590c" if column else "#1971c2")
            panel.grid(alpha=0.3)
            panel.set_yscale("log")
            panel.set_ylim(LIMITS[tag])
            if row == 0:
                panel.set_title(title, fontsize=8.5)
            if column == 0:
                panel.set_ylabel(tag)
    for panel in axes[-1]:
        panel.set_xlabel("step")
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
