"""Histograms: every finite value of an array of any size and dtype, counted into at most 64 buckets.

Floats are counted by their bits: sign, exponent and the leading mantissa bits index a `bincount`, in which cells
follow each other in the order of the values. That costs one pass, keeps 1e-30 and 1e30 apart, and needs no range
beforehand. The cells, each at most 1/32 of its values wide, are then merged to buckets of about equal width
between the data's own minimum and maximum. Data in so narrow a range that the cells are too coarse for it are
counted a second time, by equal widths.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._values import as_array

_log = logging.getLogger(__name__)

PLUGIN = "histograms"
MAX_BUCKETS = 64
# So many elements are widened at a time: for float32 the working set stays in the second-level cache; for float64
# one pass must outweigh its 1 MiB of cells. The extra memory is at most 6 MiB.
_CHUNK32 = 1 << 16
_CHUNK64 = 1 << 18
# With fewer cells than this between minimum and maximum, cells are no base for 64 buckets.
_MIN_CELLS = 512
_MANTISSA_BITS = 5

Edges = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


class Buckets(NamedTuple):
    """A histogram.

    Attributes:
        rows: float64 of shape [k, 3], k <= 64 by default: left, right, count; contiguous and ascending.
        nan: how many values were NaN.
        inf: how many were infinite.
    """

    rows: npt.NDArray[np.float64]
    nan: int
    inf: int


@dataclass(frozen=True)
class Histogram:
    """An array that waits to be counted."""

    tag: str
    array: npt.NDArray[Any]
    bins: str | int | Edges = "tensorflow"
    max_bins: int | None = None
    told: set[str] = field(default_factory=set, repr=False)
    """Tags that were told of values left out; shared by the histograms of one writer."""

    @classmethod
    def of(cls, tag: str, values: Any, *, bins: Any, max_bins: int | None, copy: bool, told: set[str]) -> Histogram:
        """Take an array-like of any shape and real dtype; refuse the rest.

        Raises:
            TypeError: complex, text or objects. ValueError: edges that do not rise.
        """
        array = as_array(values, tag)
        return cls(tag, np.array(array) if copy else array, _check_bins(tag, bins), max_bins, told)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.array.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Count, and return the histogram and, where there were any, the numbers of NaN and infinite values."""
        buckets = count(self.array, self.bins, self.max_bins)
        self._tell(buckets)
        out = []
        if len(buckets.rows):
            value = pb.Summary.Value(tag=self.tag, tensor=_event.doubles(buckets.rows))
            if first:
                value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR))
            out.append(value)
        for name, number in (("nan_count", buckets.nan), ("inf_count", buckets.inf)):
            if number:
                out.append(pb.Summary.Value(tag=f"{self.tag}/{name}", simple_value=number))
        return out

    def _tell(self, buckets: Buckets) -> None:
        if self.tag in self.told or (len(buckets.rows) and not buckets.nan and not buckets.inf):
            return
        self.told.add(self.tag)
        left_out = buckets.nan + buckets.inf
        _log.warning(
            "histogram %r: %s of %d values are counted%s. Said once for this tag",
            self.tag,
            "none" if not len(buckets.rows) else self.array.size - left_out,
            self.array.size,
            f": {buckets.nan} are NaN, {buckets.inf} infinite" if left_out else "",
        )


