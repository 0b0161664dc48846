"""Which steps are collected: a number, a schedule by step, or a callable."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tbwriter._logger import get_logger

CollectFreq = int | Mapping[int, int] | Callable[[int], bool | int]
"""Every n steps; `{0: 1, 1000: 50}`, the frequency from a step on; or a callable that is given the step and answers
with yes or no, or with the frequency at that step."""

_FALLBACK_FREQ = 10  # what a callable that fails is replaced with: the default of the callback

_log = get_logger(__name__)


class Schedule:
    """Answer whether a step is collected: `step % collect_freq == 0`.

    Raises:
        TypeError: `collect_freq` is no int, mapping or callable.
        ValueError: a frequency is below 1, or a schedule does not say what holds from step 0 on.
    """

    def __init__(self, collect_freq: CollectFreq, name: str = "collect_freq") -> None:
        """Take `collect_freq`, which errors call by `name`."""
        self._callable: Callable[[int], bool | int] | None = None
        self._pieces: list[tuple[int, int]] = []  # (from step, frequency), the last first
        self._name = name
        if isinstance(collect_freq, Mapping):
            self._pieces = _pieces(collect_freq, name)
        elif callable(collect_freq):
            self._callable = collect_freq
        else:
            self._pieces = [(0, _frequency(collect_freq, name))]

    def due(self, first: int, last: int) -> bool:
        """Tell whether one of the steps `first` to `last`, both included, is to be collected.

        More than one step at a time comes from data-sink mode, where the host is asked once for a whole sink.
        """
        if self._callable is not None:
            return any(self._ask(step) for step in range(first, last + 1))
        end = last
        for start, freq in self._pieces:
            begin = max(start, first)
            if begin <= end and end // freq > (begin - 1) // freq:
                return True
            end = min(end, start - 1)
        return False

    def _ask(self, step: int) -> bool:
        assert self._callable is not None
        try:
            answer = self._callable(step)
            if isinstance(answer, bool | np.bool_):
                return bool(answer)
            freq = _whole(answer)
            return freq > 0 and step % freq == 0
        except Exception as error:
            _log.warning(
                "%s: the callable failed at step %d, every %d steps are collected from here on: %s: %s",
                self._name, step, _FALLBACK_FREQ, type(error).__name__, error,
            )  # fmt: skip
            self._callable, self._pieces = None, [(0, _FALLBACK_FREQ)]
            return step % _FALLBACK_FREQ == 0


class Several:
    """Steps that one of several schedules collects."""

    def __init__(self, schedules: Iterable[Schedule]) -> None:
        self._schedules = list(schedules)

    def due(self, first: int, last: int) -> bool:
        """As Schedule's."""
        found = [schedule.due(first, last) for schedule in self._schedules]  # all are asked: callables may count
        return any(found)


def _pieces(schedule: Mapping[int, int], name: str) -> list[tuple[int, int]]:
    pieces = [
        (_integer(start, f"{name}: a step"), _frequency(freq, f"{name} from step {start} on"))
        for start, freq in schedule.items()
    ]
    pieces.sort(reverse=True)
    if not pieces or pieces[-1][0] not in {0, 1}:
        raise ValueError(f"{name}: a schedule must say what holds from step 0 on, got {dict(schedule)!r}")
    return pieces


def _integer(value: object, name: str) -> int:
    # operator.index would let True through.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, a schedule such as {{0: 1, 1000: 50}} or a callable, got {value!r}")
    return int(value.__index__())


def _whole(answer: Any) -> int:
    freq = int(answer)
    if freq != answer:
        raise TypeError(f"want yes, no or a frequency, got {answer!r}")
    return freq


def _frequency(value: object, name: str) -> int:
    freq = _integer(value, name)
    if freq < 1:
        raise ValueError(f"{name} must be at least 1, got {freq}")
    return freq
