import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbwriter._summary import BoxedImage

Image = pytest.importorskip("PIL.Image")

GREY = np.full((40, 60), 0.5)
RED = [255, 0, 0]


def boxed(boxes, image=GREY, dataformats="HW", labels=None, rescale=1):
    return BoxedImage.of("img", image, boxes, dataformats, labels=labels, rescale=rescale, copy=True)


def drawn(*args, **kwargs):
    (value,) = boxed(*args, **kwargs).values(True)
    width, height, png = value.tensor.string_val
    picture = Image.open(io.BytesIO(png))
    assert (b"%d" % picture.width, b"%d" % picture.height) == (width, height)
    return np.asarray(picture)


def is_red(pixels):
    return (pixels[..., :3] == RED).all(-1)


def test_a_box_is_drawn_in_red_and_the_rest_is_left_alone():
    pixels = drawn([[10, 5, 40, 30]])
    red = is_red(pixels)
    assert red[5, 10:41].all()
    assert red[30, 10:41].all()
    assert red[5:31, 10].all()
    assert red[5:31, 40].all()
    assert (pixels[~red] == 128).all()
    assert not red[10:25, 15:35].any()


def test_a_label_is_written_in_the_box():
    assert is_red(drawn([[10, 5, 50, 30]], labels=["cat"])).sum() > is_red(drawn([[10, 5, 50, 30]])).sum()


@pytest.mark.parametrize("label", ["猫", "😀", "a\u0301", "cat\n", "\ud800", "x" * 5000])
def test_a_label_in_any_letters_is_written(label):
    """Pillow's own font is one of Latin-1 before 10.1, and in builds without FreeType."""
    assert is_red(drawn([[10, 5, 50, 30]], labels=[label])).sum() > is_red(drawn([[10, 5, 50, 30]])).sum()


def test_one_box_and_one_label_may_stand_alone():
    assert drawn([10, 5, 40, 30], labels="cat").tolist() == drawn([[10, 5, 40, 30]], labels=["cat"]).tolist()


@pytest.mark.parametrize("boxes", [[], np.zeros((0, 4))])
def test_without_boxes_the_image_is_left_alone(boxes):
    assert not is_red(drawn(boxes)).any()


def test_a_box_that_is_not_finite_is_left_out():
    assert drawn([[np.nan, 0, 1, 1], [10, 5, 40, 30]]).tolist() == drawn([[10, 5, 40, 30]]).tolist()


@given(st.lists(st.tuples(*[st.floats(width=32)] * 4), max_size=3))
def test_no_box_is_too_strange_to_draw_its_image(boxes):
    assert drawn(boxes).shape == (40, 60, 3)


def test_an_image_is_rescaled():
    assert drawn([[10, 5, 40, 30]], rescale=1.5).shape == (60, 90, 3)


def test_four_channels_stay_four():
    assert drawn([], np.zeros((4, 5, 6), np.uint8), "CHW").shape == (5, 6, 4)


def test_labels_that_are_not_one_for_each_box_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'img': got 2 labels for 1 boxes, want one for each$"):
        boxed([[1, 2, 3, 4]], labels=["a", "b"])


@pytest.mark.parametrize("boxes", [[[1, 2, 3]], [1, 2, 3], np.zeros((2, 2, 4)), 5])
def test_boxes_of_another_shape_are_refused_by_tag(boxes):
    with pytest.raises(ValueError, match=r"^tag 'img': boxes must be of shape \(n, 4\), got "):
        boxed(boxes)


def test_a_batch_is_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'img': got .*, want one image$"):
        boxed([], np.zeros((2, 3, 4)), "NHW")


@pytest.mark.parametrize("rescale", [0, -1, np.nan, 1e9])
def test_a_scale_that_makes_no_picture_is_refused_by_tag(rescale):
    with pytest.raises(ValueError, match=r"^tag 'img': rescale must be above 0 and at most 100, got "):
        boxed([], rescale=rescale)


def test_a_picture_that_would_be_enlarged_beyond_all_memory_is_refused_by_tag():
    image = np.broadcast_to(np.uint8(0), (2000, 2000))
    with pytest.raises(ValueError, match=r"^tag '.*': rescale=100 makes ndarray .* larger than 134217728 pixels"):
        BoxedImage.of("t", image, [[1, 1, 2, 2]], "HW", labels=None, rescale=100, copy=False)
