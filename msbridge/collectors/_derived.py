"""Curves made of other curves, on the host."""

from collections.abc import Mapping

import numpy as np

from msbridge._checks import checked_number
from msbridge._tape import Series
from msbridge.collectors._base import Collector


class MovingAverage(Collector):
    """`<tag>/average`: the exponential moving average of any scalar that this callback writes, from its first value on.

    The weight of a value falls by `decay` with each later one; the average is divided by the sum of weights, so that it
    begins with the first value itself. Values that are not finite are left out. At the points of the scalar itself.

    Args:
        tag: the scalar's.
        decay: from 0 to below 1.
    """

    def __init__(self, tag: str, decay: float = 0.98) -> None:
        super().__init__()
        if not isinstance(tag, str):
            raise TypeError(f"MovingAverage: tag must be a text, got {tag!r}")
        self.tag, self._decay = tag, checked_number("MovingAverage: decay", decay, least=0)
        if self._decay >= 1:
            raise ValueError(f"MovingAverage: decay must be below 1, got {decay!r}")
        self._sum = self._weight = 0.0

    def derive(self, found: Mapping[str, Series]) -> Mapping[str, Series]:
        """Average what this transfer brought."""
        if self.tag not in found:
            return {}
        series, averages = found[self.tag], []
        for value in series.values.tolist():
            if np.isfinite(value):
                self._sum = self._decay * self._sum + (1 - self._decay) * value
                self._weight = self._decay * self._weight + (1 - self._decay)
            averages.append(self._sum / self._weight if self._weight else np.nan)
        return {f"{self.tag}/average": Series(series.steps, np.array(averages, np.float32))}
