import array
import logging
import math
import warnings
from collections import deque
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import duck
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbwriter._summary import as_array, as_number, as_scalar, as_step, as_wall_time, check_tag

LOGGER = "tbwriter._summary._values"
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOAT32_MAX = 3.4028234663852886e38  # (2 - 2**-23) * 2**127


def scalar(value, told=None):
    return as_scalar(value, "loss", set() if told is None else told)


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


# ---- numbers


NUMBERS = [
    (1.5, 1.5),
    (7, 7.0),
    (True, 1.0),
    (False, 0.0),
    (np.float16(1.5), 1.5),
    (np.float32(1.5), 1.5),
    (np.float64(1.5), 1.5),
    (np.longdouble(1.5), 1.5),
    (np.int8(-7), -7.0),
    (np.int64(7), 7.0),
    (np.uint64(2**63), 2.0**63),
    (np.bool_(True), 1.0),
    (Decimal("1.5"), 1.5),
    (Fraction(3, 2), 1.5),
    (2**70, 2.0**70),
    (-(2**70), -(2.0**70)),
    (10**400, math.inf),
    (-(10**400), -math.inf),
    (Fraction(10**400), math.inf),
    (Fraction(-(10**400)), -math.inf),
    (Decimal("1e400"), math.inf),
    (Decimal("-Infinity"), -math.inf),
    (math.inf, math.inf),
    (-math.inf, -math.inf),
    (np.array(1.5), 1.5),
    (np.array([1.5]), 1.5),
    (np.array([[[1.5]]]), 1.5),
    (np.array([1.5], ">f4"), 1.5),
    (np.array(7, ">i8"), 7.0),
    (np.array(True), 1.0),
    (np.array(Decimal("1.5")), 1.5),
    (np.array([Fraction(3, 2)], object), 1.5),
    (np.array([2**70], object), 2.0**70),
    ([1.5], 1.5),
    ((7,), 7.0),
    ([[np.float32(1.5)]], 1.5),
    ([Decimal("1.5")], 1.5),
    (range(7, 8), 7.0),
    (deque([1.5]), 1.5),
    (duck.Asnumpy(1.5), 1.5),
    (duck.Asnumpy([[7]]), 7.0),
    (duck.RequiresGrad(1.5), 1.5),
    (duck.RequiresGrad([1.5]), 1.5),
    (duck.ArrayForm(1.5), 1.5),
    (duck.ArrayForm([7]), 7.0),
    (duck.NumpyForm(1.5), 1.5),
    (duck.ItemOnly(1.5), 1.5),
    (duck.ItemOnly(2**70), 2.0**70),
    (duck.FloatOnly(1.5), 1.5),
    (duck.IndexOnly(7), 7.0),
    (duck.Scalar(1.5), 1.5),
    (duck.Bfloat16([1.5]), 1.5),
]


@pytest.mark.parametrize(("value", "number"), NUMBERS, ids=[type(value).__name__ for value, _ in NUMBERS])
def test_any_real_number_of_size_1_is_taken(value, number):
    got = as_number(value, "loss")
    assert type(got) is float
    assert got == number


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        np.float16("nan"),
        Decimal("NaN"),
        np.array([np.nan]),
        [math.nan],
        duck.Asnumpy(np.nan),
        duck.Scalar(np.nan),
    ],
)
def test_nan_is_a_number_to_log(value):
    assert math.isnan(scalar(value))


def test_minus_zero_keeps_its_sign():
    assert math.copysign(1.0, scalar(-0.0)) == -1.0


