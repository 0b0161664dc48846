"""The metrics of an evaluation as scalars."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from msbridge._device import is_tensor, to_float32
from msbridge.collectors._base import Collector

_MOST_CLASSES = 100  # a metric per class becomes one curve per class, up to here


class EvalMetrics(Collector):
    """`val/<metric>` of an evaluation, and `val/loss` of `Model.fit`; of vectors `val/<metric>/0` and so on.

    What is neither number nor vector is left out.
    """

    def evaluate(self, metrics: Mapping[str, Any], results: Mapping[str, Any]) -> Mapping[str, float]:
        """Give the metrics."""
        found: dict[str, float] = {}
        if "eval_loss" in results:
            found |= _scalars("val/loss", results["eval_loss"])
        for name, value in metrics.items():
            found |= _scalars(f"val/{name}", value)
        return found


def _scalars(tag: str, value: Any) -> dict[str, float]:
    # A tensor by its own host read: metrics are results of MindSpore's `eval`, after the last device step.
    try:
        array = np.asarray(to_float32(value).asnumpy() if is_tensor(value) else value)
    except Exception:  # lists of unequal lists, tensors of text: no vector
        return {}
    if array.dtype.kind not in "biuf":
        return {}
    if array.size == 1:
        return {tag: float(array.reshape(()))}
    if array.ndim == 1 and array.size <= _MOST_CLASSES:
        return {f"{tag}/{index}": float(item) for index, item in enumerate(array)}
    return {}
