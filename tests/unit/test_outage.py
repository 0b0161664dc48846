"""When storage that fails is tried again."""

import time

import pytest

from tbwriter._outage import Outage


@pytest.fixture
def pause_after():
    """Return a function that notes a failed attempt and returns the pause after it, in seconds."""
    outage = Outage()

    def pause_after(stored=0):
        outage.failed(OSError("no"), "run", stored)
        return outage.retry_at - time.monotonic()

    return pause_after


def test_pauses_double_up_to_half_a_minute(pause_after):
    pauses = [pause_after() for _ in range(20)]
    assert pauses[0] <= 0.1
    assert 0.5 * 3.2 - 1 < pauses[5] <= 3.2
    assert 14 < max(pauses) <= 30


def test_storage_that_takes_something_between_its_errors_is_tried_again_soon(pause_after):
    for _ in range(10):
        pause_after(stored=1000)
    assert pause_after(stored=1001) <= 0.1
    assert pause_after(stored=1001) <= 0.2