def of_ml_dtypes(dtype):
    """Return a dtype of ml_dtypes, which has those below a byte since 0.5."""
    kind = getattr(pytest.importorskip("ml_dtypes"), dtype, None)
    return kind or pytest.skip(f"this ml_dtypes has no {dtype}")


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_dtypes_of_ml_dtypes_are_taken(dtype):
    kind = of_ml_dtypes(dtype)
    assert as_number(kind(1.5), "loss") == 1.5
    assert as_number(np.array(1.5, kind), "loss") == 1.5
    assert as_number(np.array([[1.5]], kind), "loss") == 1.5
    assert as_number([kind(1.5)], "loss") == 1.5


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (None, "NoneType None"),
        ("high", "str 'high'"),
        ("1.5", "str '1.5'"),
        (np.str_("1.5"), "str_ "),
        (b"1.5", "bytes b'1.5'"),
        ({"loss": 1.5}, "dict {'loss': 1.5}"),
        ({}, "dict {}"),
        ({1.5}, "set {1.5}"),
        (frozenset([1.5]), "frozenset "),
        (1.5 + 2j, "complex "),
        (np.complex64(1.5 + 2j), "complex64 "),
        (np.complex128(1.5), "complex128 "),
        (np.array(1.5 + 2j), r"ndarray of shape \(\) and dtype complex128"),
        ([1.5 + 2j], ""),
        (np.array("1.5"), r"ndarray of shape \(\) and dtype <U3"),
        (["1.5"], ""),
        ([None], "NoneType None"),
        (np.array([None], object), "NoneType None"),
        (np.datetime64("2024-01-01"), ""),
        (np.timedelta64(5, "s"), ""),
        (np.array([1], "m8[s]"), r"ndarray of shape \(1,\) and dtype timedelta64"),
        (object(), "object <object"),
        (len, "builtin_function_or_method "),
        (float, "type <class 'float'>"),
        (duck.ItemOnly("1.5"), ""),
    ],
)  # fmt: skip
def test_what_is_no_real_number_is_refused_by_tag(value, got):
    with pytest.raises(TypeError, match=rf"^tag 'loss': got {got}.*, want "):
        as_number(value, "loss")


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (np.ones(3), r"ndarray of shape \(3,\) and dtype float64"),
        (np.ones((2, 2), np.float16), r"ndarray of shape \(2, 2\) and dtype float16"),
        (np.ones(0), r"ndarray of shape \(0,\) and dtype float64"),
        ([], r"list \[\]"),
        ([1.5, 2.5], r"list \[1.5, 2.5\]"),
        ((), r"tuple \(\)"),
        (range(3), r"range range\(0, 3\)"),
        (duck.Asnumpy([1.5, 2.5]), r"Asnumpy of shape \(2,\) and dtype float64"),
        (duck.RequiresGrad([1.5, 2.5]), r"RequiresGrad of shape \(2,\) and dtype torch.float32"),
        (duck.Bfloat16([1.5, 2.5]), r"Bfloat16 of shape \(2,\) and dtype BFloat16"),
    ],
)
def test_several_numbers_or_none_are_refused_by_tag(value, got):
    with pytest.raises(ValueError, match=rf"^tag 'loss': got {got}, want a single number$"):
        as_number(value, "loss")


def test_long_values_are_cut_in_messages():
    with pytest.raises(TypeError) as info:
        as_number("x" * 10_000, "loss")
    assert len(str(info.value)) < 150


@pytest.mark.parametrize("error", [RuntimeError("device lost"), ValueError("no data"), TypeError("cannot convert")])
@pytest.mark.parametrize("broken", [duck.Broken, duck.BrokenArray])
@pytest.mark.parametrize("convert", [as_number, as_array])
def test_a_tensor_that_cannot_be_read_is_refused_by_tag_with_its_own_error(convert, broken, error):
    with pytest.raises(TypeError, match=rf"^tag 'loss': {broken.__name__} .*{error}") as info:
        convert(broken(error), "loss")
    assert info.value.__cause__ is error


# ---- bfloat16 on MindSpore: what is not cast on the device first kills the process


def test_a_bfloat16_tensor_is_cast_on_the_device_and_read_once():
    value = duck.Scalar(1.5)
    assert scalar(value) == 1.5
    assert value.casts == 1


@pytest.mark.parametrize("number", [2.0**24 + 2, 3e38, math.inf, -math.inf, math.nan])
def test_a_large_bfloat16_tensor_is_neither_compared_nor_printed(number):
    np.testing.assert_equal(scalar(duck.Scalar(number)), float(np.float32(number)))


def test_a_list_of_bfloat16_tensors_is_cast_on_the_device():
    assert as_array([duck.Scalar(1.5), duck.Scalar(2.5)], "w").tolist() == [1.5, 2.5]


def test_a_bfloat16_array_is_cast_on_the_device():
    assert as_array(duck.Bfloat16([1.5, 2.5]), "w").tolist() == [1.5, 2.5]


def test_several_bfloat16_tensors_are_refused_without_printing_them():
    with pytest.raises(ValueError, match=r"^tag 'loss': got list of 2 Scalar, want a single number$"):
        as_number([duck.Scalar(1.5), duck.Scalar(2.5)], "loss")


