import numpy as np
import pytest

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import Text


def value_of(text, first=True):
    (value,) = Text.of("note", text).values(first)
    return value


def shape_of(value):
    return [dim.size for dim in value.tensor.tensor_shape.dim]


@pytest.mark.parametrize("text", ["# héllo", "", "line\nbreak", "🔥", "a\0b", "x" * 100_000])
def test_a_text_is_a_string_of_rank_0_kept_byte_for_byte(text):
    value = value_of(text)
    assert value.tensor.dtype == pb.DT_STRING
    # Without a shape a reader could not tell rank 0 from an unknown one.
    assert value.tensor.HasField("tensor_shape")
    assert shape_of(value) == []
    assert list(value.tensor.string_val) == [text.encode()]


@pytest.mark.parametrize(
    ("table", "shape", "items"),
    [
        (["a", "b"], [2], [b"a", b"b"]),
        (("a",), [1], [b"a"]),
        ([["a", "b", "c"], ["1", "2", "3"]], [2, 3], [b"a", b"b", b"c", b"1", b"2", b"3"]),
        (np.array(["a", "é"]), [2], [b"a", "é".encode()]),
        (np.array([["a"], ["b"]], object), [2, 1], [b"a", b"b"]),
        (np.array("a"), [], [b"a"]),
    ],
)
def test_a_table_of_texts_keeps_its_shape(table, shape, items):
    value = value_of(table)
    assert shape_of(value) == shape
    assert list(value.tensor.string_val) == items


def test_a_str_of_numpy_is_a_text():
    assert list(value_of(np.str_("a")).tensor.string_val) == [b"a"]


def test_the_first_value_carries_the_metadata_and_later_ones_none():
    first = value_of("a")
    assert first.tag == "note"
    assert first.metadata.plugin_data.plugin_name == "text"
    assert first.metadata.plugin_data.content == b""
    assert first.metadata.data_class == pb.DATA_CLASS_TENSOR
    assert not value_of("a", first=False).HasField("metadata")


@pytest.mark.parametrize(
    "text", [None, 7, 1.5, b"bytes", {"a": "b"}, {"a"}, ["a", 7], ["a", None], [b"a"], np.array([1.5]), object()]
)
def test_what_is_no_text_is_refused_by_tag(text):
    with pytest.raises(TypeError, match=r"^tag 'note': got .*, want a str, or a list of str$"):
        Text.of("note", text)


@pytest.mark.parametrize("text", [["a", ["b"]], [["a"], ["b", "c"]]])
def test_a_table_with_ragged_rows_is_refused_by_tag(text):
    with pytest.raises((TypeError, ValueError), match=r"^tag 'note': got .*, want "):
        Text.of("note", text)


@pytest.mark.parametrize(
    ("text", "shape"),
    [([], r"\(0,\)"), ([[]], r"\(1, 0\)"), ([[["a"]]], r"\(1, 1, 1\)"), (np.zeros(0, "U1"), r"\(0,\)")],
)
def test_an_empty_table_or_one_of_rank_3_is_refused_by_tag(text, shape):
    with pytest.raises(
        ValueError, match=rf"^tag 'note': got texts of shape {shape}, want rank 1 or 2 and at least one$"
    ):
        Text.of("note", text)


@pytest.mark.parametrize("text", ["a\ud800", ["a", "\udfff"], "\udcff"])
def test_a_lone_surrogate_is_refused_by_tag(text):
    with pytest.raises(
        ValueError, match=r"^tag 'note': text cannot be stored as UTF-8: surrogates not allowed at [01], got "
    ):
        Text.of("note", text)


def test_a_text_beyond_what_an_event_holds_is_refused_by_tag(monkeypatch):
    monkeypatch.setattr("tbwriter._summary._event.MAX_BYTES", 10)  # 2 GiB of text are too much for a test
    Text.of("t", "x" * 10)
    for text in ("x" * 11, ["x" * 6, "x" * 5], "é" * 6):
        with pytest.raises(ValueError, match=r"^tag 't': got .*, want less than 2 GiB"):
            Text.of("t", text)
