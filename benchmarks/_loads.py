"""What a collected step logs: scalars, and with them histograms of all weights, or images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._writers import TAGS, Logger

Log = Callable[[int], object]
Load = Callable[[Logger], Log]
"""Given a writer, returns what logs a step."""

# Of the demo's convolutional net for handwritten digits: 14,426 weights in 8 arrays.
_SHAPES = ((16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), (64, 128), (64,), (10, 64), (10,))
_IMAGES, _SIDE = 4, 64


def scalars(count: int) -> Load:
    """Return a load of `count` scalars: ten of them by `add_scalar`, another number by `add_metrics`."""
    if count == len(TAGS):
        return lambda logger: logger.log_step
    tags = [f"layer_{i // 10}/metric_{i % 10}" for i in range(count)]

    def load(logger: Logger) -> Log:
        add_metrics = logger.add_metrics

        def log(step: int) -> None:
            add_metrics(dict.fromkeys(tags, 1.0 / (step + 1)), step)

        return log

    return load


def histograms(count: int) -> Load:
    """Return a load of `count` scalars and a histogram of every weight of a small net."""
    random = np.random.default_rng(0)
    weights = {f"weights/{i}": random.standard_normal(shape, np.float32) for i, shape in enumerate(_SHAPES)}
    return _with(count, weights, lambda logger: logger.add_histogram)


def images(count: int) -> Load:
    """Return a load of `count` scalars and four colour images of 64 x 64 pixels."""
    return _with(count, {f"images/{i}": _picture(i) for i in range(_IMAGES)}, lambda logger: logger.add_image)


def _with(count: int, arrays: Mapping[str, Any], method: Callable[[Logger], Callable[..., object] | None]) -> Load:
    def load(logger: Logger) -> Log:
        log_scalars, add = scalars(count)(logger), method(logger)
        assert add is not None

        def log(step: int) -> None:
            log_scalars(step)
            for tag, array in arrays.items():
                add(tag, array, step)

        return log

    return load


def _picture(seed: int) -> npt.NDArray[np.uint8]:
    """Return smooth colours with a little noise, shape (3, side, side): neither the best nor the worst for PNG."""
    ramp = np.linspace(0, 200, _SIDE)
    smooth = np.stack([ramp[None] + 0 * ramp[:, None], ramp[:, None] + 0 * ramp[None], np.add.outer(ramp, ramp) / 2])
    noise = np.random.default_rng(seed).integers(0, 16, smooth.shape)
    return (smooth + noise).astype(np.uint8)
