"""Events of a whole series of one tag at once, as matrices of bytes: one row an Event."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tbwriter._logger import get_logger
from tbwriter._summary._scalar import step_field, value_prefix, varint, wall_time_field
from tbwriter._summary._values import EXACT_INT, as_array
from tbwriter._summary._words import describe, shown

_log = get_logger(__name__)

Bytes = npt.NDArray[np.uint8]


class Points(NamedTuple):
    """A series, checked: three arrays of shape (n,)."""

    values: npt.NDArray[np.float32]
    steps: npt.NDArray[np.int64]
    wall_times: npt.NDArray[np.float64]


def as_series(tag: str, values: Any, steps: Any, wall_times: Any, *, now: float, told: set[str]) -> Points:
    """Return a copy of the series as it is stored: in the order of steps, and of one step in the order given.

    Args:
        tag: for errors.
        values: array-like of shape (n,).
        steps: integers, or whole floats, of shape (n,).
        wall_times: of shape (n,), or None for `now`.
        now: seconds since 1970.
        told: tags that were told of values that float32 rounds; see `as_scalar`.

    Raises:
        TypeError, ValueError: as in `SummaryWriter.add_scalar_series`.
    """
    numbers = as_array(values, tag)
    with np.errstate(all="ignore"):
        stored = numbers.astype(np.float32)
    if tag not in told and stored.size:
        overflow = np.isinf(stored) & np.isfinite(numbers)
        counter = numbers.dtype.kind in "iu" and (np.abs(numbers.astype(np.float64)) > EXACT_INT).any()
        if overflow.any() or counter:
            told.add(tag)
            _log.warning(
                "tag %s: values beyond %s: TensorBoard shows float32; log them in thousands or millions. "
                "Said once for this tag",
                shown(tag),
                "float32 are stored as infinity" if overflow.any() else "2**24 are rounded",
            )
    where = as_array(steps, tag)
    if where.dtype.kind == "f":
        wide = where.astype(np.float64)
        if not (np.isfinite(wide) & (wide == np.floor(wide)) & (np.abs(wide) < 2.0**63)).all():
            raise ValueError(f"tag {shown(tag)}: steps must be whole numbers within int64, got {describe(steps)}")
    elif where.dtype.kind == "u" and where.size and int(where.max()) > 2**63 - 1:
        raise ValueError(f"tag {shown(tag)}: steps must lie within int64, got {int(where.max())}")
    times = np.full(stored.shape, now) if wall_times is None else as_array(wall_times, tag).astype(np.float64)
    if stored.ndim != 1 or not stored.shape == where.shape == times.shape:
        raise ValueError(
            f"tag {shown(tag)}: got values of shape {stored.shape}, steps of shape {where.shape}, wall_times of shape "
            f"{times.shape}; want one length and one dimension"
        )
    if not (np.isfinite(times) & (times != 0)).all():
        got = describe(wall_times)
        raise ValueError(f"tag {shown(tag)}: wall_times must be finite seconds since 1970 and not 0, got {got}")
    if (where[1:] < where[:-1]).any():
        # The data server takes a step that falls for a restart, and forgets the tag's points from there on.
        order = np.argsort(where, kind="stable")
        stored, where, times = stored[order], where[order], times[order]
    return Points(np.array(stored), where.astype(np.int64), np.array(times))


class Rows(NamedTuple):
    """Serialised Events of one length.

    Attributes:
        data: uint8 of shape (events, length).
        varying: the columns that differ from row to row.
    """

    data: Bytes
    varying: list[int]


def rows(
    tag: str, values: npt.NDArray[np.float32], steps: npt.NDArray[np.int64], wall_times: npt.NDArray[np.float64]
) -> Iterator[Rows]:
    """Yield the Events of a series in order, in blocks of equal length.

    Args:
        tag: a valid tag.
        values: of shape (n,).
        steps: of shape (n,).
        wall_times: of shape (n,), finite and not 0.
    """
    prefix = value_prefix(tag)
    summary = b"\x2a" + varint(len(prefix) + 4) + prefix
    for begin, end in _of_one_length(steps):
        seconds = np.ascontiguousarray(wall_times[begin:end], "<f8")
        numbers = np.ascontiguousarray(values[begin:end], "<f4")
        head = wall_time_field(float(seconds[0])) + step_field(int(steps[begin])) + summary
        # Every row is the first one but for what differs: of all three the lowest digits, which stand first.
        data = np.empty((end - begin, len(head) + 4), np.uint8)
        data[:] = np.frombuffer(head + numbers[:1].tobytes(), np.uint8)
        where = steps[begin:end].astype(np.uint64)
        clocks, counts, marks = (_varying(seconds.view("<u8"), 8), _varying(where, 7), _varying(numbers.view("<u4"), 8))
        data[:, 1 : 1 + clocks] = seconds.view(np.uint8).reshape(-1, 8)[:, :clocks]
        _fill_varints(data[:, 10 : 10 + counts], where, whole=len(head) - len(summary) == 10 + counts)
        data[:, len(head) : len(head) + marks] = numbers.view(np.uint8).reshape(-1, 4)[:, :marks]
        varying = [range(1, 1 + clocks), range(10, 10 + counts), range(len(head), len(head) + marks)]
        yield Rows(data, [*itertools.chain(*varying)])


def _varying(bits: npt.NDArray[np.unsignedinteger[Any]], width: int) -> int:
    """Return how many of the lowest digits, of `width` bits each, are not the same in all of `bits`."""
    differing = int(np.bitwise_or.reduce(bits ^ bits[0]))
    return -(-differing.bit_length() // width)


def _of_one_length(steps: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield where the steps whose varints have one length begin and end; 0 has none, as proto3 leaves it out."""
    if not len(steps):
        return
    if len(step_field(int(steps.min()))) == len(step_field(int(steps.max()))):
        yield 0, len(steps)
        return
    length: npt.NDArray[np.int64] = (steps != 0).astype(np.int64)
    for shift in range(7, 63, 7):
        length += steps >= 1 << shift
    length[steps < 0] = 10
    yield from itertools.pairwise([0, *(np.flatnonzero(np.diff(length)) + 1).tolist(), len(steps)])


def _fill_varints(out: Bytes, numbers: npt.NDArray[np.uint64], *, whole: bool) -> None:
    """Write the lowest digits of varints into `out`, one a column; `whole` varints end there."""
    rest = numbers
    last = out.shape[1] - 1
    for i in range(last + 1):
        out[:, i] = rest if whole and i == last else (rest & np.uint64(127)) | np.uint64(128)
        rest = rest >> np.uint64(7)
