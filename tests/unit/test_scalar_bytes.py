import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbwriter import _summary
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._record import frame, frame_rows
from tbwriter._summary._scalar import step_field, value_prefix, varint, wall_time_field

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOAT32_MAX = 3.4028234663852886e38  # (2 - 2**-23) * 2**127

# The lengths of a varint change at these.
STEP_EDGES = [0, 1, *(edge + d for bits in range(7, 63, 7) for edge in [1 << bits] for d in (-1, 0, 1)), INT64_MAX, -1]

tags = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.sampled_from(["loss", "train/loss", "损失/训练", "🔥", "a b\n[c]", "\0", "x" * 120, "x" * 127, "x" * 128]),
    st.sampled_from([129, 16_384, 70_000]).map(lambda n: "y" * n),
)
values = st.one_of(
    st.floats(width=32, allow_nan=False),
    st.floats(-FLOAT32_MAX, FLOAT32_MAX),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1e-45, -1e-45, 1e-46, 1.17549435e-38, FLOAT32_MAX, 0.1]),
)
steps = st.one_of(st.integers(INT64_MIN, INT64_MAX), st.sampled_from([*STEP_EDGES, INT64_MIN]), st.integers(0, 10**6))
wall_times = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda seconds: seconds != 0.0),
    st.floats(1.6e9, 2.0e9),
)


def protobuf_event(tags, values, step, wall_time):
    summary = pb.Summary(value=[pb.Summary.Value(tag=tag, simple_value=v) for tag, v in zip(tags, values, strict=True)])
    return pb.Event(wall_time=wall_time, step=step, summary=summary).SerializeToString()


def test_one_scalar_is_49_bytes_with_its_record():
    # Event{wall_time: 1700000001, step: 300, summary{value{tag: "train/loss", simple_value: 1.5}}}
    data = _summary.ScalarEncoder().event(("train/loss",), [1.5], 300, 1700000001.0)
    wall_time, step = "09 00004040fc54d941", "10 ac02"  # 300 = 0b10_0101100
    value = "0a 0a 747261696e2f6c6f7373" + "15 0000c03f"  # tag, simple_value
    assert data == bytes.fromhex(wall_time + step + "2a 13 0a 11" + value)
    assert len(frame(data)) == 49


@given(st.lists(st.tuples(tags, values), min_size=1, max_size=6, unique_by=lambda pair: pair[0]), steps, wall_times)
def test_an_event_is_byte_for_byte_protobufs(pairs, step, wall_time):
    names, numbers = zip(*pairs, strict=True)
    assert _summary.ScalarEncoder().event(names, numbers, step, wall_time) == protobuf_event(
        names, numbers, step, wall_time
    )


@given(st.lists(st.tuples(tags, values), min_size=1, max_size=4, unique_by=lambda pair: pair[0]), steps, wall_times)
def test_an_event_is_byte_for_byte_tensorboards(pairs, step, wall_time):
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    summary_pb2 = pytest.importorskip("tensorboard.compat.proto.summary_pb2")
    names, numbers = zip(*pairs, strict=True)
    summary = summary_pb2.Summary(
        value=[summary_pb2.Summary.Value(tag=tag, simple_value=v) for tag, v in zip(names, numbers, strict=True)]
    )
    theirs = event_pb2.Event(wall_time=wall_time, step=step, summary=summary).SerializeToString()
    assert _summary.ScalarEncoder().event(names, numbers, step, wall_time) == theirs


@pytest.mark.parametrize("step", [*STEP_EDGES, INT64_MIN])
def test_a_step_of_each_length_is_protobufs(step):
    assert _summary.ScalarEncoder().event(("a",), [1.0], step, 1.0) == protobuf_event(("a",), [1.0], step, 1.0)


def test_a_wall_time_of_0_is_left_out_as_proto3_does():
    assert _summary.ScalarEncoder().event(("a",), [0.0], 0, 0.0) == protobuf_event(("a",), [0.0], 0, 0.0)


def test_a_value_of_0_is_stored_all_the_same():
    # A member of a oneof has presence: TensorBoard would show nothing without it.
    assert _summary.ScalarEncoder().event(("a",), [0.0], 0, 0.0) == bytes.fromhex("2a0a 0a08 0a0161 1500000000")


def test_the_events_of_one_encoder_do_not_leak_into_each_other():
    encoder = _summary.ScalarEncoder()
    calls = [
        (("a", "b"), [1.0, 2.0], 7, 1.5),
        (("a",), [3.0], 8, 2.5),
        (("b", "a"), [4.0, 5.0], -1, 3.5),
        (("a", "b"), [6.0, math.nan], 0, 4.5),
    ]
    assert [encoder.event(*call) for call in calls] == [protobuf_event(*call) for call in calls]


def test_an_encoder_takes_the_views_of_a_dict():
    group = {"a": 1.0, "b": 2.0}
    event = _summary.ScalarEncoder().event(tuple(group), group.values(), 7, 1.5)
    assert event == protobuf_event(("a", "b"), (1.0, 2.0), 7, 1.5)


def test_more_groups_of_tags_than_are_remembered_stay_right():
    encoder = _summary.ScalarEncoder()
    for i in range(9000):
        event = encoder.event((f"tag/{i:04d}",), [1.0], 1, 1.0)
        assert event.endswith(b"\x0a\x08tag/%04d\x15\0\0\x80\x3f" % i)


