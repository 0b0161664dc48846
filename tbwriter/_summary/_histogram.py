"""Histograms: the summary that waits, and what is checked and said about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._logger import get_logger
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._counting import RULES, Buckets, Edges, count, widened
from tbwriter._summary._values import as_argument, as_array
from tbwriter._summary._words import describe, shown

_log = get_logger(__name__)

COUNT_NAMES = ("nan_count", "inf_count")
"""Below the tag of a histogram: the scalars that say how many values were NaN, and infinite."""

PLUGIN = "histograms"
_MAX_BINS = 100_000


@dataclass(frozen=True)
class Histogram:
    """An array that waits to be counted."""

    tag: str
    array: npt.NDArray[Any]
    bins: str | int | Edges = "tensorflow"
    max_bins: int | None = None
    counts: bool = True
    """Whether the tags for the numbers of NaN and infinite values are free for them."""
    told: set[str] = field(default_factory=set, repr=False)
    """Tags that were told of values left out; shared by the histograms of one writer."""

    @classmethod
    def of(
        cls, tag: str, values: Any, *, bins: Any, max_bins: int | None, copy: bool, told: set[str], counts: bool = True
    ) -> Histogram:
        """Take an array-like of any shape and real dtype; refuse the rest.

        Raises:
            TypeError: complex, text or objects. ValueError: edges that do not rise.
        """
        array = as_array(values, tag)
        kept = np.array(array) if copy else array
        return cls(tag, kept, _check_bins(tag, bins), _check_max_bins(tag, max_bins), counts, told)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.array.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Count, and return the histogram and, where there were any, the numbers of NaN and infinite values."""
        buckets = count(self.array, self.bins, self.max_bins)
        self._tell(buckets)
        out = [_value(self.tag, buckets.rows, first)] if len(buckets.rows) else []
        for name, number in zip(COUNT_NAMES, (buckets.nan, buckets.inf), strict=True):
            if number and self.counts:
                out.append(pb.Summary.Value(tag=f"{self.tag}/{name}", simple_value=number))
        return out

    def _tell(self, buckets: Buckets) -> None:
        counted = int(buckets.rows[:, 2].sum())
        if self.tag in self.told or (counted and not buckets.nan and not buckets.inf):
            return
        self.told.add(self.tag)
        _log.warning(
            "histogram %s: %s of %d values are counted%s. Said once for this tag",
            shown(self.tag),
            counted or "none",
            self.array.size,
            f": {buckets.nan} are NaN, {buckets.inf} infinite" if buckets.nan or buckets.inf else "",
        )


