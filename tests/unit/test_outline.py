"""The fast way through scalar Events against protobuf's."""

import math
import struct

import pytest
from damaged import DOUBLE, HISTOGRAMS, INT64, ONE_BUCKET, SCALARS, field, floats, scalar, tensor, value
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


@given(st.lists(st.tuples(steps, numbers, times, st.sampled_from(["loss", "a/b", "长", ""])), min_size=1, max_size=20))
def test_scalars_come_out_as_through_protobuf(rows):
    outliner = _summary.Outliner()
    for step, number, wall_time, tag in rows:
        data = body(scalar(step, number, tag, wall_time))
        known = outliner.scalar(data)
        event, found = outliner.outline(data)
        got = (event.wall_time, event.step, [tuple(row) for row in found])
        assert got == slow(data)
        if known is not None:
            assert (known[0], known[1], [known[2:]]) == (got[0], got[1], [(tag, *got[2][0][1:])])


@given(st.binary(max_size=80), st.integers(0, 200), st.integers(0, 255))
def test_any_bytes_come_out_as_through_protobuf_or_not_at_all(junk, at, byte):
    outliner = _summary.Outliner()
    forms = [scalar(5, 1.5), value(5, "loss", floats(1.5) + SCALARS), value(300, "x", floats(2.0))]
    for data in map(body, forms):
        outliner.outline(data)
    for data in [junk, *map(body, forms)]:
        changed = bytearray(data)
        if changed:
            changed[at % len(changed)] = byte
        known = outliner.scalar(bytes(changed))
        if known is None:
            continue
        wall_time, step, rows = slow(bytes(changed))
        assert [known[1], known[2], known[3], known[5]] == [step, *rows[0][:2], rows[0][3]]
        assert struct.pack("<dd", known[0], known[4]) == struct.pack("<dd", wall_time, rows[0][2])


def test_a_form_is_known_from_its_second_event_on():
    outliner = _summary.Outliner()
    assert outliner.scalar(body(scalar(1, 0.5))) is None
    outliner.outline(body(scalar(1, 0.5)))
    assert outliner.scalar(body(scalar(123456, 0.25))) == (
        1_700_000_000.0 + 123456,
        123456,
        "loss",
        "simple_value",
        0.25,
        False,
    )


@pytest.mark.parametrize(
    "made",
    [
        value(5, "loss", tensor(DOUBLE, [], field(4, struct.pack("<d", 1.5))) + SCALARS),
        value(5, "loss", tensor(INT64, [], field(4, struct.pack("<q", 1)))),
        value(5, "w", ONE_BUCKET + HISTOGRAMS),
    ],
)
def test_what_does_not_end_in_a_float32_goes_through_protobuf(made):
    outliner = _summary.Outliner()
    outliner.outline(body(made))
    assert outliner.scalar(body(made)) is None


def test_a_number_that_is_none_stays_none():
    outliner = _summary.Outliner()
    outliner.outline(body(scalar(1, 0.5)))
    assert math.isnan(outliner.scalar(body(scalar(2, math.nan)))[4])
