"""How many points of a tag are left where later points, or the marks of restarts, void earlier ones.

Steps are kept as progressions, so that a long curve takes no memory: those of a training have few strides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_MANY_FALLS = 100


class Left(NamedTuple):
    """The points that are left, and the most that a reader held at one time of those that it still draws from."""

    points: int
    most: int


class Room:
    """How many progressions all tags of a run may hold together; a file of random steps must not fill the memory."""

    __slots__ = ("left",)

    def __init__(self, progressions: int = 1_000_000) -> None:
        self.left = progressions


class Steps:
    """Steps of the points that are left of a tag, in their order."""

    __slots__ = ("_known", "_most", "_points", "_room", "_rows")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._rows: list[tuple[int, int, int]] = []  # first step, stride, how many
        self._points = 0
        self._most = 0
        self._known = True

    def copy(self) -> Steps:
        """Return steps that go on from here by themselves."""
        other = Steps(self._room)
        other._rows, other._points, other._most, other._known = [*self._rows], self._points, self._most, self._known
        other._take(len(self._rows))
        return other

    @property
    def left(self) -> Left | None:
        """How many there are; None where they took too much memory to tell."""
        return Left(self._points, max(self._most, self._points)) if self._known else None

    def forget(self) -> None:
        """Give up: from here on it cannot be told."""
        self._room.left += len(self._rows)
        self._rows, self._known = [], False

    def _take(self, progressions: int) -> None:
        self._room.left -= progressions
        if self._room.left < 0:
            self.forget()

    def append(self, steps: npt.NDArray[np.int64]) -> None:
        """Add points; those before stay as they are."""
        if not self._known or not len(steps):
            return
        before = len(self._rows)
        self._points += len(steps)
        if self._rows and self._rows[-1][2] == 1:  # one point goes with any other
            steps = np.concatenate([[np.int64(self._rows.pop()[0])], steps])
        strides = np.diff(steps)
        if ((strides < 0) != (steps[1:] < steps[:-1])).any():  # farther apart than 64 bits say
            self.forget()
            return
        last = len(steps) - 1
        ends = [*(np.flatnonzero(np.diff(strides)) + 1).tolist(), last]  # where groups of equal strides end
        at = 0
        if self._rows:
            first, stride, count = self._rows[-1]
            if int(steps[0]) == first + stride * count:
                at = ends[0] + 1 if last and int(strides[0]) == stride else 1
                self._rows[-1] = (first, stride, count + at)
        for end in ends:
            if at < end:
                self._rows.append((int(steps[at]), int(strides[at]), end - at + 1))
                at = end + 1
        if at == last:
            self._rows.append((int(steps[at]), 0, 1))
        self._take(len(self._rows) - before)

    def cut(self, step: int) -> int:
        """Void the points at and after `step`, and return how many."""
        if not self._known:
            return 0
        rows = []
        for first, stride, count in self._rows:
            last = first + stride * (count - 1)
            if max(first, last) < step:
                rows.append((first, stride, count))
            elif min(first, last) < step:
                if stride > 0:
                    rows.append((first, stride, -((first - step) // stride)))
                else:
                    gone = (first - step) // -stride + 1
                    rows.append((first + stride * gone, stride, count - gone))
        left = sum(count for _, _, count in rows)
        gone = self._points - left
        if gone:
            self._most = max(self._most, self._points) if left else 0
        self._room.left += len(self._rows) - len(rows)
        self._rows, self._points = rows, left
        return gone

    def preempt(self, steps: npt.NDArray[np.int64]) -> None:
        """Add points as the data server does: each voids those before it at its step and later ones."""
        falls = np.flatnonzero(np.diff(steps) < 0) + 1
        for piece in np.split(steps, falls) if len(falls) <= _MANY_FALLS else [steps]:
            lowest = np.minimum.accumulate(piece[::-1])[::-1]
            self.cut(int(lowest[0]))
            self.append(piece[np.append(piece[:-1] < lowest[1:], True)])
