"""When an object store gets a request, and when a segment ends: pure arithmetic, so that days can be simulated.

Objects x amplification = puts / 2: whatever ends the segments, fewer of one means more of the other. So the puts
become rarer as the run grows older (0.5 % of a curve's length cannot be seen on its chart), and segment k takes
max(4, k) puts, which lets both numbers grow with the square root of the puts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

_MIN_BALANCED_PUTS = 4
_FIRST_BACKOFF_SECS = 0.2
_MAX_BACKOFF_SECS = 60.0


@dataclass(frozen=True)
class SegmentPolicy:
    """How a run is cut into objects, and how often the growing one is stored again.

    Attributes:
        max_bytes: a segment ends when it is as large.
        max_puts: a segment ends after so many puts; None lets segment k, from 0, take max(4, k).
        min_interval: the least time between two puts that nobody asked for by `flush`, in seconds.
        max_interval: the longest.
        age_fraction: between the two, the interval is this part of the run's age.
        jitter: each interval is changed by up to this part of it, so that writers started together drift apart.
    """

    max_bytes: int = 4 << 20
    max_puts: int | None = None
    min_interval: float = 7.0
    max_interval: float = 300.0
    age_fraction: float = 0.005
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if self.max_bytes < 1 or (self.max_puts is not None and self.max_puts < 1):
            raise ValueError(f"max_bytes and max_puts must be at least 1, got {self.max_bytes} and {self.max_puts}")
        if not 0 < self.min_interval <= self.max_interval:
            raise ValueError(
                f"want 0 < min_interval <= max_interval, got {self.min_interval!r} and {self.max_interval!r}"
            )
        if self.age_fraction < 0 or not 0 <= self.jitter < 1:
            raise ValueError(f"want age_fraction >= 0 and 0 <= jitter < 1, got {self.age_fraction!r}, {self.jitter!r}")

    @property
    def only_sealed(self) -> bool:
        """Whether an object is stored once only: nothing is put before its segment ends."""
        return self.max_puts == 1

    def puts(self, segment: int) -> int:
        """Return how many puts segment number `segment`, from 0, takes."""
        return max(_MIN_BALANCED_PUTS, segment) if self.max_puts is None else self.max_puts

    def interval(self, age: float, rng: random.Random) -> float:
        """Return the pause until the next put of a run of this age, in seconds."""
        pause = min(max(self.age_fraction * age, self.min_interval), self.max_interval)
        return pause * rng.uniform(1 - self.jitter, 1 + self.jitter)

    def first_phase(self, rng: random.Random) -> float:
        """Return the pause between a run's first put, at its opening, and the second: any part of an interval.

        So writers that were started together put at all times alike, from the first interval on.
        """
        return rng.random() * self.min_interval


class Backoff:
    """Pauses after errors: up to 0.2 s, then up to twice as long each time, at most 60 s; with full jitter."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._limit = _FIRST_BACKOFF_SECS

    def pause(self) -> float:
        """Return the next pause in seconds."""
        limit, self._limit = self._limit, min(self._limit * 2, _MAX_BACKOFF_SECS)
        return self._rng.uniform(0.0, limit)

    def reset(self) -> None:
        """Begin again after a success."""
        self._limit = _FIRST_BACKOFF_SECS
