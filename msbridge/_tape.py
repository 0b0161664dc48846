"""Read a tap's ring: which of its values belong to which steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from msbridge._device import Array, Transfer, copied
from msbridge._tap import Ring
from tbwriter._logger import get_logger

_log = get_logger(__name__)


@dataclass(frozen=True)
class Series:
    """Values of rising steps that became known at one transfer."""

    steps: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Chunk:
    last: int  # the newest step in it
    read: Callable[[], Array]  # the ring


class Tape:
    """What a tap noted since the last transfer.

    The tap knows calls, not steps. A train cell calls its reducer once a step; where the counts say otherwise
    (gradient accumulation, two optimizers), only the newest row is used, at the step of the transfer.
    """

    def __init__(self, tap: Ring) -> None:
        self.tap = tap
        self.regular = True
        """Whether the reducer was called once a step until now."""
        self._size = tap.size  # rows; asking a Cell takes longer
        self._step = 0  # read up to here
        self._calls = 0
        self._copies: list[tuple[int, object]] = []  # rings that were full, copied on the device, not yet on the host
        self._most_unended = 0  # calls of steps that were broken off

    def begin(self, step: int) -> None:
        """Note how many steps were done before the first call."""
        self._step = step

    def end(self, most_unended: int) -> None:
        """Note that the training is over. Up to so many calls belong to steps whose end never came."""
        self._most_unended = most_unended

    def keep(self, step: int, steps: int) -> None:
        """Note that `steps` steps ended at `step`. Before as many overwrite the ring it is copied, on the device."""
        held = self._copies[-1][0] if self._copies else self._step
        if step - held + steps > self._size:
            self._copies.append((step, copied(self.tap.ring)))

    def stage(self, transfer: Transfer, step: int) -> "Reading":
        """Let `transfer` copy all that was noted up to `step`."""
        first, self._step = self._step + 1, step
        chunks = [_Chunk(last, transfer.vector(vector)) for last, vector in self._copies]
        if not self._copies or self._copies[-1][0] < step:
            chunks.append(_Chunk(step, transfer.vector(self.tap.ring)))
        self._copies = []
        return Reading(self, first, chunks)

    def decode(self, chunk: _Chunk, steps: int) -> Array:
        """Give the rows of a chunk: one for each of `steps`, the newest alone when there was not one call a step."""
        ring = chunk.read().reshape(self.tap.size, self.tap.row_size)
        calls = int(ring[:, -1].max())
        made = calls - self._calls
        if self.regular and 0 < made - steps <= self._most_unended and made <= self.tap.size:
            calls, made = calls - (made - steps), steps
        if made != steps and self.regular:
            self.regular = False
            _log.info(
                "step %d: %s does not run once a step, its values are drawn at collected steps",
                chunk.last,
                type(self.tap).__name__,
            )
        self._calls = calls
        wanted = min(steps, self.tap.size) if made == steps else min(made, 1)
        return ring[np.arange(calls - wanted, calls) % self.tap.size]

    def rewind(self) -> None:
        """Keep the count where it is told exactly. The next call has not begun: this is a step's end."""
        if self._calls >= self.tap.most_calls:
            self._calls = 0
            self.tap.rewind()


class Reading:
    """One transfer's view of the tape. Its methods answer after the transfer."""

    def __init__(self, tape: Tape, first: int, chunks: list[_Chunk]) -> None:
        self._tape, self._first, self._chunks = tape, first, chunks
        self._decoded: tuple[npt.NDArray[np.int64], Array] | None = None
        self.names = tape.tap.names  # of the learning rates
        self.normed = tuple(tape.tap.normed)

    @property
    def failure(self) -> str:
        """Why the tap notes nothing any more, if it does not."""
        return self._tape.tap.failure

    @property
    def ran(self) -> bool:
        """Whether the reducer ran at all since the last reading."""
        return len(self._decode()[0]) > 0

    def firsts(self) -> Series:
        """Give the first number of every row."""
        steps, rows = self._decode()
        return Series(steps, rows[:, 0])

    def norms(self) -> Series:
        """Give the global norm of every step; empty when the reducer did not run."""
        steps, rows = self._decode()
        return Series(steps, _norm(rows[:, 0], self._tape.tap.unscale))

    def norm_of(self, parameter: str) -> Series:
        """Give the norm of one parameter's gradient at every step; empty when the reducer did not run."""
        steps, rows = self._decode()
        tap = self._tape.tap
        column = 1 + len(tap.names) + list(tap.normed).index(parameter)
        return Series(steps, _norm(rows[:, column], tap.unscale))

    def rates(self, index: int) -> Series:
        """Give the learning rate `names[index]` of every step; empty when the reducer did not run."""
        steps, rows = self._decode()
        return Series(steps, rows[:, 1 + index])

    def _decode(self) -> tuple[npt.NDArray[np.int64], Array]:
        if self._decoded is None:
            first, steps, found = self._first, [], []
            for chunk in self._chunks:
                rows = self._tape.decode(chunk, chunk.last - first + 1)
                steps.append(np.arange(chunk.last - len(rows) + 1, chunk.last + 1, dtype=np.int64))
                found.append(rows)
                first = chunk.last + 1
            if not self._tape.regular:  # which step an older row belongs to is not known
                steps = [part[-1:] for part in steps if len(part)][-1:] or steps[:1]
                found = [part[-1:] for part in found if len(part)][-1:] or found[:1]
            self._decoded = (np.concatenate(steps), np.concatenate(found))
            self._tape.rewind()
        return self._decoded


def _norm(half_square_sums: Array, unscale: float) -> Array:
    return (np.sqrt(2.0 * half_square_sums.astype(np.float64)) * unscale).astype(np.float32)
