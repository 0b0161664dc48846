"""Precision-recall curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._logger import get_logger
from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._values import as_array
from tbwriter._summary._words import describe, shown

_log = get_logger(__name__)

PLUGIN = "pr_curves"
# Where nothing is predicted, precision is 0 instead of 0/0; TensorBoard's own value.
_LEAST_COUNT = 1e-7
_MAX_THRESHOLDS = 100_000
_FLOAT32_MAX = float(np.finfo(np.float32).max)


_ROWS = (
    "true_positive_counts",
    "false_positive_counts",
    "true_negative_counts",
    "false_negative_counts",
    "precision",
    "recall",
)


@dataclass(frozen=True)
class PrCurve:
    """Predictions that wait to be compared with their labels."""

    tag: str
    labels: npt.NDArray[Any]
    predictions: npt.NDArray[Any]
    weights: npt.NDArray[Any] | None
    """As `labels` and `predictions` of shape [n]."""
    num_thresholds: int
    told: set[str] = field(default_factory=set, repr=False)
    """Tags that were told of values left out; shared by the curves of one writer."""

    @classmethod
    def of(
        cls, tag: str, labels: Any, predictions: Any, *, num_thresholds: Any, weights: Any, copy: bool, told: set[str]
    ) -> PrCurve:
        """Take labels and predictions of one shape.

        Raises:
            TypeError: no arrays of real numbers. ValueError: the shapes differ, labels beyond 0 to 1, or fewer than
                two thresholds.
        """
        truth, scores = as_array(labels, tag), as_array(predictions, tag)
        number = as_thresholds(tag, num_thresholds)
        if truth.shape != scores.shape:
            raise ValueError(
                f"tag {shown(tag)}: labels and predictions must have one shape, "
                f"got {describe(labels)} and {describe(predictions)}"
            )
        if truth.size and (np.fmin.reduce(truth, axis=None) < 0 or np.fmax.reduce(truth, axis=None) > 1):
            raise ValueError(f"tag {shown(tag)}: labels must be True or False, or from 0 to 1, got {describe(labels)}")
        factors = None
        if weights is not None:
            factors = as_array(weights, tag)
            try:
                factors = np.broadcast_to(factors, truth.shape).reshape(-1)
            except ValueError as exc:
                wanted = f"want a number or the shape of labels, {truth.shape}"
                raise ValueError(f"tag {shown(tag)}: weights are {describe(weights)}, {wanted}") from exc
            factors = np.array(factors) if copy else factors
            # A count that is infinite as float32 is an error of TensorBoard's for the whole tag.
            with np.errstate(all="ignore"):
                total = float(np.abs(factors[np.isfinite(factors)].astype(np.float64)).sum())
            if total > _FLOAT32_MAX:
                raise ValueError(
                    f"tag {shown(tag)}: weights must sum up within float32, got {describe(weights)}: {total:.3g}"
                )
        truth, scores = (np.array(array) if copy else array for array in (truth.reshape(-1), scores.reshape(-1)))
        return cls(tag, truth, scores, factors, number, told)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.labels.nbytes + self.predictions.nbytes + (0 if self.weights is None else self.weights.nbytes))

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Count, and return the one Value; none where no prediction is a number."""
        known = np.isfinite(self.predictions) & np.isfinite(self.labels)
        if self.weights is not None:
            known &= np.isfinite(self.weights)
        labels, scores = self.labels[known].astype(np.float64), self.predictions[known]
        weights = 1.0 if self.weights is None else self.weights[known].astype(np.float64)
        beyond = int(np.count_nonzero((scores < 0) | (scores > 1)))
        self._tell(len(known) - len(scores), beyond)
        if not len(scores):
            return []
        with np.errstate(all="ignore"):  # huge weights: what is beyond float64 is infinite
            data = _curve(labels, np.clip(scores, 0, 1), weights, self.num_thresholds)
        return [value(self.tag, data, first)]

    def _tell(self, unknown: int, beyond: int) -> None:
        if self.tag not in self.told and (unknown or beyond or not len(self.labels)):
            self.told.add(self.tag)
            _log.warning(
                "PR curve %s: of %d predictions %d are left out, being no numbers, and %d lie beyond 0 to 1 and are "
                "taken as 0 or 1. Said once for this tag",
                shown(self.tag),
                len(self.labels),
                unknown,
                beyond,
            )