def test_a_bfloat16_tensor_as_step_is_cast_on_the_device():
    assert as_step(duck.Scalar(7.0), "loss") == 7


@pytest.mark.parametrize("number", [1.5, 2.0**24 + 2, 2.0**30, 1e39, math.inf])
def test_a_device_tensor_is_copied_to_the_host_once(number):
    value = duck.Asnumpy(number, np.float64)
    scalar(value)
    assert value.reads == 1


# ---- what float32 loses


@given(st.floats(allow_nan=False))
def test_a_scalar_is_the_nearest_float32_once_stored(value):
    with np.errstate(over="ignore"):
        assert np.float32(scalar(value)) == np.float32(value)


@pytest.mark.parametrize("value", [2**24 + 1, -(2**24) - 1, 2.0**24 + 1, np.int64(2**24 + 1), 2**53 + 1, 2**70 + 1])
def test_a_counter_that_float32_rounds_is_told_once_a_tag(value, caplog):
    told = set()
    with caplog.at_level(logging.WARNING, LOGGER):
        assert scalar(value, told) == float(np.float32(float(value)))
        scalar(value, told)
        as_scalar(value, "other", told)
    assert len(messages(caplog)) == 2
    assert "tag 'loss'" in messages(caplog)[0]
    assert "is rounded to" in messages(caplog)[0]
    assert "tag 'other'" in messages(caplog)[1]


@pytest.mark.parametrize(
    "value",
    [
        np.array(2**24 + 1),
        np.array([2**24 + 1], np.int32),
        [2**24 + 1],
        duck.Asnumpy(2**24 + 1),
        duck.ItemOnly(2**24 + 1),
    ],
)
def test_a_counter_in_an_array_is_told_too(value, caplog):
    with caplog.at_level(logging.WARNING, LOGGER):
        scalar(value)
    assert len(messages(caplog)) == 1
    assert "is rounded to 16777216" in messages(caplog)[0]


@pytest.mark.parametrize(
    "value", [1e39, -1e39, 10**39, 10**400, np.float64(1e39), Decimal("1e39"), np.longdouble("1e39"), [1e39]]
)
def test_a_value_beyond_float32_is_infinite_and_told_once(value, caplog):
    told = set()
    with caplog.at_level(logging.WARNING, LOGGER):
        assert math.isinf(scalar(value, told))
        scalar(value, told)
    assert len(messages(caplog)) == 1
    assert "is beyond float32 and stored as infinity" in messages(caplog)[0]


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        -1e-300,
        2**24,
        -(2**24),
        2**24 + 2,
        2**100,
        1e30,
        FLOAT32_MAX,
        math.nan,
        math.inf,
        -math.inf,
        np.float32("inf"),
        np.array(np.inf),
        [math.inf],
        Decimal("Infinity"),
        duck.Asnumpy(np.inf),
        duck.ItemOnly(math.inf),
        duck.FloatOnly(math.inf),
    ],
)
def test_what_float32_holds_or_only_rounds_as_a_fraction_is_not_told(value, caplog):
    with caplog.at_level(logging.WARNING, LOGGER):
        scalar(value)
    assert messages(caplog) == []


def test_the_largest_float32_is_kept():
    assert scalar(FLOAT32_MAX) == FLOAT32_MAX
    assert scalar(-FLOAT32_MAX) == -FLOAT32_MAX


def test_a_user_who_makes_numpy_raise_is_not_stopped():
    with np.errstate(all="raise"):
        assert scalar(1e39) == math.inf
        assert scalar(np.float64(1e39)) == math.inf
        assert scalar(1e-46) in {0.0, 1e-46}
        assert as_number(np.longdouble("1e400"), "loss") == math.inf


# ---- steps


