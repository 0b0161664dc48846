"""What a masked array hides is NaN where numbers are just numbers; where a dtype has a meaning, it stays."""

import io
import wave
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tbwriter._summary import Audio, BoxedImage, Embedding, Histogram, Images, PrCurve, Tensor, Text, as_scalar, mesh
from tbwriter._summary import as_array as read
from tbwriter._summary import as_series as series

INTEGERS = ["u1", "i1", "u2", "i4", "i8", "?"]
FLOATS = ["f2", "f4", "f8"]


def hidden(values, dtype, *where):
    """Return a masked array of `values` that hides those at `where`, below which stands the dtype's largest."""
    array = np.ma.array(values, dtype)
    for index in where:
        array[index] = True if array.dtype.kind == "b" else np.finfo(dtype).max if dtype in FLOATS else 100
        array[index] = np.ma.masked
    return array


def frames(sound, **options):
    value = Audio.of("t", sound, sample_rate=8000, copy=True, told=set()).values(True)[0]
    with wave.open(io.BytesIO(value.tensor.string_val[0])) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").tolist()


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_a_masked_number_is_nan_and_no_other_changes(dtype):
    array = read(hidden([1, 0, 1], dtype, 1), "t")
    assert np.isnan(array[1])
    assert array[[0, 2]].tolist() == [1, 1]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_keep_their_dtype(dtype):
    assert read(hidden([1, 0, 1], dtype, 1), "t").dtype == dtype


@pytest.mark.parametrize("dtype", INTEGERS)
def test_without_anything_masked_integers_keep_their_dtype(dtype):
    assert read(np.ma.array([1, 0, 1], dtype), "t").dtype == dtype


def test_masked_arrays_in_a_list_hide_as_much():
    array = read([hidden([1, 2], "i4", 0), hidden([3, 4], "i4")], "t")
    np.testing.assert_equal(array, [[np.nan, 2], [3, 4]])


def test_a_masked_scalar_is_nan():
    assert np.isnan(as_scalar(hidden([1], "i4", 0), "t", set()))
    assert np.isnan(as_scalar(np.ma.masked, "t", set()))


def objects(values, *where):
    """As `hidden`, of any objects."""
    mask = np.zeros(len(values), bool)
    mask[[*where]] = True
    return np.ma.array(values, mask=mask, dtype=object)


@pytest.mark.parametrize("number", [3, 3.5, Decimal("3.5"), Fraction(7, 2)])
def test_a_masked_object_is_nan(number):
    assert np.isnan(as_scalar(objects([number], 0), "t", set()))
    assert np.isnan(as_scalar([objects([number], 0)], "t", set()))
    assert as_scalar(objects([number]), "t", set()) == float(number)


@pytest.mark.parametrize("dtype", ["U9", object])
def test_a_masked_text_is_empty(dtype):
    array = np.ma.array(["a", "secret", "c"], mask=[False, True, False], dtype=dtype)
    assert Text.of("t", array).items == (b"a", b"", b"c")
    table = Text.of("t", [array, ["d", "e", np.ma.masked]])
    assert (table.items, table.shape) == ((b"a", b"", b"c", b"d", b"e", b""), (2, 3))
    assert Text.of("t", np.ma.array("secret", mask=True, dtype=dtype)).items == (b"",)


@pytest.mark.parametrize("dtype", ["U9", object])
def test_no_label_shows_what_is_masked(dtype):
    """They are shown as NumPy prints them."""
    labels = np.ma.array(["a", "secret"], mask=[False, True], dtype=dtype)
    made = Embedding.of("t", 0, np.zeros((2, 2)), labels=labels, header=None, images=None, copy=True)
    assert b"secret" not in b"".join(data for _, data in made.files())
    boxes = [[1, 1, 5, 5]] * 2
    image = BoxedImage.of("t", np.zeros((9, 9)), boxes, "HW", labels=labels, rescale=1, copy=True)
    assert "secret" not in repr(image)


