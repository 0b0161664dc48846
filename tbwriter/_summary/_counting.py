"""Count the values of an array into buckets: every finite value, of any size and dtype.

Floats are counted by their bits: sign, exponent and the leading mantissa bits index a `bincount`, in which cells
follow each other in the order of the values. That costs one pass, keeps 1e-30 and 1e30 apart, and needs no range
beforehand. The cells, each at most 1/32 of its values wide, are then merged to buckets of about equal width
between the data's own minimum and maximum. Data in so narrow a range that the cells are too coarse for it are
counted a second time, by equal widths.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MAX_BUCKETS = 64
# So many elements are widened at a time: for float32 the working set stays in the second-level cache; for float64
# one pass must outweigh its 1 MiB of cells. The extra memory is at most 6 MiB.
_CHUNK32 = 1 << 16
_CHUNK64 = 1 << 18
# With fewer cells than this between minimum and maximum, cells are no base for 64 buckets.
_MIN_CELLS = 512
_MANTISSA_BITS = 5
RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")
_MAX_RULE_BUCKETS = 10_000

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


def count(array: npt.NDArray[Any], bins: str | int | Edges = "tensorflow", max_bins: int | None = None) -> Buckets:
    """Count the finite values of `array`.

    Args:
        array: of any shape and layout; bool, integers, float16, float32 or float64.
        bins: "tensorflow" for the default described above, the number of equal bins, edges, or the name of a rule
            of `numpy.histogram_bin_edges`. With edges, values outside of them are left out.
        max_bins: merge neighbours until at most this many are left.
    """
    with np.errstate(all="ignore"):
        cells = _Cells.of(array)
        if cells.minimum > cells.maximum:
            return Buckets(np.empty((0, 3)), cells.nan, cells.inf)
        edges: Edges
        if isinstance(bins, np.ndarray):
            edges, counts = bins, _by_edges(array, bins)
        elif bins == "tensorflow":
            edges, counts = _default(array, cells)
        else:
            low, high = widened(cells.minimum, cells.maximum)
            edges = _spread(low, high, bins) if isinstance(bins, int) else _by_rule(array, bins, low, high)
            counts = _by_width(array, edges)
        if max_bins is not None and len(counts) > max_bins:
            starts = np.unique(np.linspace(0, len(counts), max_bins, endpoint=False, dtype=np.int64))
            edges, counts = edges[np.append(starts, len(counts))], np.add.reduceat(counts, starts)
    return Buckets(np.stack([edges[:-1], edges[1:], counts.astype(np.float64)], axis=1), cells.nan, cells.inf)


def _chunks(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the values of `array` in pieces, as float32 or float64: whichever holds them exactly. Order is lost."""
    narrow = array.dtype.itemsize <= 2 or (array.dtype.kind == "f" and array.dtype.itemsize == 4)
    size = _CHUNK32 if narrow else _CHUNK64
    dtype = np.float32 if narrow else np.float64
    if array.flags.forc:
        flat = array.ravel(order="K")  # no copy
        for begin in range(0, flat.size, size):
            yield flat[begin : begin + size].astype(dtype, copy=False)
    else:
        with np.nditer(array, ["external_loop", "buffered", "zerosize_ok"], order="K", buffersize=size) as pieces:
            for piece in pieces:
                yield np.asarray(piece).astype(dtype, copy=False)


class _Cells(NamedTuple):
    """Counts by the leading bits of floats, in the order of the values."""

    counts: Counts
    dtype: np.dtype[Any]
    minimum: float
    maximum: float
    nan: int
    inf: int

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> _Cells:
        total: Counts | None = None
        bits, index = np.empty(0, np.uint32), np.empty(0, np.intp)
        minimum, maximum, nan, inf = np.inf, -np.inf, 0, 0
        dtype = np.dtype(np.float32)
        for chunk in _chunks(array):
            if not chunk.size:
                continue
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
            if total is None:
                total = np.zeros(cells, np.int64)
            size = chunk.size
            if size > len(index):
                # The same memory for all chunks stays in the cache.
                bits, index = np.empty(size, unsigned), np.empty(size, np.intp)
            np.right_shift(chunk.view(unsigned), unsigned(shift), out=bits[:size])
            np.copyto(index[:size], bits[:size], casting="unsafe")
            total += np.bincount(index[:size], minlength=cells)
        if total is None:
            total = np.zeros(0, np.int64)
        half = len(total) // 2
        # Bit patterns of negative floats rise with the magnitude: turn that half round and put it first.
        ordered = np.concatenate([total[half:][::-1], total[:half]])
        return cls(ordered, dtype, minimum, maximum, nan, inf)

    def lower_edges(self, index: npt.NDArray[np.int64]) -> Edges:
        """Return the least value of each cell in `index`, given in value order; float64."""
        unsigned, shift, cells = _bits(self.dtype)
        half = cells // 2
        # The least value of a negative cell has the largest magnitude in it: one less than the next cell's bits.
        first_bits = np.where(index < half, half - index, index - half).astype(unsigned) << unsigned(shift)
        bits = np.where(index < half, first_bits - unsigned(1), first_bits)
        edges: Edges = bits.view(self.dtype).astype(np.float64)
        edges[index < half] *= -1.0
        return edges