STEPS = [
    (None, 0),
    (0, 0),
    (7, 7),
    (-7, -7),
    (INT64_MAX, INT64_MAX),
    (INT64_MIN, INT64_MIN),
    (7.0, 7),
    (-0.0, 0),
    (2.0**62, 2**62),
    (np.int8(7), 7),
    (np.int32(7), 7),
    (np.int64(INT64_MIN), INT64_MIN),
    (np.uint64(INT64_MAX), INT64_MAX),
    (np.float16(7), 7),
    (np.float32(7), 7),
    (np.longdouble(7), 7),
    (np.array(7), 7),
    (np.array([7]), 7),
    (np.array([[7.0]]), 7),
    (np.array(7, ">i4"), 7),
    ([7], 7),
    ((7.0,), 7),
    (duck.Asnumpy(7), 7),
    (duck.Asnumpy([7]), 7),
    (duck.RequiresGrad(7, np.int64), 7),
    (duck.ArrayForm(7), 7),
    (duck.NumpyForm(7), 7),
    (duck.ItemOnly(7), 7),
    (duck.IndexOnly(7), 7),
]


@pytest.mark.parametrize(("step", "whole"), STEPS, ids=[type(step).__name__ for step, _ in STEPS])
def test_any_integer_like_step_is_taken(step, whole):
    got = as_step(step, "loss")
    assert type(got) is int
    assert got == whole


@pytest.mark.parametrize(
    "step", ["7", "", b"7", np.str_("7"), {}, {7: 7}, object(), len, np.timedelta64(7, "s"), np.datetime64(7, "s")]
)
def test_a_step_that_is_no_number_is_refused_by_tag(step):
    with pytest.raises((TypeError, ValueError), match=r"^tag 'loss': "):
        as_step(step, "loss")


def test_a_step_whose_own_method_fails_is_refused_by_tag():
    class Step:
        def __index__(self):
            raise RuntimeError("device lost")

    with pytest.raises(TypeError, match=r"^tag 'loss': step must be an integer, got Step"):
        as_step(Step(), "loss")


@pytest.mark.parametrize("step", ["7", b"7"])
def test_a_step_in_digits_is_text(step):
    with pytest.raises(TypeError, match=r"^tag 'loss': step must be an integer, got (str|bytes) b?'7'$"):
        as_step(step, "loss")


@pytest.mark.parametrize(
    "step", [7.9, -0.5, 1e-9, math.nan, math.inf, -math.inf, np.float32(7.5), np.array([0.5]), [7.5], duck.Asnumpy(7.9)]
)
def test_a_fraction_as_step_is_refused_by_tag_and_never_cut(step):
    with pytest.raises(ValueError, match=r"^tag 'loss': step must be a whole number, got "):
        as_step(step, "loss")


@pytest.mark.parametrize(
    "step", [[1, 2], [], np.arange(3), np.zeros((0,)), duck.Asnumpy([1, 2]), 7j, np.array(["7"]), np.complex64(7)]
)
def test_several_steps_or_a_complex_one_are_refused_by_tag(step):
    with pytest.raises((TypeError, ValueError), match=r"^tag 'loss': step must be one integer, got "):
        as_step(step, "loss")


@pytest.mark.parametrize(
    "step", [2**63, -(2**63) - 1, 10**30, np.uint64(2**63), 2.0**63, 1e300, np.array(2**63, np.uint64), [2**63]]
)
def test_a_step_beyond_int64_is_refused_by_tag(step):
    with pytest.raises(ValueError, match=r"^tag 'loss': step must lie within int64, got \w+ "):
        as_step(step, "loss")


# ---- wall times


@pytest.mark.parametrize("value", [1700000000, 1700000000.0, np.float64(1700000000), np.array([1700000000])])
def test_a_wall_time_is_any_number(value):
    assert as_wall_time(value, "loss") == 1700000000.0


@pytest.mark.parametrize("value", ["now", None, datetime(2024, 1, 1), np.datetime64("2024-01-01")])
def test_a_wall_time_that_is_no_number_is_refused_by_tag(value):
    with pytest.raises(TypeError, match=r"^tag 'loss': walltime must be a number, got "):
        as_wall_time(value, "loss")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400])
def test_a_wall_time_that_is_not_finite_is_refused_by_tag(value):
    with pytest.raises(ValueError, match=r"^tag 'loss': walltime must be finite seconds since 1970, got "):
        as_wall_time(value, "loss")


def test_a_wall_time_of_minus_zero_is_zero():
    # protobuf stores -0.0 and leaves 0.0 out: the fast path knows 0.0 only.
    assert math.copysign(1.0, as_wall_time(-0.0, "loss")) == 1.0


# ---- tags


