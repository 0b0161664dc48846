import logging

import numpy as np
import pytest

from tbwriter._summary import as_series

LOGGER = "tbwriter._summary._series"


def series(values, steps, wall_times=None, told=None):
    return as_series("loss", values, steps, wall_times, now=1700000000.0, told=set() if told is None else told)


@pytest.mark.parametrize(
    "values",
    [
        [1.5, 2.0, -3.0],
        (1.5, 2.0, -3.0),
        np.array([1.5, 2.0, -3.0], np.float32),
        np.array([1.5, 2.0, -3.0], np.float16),
        np.array([1.5, 2.0, -3.0], ">f8"),
        np.array([1.5, 9.0, 2.0, 9.0, -3.0])[::2],
    ],
)
def test_values_of_any_real_dtype_become_float32(values):
    points = series(values, [1, 2, 3])
    assert points.values.dtype == np.float32
    assert points.values.tolist() == [1.5, 2.0, -3.0]


@pytest.mark.parametrize(
    "steps",
    [
        [7, 0, -1],
        [7.0, 0.0, -1.0],
        np.array([7, 0, -1], np.int8),
        np.array([7, 0, -1], ">i8"),
        np.array([7, 0, -1], np.float16),
    ],
)
def test_steps_of_any_whole_dtype_become_int64(steps):
    points = series([1.0, 2.0, 3.0], steps)
    assert points.steps.dtype == np.int64
    assert points.steps.tolist() == [-1, 0, 7]


def test_points_are_put_in_the_order_of_their_steps_and_of_one_step_stay_as_given():
    points = series([1.0, 2.0, 3.0, 4.0, 5.0], [7, 3, 7, 3, 0], [10, 20, 30, 40, 50])
    assert points.steps.tolist() == [0, 3, 3, 7, 7]
    assert points.values.tolist() == [5.0, 2.0, 4.0, 1.0, 3.0]
    assert points.wall_times.tolist() == [50.0, 20.0, 40.0, 10.0, 30.0]


def test_unsigned_steps_up_to_int64_are_kept():
    assert series([1.0], np.array([2**63 - 1], np.uint64)).steps.tolist() == [2**63 - 1]


def test_without_wall_times_all_points_have_the_time_of_the_call():
    assert series([1.0, 2.0], [1, 2]).wall_times.tolist() == [1700000000.0, 1700000000.0]


def test_wall_times_are_kept():
    assert series([1.0, 2.0], [1, 2], [5, 6.25]).wall_times.tolist() == [5.0, 6.25]


def test_a_series_is_a_copy():
    values, steps, times = np.ones(2, np.float32), np.arange(2), np.ones(2)
    points = series(values, steps, times)
    values[:], steps[:], times[:] = 9, 9, 9
    assert points.values.tolist() == [1.0, 1.0]
    assert points.steps.tolist() == [0, 1]
    assert points.wall_times.tolist() == [1.0, 1.0]


def test_an_empty_series_is_accepted():
    assert len(series([], []).values) == 0


def test_nan_and_infinities_are_kept():
    np.testing.assert_equal(
        series([np.nan, np.inf, -np.inf], [1, 2, 3]).values, np.array([np.nan, np.inf, -np.inf], np.float32)
    )


@pytest.mark.parametrize(
    ("values", "steps", "wall_times", "message"),
    [
        ([1.0, 2.0], [1], None, r"got values of shape \(2,\), steps of shape \(1,\), wall_times of shape \(2,\)"),
        ([1.0], [1], [1.0, 2.0], r"got values of shape \(1,\), steps of shape \(1,\), wall_times of shape \(2,\)"),
        ([[1.0]], [[1]], None, r"shape \(1, 1\).*want one length and one dimension"),
        (1.0, 1, None, r"shape \(\).*want one length and one dimension"),
        ([1.0], [1.5], None, r"steps must be whole numbers within int64"),
        ([1.0], [np.nan], None, r"steps must be whole numbers within int64"),
        ([1.0], [np.inf], None, r"steps must be whole numbers within int64"),
        ([1.0], [1e19], None, r"steps must be whole numbers within int64"),
        ([1.0], np.array([2**63], np.uint64), None, r"steps must lie within int64, got 9223372036854775808"),
        ([1.0], [1], [np.nan], r"wall_times must be finite seconds since 1970 and not 0"),
        ([1.0], [1], [np.inf], r"wall_times must be finite seconds since 1970 and not 0"),
        ([1.0], [1], [0.0], r"wall_times must be finite seconds since 1970 and not 0"),
    ],
)
def test_a_series_that_does_not_fit_is_refused_by_tag(values, steps, wall_times, message):
    with pytest.raises(ValueError, match=rf"^tag 'loss': .*{message}"):
        series(values, steps, wall_times)


@pytest.mark.parametrize(
    ("values", "steps", "wall_times"),
    [
        (["1.0"], [1], None),
        ([1.0 + 2j], [1], None),
        (None, [1], None),
        ([None], [1], None),
        ("1.0", [1], None),
        ([1.0], ["1"], None),
        ([1.0], None, None),
        ([1.0], [1], ["now"]),
    ],
)
def test_what_is_no_number_is_refused_by_tag(values, steps, wall_times):
    with pytest.raises(TypeError, match=r"tag 'loss': got .*, want "):
        series(values, steps, wall_times)


def test_counters_beyond_2_to_the_24_are_told_once(caplog):
    told = set()
    with caplog.at_level(logging.WARNING, LOGGER):
        assert series([2**24 + 1], [1], told=told).values.tolist() == [2**24]
        series([2**24 + 3], [2], told=told)
    (record,) = caplog.records
    assert "tag 'loss': values beyond 2**24 are rounded" in record.getMessage()


def test_values_beyond_float32_are_told_once(caplog):
    told = set()
    with caplog.at_level(logging.WARNING, LOGGER):
        assert series([1e39, -1e39], [1, 2], told=told).values.tolist() == [np.inf, -np.inf]
        series([1e39], [3], told=told)
    (record,) = caplog.records
    assert "tag 'loss': values beyond float32 are stored as infinity" in record.getMessage()


def test_fractions_and_infinities_are_not_told(caplog):
    with caplog.at_level(logging.WARNING, LOGGER):
        series([0.1, 1e30, np.inf, -np.inf, np.nan], range(5))
        series([2**24, -(2**24)], [1, 2])
    assert caplog.records == []
