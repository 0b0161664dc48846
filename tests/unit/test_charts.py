from collections import deque

import numpy as np
import pytest

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._summary import CustomScalars, Layout, check_layout, decode, event

LAYOUT = {"losses": {"all": ["Multiline", ["loss.*"]], "band": ["Margin", ["v", "lo", "hi"]]}, "other": {}}


def test_a_layout_comes_back_as_it_was():
    summary = CustomScalars(Layout(check_layout(LAYOUT)))
    (read,) = decode(event(summary.values(True), 0, 1.0), {}).values
    assert read.data == {"losses": {"all": ("Multiline", ("loss.*",)), "band": ("Margin", ("v", "lo", "hi"))}}
    assert check_layout(read.data) == check_layout(LAYOUT)


def test_of_many_layouts_that_wait_the_first_has_all_and_the_others_are_nothing_more():
    layout = Layout()
    waiting = [CustomScalars(layout) for _ in range(3)]
    for number in range(3):
        layout.update(check_layout({"c": {f"t{number}": ["Multiline", ["a"]]}}))
    (first,), *others = [one.values(False) for one in waiting]
    assert [chart.title for chart in plugins.Layout.FromString(first.tensor.string_val[0]).category[0].chart] == [
        "t0",
        "t1",
        "t2",
    ]
    assert others == [[], []]
    # What found no room, and what is the first of a new file, is encoded again.
    assert waiting[0].values(False) == [first]
    assert waiting[1].values(True)[0].tensor == first.tensor
    layout.update(check_layout({"c": {"t3": ["Multiline", ["a"]]}}))
    assert len(waiting[2].values(False)) == 1


def test_later_values_carry_no_metadata():
    assert not CustomScalars(Layout(check_layout(LAYOUT))).values(False)[0].HasField("metadata")


@pytest.mark.parametrize(
    "layout", [None, [], {"c": None}, {"c": {"t": None}}, {"c": {"t": ["Multiline"]}}, {"c": {"t": "Multiline"}}]
)
def test_another_form_is_refused(layout):
    with pytest.raises(
        TypeError, match=r"^layout.* is .*, want {category: {title: \['Multiline' or 'Margin', \[tags\]"
    ):
        check_layout(layout)


@pytest.mark.parametrize("kind", ["Multiline", "MultiLine", "multiline", "Margin", "margin"])
def test_a_kind_may_be_spelt_in_any_case(kind):
    """Layouts written for torch say "MultiLine" too (pytorch#20579): it takes all but "Margin" for lines."""
    tags = ["a", "b", "c"]
    assert check_layout({"c": {"t": [kind, tags]}}) == {"c": {"t": (kind.capitalize(), tuple(tags))}}


@pytest.mark.parametrize("kind", ["Bars", "", "Multi line", None, 7])
def test_another_kind_of_chart_is_refused(kind):
    with pytest.raises(ValueError, match=r"^layout: chart 't': want 'Multiline' or 'Margin', got "):
        check_layout({"c": {"t": [kind, ["a"]]}})


@pytest.mark.parametrize("tags", [np.array(["a", "b"]), {"a": 1, "b": 2}.keys(), deque(["a", "b"])])
def test_tags_may_stand_in_any_order_that_is_one(tags):
    assert check_layout({"c": {"t": ["Multiline", tags]}}) == {"c": {"t": ("Multiline", ("a", "b"))}}


@pytest.mark.parametrize("tags", ["loss", b"loss", [], None, 7, {"a": 1}, {"a", "b", "c"}])
def test_no_list_of_tags_is_refused(tags):
    with pytest.raises(TypeError, match=r"^chart 't': tags must be a list of tags, got "):
        check_layout({"c": {"t": ["Multiline", tags]}})


@pytest.mark.parametrize("tags", [["a"], ["a", "b"], ["a", "b", "c", "d"]])
def test_a_margin_chart_of_other_than_three_tags_is_refused(tags):
    with pytest.raises(ValueError, match=r"^chart 't': a margin chart has three tags, value, lower and upper; got \d$"):
        check_layout({"c": {"t": ["Margin", tags]}})


def test_a_tag_that_is_no_regular_expression_is_refused_with_a_way_out():
    with pytest.raises(
        ValueError, match=r"^chart 't': tag 'loss\(' is no regular expression .*; write re.escape\(tag\)$"
    ):
        check_layout({"c": {"t": ["Multiline", ["loss("]]}})
