import logging
import tracemalloc
import warnings

import duck
import numpy as np
import pytest
from event_files import scalars, values
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tbwriter import SummaryWriter
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import Histogram
from tbwriter._summary._counting import RULES
from tbwriter._summary._histogram import count

LOGGER = "tbwriter._summary._histogram"
MIB = 1 << 20
FLOAT64_MAX = 1.7976931348623157e308


def finite(array):
    wide = np.asarray(array).reshape(-1).astype(np.float64)
    return wide[np.isfinite(wide)]


def check_shape(array, rows):
    """Check what every histogram promises, whatever its buckets."""
    numbers = finite(array)
    assert rows.dtype == np.float64
    assert rows.shape[1] == 3
    assert np.isfinite(rows).all()
    left, right, counts = rows.T
    assert (right > left).all()
    assert (left[1:] == right[:-1]).all()
    assert counts.sum() == numbers.size
    if numbers.size:
        assert left[0] <= numbers.min()
        assert right[-1] >= numbers.max()


def check(array, rows):
    """Check the default buckets: what is promised, and each count against NumPy's."""
    check_shape(array, rows)
    assert len(rows) <= 64
    if len(rows):
        # numpy.histogram with edges: [left, right), the last one [left, right].
        exact, _ = np.histogram(finite(array), np.append(rows[:, 0], rows[-1, 1]))
        assert rows[:, 2].tolist() == exact.tolist()


def histogram(values, bins="tensorflow", max_bins=None, told=None, copy=True):
    told = set() if told is None else told
    return Histogram.of("w", values, bins=bins, max_bins=max_bins, copy=copy, told=told)


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


# ---- the default buckets, over all data


shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=8)


@given(hnp.arrays(np.float32, shapes, elements=st.floats(width=32)))
def test_every_finite_float32_is_counted_in_its_bucket(array):
    buckets = count(array)
    check(array, buckets.rows)
    assert buckets.nan == np.isnan(array).sum()
    assert buckets.inf == np.isinf(array).sum()


@given(hnp.arrays(np.float16, shapes, elements=st.floats(width=16)))
def test_every_finite_float16_is_counted_in_its_bucket(array):
    check(array, count(array).rows)


@given(hnp.arrays(np.float64, shapes))
def test_every_finite_float64_is_counted(array):
    rows = count(array).rows
    check_shape(array, rows)
    assert len(rows) <= 64


@given(hnp.arrays(st.sampled_from([np.bool_, "i1", "u1", "i2", "u2", "i4", "u4", ">i4"]), shapes))
def test_every_integer_up_to_32_bits_is_counted_in_its_bucket(array):
    check(array, count(array).rows)


@given(hnp.arrays(st.sampled_from(["i8", "u8", ">i8"]), shapes))
def test_every_64_bit_integer_is_counted(array):
    rows = count(array).rows
    check_shape(array, rows)
    assert len(rows) <= 64


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 300),
    st.sampled_from([1.0, 0.5, 0.1, 1e-3, 2.0**-20, 1e30, 1e-30]),
    st.sampled_from([0.0, 1.0, -1.0, 1000.0, -70.0]),
)
def test_values_on_a_grid_are_counted_in_their_buckets(seed, reach, scale, offset):
    # Quantised weights, counters, small integers: values that meet the edges of buckets again and again.
    steps = np.random.default_rng(seed).integers(-reach, reach + 1, 500)
    array = (steps * scale + offset).astype(np.float32)
    check(array, count(array).rows)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-20, 1e20]), st.sampled_from([0.0, 3.0, 1e3, 1e6]))
def test_normal_values_of_any_scale_and_offset_are_counted_in_their_buckets(seed, scale, offset):
    array = ((np.random.default_rng(seed).normal(size=500) + offset) * scale).astype(np.float32)
    check(array, count(array).rows)


# ---- the default buckets, one kind of data at a time


def test_normal_values_spread_over_most_of_64_buckets():
    rows = count(np.random.default_rng(0).normal(size=100_000).astype(np.float32)).rows
    check_shape(np.zeros(0), rows[:0])
    assert 48 <= len(rows) <= 64
    width = rows[:, 1] - rows[:, 0]
    assert width.max() < 3 * (rows[-1, 1] - rows[0, 0]) / 64


