import io

import duck
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tbwriter._summary import Embedding


def embedding(points, labels=None, header=None, images=None, tag="default", step=0, copy=True):
    return Embedding.of(tag, step, points, labels=labels, header=header, images=images, copy=copy)


def files(*args, **kwargs):
    return dict(embedding(*args, **kwargs).files())


def metadata(labels, header=None):
    return files(np.eye(len(labels)), labels, header)["metadata.tsv"].decode("utf-8")


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int32, np.bool_]),
        st.tuples(st.integers(1, 4), st.integers(1, 4)),
    )
)
def test_points_are_a_table_of_numbers_that_are_read_as_they_were(points):
    text = files(points)["tensors.tsv"].decode("ascii")
    read = [[float(number) for number in line.split("\t")] for line in text.splitlines()]
    np.testing.assert_array_equal(np.array(read).astype(points.dtype), points)


def test_without_labels_and_images_there_are_points_alone():
    assert list(files(np.eye(2))) == ["tensors.tsv"]


@pytest.mark.parametrize("wrap", [duck.Asnumpy, duck.ArrayForm, np.ndarray.tolist])
def test_points_may_be_anything_with_numbers(wrap):
    assert files(wrap(np.eye(2)))["tensors.tsv"] == b"1\t0\n0\t1\n"


def test_labels_stand_one_a_line():
    assert metadata(["é", 7, b"x", None]) == "é\n7\nx\nNone\n"


def test_a_label_in_a_tensor_is_its_number():
    assert metadata([duck.Asnumpy(np.float32(33)), duck.RequiresGrad(5)]) == "33.0\n5.0\n"
    assert files(np.eye(2), duck.Asnumpy(np.array([3, 4])))["metadata.tsv"] == b"3\n4\n"


def test_labels_cannot_begin_a_line_or_a_column_of_their_own():
    assert metadata(["a\tb", "c\nd\r"]) == "a b\nc d \n"


# JavaScript's String.trim() takes these from both ends.
BLANKS = "\t\n\v\f\r \xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000", BLANKS])
@pytest.mark.parametrize("header", [None, ["name"], ["name", "size"], ["", ""]])
def test_a_label_of_nothing_to_see_is_no_blank_line_which_tensorboard_skips(blank, header):
    """It did so with every one, and each label behind it went to another point (tensorflow#9330)."""
    width = 1 if header is None else len(header)
    cells = ["a", blank, "b", blank]
    rows = cells if header is None else [[cell] * width for cell in cells]
    lines = metadata(rows, header).removesuffix("\n").split("\n")
    shown = [line for line in lines if line.strip(BLANKS)]
    has_header = width > 1
    assert len(shown) == len(lines) == 4 + has_header
    assert [line.split("\t")[0] for line in shown[has_header:]] == ["a", "\u200b", "b", "\u200b"]


@pytest.mark.parametrize("rows", [[("a", 1), ("b", 2)], np.array([["a", "1"], ["b", "2"]])])
def test_several_columns_have_a_header(rows):
    assert metadata(rows, ["name", "size"]) == "name\tsize\na\t1\nb\t2\n"


def test_the_labels_of_a_table_are_its_rows():
    """Not the names of its columns, of which there may be as many."""
    table = duck.Table(np.array([["x", 1], ["y", 2]], object))
    assert metadata(table, ["name", "number"]).splitlines() == ["name\tnumber", "x\t1", "y\t2"]


def test_one_column_has_none_since_tensorboard_would_take_it_for_a_label():
    assert metadata([["a"], ["b"]], ["name"]) == "a\nb\n"


def test_labels_that_a_header_does_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"^tag 'default': metadata_header has 2 columns, so that each label must be"):
        metadata(["ab", "cd"], ["name", "size"])


@pytest.mark.parametrize(("number", "height", "width"), [(1, 4, 4), (5, 4, 4), (7, 3, 9), (7, 9, 3), (2, 20, 1)])
def test_images_stand_row_by_row_in_a_square_sheet(number, height, width):
    image_module = pytest.importorskip("PIL.Image")
    pictures = np.random.default_rng(0).integers(0, 256, (number, 3, height, width), dtype=np.uint8)
    sheet = np.asarray(image_module.open(io.BytesIO(files(np.eye(number), images=pictures)["sprite.png"])))
    assert sheet.shape[0] == sheet.shape[1]
    assert sheet.shape[1] % width == 0
    columns = sheet.shape[1] // width
    for index, picture in enumerate(pictures):
        row, column = divmod(index, columns)
        cut = sheet[row * height : (row + 1) * height, column * width : (column + 1) * width]
        assert cut.tolist() == picture.transpose(1, 2, 0).tolist()


def test_images_that_fill_more_than_a_texture_are_refused():
    pytest.importorskip("PIL.Image")
    huge = np.broadcast_to(np.uint8(0), (2, 1, 5000, 5000))
    with pytest.raises(ValueError, match=r"^tag 'default': label_img fills 10000 by 10000 pixels and the projector"):
        embedding(np.eye(2), images=huge, copy=False)


@pytest.mark.parametrize(
    ("tag", "folder"),
    [("a/b", "a%2fb"), ("50%", "50%25"), ("a\\b", "a%5cb"), ("..", "%2e%2e"), (".", "%2e"), ("..a", "..a")],
)
def test_a_tag_is_the_name_of_one_directory(tag, folder):
    assert embedding(np.eye(2), tag=tag, step=12).folder == ("00012", folder)


def test_the_configuration_grows_and_names_each_embedding_once():
    first = embedding(np.eye(2)).config(b"")
    second = embedding(np.eye(2), ["a", "b"], step=1).config(first)
    again = embedding(np.eye(2)).config(second)
    assert second.count(b"embeddings {") == again.count(b"embeddings {") == 2
    assert again.decode().index("default:00001") < again.decode().index("default:00000")


def test_what_others_wrote_into_the_configuration_stays():
    before = b'model_checkpoint_path: "/ckpt"\nembeddings { tensor_name: "theirs" bookmarks_path: "b" }\n'
    after = embedding(np.eye(2)).config(before).decode()
    assert 'model_checkpoint_path: "/ckpt"' in after
    assert 'bookmarks_path: "b"' in after


def test_a_configuration_that_cannot_be_read_is_left_alone():
    with pytest.raises(ValueError, match=r"^projector_config.pbtxt: there is one already that cannot be read: "):
        embedding(np.eye(2)).config(b"\xff{{")


def test_a_tag_beyond_ascii_is_utf_8_in_the_configuration():
    assert 'tensor_name: "词:00000"'.encode() in embedding(np.eye(2), tag="词").config(b"")


@pytest.mark.parametrize("shape", [(3,), (), (0, 3), (3, 0), (1, 2, 3)])
def test_points_of_another_shape_are_refused_by_tag(shape):
    with pytest.raises(ValueError, match=r"^tag 'default': mat must be of shape \(points, dimensions\), got "):
        embedding(np.zeros(shape))


def test_other_numbers_of_labels_and_images_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'default': got 1 labels for 2 points, want one for each$"):
        embedding(np.eye(2), ["a"])
    pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match=r"^tag 'default': got 1 images for 2 points, want one for each$"):
        embedding(np.eye(2), images=np.zeros((1, 3, 2, 2)))


def test_a_copy_does_not_change_with_the_array():
    points = np.eye(2)
    waiting = embedding(points)
    points[:] = 7
    assert waiting.points.tolist() == [[1, 0], [0, 1]]
    assert np.shares_memory(embedding(points, copy=False).points, points)
