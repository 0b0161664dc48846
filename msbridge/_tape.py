"""Read a gradient tap: which of its values belong to which steps."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from msbridge._device import Array, Transfer, pack
from msbridge._tap import COUNT_MODULUS, GradTap

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Series:
    """Values of consecutive steps that became known at one collection."""

    steps: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Chunk:
    last: int  # the newest step in it
    read: Callable[[], Array]  # the ring, if it is needed, and behind it the row


class Tape:
    """What a tap noted since the last collection.

    The tap knows calls, not steps. A train cell calls its reducer once a step; where the counts say otherwise
    (gradient accumulation, two optimizers), only the newest value is used, at the step that is collected.
    """

    def __init__(self, tap: GradTap) -> None:
        self.tap = tap
        self._step = 0  # read up to here
        self._calls = 0
        self._copies: list[tuple[int, Any]] = []  # rings that were full, copied on the device, not yet on the host
        self._told = False

    def begin(self, step: int) -> None:
        """Note how many steps were done before the first call."""
        self._step = step

    def keep(self, step: int) -> None:
        """Note that `step` is not collected. Before the ring overwrites itself it is copied, on the device."""
        held = self._copies[-1][0] if self._copies else self._step
        if step - held >= self.tap.size:
            self._copies.append((step, pack([self.tap.ring, *self._row()])))

    def stage(self, transfer: Transfer, step: int) -> "Reading":
        """Let `transfer` copy all that was noted up to `step`."""
        first, self._step = self._step + 1, step
        copies, self._copies = self._copies, []
        chunks = [_Chunk(last, transfer.vector(vector)) for last, vector in copies]
        # One step since the last reading needs only the row: less to copy, and in PyNative mode an operator less.
        parts = [*([] if first == step else [self.tap.ring]), *self._row()]
        chunks.append(_Chunk(step, transfer.together(parts)))
        return Reading(self, first, chunks)

    def _row(self) -> list[Any]:
        return [self.tap.row] if self.tap.newest is None else list(self.tap.newest)

    def decode(self, chunk: _Chunk, steps: int) -> tuple[Array, Array, bool]:
        """Give the norms of a chunk, its learning rates, and whether there was one call for each of `steps`."""
        data, width = chunk.read(), 2 + len(self.tap.names)
        ring, row = data[:-width], data[-width:]
        calls = int(row[1])
        if calls == self._calls:
            return data[:0], data[:0], False
        regular = (calls - self._calls) % COUNT_MODULUS == steps
        self._calls = calls
        slots = np.arange(calls - min(steps, self.tap.size), calls) % self.tap.size
        return ring[slots] if len(ring) else row[:1], row[2:], regular

    def tell(self, step: int) -> None:
        """Say once that calls and steps differ."""
        if not self._told:
            self._told = True
            _log.info(
                "step %d: the gradient reducer does not run once a step, grad_norm is drawn at collected steps", step
            )


class Reading:
    """One collection's view of the tape. Its methods answer after the transfer."""

    def __init__(self, tape: Tape, first: int, chunks: list[_Chunk]) -> None:
        self._tape, self._first, self._chunks = tape, first, chunks
        self._decoded: tuple[Series, Array] | None = None
        self.names = tape.tap.names  # of the learning rates

    @property
    def ran(self) -> bool:
        """Whether the reducer ran at all since the last reading."""
        return len(self._decode()[0].values) > 0

    def norms(self) -> Series:
        """Give the global norm of every step; empty when the reducer did not run."""
        return self._decode()[0]

    def rates(self) -> Array:
        """Give the learning rates of the newest step, in the order of `names`; empty when the reducer did not run."""
        return self._decode()[1]

    def _decode(self) -> tuple[Series, Array]:
        if self._decoded is not None:
            return self._decoded
        first, steps, values = self._first, [], []
        all_regular, rates = True, np.empty(0, np.float32)
        for chunk in self._chunks:
            norms, rates, regular = self._tape.decode(chunk, chunk.last - first + 1)
            all_regular &= regular
            steps.append(np.arange(chunk.last - len(norms) + 1, chunk.last + 1, dtype=np.int64))
            values.append(norms)
            first = chunk.last + 1
        series = Series(np.concatenate(steps), np.concatenate(values))
        if not all_regular and len(series.values):
            newest = self._chunks[-1].last
            self._tape.tell(newest)
            series = Series(np.array([newest], np.int64), series.values[-1:])
        self._decoded = (series, rates)
        return self._decoded
