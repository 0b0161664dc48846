"""Count a device tensor into buckets on the device: whatever its size, 520 bytes go to the host.

64 buckets of equal width between the tensor's own smallest and largest finite value, as tbwriter's `add_histogram`
makes them. Counting goes by pieces of 2**23 elements: MindSpore's Histogram counts in float32, which is exact up to
2**24, and the temporary memory is a few pieces. The sums over pieces are int32, and cross as two floats each.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import Tensor, mint, ops

from msbridge._device import Transfer, flat, to_float32
from tbwriter import SummaryWriter

BUCKETS = 64
_PIECE = 1 << 23
_SPLIT_BITS = 16  # counts cross as two numbers below 2**16


@dataclass(frozen=True)
class Counted:
    """The histogram of one tensor, on the host."""

    minimum: float
    maximum: float
    counts: npt.NDArray[np.float64]
    nan: int
    inf: int

    def times(self, factor: float) -> "Counted":
        """Give the histogram of the values times a positive factor."""
        return replace(self, minimum=self.minimum * factor, maximum=self.maximum * factor)

    def write(self, writer: SummaryWriter, tag: str, step: int, wall_time: float) -> None:
        """Add it, and the numbers of NaN and infinite values where there are any."""
        total = float(self.counts.sum())
        if total:
            edges = np.linspace(self.minimum, self.maximum, BUCKETS + 1)
            limits, counts = edges[1:], self.counts
            if not (limits[1:] > limits[:-1]).all():  # one value, or so narrow a range that edges coincide
                limits, counts = np.array([self.maximum]), np.array([total])
            writer.add_histogram_raw(tag, self.minimum, self.maximum, total, 0.0, 0.0, limits, counts, step, wall_time)
        for name, number in (("nan_count", self.nan), ("inf_count", self.inf)):
            if number:
                writer.add_scalar(f"{tag}/{name}", number, step, wall_time)


def count(tensor: Any, transfer: Transfer) -> Callable[[], Counted]:
    """Count a tensor of any shape and numeric dtype, as it is now; the answer is there after the transfer.

    Raises:
        TypeError: it holds no numbers.
        ValueError: it holds 2**31 elements or more, or none.
    """
    if not 0 < tensor.size < 1 << 31:
        raise ValueError(f"want 1 to 2**31 - 1 elements, got {tensor.size}")
    values = flat(to_float32(tensor))
    pieces = [values] if values.size <= _PIECE else list(ops.split(values, _PIECE))
    wild = [ops.LogicalNot()(ops.IsFinite()(piece)) for piece in pieces]
    low = _over(mint.min, [_but(piece, mask, np.inf) for mask, piece in zip(wild, pieces, strict=True)])
    high = _over(mint.max, [_but(piece, mask, -np.inf) for mask, piece in zip(wild, pieces, strict=True)])
    spread = ops.Maximum()(ops.Sub()(high, low), _number(np.finfo(np.float32).tiny))
    scale = ops.RealDiv()(_number(BUCKETS), spread)
    counts = nan = None
    for mask, piece in zip(wild, pieces, strict=True):
        place = ops.Mul()(ops.Sub()(piece, low), scale)
        # A rounding must not lose the largest; -1 lies outside.
        place = _but(ops.Minimum()(place, _number(BUCKETS)), mask, -1.0)
        counts = _plus(counts, ops.Cast()(ops.histc(place, BUCKETS, 0.0, float(BUCKETS)), ms.int32))
        nan = _plus(nan, _total(ops.NotEqual()(piece, piece)))
    upper = ops.RightShift()(counts, Tensor([_SPLIT_BITS], ms.int32))
    lower = ops.BitwiseAnd()(counts, Tensor([(1 << _SPLIT_BITS) - 1], ms.int32))
    read = transfer.vector(mint.cat([to_float32(upper), to_float32(lower)]))
    low, high, nan = (transfer.scalar(part) for part in (low, high, nan))
    size = tensor.size

    def counted() -> Counted:
        both = read().astype(np.float64)
        numbers = both[:BUCKETS] * (1 << _SPLIT_BITS) + both[BUCKETS:]
        return Counted(low(), high(), numbers, int(nan()), int(size - numbers.sum() - nan()))

    return counted


def _but(values: Any, mask: Any, other: float) -> Any:
    return ops.MaskedFill()(values, mask, _number(other))


def _over(reduce: Callable[[Any], Any], parts: list[Any]) -> Any:
    return reduce(ops.Stack()([reduce(part) for part in parts]))


def _total(mask: Any) -> Any:
    return mint.sum(to_float32(mask))


def _plus(before: Any, part: Any) -> Any:
    return part if before is None else ops.Add()(before, part)


def _number(value: float) -> Any:
    return Tensor(value, ms.float32)
