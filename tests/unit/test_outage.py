"""When storage that fails is tried again."""

import random
import types

import pytest

from tbwriter._outage import Outage

NOW = 1000.0


@pytest.fixture
def pause_after(monkeypatch):
    """Return a function that notes a failed attempt and returns the pause after it, in seconds."""
    monkeypatch.setattr("tbwriter._outage.time", types.SimpleNamespace(monotonic=lambda: NOW))
    outage = Outage()

    def pause_after(stored=0):
        outage.failed(OSError("no"), "run", stored)
        return outage.retry_at - NOW

    return pause_after


def test_pauses_double_up_to_half_a_minute(pause_after):
    pauses = [pause_after() for _ in range(20)]
    for number, longest in enumerate([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, *[30.0] * 11]):
        assert 0.5 * longest - 1e-6 <= pauses[number] <= longest + 1e-6


def test_storage_that_takes_something_between_its_errors_is_tried_again_soon(pause_after):
    for _ in range(10):
        pause_after(stored=1000)
    assert pause_after(stored=1001) <= 0.1
    assert pause_after(stored=1001) <= 0.2


def test_the_jitter_takes_nothing_from_the_numbers_that_a_training_draws():
    """A run with an outage and one without must shuffle alike."""
    before = random.getstate()
    outage = Outage()
    for _ in range(3):
        outage.failed(OSError("no"), "run")
    assert random.getstate() == before


def test_an_outage_that_is_over_is_no_reason_for_what_comes_later():
    outage = Outage()
    assert outage.reason is None
    outage.failed(OSError("no"), "run")
    assert outage.reason == "no"
    outage.ended("run")
    assert (outage.reason, outage.last_error) == (None, "no")
