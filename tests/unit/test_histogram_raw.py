import duck
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tbwriter._summary import HistogramRaw


def raw(limits, counts, minimum=0.0, maximum=3.0, told=None):
    told = set() if told is None else told
    return HistogramRaw.of(
        "w", minimum=minimum, maximum=maximum, unshown=(6, 1.5, 2), limits=limits, counts=counts, told=told
    )


def rows(*args, **kwargs):
    (value,) = raw(*args, **kwargs).values(True)
    return np.frombuffer(value.tensor.tensor_content, "<f8").reshape(-1, 3).tolist()


def test_buckets_lie_between_the_limits_and_the_outer_edges_are_the_datas():
    assert rows([1, 2, 4], [1, 2, 3], 0.5, 3.5) == [[0.5, 1, 1], [1, 2, 2], [2, 3.5, 3]]


def test_empty_buckets_at_the_ends_are_left_out():
    # As torch writes them: an infinite last limit, empty buckets around.
    assert rows([0, 1, 2, 3, np.inf], [0, 2, 0, 1, 0], 0.5, 2.5) == [[0.5, 1, 2], [1, 2, 0], [2, 2.5, 1]]


@pytest.mark.parametrize("wrap", [duck.Asnumpy, duck.ArrayForm, np.ndarray.tolist])
def test_buckets_may_be_anything_with_numbers(wrap):
    assert rows(wrap(np.array([1.0, 3.0])), wrap(np.array([1, 2]))) == [[0, 1, 1], [1, 3, 2]]


def test_one_value_has_a_bucket_that_can_be_drawn():
    assert rows([2.0], [5], 2.0, 2.0) == [[1.5, 2.5, 5]]


def test_no_values_make_no_histogram_and_are_told_once_a_tag(caplog):
    told = set()
    for _ in range(3):
        assert list(raw([1, 2], [0, 0], told=told).values(True)) == []
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "histogram 'w': all counts are 0, nothing is added. Said once for this tag"


@given(hnp.arrays(np.float64, st.integers(1, 50), elements=st.floats(-1e6, 1e6)), st.integers(1, 20))
def test_what_numpy_counts_is_taken(values, bins):
    try:
        counts, edges = np.histogram(values, bins)
    except ValueError:  # values so close that there are no floats for as many edges between them
        reject()
    got = np.array(rows(edges[1:], counts, values.min(), values.max()))
    assert got[:, 2].sum() == len(values)
    assert (got[:, 1] >= got[:, 0]).all()


def test_as_many_limits_as_counts_are_wanted():
    with pytest.raises(
        ValueError,
        match=r"^tag 'w': bucket_limits and bucket_counts must be of one shape \(k,\), got \(3,\) and \(2,\)",
    ):
        raw([0, 1, 2], [1, 2])


@pytest.mark.parametrize("limits", [[1, 1], [2, 1], [np.nan, 1]])
def test_limits_that_do_not_rise_are_refused_by_tag(limits):
    with pytest.raises(ValueError, match=r"^tag 'w': bucket_limits must rise, got "):
        raw(limits, [1, 1])


@pytest.mark.parametrize("counts", [[-1, 1], [np.nan, 1], [np.inf, 1]])
def test_counts_that_are_none_are_refused_by_tag(counts):
    with pytest.raises(ValueError, match=r"^tag 'w': bucket_counts must be finite and not negative, got "):
        raw([1, 2], counts)


def test_ends_that_fall_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'w': min and max must rise, got 2.0 and 1.0"):
        raw([1, 2], [1, 1], 2, 1)


@pytest.mark.parametrize(
    ("limits", "counts", "low", "high"),
    [
        ([1, 2, 4], [0, 3, 2], 1, 4),  # the left edge of the first bucket in use is the limit before it
        ([1, 2, 4], [5, 3, 2], 0, 4),  # the first bucket of all has none: it gets its neighbour's width
        ([1, 2, np.inf], [0, 3, 2], 1, 3),  # as does one without an end
        ([1, 2, np.finfo(np.float64).max], [0, 3, 2], 1, 3),  # TensorFlow's word for that
        ([-np.inf, 2, 4], [0, 3, 2], 0, 4),
        ([7], [5], 6, 7),
        ([np.inf], [5], -1, 0),
    ],
)
@pytest.mark.parametrize("spoilt", [np.nan, np.inf])
def test_ends_that_a_nan_has_spoilt_are_those_of_the_buckets(limits, counts, low, high, spoilt):
    got = rows(limits, counts, -spoilt, spoilt)
    assert (got[0][0], got[-1][1]) == (low, high)
    assert [count for *_, count in got] == [count for count in counts if count]


@pytest.mark.parametrize(("minimum", "maximum"), [(np.nan, 3.5), (0.5, np.nan)])
def test_of_two_ends_the_good_one_stays(minimum, maximum):
    got = rows([1, 2, 4], [0, 3, 2], minimum, maximum)
    assert (got[0][0], got[-1][1]) == (1 if np.isnan(minimum) else 0.5, 4 if np.isnan(maximum) else 3.5)


def test_spoilt_ends_are_told_once_a_tag(caplog):
    told = set()
    for _ in range(3):
        raw([1, 2], [1, 1], np.nan, np.nan, told)
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("tag 'w': min and max are not finite (nan and nan)")


def test_ends_within_the_buckets_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'w': min and max must enclose where .* meet, 1.0 to 1.0, got "):
        raw([1, 2], [1, 1], 0, 0.5)
