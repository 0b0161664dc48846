"""One step of a real training with torch: a small convolutional net on handwritten digits."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

ABOUT = "A small convolutional net with torch on the CPU, one thread; a step trains 32 images of 8 x 8 pixels."
_BATCH, _CLASSES = 32, 10


def missing() -> str:
    """Return what is missing; "" when nothing is."""
    return "" if importlib.util.find_spec("torch") else "torch not installed"


def step() -> Callable[[], object]:
    """Return what trains one batch; the data is scikit-learn's where that is installed, else noise."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)  # torch's own threads would count as the writers'
    pixels, classes = _digits()
    images, labels = torch.from_numpy(pixels), torch.from_numpy(classes)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Linear(64, _CLASSES),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    at = 0

    def train() -> object:
        nonlocal at
        batch = slice(at, at + _BATCH)
        at = (at + _BATCH) % (len(images) - _BATCH)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        return loss

    return train


def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Return images of shape (n, 1, 8, 8) and n classes."""
    if importlib.util.find_spec("sklearn"):
        from sklearn.datasets import load_digits

        digits = load_digits()
        return (digits.images[:, None] / 16).astype(np.float32), digits.target.astype(np.int64)
    random = np.random.default_rng(0)
    return random.random((1797, 1, 8, 8), np.float32), random.integers(0, _CLASSES, 1797)