@given(st.floats())
def test_what_as_scalar_returns_can_be_encoded(value):
    number = _summary.as_scalar(value, "a", set())
    data = _summary.ScalarEncoder().event(("a",), [number], 1, 1.0)
    stored = pb.Event.FromString(data).summary.value[0].simple_value
    with np.errstate(over="ignore"):
        np.testing.assert_equal(stored, float(np.float32(value)))


# ---- the parts


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        # protobuf.dev, "Encoding": Base 128 Varints.
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (150, "9601"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**21 - 1, "ffff7f"),
        (2**21, "80808001"),
        (2**35, "808080808001"),
        (2**63 - 1, "ffffffffffffffff7f"),
        (2**64 - 1, "ffffffffffffffffff01"),
        (-1, "ffffffffffffffffff01"),
        (-2, "feffffffffffffffff01"),
        (-(2**63), "80808080808080808001"),
    ],
)
def test_varint_is_base_128(number, encoded):
    assert varint(number).hex() == encoded


def test_step_0_takes_no_bytes():
    assert step_field(0) == b""


@given(steps)
def test_a_step_field_is_protobufs(step):
    assert step_field(step) == pb.Event(step=step).SerializeToString()


@given(wall_times)
def test_a_wall_time_field_is_protobufs(wall_time):
    assert wall_time_field(wall_time) == pb.Event(wall_time=wall_time).SerializeToString()


@given(tags)
def test_a_value_prefix_is_protobufs_up_to_the_number(tag):
    summary = pb.Summary(value=[pb.Summary.Value(tag=tag, simple_value=0.0)]).SerializeToString()
    assert value_prefix(tag) + bytes(4) == summary


# ---- a scalar with a title


def test_a_described_scalar_carries_its_names_on_the_first_value_only():
    scalar = _summary.DescribedScalar("loss", 1.5, "Loss", "**desc**")
    (first,) = scalar.values(True)
    (later,) = scalar.values(False)
    assert first.metadata.display_name == "Loss"
    assert first.metadata.summary_description == "**desc**"
    assert first.metadata.plugin_data.plugin_name == "scalars"
    assert first.metadata.data_class == pb.DATA_CLASS_SCALAR
    assert not later.HasField("metadata")
    assert list(later.tensor.float_val) == [1.5]


def test_a_described_scalar_is_a_float32_of_rank_0():
    # Both readers show no other dtype and no other rank.
    (value,) = _summary.DescribedScalar("loss", 1.5, "Loss", "").values(True)
    assert value.tensor.dtype == pb.DT_FLOAT
    assert value.tensor.HasField("tensor_shape")
    assert len(value.tensor.tensor_shape.dim) == 0


# ---- a series


points = st.lists(st.tuples(st.floats(width=32, allow_nan=False), steps, wall_times), min_size=1, max_size=30)


def columns(points):
    numbers, where, times = zip(*points, strict=True)
    return np.array(numbers, np.float32), np.array(where, np.int64), np.array(times, np.float64)


@given(tags, points)
def test_the_rows_of_a_series_are_byte_for_byte_protobufs_events(tag, points):
    blocks = list(_summary.rows(tag, *columns(points)))
    events = [row.tobytes() for block in blocks for row in block.data]
    assert events == [protobuf_event((tag,), (value,), step, time) for value, step, time in points]


@given(tags, points)
def test_a_series_is_framed_as_its_events_are_one_by_one(tag, points):
    blocks = _summary.rows(tag, *columns(points))
    records = b"".join(frame_rows(block.data, block.varying).tobytes() for block in blocks)
    assert records == b"".join(frame(protobuf_event((tag,), (value,), step, time)) for value, step, time in points)


def test_a_series_of_ascending_steps_makes_one_block_for_each_length():
    where = np.array([0, 1, 127, 128, 16383, 16384, 2**63 - 1, -1, 0])
    n = len(where)
    blocks = list(_summary.rows("a", np.zeros(n, np.float32), where, np.ones(n)))
    assert [len(block.data) for block in blocks] == [1, 2, 2, 1, 1, 1, 1]


def test_special_values_of_a_series_are_protobufs():
    numbers = np.array([math.nan, math.inf, -math.inf, -0.0, 1e-45], np.float32)
    (block,) = _summary.rows("a", numbers, np.arange(1, 6), np.full(5, 1.5))
    assert [row.tobytes() for row in block.data] == [
        protobuf_event(("a",), (float(v),), i, 1.5) for i, v in enumerate(numbers, 1)
    ]


def test_a_series_may_be_a_strided_view():
    numbers = np.arange(10, dtype=np.float32)[::-2]
    where = np.arange(1, 11)[::2]
    times = np.linspace(1.0, 2.0, 10)[::2]
    (block,) = _summary.rows("a", numbers, where, times)
    assert [row.tobytes() for row in block.data] == [
        protobuf_event(("a",), (float(v),), int(s), float(t)) for v, s, t in zip(numbers, where, times, strict=True)
    ]


def test_an_empty_series_has_no_rows():
    assert list(_summary.rows("a", np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0))) == []