def test_a_masked_point_of_a_series_is_nan_and_a_masked_step_is_refused():
    points = series("t", hidden([1, 2], "i4", 0), [1, 2], None, now=1.0, told=set())
    np.testing.assert_equal(points.values, [np.nan, 2])
    with pytest.raises(ValueError, match="tag 't': steps must be whole numbers"):
        series("t", [1, 2], hidden([1, 2], "i4", 0), None, now=1.0, told=set())


def test_a_histogram_counts_masked_numbers_as_nan():
    made = Histogram.of("t", hidden([1, 2, 3], "i4", 2), bins="tensorflow", max_bins=None, copy=True, told=set())
    counted, nan = made.values(True)
    assert np.frombuffer(counted.tensor.tensor_content).reshape(-1, 3)[:, 2].sum() == 2
    assert (nan.tag, nan.simple_value) == ("t/nan_count", 1)


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8"])
def test_a_masked_pixel_is_black_and_the_others_keep_their_colour(dtype):
    pil = pytest.importorskip("PIL.Image")
    (value,) = Images.of("t", hidden([[200, 7]], dtype, (0, 1)), "HW", copy=True).values(True)
    with pil.open(io.BytesIO(value.tensor.string_val[2])) as picture:
        assert np.asarray(picture).tolist() == [[200, 0]]


@pytest.mark.parametrize(
    ("dtype", "want"),
    [("u1", [-128 << 8, 0]), ("i1", [0, 0]), ("i2", [0, 0]), ("i4", [0, 0]), ("f4", [0, 0])],
)
def test_a_masked_sample_is_silent(dtype, want):
    assert frames(hidden([0, 0], dtype, 1)) == want


def test_integer_samples_beside_a_masked_one_keep_their_scale():
    assert frames(hidden([1000, -7, 5], "i2", 1)) == [1000, 0, 5]


def test_a_masked_box_is_left_out():
    pytest.importorskip("PIL.Image")
    boxes = hidden([[1, 1, 5, 5], [2, 2, 6, 6]], "i4", (1, 0))
    image = BoxedImage.of("t", np.zeros((9, 9)), boxes, "HW", labels=None, rescale=1, copy=True)
    assert np.isfinite(image.boxes).all(axis=1).tolist() == [True, False]


def test_masked_labels_and_predictions_are_left_out_of_a_curve():
    labels, scores = hidden([1, 0, 1, 0], "i8", 3), hidden([0.9, 0.1, 0.2, 0.4], "f4", 2)
    made = PrCurve.of("t", labels, scores, num_thresholds=2, weights=None, copy=True, told=set())
    (value,) = made.values(True)
    tp, fp, *_ = np.frombuffer(value.tensor.tensor_content, "<f4").reshape(6, 2)
    assert (tp[0], fp[0]) == (1, 1)


def test_a_masked_colour_is_black_and_a_masked_face_is_refused():
    points, colors = np.zeros((1, 2, 3)), np.full((1, 2, 3), 200)
    *_, part = mesh("t", points, hidden(colors, "i4", (0, 1, 1)), None, None, copy=True)
    assert part.array.tolist() == [[[200, 200, 200], [200, 0, 200]]]
    with pytest.raises(ValueError, match="tag 't': faces"):
        mesh("t", points, None, hidden([[[0, 1, 1]]], "i4", (0, 0, 0)), None, copy=True)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "c8", "c16"])
def test_a_tensor_keeps_its_dtype(dtype):
    array = np.ma.array([1, 1], dtype)
    array[0] = np.ma.masked
    stored = Tensor.of("t", array, copy=True).array
    assert stored.dtype == dtype
    np.testing.assert_equal(stored, np.array([0 if dtype in INTEGERS else np.nan, 1], dtype))


def test_a_masked_coordinate_of_a_point_is_nan():
    made = Embedding.of("t", 0, hidden([[1, 2]], "i4", (0, 1)), labels=None, header=None, images=None, copy=True)
    np.testing.assert_equal(made.points, [[1, np.nan]])