def as_thresholds(tag: str, number: Any) -> int:
    """Return a number of thresholds.

    Raises:
        TypeError, ValueError: no integer from 2 on.
    """
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"tag {shown(tag)}: num_thresholds must be an integer, got {describe(number)}")
    if not 2 <= number <= _MAX_THRESHOLDS:
        raise ValueError(
            f"tag {shown(tag)}: num_thresholds must be from 2 to {_MAX_THRESHOLDS}, got {describe(int(number))}"
        )
    return int(number)


def _curve(labels: npt.NDArray[Any], scores: npt.NDArray[Any], weights: Any, number: int) -> npt.NDArray[np.float64]:
    """Return tp, fp, tn, fn, precision and recall at `number` equally spaced thresholds from 0 to 1, [6, number]."""
    # In the predictions' own precision, as TensorBoard does it; half floats hold too few digits for that.
    scores = scores.astype(np.float64 if scores.dtype.itemsize > 4 or scores.dtype.kind != "f" else np.float32)
    bucket = (scores * scores.dtype.type(number - 1)).astype(np.int64)
    positive = np.bincount(bucket, labels * weights, number)
    negative = np.bincount(bucket, (1.0 - labels) * weights, number)
    tp = np.cumsum(positive[::-1])[::-1]
    fp = np.cumsum(negative[::-1])[::-1]
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(_LEAST_COUNT, tp + fp)
    recall = tp / np.maximum(_LEAST_COUNT, tp + fn)
    return np.stack([tp, fp, tn, fn, precision, recall])


@dataclass(frozen=True)
class PrCurveRaw:
    """A curve that was computed elsewhere."""

    tag: str
    data: npt.NDArray[np.float64]
    """tp, fp, tn, fn, precision and recall, [6, thresholds]."""

    @classmethod
    def of(cls, tag: str, rows: Sequence[Any]) -> PrCurveRaw:
        """Take six rows of one length. Precision and recall may be NaN, 0/0.

        Raises:
            TypeError: no arrays of real numbers. ValueError: lengths differ, or counts are not finite as float32.
        """
        arrays = [as_array(row, tag).reshape(-1) for row in rows]
        for name, array, row in zip(_ROWS, arrays, rows, strict=True):
            # TensorBoard makes integers of the counts, and fails for the whole tag where that cannot be done.
            wrong = np.isinf(array) if name in ("precision", "recall") else ~np.isfinite(array)
            if wrong.any() or (np.abs(array.astype(np.float64)) > _FLOAT32_MAX).any():
                raise ValueError(f"tag {shown(tag)}: {name} must be finite and within float32, got {describe(row)}")
        sizes = [len(array) for array in arrays]
        if len({*sizes}) > 1 or sizes[0] < 2:
            raise ValueError(f"tag {shown(tag)}: the six rows of a curve must be of one length from 2 on, got {sizes}")
        return cls(tag, np.stack([array.astype(np.float64) for array in arrays]))

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.data.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value."""
        return [value(self.tag, self.data, first)]


def value(tag: str, data: npt.NDArray[np.float64], first: bool) -> pb.Summary.Value:
    """Return the Value of a curve of shape [6, thresholds]."""
    with np.errstate(all="ignore"):
        out = pb.Summary.Value(tag=tag, tensor=_event.tensor(data.astype(np.float32)))
    if first:
        content = plugins.PrCurvePluginData(num_thresholds=data.shape[1]).SerializeToString()
        out.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR, content=content))
    return out
