"""The fast way through scalar Events against protobuf's."""

import math
import struct

import pytest
from damaged import DOUBLE, HISTOGRAMS, INT64, ONE_BUCKET, SCALARS, event, field, floats, scalar, tensor, value
from hypothesis import given
from hypothesis import strategies as st

from tbwriter import _summary


def body(framed):
    return framed[12:-4]


def slow(data):
    event = _summary.RawEvent(data)
    return event.wall_time, event.step, [tuple(row) for row in event.outline()]


numbers = st.floats(width=32, allow_nan=False)
steps = st.integers(-(2**63), 2**63 - 1)
times = st.floats(allow_nan=False)


TAGS = ["loss", "a/b", "长", ""]


def several(step, numbers, wall_time):
    values = b"".join(field(1, field(1, tag.encode()) + b"\x15" + struct.pack("<f", n)) for tag, n in numbers)
    return event(step, field(5, values), wall_time)


def same(known, data):
    """Check what is known of an Event against protobuf."""
    wall_time, step, rows = slow(data)
    assert struct.pack("<d", known[0]) == struct.pack("<d", wall_time)
    assert known[1] == step
    found = [(row.tag, row.form, number, row.has_metadata) for row, number in zip(known[3].rows, known[2], strict=True)]
    assert repr(found) == repr(rows)  # NaN differs from itself


@given(
    st.lists(
        st.tuples(steps, times, st.lists(st.tuples(st.sampled_from(TAGS), numbers), min_size=1, max_size=5)),
        min_size=1,
        max_size=20,
    )
)
def test_scalars_come_out_as_through_protobuf(events):
    outliner = _summary.Outliner()
    for step, wall_time, values in events:
        data = body(several(step, values, wall_time))
        known = outliner.known(data)
        found, rows = outliner.outline(data)
        assert (found.wall_time, found.step, [tuple(row) for row in rows]) == slow(data)
        if known is not None:
            same(known, data)
            assert sum(known[3].sizes) <= len(data) + 9  # the step's own length varies


@given(st.binary(max_size=80), st.integers(0, 200), st.integers(0, 255))
def test_any_bytes_come_out_as_through_protobuf_or_not_at_all(junk, at, byte):
    outliner = _summary.Outliner()
    forms = [
        scalar(5, 1.5),
        value(5, "loss", floats(1.5) + SCALARS),
        value(300, "x", floats(2.0)),
        several(7, [("a", 1.0), ("b", 2.0)], 5.0),
    ]
    for data in map(body, forms):
        outliner.outline(data)
    for data in [junk, *map(body, forms)]:
        changed = bytearray(data)
        if changed:
            changed[at % len(changed)] = byte
        known = outliner.known(bytes(changed))
        if known is not None:
            same(known, bytes(changed))


@pytest.mark.parametrize(
    "make",
    [
        scalar,
        lambda step, number: value(step, "loss", floats(number)),
        lambda step, number: value(step, "loss", floats(number) + SCALARS),
        lambda step, number: several(step, [("a", number), ("b", 2 * number)], 5.0),
    ],
)
def test_a_form_is_known_from_its_second_event_on_whatever_its_step(make):
    outliner = _summary.Outliner()
    later = body(make(123_456, 0.25))
    assert outliner.known(later) is None
    outliner.outline(body(make(1, 0.5)))
    assert outliner.known(later)[1:3] == (123_456, tuple(row[2] for row in slow(later)[2]))


@pytest.mark.parametrize(
    "made",
    [
        value(5, "loss", tensor(DOUBLE, [], field(4, struct.pack("<d", 1.5))) + SCALARS),
        value(5, "loss", tensor(INT64, [], field(4, struct.pack("<q", 1)))),
        value(5, "w", ONE_BUCKET + HISTOGRAMS),
        several(5, [("a", 1.0)] * 100, 5.0),
    ],
)
def test_what_holds_something_else_than_a_few_float32_goes_through_protobuf(made):
    outliner = _summary.Outliner()
    outliner.outline(body(made))
    assert outliner.known(body(made)) is None


def test_a_number_that_is_none_stays_none():
    outliner = _summary.Outliner()
    outliner.outline(body(scalar(1, 0.5)))
    assert math.isnan(outliner.known(body(scalar(2, math.nan)))[2][0])