def _check_bins(tag: str, bins: Any) -> str | int | Edges:
    if isinstance(bins, str):
        return bins
    if isinstance(bins, (int, np.integer)):
        if bins < 1:
            raise ValueError(f"tag {tag!r}: bins must be at least 1, got {bins}")
        return int(bins)
    edges = np.asarray(bins, np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ValueError(f"tag {tag!r}: bin edges must be at least two finite, rising numbers, got {bins!r:.80}")
    return edges


def count(array: npt.NDArray[Any], bins: str | int | Edges = "tensorflow", max_bins: int | None = None) -> Buckets:
    """Count the finite values of `array`.

    Args:
        array: of any shape; bool, integers, float16, float32 or float64.
        bins: "tensorflow" for the default described above, the number of equal bins, edges, or the name of a rule
            of `numpy.histogram_bin_edges`. With edges, values outside of them are left out.
        max_bins: merge neighbours until at most this many are left.
    """
    flat = array.reshape(-1)
    if not flat.size:
        return Buckets(np.empty((0, 3)), 0, 0)
    cells = _Cells.of(flat)
    if cells.minimum > cells.maximum:
        return Buckets(np.empty((0, 3)), cells.nan, cells.inf)
    edges: Edges
    if isinstance(bins, str) and bins == "tensorflow":
        edges, counts = _default(flat, cells)
    elif isinstance(bins, np.ndarray):
        edges, counts = bins, _by_edges(flat, bins)
    else:
        low, high = _widened(cells.minimum, cells.maximum)
        if isinstance(bins, str):
            finite = np.concatenate([chunk[np.isfinite(chunk)] for chunk in _chunks(flat)])
            edges = np.histogram_bin_edges(finite, bins, range=(low, high))
        else:
            edges = np.linspace(low, high, bins + 1)
        counts = _by_edges(flat, edges)
    if max_bins is not None and len(counts) > max_bins:
        starts = np.unique(np.linspace(0, len(counts), max_bins, endpoint=False, dtype=np.int64))
        edges, counts = edges[np.append(starts, len(counts))], np.add.reduceat(counts, starts)
    return Buckets(np.stack([edges[:-1], edges[1:], counts.astype(np.float64)], axis=1), cells.nan, cells.inf)


def _chunks(flat: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield `flat` in pieces, as float32 or float64: whichever holds its values exactly."""
    narrow = flat.dtype.itemsize <= 2 or flat.dtype == np.float32
    size = _CHUNK32 if narrow else _CHUNK64
    for begin in range(0, flat.size, size):
        yield flat[begin : begin + size].astype(np.float32 if narrow else np.float64, copy=False)


class _Cells(NamedTuple):
    """Counts by the leading bits of floats, in the order of the values."""

    counts: Counts
    dtype: np.dtype[Any]
    minimum: float
    maximum: float
    nan: int
    inf: int

    @classmethod
    def of(cls, flat: npt.NDArray[Any]) -> _Cells:
        total: Counts | None = None
        minimum, maximum, nan, inf = np.inf, -np.inf, 0, 0
        dtype = np.dtype(np.float32)
        for chunk in _chunks(flat):
            dtype = chunk.dtype
            low, high = float(chunk.min()), float(chunk.max())
            if not (-np.inf < low and high < np.inf):  # also when either is NaN
                finite = np.isfinite(chunk)
                bad = chunk[~finite]
                nan += int(np.isnan(bad).sum())
                inf += int(np.isinf(bad).sum())
                chunk = chunk[finite]  # noqa: PLW2901
                if not chunk.size:
                    continue
                low, high = float(chunk.min()), float(chunk.max())
            minimum, maximum = min(minimum, low), max(maximum, high)
            unsigned, shift, cells = _bits(dtype)
            found = np.bincount((chunk.view(unsigned) >> unsigned(shift)).astype(np.intp), minlength=cells)
            total = found if total is None else total + found
        if total is None:
            total = np.zeros(0, np.int64)
        half = len(total) // 2
        # Bit patterns of negative floats rise with the magnitude: turn that half round and put it first.
        ordered = np.concatenate([total[half:][::-1], total[:half]])
        return cls(ordered, dtype, minimum, maximum, nan, inf)

    def lower_edges(self, index: npt.NDArray[np.int64]) -> Edges:
        """Return the lower edge of each cell in `index`, given in value order; float64."""
        unsigned, shift, cells = _bits(self.dtype)
        half = cells // 2
        # A negative cell's lower edge is the magnitude at which the next larger cell begins.
        magnitude = np.where(index < half, half - index, index - half).astype(unsigned) << unsigned(shift)
        with np.errstate(invalid="ignore"):
            edges: Edges = magnitude.view(self.dtype).astype(np.float64)
        edges[~np.isfinite(edges)] = float(np.finfo(self.dtype).max)
        edges[index < half] *= -1.0
        return edges


def _bits(dtype: np.dtype[Any]) -> tuple[Any, int, int]:
    """Return the unsigned integer type, the shift that leaves sign, exponent and leading mantissa, and the cells."""
    info = np.finfo(dtype)
    bits = 1 + info.nexp + _MANTISSA_BITS
    unsigned = np.uint32 if dtype.itemsize == 4 else np.uint64
    return unsigned, dtype.itemsize * 8 - bits, 1 << bits


def _default(flat: npt.NDArray[Any], cells: _Cells) -> tuple[Edges, Counts]:
    low, high = cells.minimum, cells.maximum
    used = np.flatnonzero(cells.counts)
    if low == high:
        # One value: TensorBoard draws a bucket of no width badly, its own writer makes it 1 wide.
        left, right = _widened(low, high)
        return np.array([left, right]), np.array([cells.counts.sum()])
    first, last = int(used[0]), int(used[-1])
    if last - first < _MIN_CELLS:
        edges = _spread(low, high, MAX_BUCKETS)
        return edges, _by_width(flat, edges)
    # Cut where a cell's lower edge is the nearest to each of the equally spaced edges.
    index = np.arange(first, last + 1)
    lower = cells.lower_edges(index)
    cut = np.unique(np.searchsorted(lower, _spread(low, high, MAX_BUCKETS)[1:-1]))
    cut = cut[(cut > 0) & (cut < len(index))]
    counts = np.add.reduceat(cells.counts[first : last + 1], np.concatenate([[0], cut]))
    return np.concatenate([[low], lower[cut], [high]]), counts


def _spread(low: float, high: float, number: int) -> Edges:
    """Return the rising edges of `number` equal buckets; fewer where float64 cannot tell them apart."""
    fraction = np.linspace(0.0, 1.0, number + 1)
    edges = low * (1.0 - fraction) + high * fraction  # high - low may overflow
    edges[0], edges[-1] = low, high
    return np.unique(edges)


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return low and high, moved apart by 1 where they are equal, or by what float64 can tell apart."""
    if low < high:
        return low, high
    half = max(0.5, abs(low) * 1e-6)
    limit = float(np.finfo(np.float64).max)
    return max(low - half, -limit), min(high + half, limit)


def _by_width(flat: npt.NDArray[Any], edges: Edges) -> Counts:
    """Count by equally wide buckets that span all finite values; one 1 ulp from an edge may fall on either side."""
    number, low, high = len(edges) - 1, edges[0], edges[-1]
    scale = number / (high - low)
    if not np.isfinite(scale) or scale == 0.0:
        return _by_edges(flat, edges)
    total = np.zeros(number, np.int64)
    for chunk in _chunks(flat):
        position = (chunk.astype(np.float64) - low) * scale
        position = position[np.isfinite(position)]
        total += np.bincount(np.minimum(position.astype(np.int64), number - 1), minlength=number)
    return total


def _by_edges(flat: npt.NDArray[Any], edges: Edges) -> Counts:
    """Count by edges, the last bucket closed on both sides; NaN, infinite values and values outside are left out."""
    total = np.zeros(len(edges) - 1, np.int64)
    for chunk in _chunks(flat):
        wide = chunk.astype(np.float64)
        inside = wide[(wide >= edges[0]) & (wide <= edges[-1])]
        index = np.searchsorted(edges, inside, side="right") - 1
        index[index == len(total)] -= 1
        total += np.bincount(index, minlength=len(total))
    return total
