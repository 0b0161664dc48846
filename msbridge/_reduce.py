"""One curve of many ranks: mean, smallest, largest, and the rank of the largest.

Every rank gives one vector of fixed length at each collection of the callback's schedule, and one AllGather brings the
vectors of all ranks to each of them. So a collector that fails on one rank leaves a hole and not a deadlock, and a rank
that writes nothing, or can write no more, still takes part. What every rank must do alike is the schedule.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, ops

from msbridge._device import Array, Transfer, is_tensor, to_scalar
from msbridge._run import Rank
from tbwriter._logger import get_logger

Reduction = Literal["mean", "min", "max", "argmax"]
REDUCED_TAGS = ("train/loss", "train/step_time", "train/samples_per_sec", "train/tokens_per_sec")

_NAMES = {"argmax": "argmax_rank"}

_log = get_logger(__name__)


def check_reduce(reduce: Sequence[Reduction]) -> tuple[Reduction, ...]:
    """Check the argument `reduce` of the callback.

    Raises:
        TypeError, ValueError: it names no reductions.
    """
    known = get_args(Reduction)
    if isinstance(reduce, str) or not isinstance(reduce, Sequence):
        raise TypeError(f"reduce must be a sequence of {', '.join(known)}, got {reduce!r}")
    unknown = [name for name in reduce if name not in known]
    if unknown:
        raise ValueError(f"reduce must be of {', '.join(known)}, got {unknown[0]!r}")
    return tuple(dict.fromkeys(reduce))


class Reducer:
    """Reduce the values of some tags over the ranks of a training.

    Args:
        reductions: what to make of them.
        tags: of which scalars; a rank that has no value for one leaves it out.
        rank: this process.
        draws: whether this is the rank that draws them.
    """

    def __init__(self, reductions: Sequence[Reduction], tags: Sequence[str], rank: Rank, *, draws: bool) -> None:
        self.draws = draws
        self._reductions, self._tags, self._size = reductions, tuple(tags), rank.size
        if rank.size > 1 and not communication.GlobalComm.INITED:
            _log.warning("reduce: MindSpore's communication is not initialised, this rank stands for itself")
            self._size = 1
        self._gather = ops.AllGather() if self._size > 1 else None

    def gather(self, values: Mapping[str, Any]) -> Any:
        """Bring the values of all ranks here: a device vector. Every rank must call it as often as every other."""
        scalars = []
        for tag in self._tags:
            value = self._scalar(values.get(tag))
            scalars += [_number(0.0) if value is None else value, _number(float(value is not None))]
        mine = ops.Stack()(scalars)
        return mine if self._gather is None else self._gather(mine)

    def read(self, gathered: Any, transfer: Transfer) -> Mapping[str, Callable[[], float | None]]:
        """Let a gathered vector join the transfer. The answers are by tag of the reduced curve."""
        whole = transfer.vector(gathered)

        def reduced(index: int, reduction: Reduction) -> float | None:
            table = whole().reshape(self._size, len(self._tags), 2)
            there = table[:, index, 1] > 0
            return _reduced(table[:, index, 0], there, reduction) if there.any() else None

        return {
            f"{tag}/{'argmax_rank' if reduction == 'argmax' else reduction}": functools.partial(
                reduced, index, reduction
            )
            for index, tag in enumerate(self._tags)
            for reduction in self._reductions
        }

    def _scalar(self, value: Any) -> Any:
        try:
            if is_tensor(value):
                return to_scalar(value) if value.size == 1 else None
            return None if value is None or callable(value) else _number(float(value))
        except Exception as error:
            _log.debug("reduce: left out: %s: %s", type(error).__name__, error)
            return None


def _reduced(column: Array, there: Any, reduction: Reduction) -> float:
    # NaN is a value: the mean and the largest of a column with a NaN are NaN, and argmax is the rank that has it.
    if reduction == "argmax":
        return float(np.flatnonzero(there)[np.argmax(column[there])])
    found = column[there].astype(np.float64)
    return float(found.mean() if reduction == "mean" else found.min() if reduction == "min" else found.max())


def _number(value: float) -> Any:
    return Tensor(value, ms.float32)
