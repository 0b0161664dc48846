"""One step of a real training with torch: a small convolutional net on handwritten digits."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

from benchmarks._digits import CLASSES, digits

ABOUT = "A small convolutional net with torch on the CPU, one thread; a step trains 32 images of 8 x 8 pixels."
_BATCH = 32


def missing() -> str:
    """Return what is missing; "" when nothing is."""
    return "" if importlib.util.find_spec("torch") else "torch not installed"


def step() -> Callable[[], object]:
    """Return what trains one batch; the data is scikit-learn's where that is installed, else noise."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)  # torch's own threads would count as the writers'
    pixels, classes = digits()
    images, labels = torch.from_numpy(pixels), torch.from_numpy(classes).long()
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Linear(64, CLASSES),
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
