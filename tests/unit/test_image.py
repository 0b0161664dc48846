import io
import warnings

import duck
import numpy as np
import pytest

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import Images

Image = pytest.importorskip("PIL.Image")

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)  # height 5, width 7


def image(array, dataformats="HWC", *, copy=True):
    return Images.of("img", array, dataformats, copy=copy)


def images(array, dataformats="NHWC"):
    return Images.of("img", array, dataformats, copy=True)


def value_of(summary, first=True):
    (value,) = summary.values(first)
    return value


def pictures(summary):
    """Return the stored images, as arrays of what a PNG reader sees."""
    out = []
    for encoded in value_of(summary).tensor.string_val[2:]:
        picture = Image.open(io.BytesIO(encoded))
        assert picture.format == "PNG"
        out.append(np.asarray(picture))
    return out


def pixels(array, dataformats="HWC"):
    (picture,) = pictures(image(array, dataformats))
    return picture.tolist()


# ---- what is stored


def test_an_image_is_width_height_and_a_png():
    value = value_of(image(RGB))
    assert value.tag == "img"
    assert value.tensor.dtype == pb.DT_STRING
    assert [dim.size for dim in value.tensor.tensor_shape.dim] == [3]
    assert list(value.tensor.string_val[:2]) == [b"7", b"5"]
    assert value.tensor.string_val[2].startswith(b"\x89PNG\r\n\x1a\n")


def test_a_batch_is_one_value_with_a_png_for_each_image():
    batch = RNG.integers(0, 256, (4, 5, 7, 3), dtype=np.uint8)
    value = value_of(images(batch))
    assert [dim.size for dim in value.tensor.tensor_shape.dim] == [6]
    assert list(value.tensor.string_val[:2]) == [b"7", b"5"]
    for picture, source in zip(pictures(images(batch)), batch, strict=True):
        assert picture.tolist() == source.tolist()


def test_the_first_value_carries_the_metadata_and_later_ones_none():
    first = value_of(image(RGB))
    assert first.metadata.plugin_data.plugin_name == "images"
    assert first.metadata.data_class == pb.DATA_CLASS_BLOB_SEQUENCE
    assert not value_of(image(RGB), first=False).HasField("metadata")


# ---- layouts


@pytest.mark.parametrize("order", ["HWC", "CHW", "WHC", "HCW", "CWH", "WCH", "chw"])
def test_an_image_of_any_layout_shows_the_same(order):
    array = RGB.transpose(["HWC".index(letter) for letter in order.upper()])
    assert pixels(array, order) == RGB.tolist()


@pytest.mark.parametrize("order", ["HW", "WH"])
def test_an_image_without_channels_is_grey(order):
    array = RGB[..., 0] if order == "HW" else RGB[..., 0].T
    assert pixels(array, order) == RGB[..., 0].tolist()


def test_one_channel_is_grey():
    assert pixels(RGB[..., :1]) == RGB[..., 0].tolist()


def test_four_channels_are_rgba():
    rgba = RNG.integers(0, 256, (2, 3, 4), dtype=np.uint8)
    assert pixels(rgba) == rgba.tolist()


@pytest.mark.parametrize("order", ["NHWC", "NCHW", "HWNC", "CWHN"])
def test_a_batch_of_any_layout_shows_the_same(order):
    batch = RNG.integers(0, 256, (2, 5, 7, 3), dtype=np.uint8)
    array = batch.transpose(["NHWC".index(letter) for letter in order])
    assert [picture.tolist() for picture in pictures(images(array, order))] == batch.tolist()


def test_a_batch_without_channels_is_grey():
    batch = RNG.integers(0, 256, (2, 5, 7), dtype=np.uint8)
    assert [picture.tolist() for picture in pictures(images(batch, "NHW"))] == batch.tolist()


def test_one_pixel_is_an_image():
    assert pixels(np.array([[[1, 2, 3]]], np.uint8)) == [[[1, 2, 3]]]


# ---- what the numbers mean