@dataclass(frozen=True)
class HistogramRaw:
    """Buckets that were counted elsewhere."""

    tag: str
    rows: npt.NDArray[np.float64]
    """[k, 3]: left, right, count."""

    @classmethod
    def of(
        cls,
        tag: str,
        *,
        minimum: Any,
        maximum: Any,
        unshown: Sequence[Any],
        limits: Any,
        counts: Any,
        told: set[str],
    ) -> HistogramRaw:
        """Take buckets by their right edges, as torch and tensorboardX do.

        Args:
            tag: the stored tag.
            minimum: the left edge of the first bucket that holds something; where it is not finite, as after a NaN,
                the edges say it.
            maximum: the right edge of the last one; likewise.
            unshown: other statistics, of which the stored form has none: they are checked to be numbers.
            limits: rising right edges of shape [k].
            counts: finite and not negative, of shape [k].
            told: tags that were told of such a minimum or maximum, or of no values at all.

        Raises:
            TypeError: no numbers. ValueError: they do not fit together.
        """
        edges = as_array(limits, tag).astype(np.float64)
        held = as_array(counts, tag).astype(np.float64)
        if edges.ndim != 1 or edges.shape != held.shape:
            raise ValueError(
                f"tag {shown(tag)}: bucket_limits and bucket_counts must be of one shape (k,), got {edges.shape} and "
                f"{held.shape}; of the edges that numpy.histogram returns, leave out the first"
            )
        if np.isnan(edges).any() or not (edges[1:] > edges[:-1]).all():
            raise ValueError(f"tag {shown(tag)}: bucket_limits must rise, got {describe(limits)}")
        if not np.isfinite(held).all() or (held < 0).any():
            raise ValueError(f"tag {shown(tag)}: bucket_counts must be finite and not negative, got {describe(counts)}")
        names = ("min", "max", "num", "sum", "sum_squares")
        low, high, *_ = map(as_argument, (minimum, maximum, *unshown), [tag] * len(names), names)
        used = np.flatnonzero(held)
        if not len(used):
            if tag not in told:
                told.add(tag)
                _log.warning("histogram %s: all counts are 0, nothing is added. Said once for this tag", shown(tag))
            return cls(tag, np.empty((0, 3)))
        begin, end = int(used[0]), int(used[-1]) + 1
        # The outer edges are the data's own, as TensorBoard reads its older form.
        inner = edges[begin : end - 1]
        if not (np.isfinite(low) and np.isfinite(high)):
            if tag not in told:
                told.add(tag)
                _log.warning(
                    "tag %s: min and max are not finite (%s and %s): its histograms end where their buckets do. "
                    "Said once for this tag", shown(tag), low, high
                )  # fmt: skip
            low, high = _ends(low, high, edges, begin, end)
        if low > high:
            raise ValueError(f"tag {shown(tag)}: min and max must rise, got {low} and {high}")
        if len(inner) and not low <= inner[0] <= inner[-1] <= high:
            raise ValueError(
                f"tag {shown(tag)}: min and max must enclose where buckets that hold values meet, {inner[0]} to "
                f"{inner[-1]}, got {low} and {high}"
            )
        if not len(inner):
            low, high = widened(low, high)
        outline = np.concatenate([[low], inner, [high]])
        return cls(tag, np.stack([outline[:-1], outline[1:], held[begin:end]], axis=1))

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.rows.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value, or none for no values."""
        return [_value(self.tag, self.rows, first)] if len(self.rows) else []


def _ends(low: float, high: float, edges: Edges, begin: int, end: int) -> tuple[float, float]:
    """Return the outer edges of the buckets from `begin` to before `end`, in place of `low` or `high` if not finite.

    Where the edges do not say it either, as before the first one or at an infinite last one, the outer bucket is as
    wide as one of its neighbours.
    """
    known = np.abs(edges) < np.finfo(np.float64).max  # which ends TensorFlow's own buckets
    step = float(np.diff(edges[known][:2]).sum()) or 1.0
    if not np.isfinite(low):
        if begin and known[begin - 1]:
            low = float(edges[begin - 1])
        else:
            low = (float(edges[begin]) if known[begin] else high if np.isfinite(high) else 0.0) - step
    if not np.isfinite(high):
        high = float(edges[end - 1]) if known[end - 1] else max([low, *edges[begin : end - 1].tolist()]) + step
    return low, high


def _value(tag: str, rows: npt.NDArray[np.float64], first: bool) -> pb.Summary.Value:
    value = pb.Summary.Value(tag=tag, tensor=_event.tensor(rows))
    if first:
        value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR))
    return value


def _check_bins(tag: str, bins: Any) -> str | int | Edges:
    if isinstance(bins, str):
        name: str = str.__str__(bins)
        if name not in ("tensorflow", *RULES):
            known = f"'tensorflow' or one of {', '.join(RULES)}"
            raise ValueError(f"tag {shown(tag)}: bins must be {known}, got {describe(bins)}")
        return name
    if isinstance(bins, (int, np.integer)):
        if not 1 <= bins <= _MAX_BINS:
            raise ValueError(f"tag {shown(tag)}: bins must be from 1 to {_MAX_BINS}, got {describe(int(bins))}")
        return int(bins)
    wrong = f"tag {shown(tag)}: bin edges must be at least two finite, rising numbers, got {describe(bins)}"
    try:
        edges = np.array(as_array(bins, tag), np.float64)
    except TypeError as exc:
        raise ValueError(wrong) from exc
    if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all() or not (edges[1:] > edges[:-1]).all():
        raise ValueError(wrong)
    return edges


def _check_max_bins(tag: str, max_bins: Any) -> int | None:
    if max_bins is None:
        return None
    if isinstance(max_bins, bool) or not isinstance(max_bins, (int, np.integer)) or max_bins < 1:
        raise ValueError(f"tag {shown(tag)}: max_bins must be an integer from 1 on, got {describe(max_bins)}")
    return int(max_bins)
