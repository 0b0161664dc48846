"""Curves for `tbwriter plot` and `tail`: smoothed as TensorBoard smooths, and thinned so that any length fits."""

from __future__ import annotations

import math
from collections.abc import Iterable

BARS = "▁▂▃▄▅▆▇█"
_MOST_POINTS = 20_000


class Smoothing:
    """TensorBoard's: an exponential moving average without the bias of its begin (vz_line_chart2/line-chart.ts).

    Values that are not finite are passed on and change nothing; a constant curve stays as it is.
    """

    def __init__(self, weight: float) -> None:
        if not 0.0 <= weight < 1.0:
            raise ValueError(f"smoothing must be at least 0 and below 1, got {weight}")
        self._weight = weight
        self._last = 0.0
        self._count = 0

    def __call__(self, value: float) -> float:
        """Return the smoothed value that belongs to the next one of the curve."""
        if not math.isfinite(value):
            return value
        self._last = self._last * self._weight + (1.0 - self._weight) * value
        self._count += 1
        if self._weight == 0.0:
            return value
        return self._last / (1.0 - self._weight**self._count)


class Curve:
    """Points of a curve; beyond some thousand, of each four in a row the smallest and the largest."""

    def __init__(self) -> None:
        self.xs: list[float] = []
        self.ys: list[float] = []

    def add(self, x: float, y: float) -> None:
        """Add the next point."""
        self.xs.append(x)
        self.ys.append(y)
        if len(self.xs) >= 2 * _MOST_POINTS:
            self._halve()

    def _halve(self) -> None:
        kept = []
        for begin in range(0, len(self.xs), 4):
            four = range(begin, min(begin + 4, len(self.xs)))
            finite = [index for index in four if math.isfinite(self.ys[index])] or list(four)
            low = min(finite, key=self.ys.__getitem__)
            high = max(finite, key=self.ys.__getitem__)
            kept += sorted({low, high})
        self.xs = [self.xs[index] for index in kept]
        self.ys = [self.ys[index] for index in kept]


def sparkline(values: Iterable[float], width: int) -> str:
    """Return values as a line of `width` bars at most; the last ones where there are more. NaN is a gap."""
    shown = list(values)[-width:]
    finite = [value for value in shown if math.isfinite(value)]
    if not finite:
        return " " * len(shown)
    low, high = min(finite), max(finite)
    span = high - low
    if not 0.0 < span < math.inf:
        return "".join(BARS[0] if math.isfinite(value) else " " for value in shown)
    top = len(BARS) - 1  # multiplied last: the inverse of a small span is infinite
    return "".join(BARS[round((value - low) / span * top)] if math.isfinite(value) else " " for value in shown)
