"""The metrics of an evaluation as scalars."""

from collections.abc import Mapping
from typing import Any

import numpy as np

_MOST_CLASSES = 100  # a metric per class becomes one curve per class, up to here


def metric_scalars(metrics: Mapping[str, Any] | None, eval_results: Mapping[str, Any] | None) -> dict[str, float]:
    """Name the metrics `val/<metric>`; a vector becomes `val/<metric>/0` ..., anything else is left out.

    `eval_results` is what `Model.fit` gives besides: the validation loss under "eval_loss", here `val/loss`.
    """
    found: dict[str, float] = {}
    if eval_results and "eval_loss" in eval_results:
        found |= _scalars("val/loss", eval_results["eval_loss"])
    for name, value in (metrics or {}).items():
        found |= _scalars(f"val/{name}", value)
    return found


def _scalars(tag: str, value: Any) -> dict[str, float]:
    # A tensor by its own host read: metrics are results of MindSpore's `eval`, after the last device step.
    array = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
    if array.dtype.kind not in "biuf":
        return {}
    if array.size == 1:
        return {tag: float(array.reshape(()))}
    if array.ndim == 1 and array.size <= _MOST_CLASSES:
        return {f"{tag}/{index}": float(item) for index, item in enumerate(array)}
    return {}