@pytest.mark.parametrize(
    "tag",
    [
        "loss",
        "train/loss",
        "a b [c] (d)",
        "..",
        "/",
        " ",
        "损失",
        "🔥",
        "é",
        "e\u0301",
        "line\nbreak",
        "\0",
        "x" * 5000,
    ],
)
def test_a_tag_is_kept_byte_for_byte(tag):
    assert check_tag(tag) == tag


def test_a_tag_of_numpy_becomes_a_str():
    assert type(check_tag(np.str_("loss"))) is str


@pytest.mark.parametrize("tag", [None, 7, b"loss", 1.5, ["loss"], ("a", "b"), object()])
def test_a_tag_that_is_no_str_is_refused(tag):
    with pytest.raises(TypeError, match=r"^tag must be a str, got "):
        check_tag(tag)


def test_an_empty_tag_is_refused():
    with pytest.raises(ValueError, match=r"^tag is empty; want a name such as 'train/loss'$"):
        check_tag("")


@pytest.mark.parametrize("tag", ["\ud800", "loss\udfff", "\udcff/x"])
def test_a_tag_with_a_lone_surrogate_is_refused(tag):
    with pytest.raises(ValueError, match=r"^tag '.*\\ud.*' cannot be stored as UTF-8: surrogates not allowed$"):
        check_tag(tag)


# ---- arrays


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f4", ">i8"])
def test_an_array_of_a_real_dtype_is_taken_without_a_copy(dtype):
    array = np.ones((2, 3), dtype)
    assert np.shares_memory(as_array(array, "w"), array)
    assert as_array(array, "w").dtype == np.dtype(dtype)


ARRAYS = [
    ([1, 2], [1, 2]),
    ((1.5, 2), [1.5, 2.0]),
    ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    ([True, False], [True, False]),
    ([], []),
    (7, 7),
    (1.5, 1.5),
    (np.float32(1.5), 1.5),
    (range(3), [0, 1, 2]),
    ([Decimal("1.5"), Fraction(5, 2)], [1.5, 2.5]),
    ([2**70, 1], [2.0**70, 1.0]),
    ([np.float32(1.5), 2], [1.5, 2.0]),
    ([np.ones(2), np.zeros(2)], [[1.0, 1.0], [0.0, 0.0]]),
    (duck.Asnumpy([1.5, 2.5]), [1.5, 2.5]),
    (duck.RequiresGrad([1.5, 2.5]), [1.5, 2.5]),
    (duck.ArrayForm([1.5, 2.5]), [1.5, 2.5]),
    (duck.NumpyForm([1.5, 2.5]), [1.5, 2.5]),
    (duck.Sparse([1.5, 0.0]), [1.5, 0.0]),
    (duck.Sparse([1.5, 0.0], "todense"), [1.5, 0.0]),
    ([duck.Asnumpy(1.5), duck.Asnumpy(2.5)], [1.5, 2.5]),
    ([duck.RequiresGrad(1.5), duck.RequiresGrad(2.5)], [1.5, 2.5]),
    ([duck.ArrayForm(1.5), duck.ArrayForm(2.5)], [1.5, 2.5]),
    (np.array([1.5, Decimal("2.5"), Fraction(7, 2)], object), [1.5, 2.5, 3.5]),
    (np.array([[1, 2], [3, 2**60 + 1]], object), [[1, 2], [3, 2**60 + 1]]),
    (np.array([2**70, 1], object), [2.0**70, 1.0]),
    (np.array([True, 2], object), [1, 2]),
    (np.array([], object), []),
    (np.ma.array([Decimal("1.5"), 2], mask=[False, True], dtype=object), [1.5, pytest.approx(math.nan, nan_ok=True)]),
    (deque([1, 2]), [1, 2]),
    (duck.Indexed([1.5, duck.Asnumpy(2.5)]), [1.5, 2.5]),
    (deque([duck.RequiresGrad(1.5), duck.Asnumpy(2.5)]), [1.5, 2.5]),
    ({"a": duck.RequiresGrad([1.5]), "b": duck.RequiresGrad([2.5])}.values(), [[1.5], [2.5]]),
    (array.array("f", [1.5, 2.5]), [1.5, 2.5]),
    (memoryview(b"\1\2"), [1, 2]),
]


@pytest.mark.parametrize(("value", "numbers"), ARRAYS, ids=[type(value).__name__ for value, _ in ARRAYS])
def test_array_likes_become_arrays_of_numbers(value, numbers):
    read = as_array(value, "w")
    assert read.dtype.kind in "bfiu"
    assert read.tolist() == numbers


