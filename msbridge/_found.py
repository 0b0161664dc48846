"""The scalars that a transfer brought, for rules and for curves of curves."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from msbridge._tape import Series


class Found:
    """The scalars of a transfer, gathered where somebody wants to see them."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._points: dict[str, dict[int, float]] = {}
        self._whole: dict[str, Series] = {}

    def extend(self, tag: str, series: Series) -> None:
        """Add a curve's points."""
        if self._wanted:
            self._whole[tag] = series

    def add_all(self, metrics: Mapping[str, Any], step: int) -> None:
        """Add one step's scalars."""
        if self._wanted:
            for tag, value in metrics.items():
                self._points.setdefault(tag, {})[step] = float(value)

    def series(self) -> dict[str, Series]:
        """Give everything by tag."""
        made = {
            tag: Series(np.array(list(points), np.int64), np.array(list(points.values()), np.float32))
            for tag, points in self._points.items()
        }
        return made | self._whole
