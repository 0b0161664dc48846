"""Which steps are collected, without MindSpore."""

import numpy as np
import pytest

from msbridge._schedule import Schedule


def collected(collect_freq, last=30):
    schedule = Schedule(collect_freq)
    return [step for step in range(1, last + 1) if schedule.due(step, step)]


def test_an_int_collects_its_multiples():
    assert collected(10) == [10, 20, 30]
    assert collected(np.int64(15)) == [15, 30]


def test_a_schedule_changes_at_its_steps():
    assert collected({0: 1, 4: 5, 21: 10}) == [1, 2, 3, 5, 10, 15, 20, 30]


def test_a_callable_answers_with_yes_or_with_a_frequency():
    assert collected(lambda step: step in {3, 7}) == [3, 7]
    assert collected(lambda step: np.bool_(step == 5)) == [5]
    assert collected(lambda step: 2 if step < 6 else 10) == [2, 4, 10, 20, 30]
    assert collected(lambda _: 0) == []


@pytest.mark.parametrize("freq", [7, {0: 3, 10: 100, 15: 4}, lambda step: step % 7 == 0])
def test_a_sink_is_due_when_a_step_inside_it_is(freq):
    for size in (1, 2, 5, 30):
        for first in range(1, 31 - size):
            last = first + size - 1
            assert Schedule(freq).due(first, last) == any(
                Schedule(freq).due(step, step) for step in range(first, last + 1)
            )


@pytest.mark.parametrize("wrong", [0, -1, True, "10", 2.0, None, {}, {5: 1}, {0: 0}, {"0": 1}])
def test_nonsense_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="collect_freq"):
        Schedule(wrong)
