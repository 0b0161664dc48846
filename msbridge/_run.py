"""Where a run stands among ranks and steps."""

import errno
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

from mindspore import communication

from tbwriter._logger import get_logger

Ranks = Literal["all", "first", "last"] | Collection[int] | Callable[[int], bool]

# Launchers by age: msrun and Ascend's hccl tools, Open MPI, torchrun-like, SLURM.
_RANK_VARIABLES = ("RANK_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID")
_SIZE_VARIABLES = ("RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS")

_log = get_logger(__name__)


@dataclass(frozen=True)
class Rank:
    """This process among `size` others."""

    rank: int = 0
    size: int = 1


def find_rank() -> Rank:
    """Ask MindSpore's communication if it is initialised, then the launcher's environment; else rank 0 of 1."""
    if communication.GlobalComm.INITED:
        return Rank(communication.get_rank(), communication.get_group_size())
    rank, size = _number(_RANK_VARIABLES), _number(_SIZE_VARIABLES)
    if rank is None:
        return Rank()
    return Rank(rank, rank + 1 if size is None else max(size, rank + 1))


def check_directory(place: str) -> None:
    """Check that `place`, where it is on this machine, can be a directory: SummaryCollector refuses a file too.

    Raises:
        NotADirectoryError: it is a file, or lies below one.
    """
    if "://" in place:
        return
    found = place
    while not os.path.exists(found):  # "/" does
        found = os.path.dirname(found)
    if not os.path.isdir(found):
        raise NotADirectoryError(errno.ENOTDIR, f"summary_dir must be a directory, {found!r} is none", place)


def check_ranks(ranks: Ranks) -> Ranks:
    """Check the argument `ranks` of the callback.

    Raises:
        TypeError, ValueError: it names no set of ranks.
    """
    if isinstance(ranks, str):
        if ranks not in {"all", "first", "last"}:
            raise ValueError(f"ranks must be 'all', 'first', 'last', ranks or a callable, got {ranks!r}")
    elif not callable(ranks):
        if not isinstance(ranks, Collection) or not all(hasattr(rank, "__index__") for rank in ranks):
            raise TypeError(f"ranks must be 'all', 'first', 'last', ranks or a callable, got {ranks!r}")
        if any(rank < 0 for rank in ranks):
            raise ValueError(f"ranks must not be negative, got {ranks!r}")
    return ranks


def writes(rank: Rank, ranks: Ranks) -> bool:
    """Tell whether this process writes."""
    if isinstance(ranks, str):
        return ranks == "all" or rank.rank == (0 if ranks == "first" else rank.size - 1)
    return bool(ranks(rank.rank)) if callable(ranks) else rank.rank in ranks


def first_writing(size: int, ranks: Ranks) -> int | None:
    """Give the first of `size` ranks that writes, None when none does."""
    return next((rank for rank in range(size) if writes(Rank(rank, size), ranks)), None)


class StepCounter:
    """Turn MindSpore's step number, which starts again with every `Model.train`, into the run's global step.

    A first training goes on after `initial_step` steps if that is given, else after the epochs that `initial_epoch`
    of `Model.train` skips. A further training with the same callback goes on where the last one ended.
    """

    def __init__(self, initial_step: int | None) -> None:
        self._initial_step = initial_step
        self.last = initial_step or 0
        """The last global step that ended: where a curve has got to."""
        self._offset: int | None = None
        self._at_begin = 0

    def begin(self, params: Any) -> None:
        """Note that a training begins; `params` are MindSpore's callback parameters."""
        self._offset, self._at_begin = None, params.cur_step_num

    def first_epoch(self, params: Any) -> int:
        """Fix the offset at the first epoch, the first moment MindSpore tells its number. Returns the steps done."""
        if self._offset is None:
            done = self._at_begin
            if self._initial_step is not None:
                done = self._initial_step
            elif done == 0:
                # In data-sink mode batch_num is the sink size, and an epoch has as many steps.
                done = (params.cur_epoch_num - 1) * params.batch_num
            self._initial_step = None  # it places the first training only
            self.last = max(done, self.last)
            self._offset = self.last - self._at_begin
        return self.last

    def now(self, params: Any) -> int:
        """Give the global step of the step that runs or has just ended."""
        if self._offset is None:
            self.first_epoch(params)
            assert self._offset is not None
        return self._offset + int(params["cur_step_num"])


def _number(names: tuple[str, ...]) -> int | None:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
        if text:
            _log.warning("%s is no rank: %r", name, text)
    return None