def test_the_buckets_run_from_the_minimum_to_the_maximum():
    array = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    rows = count(array).rows
    assert rows[0, 0] == array.min()
    assert rows[-1, 1] == array.max()


def test_whole_numbers_are_counted_to_the_right_of_an_edge():
    # The integers from -64 to 64 lie on the edges that the bits of floats give: one of each in a bucket 1 wide,
    # two where it is 2 wide, and the maximum in the last one.
    array = np.arange(-64, 65).astype(np.float32)
    check(array, count(array).rows)


def test_a_maximum_on_an_edge_makes_no_bucket_without_width():
    array = (np.arange(101) * 0.1).astype(np.float32)
    rows = count(array).rows
    assert (rows[:, 1] > rows[:, 0]).all()
    check(array, rows)


def test_minus_zero_is_zero():
    array = np.array([-0.0] * 5 + [0.0] * 7 + [-1.0, 100.0], np.float32)
    rows = count(array).rows
    check(array, rows)
    assert (rows[:, 2] != 5).all()


def test_two_values_far_apart_fill_the_first_and_the_last_bucket():
    rows = count(np.array([-1e30, 1e-30, 1e30], np.float32)).rows
    check(np.array([-1e30, 1e-30, 1e30], np.float32), rows)
    assert rows[0, 2] == 1
    assert rows[-1, 2] == 1


@pytest.mark.parametrize(
    "value", [0.0, 1.5, -1.5, 1e30, -1e30, 1e300, 1e-300, 5e-324, FLOAT64_MAX, -FLOAT64_MAX, 2.0**60]
)
def test_equal_values_make_one_bucket_with_a_width(value):
    array = np.full((3, 4), value)
    rows = count(array).rows
    assert len(rows) == 1
    check(array, rows)


def test_equal_values_make_a_bucket_of_width_1_around_them_as_tensorboards_writer_does():
    # tensorboard/plugins/histogram/summary.py, pb(): [center - 0.5, center + 0.5, size].
    assert count(np.full(7, 3.0)).rows.tolist() == [[2.5, 3.5, 7.0]]


def test_one_value_is_enough():
    assert count(np.array(3.0)).rows.tolist() == [[2.5, 3.5, 1.0]]


def test_bool_is_counted_as_0_and_1():
    array = np.array([True, False, True, True])
    rows = count(array).rows
    check(array, rows)
    assert rows[0, 2] == 1
    assert rows[-1, 2] == 3
    assert rows[0, 0] == 0.0
    assert rows[-1, 1] == 1.0


def test_2_to_the_24_plus_1_equal_values_are_all_counted():
    # A float32 sum of ones stops at 16 777 216.
    assert count(np.zeros(2**24 + 1, np.int8)).rows[:, 2].tolist() == [2**24 + 1]


EXTREMES = {
    "1e300": [1e300, 1.0, -1e300],
    "1e25": [1e25, 1e24, -3e25],
    "1e-300": [1e-300, 2e-300, -5e-300],
    "subnormal float64": [5e-324, 1e-323, 2e-308],
    "two subnormals": [5e-324, 1e-323],
    "the largest float64": [-1.7e308, 0.0, 1.7e308],
    "the limits of float64": [-FLOAT64_MAX, FLOAT64_MAX],
    "near the limit": [1.6e308, 1.65e308, 1.7e308],
    "one ulp apart": [1.0, 1.0 + 2**-52],
    "a few ulps apart": [1.0, 1.0 + 2**-52, 1.0 + 40 * 2**-52],
    "a hundred ulps apart": 1.0 + np.arange(100) * 2.0**-52,
    "one outlier": [*np.linspace(0, 1e-6, 1000), 1e30],
    "zero and a subnormal": [0.0, 5e-324],
    "mixed zeros": [0.0, -0.0],
}


@pytest.mark.parametrize("numbers", EXTREMES.values(), ids=EXTREMES)
def test_extreme_float64_values_are_all_counted(numbers):
    array = np.array(numbers)
    check(array, count(array).rows)


