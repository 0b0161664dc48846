"""Wait for what another process or thread does: look often, give up at a deadline."""

import time

_LOOK_EVERY_SECS = 0.02


def wait_until(condition, *, within, what="it", every=_LOOK_EVERY_SECS):
    """Call `condition` until it returns something true, and return that.

    Args:
        condition: called without arguments.
        within: the deadline, in seconds from now.
        what: what is waited for, or a function that tells; for the message.
        every: pause between two looks, in seconds.

    Raises:
        AssertionError: it did not become true in time.
    """
    deadline = time.monotonic() + within
    while True:
        late = time.monotonic() >= deadline  # asked before the last look: a slow look counts
        result = condition()
        if result:
            return result
        assert not late, f"{what() if callable(what) else what}: not within {within} s"
        time.sleep(every)


def wait_for_moment(moment):
    """Wait until `time.monotonic()` is `moment`, for what happens at a given time and not on a condition."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)
