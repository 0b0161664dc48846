import duck
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tbwriter._summary import Tensor, decode, event

shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
dtypes = st.sampled_from(
    ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">i4", ">f8"]
)


def round_trip(tensor):
    summary = Tensor.of("t", tensor, copy=True)
    (value,) = decode(event(summary.values(True), 1, 2.0), {}).values
    return value.data


@given(hnp.arrays(dtypes, shapes))
def test_a_tensor_of_any_dtype_and_shape_comes_back_as_it_was(array):
    got = round_trip(array)
    assert got.shape == array.shape
    assert got.dtype == array.dtype.newbyteorder("<")
    np.testing.assert_array_equal(got, array)


@given(hnp.arrays(np.float32, shapes, elements=st.floats(width=16)))
def test_bfloat16_comes_back_as_the_float32_of_its_value(array):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with np.errstate(all="ignore"):
        narrow = array.astype(ml_dtypes.bfloat16)
        got = round_trip(narrow)
        np.testing.assert_array_equal(got, narrow.astype(np.float32))


def test_a_bfloat16_tensor_of_a_framework_is_read_after_it_is_cast():
    torch = pytest.importorskip("torch")
    got = round_trip(torch.tensor([1.5, -2.0], dtype=torch.bfloat16, requires_grad=True))
    assert got.tolist() == [1.5, -2.0]


def test_a_complex_tensor_of_a_framework_keeps_its_imaginary_part():
    torch = pytest.importorskip("torch")
    assert round_trip(torch.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]


def test_a_complex_tensor_that_numpy_lacks_is_refused_by_tag():
    torch = pytest.importorskip("torch")
    with pytest.warns(UserWarning, match="ComplexHalf"):
        half = torch.zeros(2, dtype=torch.complex32)
    with pytest.raises(TypeError, match=r"^tag 't': Tensor of shape \(2,\) and dtype torch.complex32 cannot be read"):
        Tensor.of("t", half, copy=True)


@pytest.mark.parametrize("wrap", [duck.Asnumpy, duck.ArrayForm, np.ndarray.tolist])
def test_a_tensor_may_be_anything_with_numbers(wrap):
    assert round_trip(wrap(np.array([[1.0, 2.0]]))).tolist() == [[1.0, 2.0]]


def test_a_copy_does_not_change_with_the_array():
    array = np.array([1.0])
    waiting = Tensor.of("t", array, copy=True)
    array[:] = 0
    assert waiting.array.tolist() == [1.0]
    assert np.shares_memory(Tensor.of("t", array, copy=False).array, array)


@pytest.mark.parametrize("tensor", [None, "text", np.array(["a"]), object(), {"a": 1}])
def test_what_is_no_tensor_is_refused_by_tag(tensor):
    with pytest.raises(TypeError, match=r"^tag 't': got .*, want "):
        Tensor.of("t", tensor, copy=True)


def test_two_gibibytes_are_refused_by_tag():
    huge = np.broadcast_to(np.float64(0), (1 << 28,))
    with pytest.raises(ValueError, match=r"^tag 't': got .*, want less than 2 GiB: protobuf holds no more$"):
        Tensor.of("t", huge, copy=False)


@pytest.mark.parametrize("tensor", [[1j], 1j, (1 + 1j, 2), np.complex64(1j), [[np.complex128(1j)]]])
def test_complex_numbers_need_no_array(tensor):
    assert round_trip(tensor).tolist() == np.asarray(tensor).tolist()


def test_what_torch_only_views_as_conjugate_or_negative_is_read():
    torch = pytest.importorskip("torch")
    conjugate = torch.tensor([1 + 2j]).conj()
    assert round_trip(conjugate).tolist() == [1 - 2j]
    assert round_trip(conjugate.imag).tolist() == [-2]
