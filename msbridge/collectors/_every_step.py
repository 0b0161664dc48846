"""A number of every step, on the device or not."""

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np

from msbridge._device import Strip, copy_scalar, is_tensor, mean
from msbridge._tape import Series
from msbridge.collectors._base import History


class EveryStep:
    """Keep one number a step until the transfer; the mean where there are several."""

    def __init__(self) -> None:
        self._strip = Strip()
        self._numbers: list[tuple[int, float]] = []

    def __bool__(self) -> bool:
        return bool(self._numbers or self._strip)

    def add(self, step: int, value: Any) -> None:
        """Keep a number, a tensor of any size, or a list of them."""
        # First what nearly every step gives, with the fewest questions: each costs microseconds.
        if type(value) is ms.Tensor and value.size == 1:
            self._strip.add(step, value)
            return
        value = copy_scalar(value) if isinstance(value, ms.Parameter) and value.size == 1 else mean(value)
        if is_tensor(value):
            self._strip.add(step, value)
        else:
            self._numbers.append((step, value))

    def stage(self, history: History) -> Callable[[], Series]:
        """Let what is kept join the transfer, and begin anew."""
        staged = self._strip.stage(history.transfer)
        numbers, self._numbers = self._numbers, []

        def read() -> Series:
            steps, values = staged()
            both = [*zip(steps, values.tolist(), strict=True), *numbers]
            return Series(np.array([step for step, _ in both], np.int64), np.array([v for _, v in both], np.float32))

        return read