def test_floats_run_from_0_to_1():
    # 0.5 is 127.5, rounded up; 1/255 is 1.
    assert pixels(np.array([[0.0, 0.5, 1.0, 1 / 255, 0.998]]), "HW") == [[0, 128, 255, 1, 254]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_beyond_0_and_1_are_clipped_and_never_wrapped(dtype):
    array = np.array([[-0.1, -100.0, 1.1, 300.0, np.inf, -np.inf]], dtype)
    assert pixels(array, "HW") == [[0, 0, 255, 255, 255, 0]]


def test_huge_floats_are_clipped_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pixels(np.array([[1e300, -1e300, 0.5]]), "HW") == [[255, 0, 128]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_is_black(dtype):
    assert pixels(np.array([[np.nan, 1.0]], dtype), "HW") == [[0, 255]]


def test_bool_is_black_and_white():
    assert pixels(np.array([[True, False]]), "HW") == [[255, 0]]


@pytest.mark.parametrize(
    ("dtype", "numbers", "shown"),
    [
        (np.uint8, [0, 127, 255], [0, 127, 255]),
        (np.int8, [-128, 0, 127], [0, 0, 127]),
        (np.int16, [-1, 255, 256], [0, 255, 255]),
        (np.uint16, [0, 255, 65535], [0, 255, 255]),
        (np.int32, [-(2**31), 7, 2**31 - 1], [0, 7, 255]),
        (np.int64, [-(2**63), 7, 2**63 - 1], [0, 7, 255]),
        (np.uint64, [0, 7, 2**64 - 1], [0, 7, 255]),
        (">i4", [-1, 7, 300], [0, 7, 255]),
    ],
)
def test_integers_run_from_0_to_255_and_are_clipped_and_never_wrapped(dtype, numbers, shown):
    assert pixels(np.array([numbers], dtype), "HW") == [shown]


def test_bfloat16_is_a_float():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert pixels(np.array([[0.0, 0.5, 1.0]], ml_dtypes.bfloat16), "HW") == [[0, 128, 255]]


@pytest.mark.parametrize("wrap", [duck.Asnumpy, duck.ArrayForm, np.ndarray.tolist])
def test_an_image_may_be_anything_with_numbers(wrap):
    assert pixels(wrap(RGB)) == RGB.tolist()


def test_a_strided_view_shows_its_own_pixels():
    assert pixels(RGB[::-1, ::2]) == RGB[::-1, ::2].tolist()


# ---- memory


def test_a_copy_does_not_change_with_the_array():
    array = RGB.copy()
    waiting = image(array)
    array[:] = 0
    assert pictures(waiting)[0].tolist() == RGB.tolist()


def test_without_a_copy_the_array_is_shared():
    array = RGB.copy()
    assert np.shares_memory(image(array, copy=False).batch, array)


def test_nbytes_is_the_memory_that_waits():
    assert image(RGB).nbytes == 105


# ---- what is refused


@pytest.mark.parametrize("order", ["", "HWCC", "HWX", "C", "HWC ", "HHW", "NXYZ", "THWC", None, 3])
def test_a_layout_of_other_letters_is_refused_by_tag(order):
    with pytest.raises(
        ValueError, match=r"^tag 'img': dataformats must be one of the orders of H, W, with C and N or without, got "
    ):
        image(RGB, order)


def test_an_image_in_the_layout_of_a_batch_is_a_batch():
    assert [picture.tolist() for picture in pictures(image(np.stack([RGB, RGB]), "NHWC"))] == [RGB.tolist()] * 2


@pytest.mark.parametrize("wrap", [np.array, duck.Asnumpy, np.ndarray.tolist])
def test_a_list_of_images_is_a_batch(wrap):
    other = 255 - RGB
    assert [picture.tolist() for picture in pictures(images([wrap(RGB), wrap(other)], "HWC"))] == [
        RGB.tolist(),
        other.tolist(),
    ]


@pytest.mark.parametrize("wrap", [np.array, duck.Asnumpy])
def test_a_list_of_images_of_different_size_is_refused_by_tag(wrap):
    with pytest.raises(TypeError, match=r"^tag 'img': "):
        images([wrap(RGB), wrap(RGB[1:])], "HWC")


def test_of_a_batch_the_first_max_outputs_are_kept():
    batch = np.stack([RGB, 255 - RGB, RGB])
    kept = Images.of("img", batch, "NHWC", copy=True, max_outputs=2)
    assert kept.nbytes == 210
    assert [picture.tolist() for picture in pictures(kept)] == [RGB.tolist(), (255 - RGB).tolist()]


@pytest.mark.parametrize("mode", ["RGB", "P", "YCbCr", "HSV", "CMYK"])
def test_a_picture_of_pillow_shows_its_colours(mode):
    """And not the places in its palette, or its inks."""
    drawn = Image.fromarray(np.full((5, 7, 3), [0, 0, 255], np.uint8)).convert(mode)
    (shown,) = pictures(image(drawn))
    assert shown.shape == (5, 7, 3)
    assert np.abs(shown.astype(int) - [0, 0, 255]).max() <= 1
    assert [one.tolist() for one in pictures(images([drawn, drawn], "HWC"))] == [shown.tolist()] * 2


@pytest.mark.parametrize(("mode", "grey"), [("L", 255), ("1", True), ("I", 255), ("F", 1.0)])
def test_a_grey_picture_of_pillow_is_grey(mode, grey):
    assert pixels(Image.new(mode, (3, 2), grey), "HW") == [[255] * 3] * 2


@pytest.mark.parametrize("mode", ["LA", "PA", "RGBa", "P"])
def test_a_picture_of_pillow_keeps_its_transparency(mode):
    drawn = Image.new(mode, (3, 2))
    if mode == "P":
        drawn.info["transparency"] = 0
    (shown,) = pictures(image(drawn))
    assert shown.shape == (2, 3, 4)
    assert (shown[..., 3] == 0).all()


@pytest.mark.parametrize("mode", ["L", "P"])
def test_a_picture_of_pillow_whose_file_is_damaged_is_refused_by_tag(mode):
    out = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (50, 70), dtype=np.uint8)).convert(mode).save(out, "PNG")
    with pytest.raises(TypeError, match=r"^tag 'img': got PngImageFile .*, which Pillow cannot read as RGB: "):
        image(Image.open(io.BytesIO(out.getvalue()[:-1000])))


@pytest.mark.parametrize("shape", [(5,), (5, 7), (1, 5, 7, 3), ()])
def test_another_number_of_dimensions_is_refused_by_tag(shape):
    with pytest.raises(ValueError, match=r"^tag 'img': got ndarray of shape .*, want 3 dimensions as in 'HWC'$"):
        image(np.zeros(shape))


@pytest.mark.parametrize("shape", [(5, 7, 2), (5, 7, 5), (3, 5, 7), (5, 7, 0), (0, 7, 3), (5, 0, 3)])
def test_other_channels_and_empty_sides_are_refused_by_tag(shape):
    with pytest.raises(
        ValueError, match=r"^tag 'img': got ndarray of shape .* read as HWC, want 1, 3 or 4 channels and no empty side"
    ):
        image(np.zeros(shape))


@pytest.mark.parametrize(
    "array", [None, "picture.png", b"\x89PNG", np.array([["a"]]), np.zeros((2, 2), complex), object()]
)
def test_what_is_no_array_of_numbers_is_refused_by_tag(array):
    with pytest.raises(TypeError, match=r"^tag 'img': got .*, want "):
        image(array, "HW")
