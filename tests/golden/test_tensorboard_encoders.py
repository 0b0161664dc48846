"""Our Values against the ones that TensorBoard's own writers make, after its readers have completed them."""

import io

import numpy as np
import pytest

from tbwriter._summary import (
    Audio,
    CustomScalars,
    DescribedScalar,
    Embedding,
    Histogram,
    HistogramRaw,
    Images,
    Layout,
    PrCurve,
    ScalarEncoder,
    Tensor,
    Text,
    check_hparams,
    check_layout,
    event,
    experiment,
    mesh,
    trial_end,
    trial_start,
)

pytest.importorskip("tensorboard")

from google.protobuf import text_format
from tensorboard import data_compat, dataclass_compat
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.audio import metadata as audio_metadata
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as layout_metadata
from tensorboard.plugins.histogram import summary_v2 as histogram_summary
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.hparams import summary_v2 as hparams_summary
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.pr_curve import metadata as pr_curve_metadata
from tensorboard.plugins.projector import projector_config_pb2
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


def test_a_raw_histogram_is_what_tensorboard_makes_of_a_legacy_one():
    limits, counts = [1.0, 2.0, 3.0, 4.0, 5.0], [0, 2, 0, 3, 0]
    raw = HistogramRaw.of("w", minimum=1.25, maximum=3.5, unshown=(5, 12, 34), limits=limits, counts=counts, told=set())
    legacy = summary_pb2.HistogramProto(
        min=1.25, max=3.5, num=5, sum=12, sum_squares=34, bucket_limit=limits, bucket=counts
    )
    (mine,) = ours(raw)
    (other,) = theirs(summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="w", histo=legacy)]))
    assert tensor_util.make_ndarray(mine.tensor).tolist() == tensor_util.make_ndarray(other.tensor).tolist()
    assert mine.metadata.plugin_data == other.metadata.plugin_data


def test_a_sound_has_tensorboards_metadata():
    (mine,) = ours(Audio.of("snd", np.zeros((10, 2)), sample_rate=8000, copy=True, told=set()))
    wav = audio_metadata.create_summary_metadata(
        display_name="", description="", encoding=audio_metadata.Encoding.Value("WAV")
    )
    assert mine.metadata.plugin_data == wav.plugin_data


def test_a_pr_curve_has_tensorboards_metadata():
    curve = PrCurve.of("pr", [True], [0.5], num_thresholds=201, weights=None, copy=True, told=set())
    (mine,) = ours(curve)
    expected = pr_curve_metadata.create_summary_metadata(display_name="", description="", num_thresholds=201)
    assert mine.metadata.plugin_data == expected.plugin_data


def test_the_parts_of_a_mesh_are_tensorboards():
    rng = np.random.default_rng(0)
    vertices, faces = rng.normal(size=(2, 4, 3)), rng.integers(0, 4, (2, 5, 3))
    colors = rng.integers(0, 256, (2, 4, 3))
    config = {"camera": {"cls": "PerspectiveCamera", "fov": 75}}
    parts = mesh("m/s", vertices, colors, faces, config, copy=True)
    kinds = [1, 2, 3]
    components = mesh_metadata.get_components_bitmask(kinds)
    text = '{"camera": {"cls": "PerspectiveCamera", "fov": 75}}'
    for part, kind, array, dtype in zip(
        parts, kinds, (vertices, faces, colors), (np.float32, np.int32, np.uint8), strict=True
    ):
        (mine,) = ours(part)
        expected = mesh_metadata.create_summary_metadata("m/s", None, kind, components, array.shape, json_config=text)
        assert mine.tag == mesh_metadata.get_instance_name("m/s", kind)
        assert mine.metadata.plugin_data == expected.plugin_data
        read = tensor_util.make_ndarray(mine.tensor)
        assert read.dtype == dtype
        assert read.tolist() == array.astype(dtype).tolist()


def test_hyper_parameters_are_tensorboards():
    values = {"lr": 0.1, "flash": True, "opt": "adamw", "n": 3}
    (mine,) = ours(trial_start(check_hparams(values), 123.5))
    (other,) = theirs(hparams_summary.hparams_pb(values, trial_id="t", start_time_secs=123.5))
    expected = plugin_data_pb2.HParamsPluginData.FromString(other.metadata.plugin_data.content)
    expected.session_start_info.group_name = ""
    assert plugin_data_pb2.HParamsPluginData.FromString(mine.metadata.plugin_data.content) == expected
    other.metadata.plugin_data.content = mine.metadata.plugin_data.content
    assert mine == other