@pytest.mark.parametrize(
    "numbers",
    [[1e-45, 3e-45], [1e-45, 1e-40, -1e-42], [3.4e38, -3.4e38], [0.0, 1e-45], [1.0, 1.0000001]],
    ids=["subnormals", "signed subnormals", "limits", "zero and a subnormal", "one ulp apart"],
)
def test_extreme_float32_values_are_all_counted(numbers):
    array = np.array(numbers, np.float32)
    check(array, count(array).rows)


@pytest.mark.parametrize(
    "array",
    [
        np.array([-(2**63), 2**63 - 1, 0, 5]),
        np.array([2**53, 2**53 + 2, 2**60]),
        np.array([2**64 - 1, 0, 2**63], np.uint64),
        np.array([2**64 - 1, 2**64 - 1], np.uint64),
        np.arange(-(2**31), 2**31, 2**24, dtype=np.int32),
        np.arange(256, dtype=np.uint8),
        np.arange(-128, 128).astype(np.int8),
    ],
)
def test_integers_of_any_size_are_all_counted(array):
    check(array, count(array).rows)


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", ">i2", ">i4", ">i8", "<f4"])
def test_byte_order_does_not_matter(dtype):
    numbers = np.arange(-50, 50)
    assert (
        count(numbers.astype(dtype)).rows.tolist()
        == count(numbers.astype(np.dtype(dtype).newbyteorder("="))).rows.tolist()
    )


@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a[::3, 1::2], np.asfortranarray],
    ids=["transposed", "strided", "reversed", "strided twice", "Fortran order"],
)
def test_layout_in_memory_does_not_matter(view):
    array = view(np.random.default_rng(0).normal(size=(60, 70)).astype(np.float32))
    assert count(array).rows.tolist() == count(np.array(array).copy("C").reshape(-1)).rows.tolist()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_is_counted_like_an_array():
    (value,) = histogram(np.matrix([[1.0, 2.0], [3.0, 4.0]])).values(True)
    assert rows_of(value)[:, 2].sum() == 4


def test_bfloat16_is_counted_exactly():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numbers = np.random.default_rng(0).normal(size=1000).astype(ml_dtypes.bfloat16)
    (value,) = histogram(numbers).values(True)
    rows = rows_of(value)
    check(numbers.astype(np.float32), rows)
    assert rows[0, 0] == float(numbers.astype(np.float32).min())


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_is_counted_exactly(kind):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numbers = np.random.default_rng(0).normal(size=1000).astype(getattr(ml_dtypes, kind))
    (value,) = histogram(numbers).values(True)
    check(numbers.astype(np.float32), rows_of(value))


def test_the_order_and_the_chunks_do_not_matter():
    # More values than are widened at a time, for float32 and float64.
    array = np.random.default_rng(0).normal(size=700_001)
    for dtype in (np.float32, np.float64):
        rows = count(array.astype(dtype)).rows
        check(array.astype(dtype), rows)
        assert count(np.sort(array.astype(dtype))).rows.tolist() == rows.tolist()


# ---- NaN, infinities, nothing


