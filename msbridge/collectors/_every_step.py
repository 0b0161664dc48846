"""A number of every step, on the device or not."""

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np

from msbridge._device import Strip, copy_scalar, is_tensor, mean, to_scalar
from msbridge._tape import Series
from msbridge.collectors._base import History


class EveryStep:
    """Keep one number a step until the transfer; the mean where there are several."""

    def __init__(self) -> None:
        self._strip = Strip()
        self._numbers: list[tuple[int, float]] = []
        # A result of PyNative mode may hold on to what its gradient needs, so it is copied and let go.
        self._copies = ms.get_context("mode") != ms.GRAPH_MODE

    def add(self, step: int, value: Any) -> None:
        """Keep a number, a tensor of any size, or a list of them."""
        if not is_tensor(value) or value.size != 1:
            value = mean(value)
        if not is_tensor(value):
            self._numbers.append((step, value))
        else:
            copies = self._copies or isinstance(value, ms.Parameter)
            self._strip.add(step, copy_scalar(value) if copies else to_scalar(value))

    def stage(self, history: History) -> Callable[[], Series]:
        """Let what is kept join the transfer, and begin anew."""
        staged = self._strip.stage(history.transfer)
        numbers, self._numbers = self._numbers, []

        def read() -> Series:
            steps, values = staged()
            both = [*zip(steps, values.tolist(), strict=True), *numbers]
            return Series(np.array([step for step, _ in both], np.int64), np.array([v for _, v in both], np.float32))

        return read
