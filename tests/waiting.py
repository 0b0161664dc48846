"""Wait for something that another process does: look often, give up at a deadline."""

import time

_LOOK_EVERY_SECS = 0.02


def wait_until(condition, *, within, what="it", every=_LOOK_EVERY_SECS):
    """Call `condition` until it returns something true, and return that.

    Raises:
        AssertionError: it is not true `within` seconds.
    """
    deadline = time.monotonic() + within
    while True:
        late = time.monotonic() >= deadline  # asked before the last look: a slow look counts
        result = condition()
        if result:
            return result
        assert not late, f"{what() if callable(what) else what}: not within {within} s"
        time.sleep(every)