def test_97_finite_values_and_3_nan_count_97():
    array = np.linspace(-1, 1, 100).astype(np.float32)
    array[:3] = np.nan
    buckets = count(array)
    check(array, buckets.rows)
    assert buckets.rows[:, 2].sum() == 97
    assert (buckets.nan, buckets.inf) == (3, 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_infinities_are_counted_apart(dtype):
    buckets = count(np.array([np.inf, -np.inf, 1.0, 2.0, np.nan], dtype))
    assert buckets.rows[:, 2].sum() == 2
    assert (buckets.nan, buckets.inf) == (1, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "bins", ["tensorflow", 10, "auto", np.array([0.0, 1.0])], ids=["default", "10", "auto", "edges"]
)
def test_with_nothing_finite_there_is_no_histogram(value, dtype, bins):
    assert count(np.full((2, 3), value, dtype), bins).rows.shape == (0, 3)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_an_empty_array_makes_no_histogram(shape, dtype):
    buckets = count(np.zeros(shape, dtype))
    assert buckets.rows.shape == (0, 3)
    assert (buckets.nan, buckets.inf) == (0, 0)


def test_nan_in_one_chunk_only_is_found():
    array = np.zeros(200_000, np.float32)
    array[150_000] = np.nan
    array[:70_000] = np.inf
    buckets = count(array)
    assert (buckets.nan, buckets.inf) == (1, 70_000)
    assert buckets.rows[:, 2].sum() == 129_999


# ---- other buckets


NUMBERS = np.random.default_rng(1).normal(size=1000)


@pytest.mark.parametrize("bins", [1, 2, 10, 64, 100])
def test_a_number_of_bins_is_numpys(bins):
    counts, edges = np.histogram(NUMBERS, bins)
    rows = count(NUMBERS, bins).rows
    np.testing.assert_allclose(np.append(rows[:, 0], rows[-1, 1]), edges)
    assert rows[:, 2].tolist() == counts.tolist()


@pytest.mark.parametrize("rule", ["auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt"])
def test_a_rule_is_numpys(rule):
    counts, edges = np.histogram(NUMBERS, rule)
    rows = count(NUMBERS, rule).rows
    np.testing.assert_allclose(np.append(rows[:, 0], rows[-1, 1]), edges)
    assert rows[:, 2].tolist() == counts.tolist()


def test_edges_are_kept_and_what_lies_outside_is_left_out():
    rows = count(np.array([-5.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.1, np.nan, np.inf]), np.array([0.0, 1.0, 2.0])).rows
    assert rows.tolist() == [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.bool_])
def test_edges_count_what_numpy_counts(dtype):
    array = (NUMBERS * 3).astype(dtype)
    edges = np.array([-2.0, -0.5, 0.0, 0.25, 1.0, 4.0])
    rows = count(array, edges).rows
    assert rows[:, 2].tolist() == np.histogram(array.astype(np.float64), edges)[0].tolist()


@pytest.mark.parametrize("bins", [30, *RULES])
@pytest.mark.parametrize(
    "numbers",
    [[5.0, 5.0], [1.0, 1.0 + 2**-52], [-1.7e308, 0.0, 1.7e308], [-1.7e308, 1.7e308], [5e-324, 1e-323], [1e-320, 1e300]],
)
def test_a_number_of_bins_and_rules_hold_for_extreme_values(numbers, bins):
    check_shape(np.array(numbers), count(np.array(numbers), bins).rows)


def test_a_rule_that_asks_for_millions_of_bins_is_bounded():
    # Freedman-Diaconis by the quartiles: one outlier, and it asks for 1e36 buckets.
    array = np.array([*np.linspace(0, 1e-6, 1000), 1e30])
    rows = count(array, "fd").rows
    assert len(rows) <= 10_000
    check_shape(array, rows)


@pytest.mark.parametrize("max_bins", [1, 2, 7, 63, 1000])
def test_max_bins_merges_neighbours(max_bins):
    whole = count(NUMBERS, 64).rows
    merged = count(NUMBERS, 64, max_bins).rows
    assert len(merged) == min(max_bins, 64)
    check_shape(NUMBERS, merged)
    assert set(merged[:, 0]) <= set(whole[:, 0])
    assert merged[-1, 1] == whole[-1, 1]


def test_max_bins_holds_for_the_default_too():
    merged = count(NUMBERS, max_bins=5).rows
    assert len(merged) == 5
    check_shape(NUMBERS, merged)


# ---- what is refused, where it is passed


@pytest.mark.parametrize(
    "edges",
    [[], [1.0], [1.0, 1.0], [2.0, 1.0], [0.0, np.nan], [0.0, np.inf], [[0.0, 1.0]], 1.5, None],
    ids=["none", "one", "equal", "falling", "nan", "inf", "2-d", "a float", "None"],
)
def test_edges_that_do_not_rise_are_refused_by_tag(edges):
    with pytest.raises(ValueError, match=r"^tag 'w': bin edges must be at least two finite, rising numbers, got "):
        histogram([1.0], edges)


