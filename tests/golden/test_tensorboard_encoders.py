"""Our Values against the ones that TensorBoard's own writers make, after its readers have completed them."""

import io

import numpy as np
import pytest

from tbwriter._summary import DescribedScalar, Histogram, Images, ScalarEncoder, Text, event

pytest.importorskip("tensorboard")

from tensorboard import data_compat, dataclass_compat
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.histogram import summary_v2 as histogram_summary
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.scalar import summary_v2 as scalar_summary
from tensorboard.plugins.text import summary_v2 as text_summary
from tensorboard.util import tensor_util

STEP, WALL_TIME = 7, 1700000001.0


def as_read(raw):
    """Return the Values of an Event, given as bytes, as TensorBoard's readers pass them to a dashboard."""
    migrated = data_compat.migrate_event(event_pb2.Event.FromString(raw))
    (completed,) = dataclass_compat.migrate_event(migrated, initial_metadata={})
    return list(completed.summary.value)


def ours(summary):
    return as_read(event(summary.values(first=True), STEP, WALL_TIME))


def theirs(summary):
    return as_read(event_pb2.Event(step=STEP, wall_time=WALL_TIME, summary=summary).SerializeToString())


def test_a_text_is_tensorboards():
    assert ours(Text.of("note", "# héllo")) == theirs(text_summary.text_pb("note", "# héllo"))


@pytest.mark.parametrize("table", [["a", "b"], [["a", "b"], ["1", "é"]]])
def test_a_table_of_texts_is_tensorboards(table):
    assert ours(Text.of("note", table)) == theirs(text_summary.text_pb("note", table))


def test_a_described_scalar_is_tensorboards():
    summary = scalar_summary.scalar_pb("loss", 1.5, description="**desc**")
    assert ours(DescribedScalar("loss", 1.5, "", "**desc**")) == theirs(summary)


def test_a_plain_scalar_is_read_as_tensorboards():
    (ours,) = as_read(ScalarEncoder().event(("loss",), [1.5], STEP, WALL_TIME))
    (theirs_,) = theirs(scalar_summary.scalar_pb("loss", 1.5))
    assert tensor_util.make_ndarray(ours.tensor).tolist() == tensor_util.make_ndarray(theirs_.tensor).tolist() == 1.5
    assert tensor_util.make_ndarray(ours.tensor).dtype == np.float32
    assert ours.metadata.plugin_data.plugin_name == theirs_.metadata.plugin_data.plugin_name == "scalars"
    assert ours.metadata.data_class == theirs_.metadata.data_class == summary_pb2.DATA_CLASS_SCALAR


@pytest.mark.parametrize("buckets", [1, 3, 30])
def test_a_histogram_of_equal_bins_is_tensorboards(buckets):
    values = np.random.default_rng(0).normal(size=1000)
    (mine,) = ours(Histogram.of("w", values, bins=buckets, max_bins=None, copy=True, told=set()))
    (other,) = theirs(histogram_summary.histogram_pb("w", values, buckets=buckets))
    np.testing.assert_allclose(tensor_util.make_ndarray(mine.tensor), tensor_util.make_ndarray(other.tensor))
    assert mine.metadata == other.metadata
    assert mine.tensor.dtype == other.tensor.dtype
    assert mine.tensor.tensor_shape == other.tensor.tensor_shape


def test_an_image_has_tensorboards_metadata_and_shape():
    pytest.importorskip("PIL.Image")
    (mine,) = ours(Images.of("img", np.zeros((4, 2, 3, 3), np.uint8), "NHWC", copy=True))
    expected = image_metadata.create_summary_metadata(display_name="", description="")
    assert mine.metadata.plugin_data == expected.plugin_data
    assert mine.metadata.data_class == summary_pb2.DATA_CLASS_BLOB_SEQUENCE
    width, height, *encoded = tensor_util.make_ndarray(mine.tensor).tolist()
    assert (width, height, len(encoded)) == (b"3", b"2", 4)


def test_an_image_is_what_tensorboard_makes_of_a_legacy_one():
    image_module = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 3), dtype=np.uint8)
    (mine,) = ours(Images.of("img", pixels, "HWC", copy=True))
    out = io.BytesIO()
    image_module.fromarray(pixels).save(out, "PNG")
    legacy = summary_pb2.Summary.Image(height=2, width=3, colorspace=3, encoded_image_string=out.getvalue())
    (other,) = theirs(summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="img", image=legacy)]))
    assert mine.tensor.tensor_shape == other.tensor.tensor_shape
    assert list(mine.tensor.string_val[:2]) == tensor_util.make_ndarray(other.tensor).tolist()[:2]
    assert mine.metadata.plugin_data.plugin_name == other.metadata.plugin_data.plugin_name
    assert mine.metadata.data_class == other.metadata.data_class


def test_serialised_events_are_tensorboards_byte_for_byte():
    summaries = [
        Text.of("note", [["a", "b"], ["1", "é"]]),
        DescribedScalar("loss", 1.5, "Loss", "**desc**"),
        Histogram.of("w", np.arange(100.0), bins="tensorflow", max_bins=None, copy=True, told=set()),
    ]
    for summary in summaries:
        for first in (True, False):
            raw = event(summary.values(first), -STEP, WALL_TIME)
            assert event_pb2.Event.FromString(raw).SerializeToString() == raw
