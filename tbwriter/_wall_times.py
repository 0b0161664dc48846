"""The wall times of one run or sub-run: what the machine's clock gave does not go back, what a user gave stays."""

from __future__ import annotations

from tbwriter._logger import get_logger

_log = get_logger(__name__)

# Of two threads the one that read the clock later may be the first to add: the other one may have waited for room.
_OVERTAKEN_SECS = 60.0


class Given(float):
    """A wall time that a user gave. Every other one is the clock's."""


class WallTimes:
    """Corrects what the clock gave, in the order in which it is stored; one per run or sub-run.

    Args:
        overtaken_secs: how late a time may come without that the clock was set back; 0 where one thread reads it.
    """

    def __init__(self, overtaken_secs: float = _OVERTAKEN_SECS) -> None:
        self._overtaken_secs = overtaken_secs
        self._latest = float("-inf")
        self._shift = 0.0

    def corrected(self, wall_time: float) -> float:
        """Return the wall time to store, in seconds since 1970.

        TensorBoard's axes of time draw a curve backwards where times fall. A time that is a little late becomes the
        latest one; after the clock was set back, times go on from the latest and keep their distances. A `Given` one
        is returned as it is.
        """
        if type(wall_time) is Given:
            return wall_time
        moved = wall_time + self._shift
        if moved < self._latest:
            back = self._latest - moved
            if back > self._overtaken_secs:
                self._shift += back
                _log.info("the clock went back by %.1f s: wall times go on from where they were", back)
            return self._latest
        self._latest = moved
        return moved

    def shifted(self, wall_time: float) -> float:
        """Return what the clock gave as it would be stored, if nothing older were to come: for what opens a file."""
        return wall_time + self._shift