@pytest.mark.parametrize("bins", [100_001, 10**13, 10**5000], ids=["one", "many", "huge"])
def test_more_bins_than_anything_shows_are_refused_by_tag(bins):
    with pytest.raises(ValueError, match=r"^tag 'w': bins must be from 1 to 100000, got int"):
        histogram([1.0], bins=bins)


@pytest.mark.parametrize("bins", [0, -1, np.int64(0)])
def test_less_than_one_bin_is_refused_by_tag(bins):
    with pytest.raises(ValueError, match=r"^tag 'w': bins must be from 1 to 100000, got int (0|-1)$"):
        histogram([1.0], bins)


def test_an_unknown_rule_is_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'w': .*'tensorflo'"):
        histogram([1.0], "tensorflo")


def test_edges_that_are_no_numbers_are_refused_by_tag():
    with pytest.raises((TypeError, ValueError), match=r"^tag 'w': "):
        histogram([1.0], ["a", "b"])


@pytest.mark.parametrize("max_bins", [0, -1, 1.5, "7"])
def test_max_bins_that_is_no_positive_integer_is_refused_by_tag(max_bins):
    with pytest.raises((TypeError, ValueError), match=r"^tag 'w': max_bins must be .*, got "):
        histogram([1.0], 10, max_bins)


@pytest.mark.parametrize("values", [None, "abc", {}, [1 + 2j], np.array([None]), object(), ["a"]])
def test_what_cannot_be_counted_is_refused_by_tag(values):
    with pytest.raises(TypeError, match=r"^tag 'w': .*want "):
        histogram(values)


# ---- the summary


def rows_of(value):
    return np.frombuffer(value.tensor.tensor_content, "<f8").reshape(-1, 3)


def test_a_histogram_is_a_float64_tensor_of_shape_k_3():
    (value,) = histogram(NUMBERS).values(True)
    assert value.tag == "w"
    assert value.tensor.dtype == pb.DT_DOUBLE
    rows, columns = (dim.size for dim in value.tensor.tensor_shape.dim)
    assert columns == 3
    assert len(value.tensor.tensor_content) == rows * 3 * 8
    assert rows_of(value).tolist() == count(NUMBERS).rows.tolist()


def test_the_first_value_carries_the_metadata_and_later_ones_none():
    (first,) = histogram(NUMBERS).values(True)
    (later,) = histogram(NUMBERS).values(False)
    assert first.metadata.plugin_data.plugin_name == "histograms"
    assert first.metadata.data_class == pb.DATA_CLASS_TENSOR
    assert not later.HasField("metadata")


def test_nan_and_infinite_values_are_offered_as_scalars_beside_it():
    value, nan, inf = histogram([1.0, 2.0, np.nan, np.nan, np.nan, np.inf]).values(True)
    assert value.tag == "w"
    assert (nan.tag, nan.simple_value) == ("w/nan_count", 3.0)
    assert (inf.tag, inf.simple_value) == ("w/inf_count", 1.0)


def test_without_nan_there_is_no_count_of_them():
    assert [value.tag for value in histogram([1.0, 2.0]).values(True)] == ["w"]


def test_all_nan_gives_the_count_of_nan_only():
    assert [(value.tag, value.simple_value) for value in histogram([np.nan, np.nan]).values(True)] == [
        ("w/nan_count", 2.0)
    ]


def test_an_empty_array_gives_nothing():
    assert list(histogram([]).values(True)) == []


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([], "histogram 'w': none of 0 values are counted"),
        ([np.nan, np.nan], "histogram 'w': none of 2 values are counted: 2 are NaN, 0 infinite"),
        ([1.0, np.nan, np.inf, -np.inf], "histogram 'w': 1 of 4 values are counted: 1 are NaN, 2 infinite"),
    ],
)
def test_what_is_left_out_is_told_once_a_tag(array, message, caplog):
    told = set()
    with caplog.at_level(logging.WARNING, LOGGER):
        for _ in range(3):
            histogram(array, told=told).values(True)
    (text,) = messages(caplog)
    assert text.startswith(message)


