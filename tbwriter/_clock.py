"""The steady clock and the pause of the writer's own threads, named as in `time`.

Tests replace `time.monotonic` and `time.sleep`, for a moment and for the whole process: unittest.mock in the module
`time`, freezegun under every module's own name too. A writer that asked those would store nothing while the clock
stands still, and lose values when the pause raises. Neither looks into a partial. Wall times stay those of `time.time`:
whoever freezes the day means them.
"""

from __future__ import annotations

import functools
import time

# The clock behind time.monotonic, where it has a name of its own: that one is real even while time.monotonic is not.
monotonic = (
    functools.partial(time.clock_gettime, time.CLOCK_MONOTONIC)
    if hasattr(time, "clock_gettime") and hasattr(time, "CLOCK_MONOTONIC")
    else functools.partial(time.monotonic)
)
"""Seconds that only grow, from an unknown moment on."""

sleep = functools.partial(time.sleep)
"""Wait for so many seconds."""
