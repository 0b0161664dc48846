"""Data for real trainings: handwritten digits."""

from __future__ import annotations

import importlib.util

import numpy as np
import numpy.typing as npt

CLASSES = 10


def digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Return 1797 images of shape (1, 8, 8) and their classes: scikit-learn's where that is installed, else noise."""
    if importlib.util.find_spec("sklearn"):
        from sklearn.datasets import load_digits

        found = load_digits()
        return (found.images[:, None] / 16).astype(np.float32), found.target.astype(np.int32)
    random = np.random.default_rng(0)
    return random.random((1797, 1, 8, 8), np.float32), random.integers(0, CLASSES, 1797, np.int32)