def test_values_that_all_lie_outside_the_edges_are_told_once(caplog):
    told = set()
    with caplog.at_level(logging.WARNING, LOGGER):
        for _ in range(3):
            out = histogram([5.0, 6.0], [0.0, 1.0], told=told).values(True)
            assert sum(rows_of(value)[:, 2].sum() for value in out) == 0
    (text,) = messages(caplog)
    assert "histogram 'w'" in text


def test_other_tags_are_told_for_themselves(caplog):
    told = set()
    with caplog.at_level(logging.WARNING, LOGGER):
        for tag in ("a", "b", "a"):
            Histogram.of(tag, [], bins=10, max_bins=None, copy=True, told=told).values(True)
    assert len(messages(caplog)) == 2


def test_good_histograms_say_nothing(caplog):
    with caplog.at_level(logging.WARNING, LOGGER):
        histogram(NUMBERS).values(True)
        histogram([1.0]).values(True)
    assert messages(caplog) == []


def test_a_copy_does_not_change_with_the_array():
    array = np.zeros(10)
    waiting = histogram(array, copy=True)
    array[:] = 7.0
    (value,) = waiting.values(True)
    assert rows_of(value).tolist() == [[-0.5, 0.5, 10.0]]


def test_without_a_copy_the_array_is_shared():
    array = np.zeros(10, np.float32)
    assert np.shares_memory(histogram(array, copy=False).array, array)


def test_nbytes_is_the_memory_that_waits():
    assert histogram(np.zeros((10, 10), np.float32)).nbytes == 400


def test_a_device_tensor_is_read_once_when_it_is_added():
    tensor = duck.Asnumpy(np.arange(5.0))
    histogram(tensor).values(True)
    assert tensor.reads == 1


def test_a_user_who_makes_numpy_and_warnings_raise_is_not_stopped():
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for array in ([np.nan, 1.0], [5e-324, 1e-323], [-1.7e308, 1.7e308], [np.inf, -np.inf]):
            histogram(array).values(True)
            histogram(np.array(array, np.float16) if array[-1] == 1.0 else array, 10).values(True)


@pytest.mark.parametrize("first", [[], [np.nan, np.nan], [np.inf]], ids=["empty", "all NaN", "infinite"])
def test_a_tag_that_begins_with_nothing_to_count_gets_its_metadata_later(tmp_path, first):
    # Readers show no tensor of a tag whose metadata they have not seen.
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", first, 0)
        writer.add_histogram("w", [1.0, 2.0], 1)
        writer.add_histogram("w", [1.0, 2.0], 2)
        writer.add_scalar("after", 1.0, 2)
    found = [(step, value.has_metadata) for tag, step, value in values(tmp_path) if tag == "w"]
    assert found == [(1, True), (2, False)]
    assert scalars(tmp_path, "after") == [(2, 1.0)]


# ---- memory


def extra_memory(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def large():
    """20 million float32, 76 MiB, with some NaN."""
    array = np.random.default_rng(0).standard_normal(20_000_000, dtype=np.float32).reshape(4000, 5000)
    array[::100, ::100] = np.nan
    return array


@pytest.mark.parametrize(
    "view",
    [lambda a: a, lambda a: a.T, lambda a: a.reshape(40, 100, 5000).transpose(1, 2, 0), lambda a: a[:, ::2]],
    ids=["as it is", "transposed", "permuted", "strided"],
)
def test_counting_76_mib_takes_at_most_32_mib_more(large, view):
    array = view(large)
    assert extra_memory(lambda: count(array)) <= 32 * MIB


@pytest.mark.parametrize("bins", [100, np.linspace(-1.0, 1.0, 50)], ids=["number", "edges"])
def test_counting_by_given_bins_takes_at_most_32_mib_more(large, bins):
    assert extra_memory(lambda: count(large, bins)) <= 32 * MIB


def test_counting_narrow_data_takes_at_most_32_mib_more(large):
    array = large[:2000] * np.float32(1e-3) + np.float32(1.0)
    assert extra_memory(lambda: count(array)) <= 32 * MIB


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float16, np.int8])
def test_counting_other_dtypes_takes_at_most_32_mib_more(dtype):
    array = (np.arange(5_000_000) % 1000).astype(dtype)
    assert extra_memory(lambda: count(array)) <= 32 * MIB