@pytest.mark.parametrize("failed", [False, True])
def test_the_end_of_a_trial_is_tensorboards(failed):
    (mine,) = ours(trial_end(failed=failed, end_time=123.5))
    info = plugin_data_pb2.SessionEndInfo(status=2 if failed else 1, end_time_secs=123.5)
    expected = hparams_metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=info))
    assert mine.tag == hparams_metadata.SESSION_END_INFO_TAG
    assert mine.metadata.plugin_data == expected.plugin_data
    assert mine.tensor == hparams_metadata.NULL_TENSOR


def test_an_experiment_with_domains_is_tensorboards():
    values = check_hparams({"lr": 0.1, "flash": True, "opt": "adamw"})
    domains = {"lr": [0.1, 0.2], "opt": ["sgd", "adamw"], "flash": [True, False]}
    (mine,) = ours(experiment(values, ["loss"], domains))
    hparams = [
        hparams_summary.HParam("lr", hparams_summary.Discrete([0.1, 0.2])),
        hparams_summary.HParam("flash", hparams_summary.Discrete([False, True])),
        hparams_summary.HParam("opt", hparams_summary.Discrete(["adamw", "sgd"])),
    ]
    (other,) = theirs(hparams_summary.hparams_config_pb(hparams, [hparams_summary.Metric("loss")], 0.0))

    def content(value):
        data = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
        return {
            info.name: (info.type, sorted(map(str, info.domain_discrete.values)))
            for info in data.experiment.hparam_infos
        }, [info.name.tag for info in data.experiment.metric_infos]

    assert content(mine) == content(other)


def test_a_layout_is_tensorboards():
    layout = {"losses": {"all": ["Multiline", ["loss.*", "val"]], "band": ["Margin", ["v", "lo", "hi"]]}}
    (mine,) = ours(CustomScalars(Layout(check_layout(layout))))
    series = layout_pb2.MarginChartContent.Series(value="v", lower="lo", upper="hi")
    charts = [
        layout_pb2.Chart(title="all", multiline=layout_pb2.MultilineChartContent(tag=["loss.*", "val"])),
        layout_pb2.Chart(title="band", margin=layout_pb2.MarginChartContent(series=[series])),
    ]
    expected = layout_pb2.Layout(category=[layout_pb2.Category(title="losses", chart=charts)])
    assert mine.tag == layout_metadata.CONFIG_SUMMARY_TAG
    assert layout_pb2.Layout.FromString(tensor_util.make_ndarray(mine.tensor).item()) == expected
    assert mine.metadata.plugin_data == layout_metadata.create_summary_metadata().plugin_data


def test_the_projectors_configuration_is_one_for_tensorboard():
    points = Embedding.of(
        "a/b", 7, np.eye(4), labels=list("abcd"), header=None, images=np.zeros((4, 3, 5, 6)), copy=True
    )
    config = text_format.Parse(points.config(b""), projector_config_pb2.ProjectorConfig())
    (info,) = config.embeddings
    assert info.tensor_name == "a/b:00007"
    assert info.tensor_path == "00007/a%2fb/tensors.tsv"
    assert info.metadata_path == "00007/a%2fb/metadata.tsv"
    assert info.sprite.image_path == "00007/a%2fb/sprite.png"
    assert list(info.sprite.single_image_dim) == [6, 5]


@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">f2", ">f4", ">i8"],
)
def test_a_tensor_of_any_dtype_is_one_for_tensorboard(dtype):
    array = np.array([[0, 1], [2, 100]]).astype(dtype)
    (mine,) = ours(Tensor.of("t", array, copy=True))
    read = tensor_util.make_ndarray(mine.tensor)
    assert read.dtype == array.dtype.newbyteorder("=")
    assert read.tolist() == array.tolist()


def test_serialised_events_are_tensorboards_byte_for_byte():
    summaries = [
        Text.of("note", [["a", "b"], ["1", "é"]]),
        DescribedScalar("loss", 1.5, "Loss", "**desc**"),
        Histogram.of("w", np.arange(100.0), bins="tensorflow", max_bins=None, copy=True, told=set()),
        Audio.of("snd", np.zeros(10), sample_rate=8000, copy=True, told=set()),
        PrCurve.of("pr", [True, False], [0.5, 0.1], num_thresholds=5, weights=None, copy=True, told=set()),
        *mesh("m", np.ones((1, 2, 3)), np.ones((1, 2, 3)), None, {"a": 1}, copy=True),
        trial_start(check_hparams({"lr": 0.1, "opt": "é"}), 1.5),
        CustomScalars(Layout(check_layout({"c": {"t": ["Multiline", ["a"]]}}))),
        Tensor.of("t", np.float16([1.5, 2]), copy=True),
    ]
    for summary in summaries:
        for first in (True, False):
            raw = event(summary.values(first), -STEP, WALL_TIME)
            assert event_pb2.Event.FromString(raw).SerializeToString() == raw