def _bits(dtype: np.dtype[Any]) -> tuple[Any, int, int]:
    """Return the unsigned integer type, the shift that leaves sign, exponent and leading mantissa, and the cells."""
    info = np.finfo(dtype)
    bits = 1 + info.nexp + _MANTISSA_BITS
    unsigned = np.uint32 if dtype.itemsize == 4 else np.uint64
    return unsigned, dtype.itemsize * 8 - bits, 1 << bits


def _default(array: npt.NDArray[Any], cells: _Cells) -> tuple[Edges, Counts]:
    low, high = cells.minimum, cells.maximum
    if low == high:
        # One value: TensorBoard draws a bucket of no width badly, its own writer makes it 1 wide.
        left, right = widened(low, high)
        return np.array([left, right]), np.array([cells.counts.sum()])
    used = np.flatnonzero(cells.counts)
    first, last = int(used[0]), int(used[-1])
    if last - first < _MIN_CELLS:
        edges = _spread(low, high, MAX_BUCKETS)
        return edges, _by_width(array, edges)
    # Cut where a cell begins nearest above each of the equally spaced edges.
    index = np.arange(first, last + 1)
    lower = cells.lower_edges(index)
    cut = np.searchsorted(lower, _spread(low, high, MAX_BUCKETS)[1:-1])
    # -0.0 lies in the cell below that of 0.0, though it equals it: never cut between the two.
    cut = np.where(cut == len(cells.counts) // 2 - first, cut - 1, cut)
    cut = np.unique(cut[(cut > 0) & (cut < len(index))])
    cut = cut[(lower[cut] > low) & (lower[cut] < high)]
    counts = np.add.reduceat(cells.counts[first : last + 1], np.concatenate([[0], cut]))
    return np.concatenate([[low], lower[cut], [high]]), counts


def _by_rule(array: npt.NDArray[Any], rule: str, low: float, high: float) -> Edges:
    """Return the edges that NumPy's rule gives, bounded in number: an outlier can make it ask for 1e36 of them."""
    finite = np.concatenate([chunk[np.isfinite(chunk)] for chunk in _chunks(array)])
    width = np.inf
    if rule in ("fd", "auto"):
        width = float(np.subtract(*np.percentile(finite, [75, 25]))) * 2.0 * finite.size ** (-1.0 / 3.0)
    elif rule == "scott":
        width = float(finite.std()) * (24.0 * np.pi**0.5 / finite.size) ** (1.0 / 3.0)
    if 0 < width < (high - low) / _MAX_RULE_BUCKETS:
        return _spread(low, high, _MAX_RULE_BUCKETS)
    try:
        edges = np.unique(np.histogram_bin_edges(finite, rule, range=(low, high)))
    except Exception:  # a ValueError, a MemoryError, or an IndexError where its own numbers overflow
        return _spread(low, high, MAX_BUCKETS)
    if len(edges) < 2 or not np.isfinite(edges).all():
        return _spread(low, high, MAX_BUCKETS)
    return edges


def _spread(low: float, high: float, number: int) -> Edges:
    """Return the rising edges of `number` equal buckets; fewer where float64 cannot tell them apart."""
    fraction = np.linspace(0.0, 1.0, number + 1)
    edges = low * (1.0 - fraction) + high * fraction  # high - low may overflow
    edges[0], edges[-1] = low, high
    return np.unique(edges)


def widened(low: float, high: float) -> tuple[float, float]:
    """Return low and high, moved apart by 1 where they are equal, or by what float64 can tell apart."""
    if low < high:
        return low, high
    half = max(0.5, abs(low) * 1e-6)
    limit = float(np.finfo(np.float64).max)
    return max(low - half, -limit), min(high + half, limit)


def _by_width(array: npt.NDArray[Any], edges: Edges) -> Counts:
    """Count by equally wide buckets that span all finite values."""
    number, low, high = len(edges) - 1, edges[0], edges[-1]
    scale = number / (high - low)
    if not np.isfinite(scale) or scale == 0.0 or number == 1:
        return _by_edges(array, edges)
    total = np.zeros(number, np.int64)
    for chunk in _chunks(array):
        wide = chunk.astype(np.float64)
        wide = wide[np.isfinite(wide)]
        index = np.minimum(((wide - low) * scale).astype(np.int64), number - 1)
        # The product is rounded: compare with the edges themselves. A value is at most one bucket off.
        index -= wide < edges[index]
        index += (wide >= edges[index + 1]) & (index < number - 1)
        total += np.bincount(index, minlength=number)
    return total


def _by_edges(array: npt.NDArray[Any], edges: Edges) -> Counts:
    """Count by edges, the last bucket closed on both sides; NaN, infinite values and values outside are left out."""
    total = np.zeros(len(edges) - 1, np.int64)
    for chunk in _chunks(array):
        wide = chunk.astype(np.float64)
        inside = wide[(wide >= edges[0]) & (wide <= edges[-1])]
        index = np.searchsorted(edges, inside, side="right") - 1
        index[index == len(total)] -= 1
        total += np.bincount(index, minlength=len(total))
    return total
