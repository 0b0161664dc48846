"""Time and samples between collections."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._wall_times import WallTimes

_SEQUENCES = (list, tuple)  # asked at every step: list | tuple is made anew each time


class Clock:
    """Count, in one training, what went by since the last collection. Validation can be left out."""

    def __init__(self, params: Any) -> None:
        self._mark: float | None = None  # monotonic, at the last collected step's end
        self._paused = 0.0
        self._pause_began: float | None = None
        self._samples: int | None = 0
        self._batch_size: int | None = None
        self._ends: list[tuple[int, float]] = []  # (step, wall time) of steps that ended since
        self._wall_times = WallTimes(overtaken_secs=0.0)
        if params.get("dataset_sink_mode"):
            # The host sees no batch then. Asked once: for some datasets the answer is work.
            self._batch_size = int(params.train_dataset.get_batch_size())

    @property
    def is_first(self) -> bool:
        """Whether nothing was collected yet."""
        return self._mark is None

    def step_end(self, step: int, steps: int, params: Any) -> None:
        """Note the end of `steps` steps, the last of which is `step`."""
        self._ends.append((step, self._wall_times.corrected(time.time())))
        if self._samples is not None:
            size = _batch_size(params.get("train_dataset_element")) or self._batch_size
            self._samples = None if size is None else self._samples + size * steps

    def pause(self) -> None:
        """Leave out the time from now on."""
        self._pause_began = time.perf_counter()

    def resume(self) -> None:
        """Count time again."""
        if self._pause_began is not None:
            self._paused += time.perf_counter() - self._pause_began
            self._pause_began = None

    def take(self) -> tuple[float | None, int | None]:
        """Give seconds and samples since the last call, and start again. The first call has no seconds."""
        now = time.perf_counter()
        seconds = None if self._mark is None else now - self._mark - self._paused
        samples, self._samples = self._samples, 0
        self._mark, self._paused = now, 0.0
        return seconds, samples

    def last_wall_time(self) -> float:
        """Give the time at which the newest step ended."""
        return self._ends[-1][1]

    def last_step(self) -> int:
        """Give the newest step."""
        return self._ends[-1][0]

    def wall_times(self, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Give the time at which each of `steps` ended; between two known ends, evenly."""
        known = np.array(self._ends, np.float64)
        return np.interp(steps, known[:, 0], known[:, 1])

    def forget(self) -> None:
        """Forget the ends of all steps but the newest, which bounds the next ones."""
        del self._ends[:-1]


def _batch_size(element: Any) -> int | None:
    first = element[0] if isinstance(element, _SEQUENCES) and element else element
    shape: tuple[int, ...] = getattr(first, "shape", ())
    return int(shape[0]) if len(shape) else None