def test_longdouble_becomes_float64_and_overflows_without_a_word():
    array = as_array(np.array([1.5, np.longdouble("1e400")], np.longdouble), "w")
    assert array.dtype == np.float64
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:  # not on Windows and arm64 macOS
        assert array.tolist() == [1.5, math.inf]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_of_ml_dtypes_keep_their_values(dtype):
    array = as_array(np.array([1.5, -2.0, np.nan], of_ml_dtypes(dtype)), "w")
    np.testing.assert_equal(array, np.array([1.5, -2.0, np.nan], np.float32))


@pytest.mark.parametrize(("dtype", "low"), [("int4", -8), ("uint4", 0), ("float4_e2m1fn", -6), ("float6_e2m3fn", -7.5)])
def test_numbers_of_less_than_a_byte_keep_their_values(dtype, low):
    array = as_array(np.array([low, 1, 3], of_ml_dtypes(dtype)), "w")
    np.testing.assert_equal(array, np.array([low, 1, 3], np.float32))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_tensors_of_torch_are_taken(dtype):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([1.5, -2.0], requires_grad=True).to(getattr(torch, dtype))
    np.testing.assert_equal(as_array(tensor, "w"), np.array([1.5, -2.0], np.float32))
    assert as_number(tensor[1], "loss") == -2.0
    assert as_array([tensor, tensor], "w").shape == (2, 2)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_of_scipy_becomes_an_array():
    # A matrix stays of rank 2 whatever is done to it; sums of sparse matrices are some.
    array = as_array(np.matrix([[1.5, 2.5]]), "w")
    assert type(array) is np.ndarray
    assert array.tolist() == [[1.5, 2.5]]
    assert as_number(np.matrix([[1.5]]), "loss") == 1.5


@pytest.mark.parametrize(
    "value",
    [
        None,
        "1.5",
        b"1.5",
        {},
        {"w": [1.5]},
        {1.5},
        object(),
        len,
        ["a", "b"],
        [None, 1.5],
        [[1, 2], [3]],
        [1.5, "a"],
        [object()],
        np.array(["a"]),
        np.array([None], object),
        np.array([1.5, "2.5"], object),
        deque(["a"]),
        {"a": 1.5}.keys(),
        np.array([1 + 2j]),
        1 + 2j,
        [1 + 2j],
        np.array(["2024-01-01"], "M8[D]"),
        np.array([5], "m8[s]"),
        np.zeros(2, [("a", "f4"), ("b", "f4")]),
    ],
)
def test_what_holds_no_numbers_is_refused_by_tag(value):
    with pytest.raises((TypeError, ValueError), match=r"^tag 'w': .*got |^tag 'w': .* cannot be read"):
        as_array(value, "w")


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc", "to_mkldnn"])
def test_a_tensor_of_torch_in_another_layout_is_taken_whole(layout):
    """The gradient of an embedding is sparse (keras#7397, wandb#827)."""
    torch = pytest.importorskip("torch")
    dense = torch.tensor([[0.0, 1.5], [2.5, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's, about layouts that may change
        tensor = getattr(dense, layout)()
    np.testing.assert_array_equal(as_array(tensor, "a"), dense.numpy())


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")  # torch means to give them up
def test_a_quantized_tensor_of_torch_is_the_numbers_that_it_stands_for():
    torch = pytest.importorskip("torch")
    tensor = torch.quantize_per_tensor(torch.tensor([0.5, -1.0]), scale=0.5, zero_point=3, dtype=torch.qint8)
    assert as_array(tensor, "w").tolist() == [0.5, -1.0]
    assert as_number(tensor[1], "loss") == -1.0


def test_a_list_of_parameters_of_torch_is_an_array():
    torch = pytest.importorskip("torch")
    parameters = torch.nn.ParameterList([torch.ones(2), torch.zeros(2)])
    assert as_array(parameters, "w").tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_the_gradient_of_an_embedding_is_counted_with_its_zeros():
    torch = pytest.importorskip("torch")
    table = torch.nn.Embedding(10, 3, sparse=True)
    table(torch.tensor([1, 2, 2])).sum().backward()
    assert sorted(as_array(table.weight.grad, "a").reshape(-1)) == [0.0] * 24 + [1.0] * 3 + [2.0] * 3
