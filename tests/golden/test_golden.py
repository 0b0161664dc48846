"""Our encoders against records that were shown right by both readers of TensorBoard; records.json says which."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._record import Record, RecordReader, frame
from tbwriter._summary import (
    Audio,
    CustomScalars,
    DescribedScalar,
    Graph,
    Histogram,
    Images,
    Layout,
    PrCurveRaw,
    Text,
    check_hparams,
    check_layout,
    event,
    file_version,
    mesh,
    session_start,
    trial_end,
    trial_start,
)

RECORDS = {
    name: bytes.fromhex(record)
    for name, record in json.loads(Path(__file__).with_name("records.json").read_text(encoding="utf-8"))[
        "records"
    ].items()
}
STEP, WALL_TIME = 1, 1700000001.0


def first_record(summary):
    return frame(event(summary.values(first=True), STEP, WALL_TIME))


def test_file_version_is_the_golden_record():
    assert frame(file_version(1700000000.0)) == RECORDS["file_version"]


def test_session_start_is_the_golden_record():
    assert frame(session_start(0, 1700000000.0)) == RECORDS["session_start"]


def test_a_described_scalar_is_the_golden_record():
    assert first_record(DescribedScalar("loss", 1.5, "Loss", "**desc**")) == RECORDS["scalars"]


def test_a_histogram_is_the_golden_record():
    # 40 values in [-1, 0) and 60 in [0, 1].
    values = np.array([-0.5] * 40 + [0.5] * 60)
    histogram = Histogram.of("w", values, bins=[-1.0, 0.0, 1.0], max_bins=None, copy=True, told=set())
    assert first_record(histogram) == RECORDS["histograms"]


def test_a_text_is_the_golden_record():
    assert first_record(Text.of("note", "# héllo")) == RECORDS["text"]


def test_a_table_of_texts_is_the_golden_record():
    assert first_record(Text.of("table", [["a", "b"], ["1", "2"]])) == RECORDS["text_rank2"]


def test_an_image_is_the_golden_record_but_for_its_png():
    # The readers hand a PNG on without a look, and the golden one is damaged: no decoder takes it.
    pytest.importorskip("PIL.Image")
    golden = pb.Event.FromString(data_of(RECORDS["images"]))
    (png,) = golden.summary.value[0].tensor.string_val[2:]
    rgba = np.array([[[0, 255, 0, 127]]], np.uint8)
    (value,) = Images.of("img", rgba, "HWC", copy=True).values(first=True)
    assert value.tensor.string_val[2][:29] == png[:29]  # signature and IHDR: 1 by 1, 8 bits, RGBA
    value.tensor.string_val[2] = png
    assert frame(event([value], STEP, WALL_TIME)) == RECORDS["images"]


def test_a_sound_is_the_golden_record():
    silence = Audio.of("snd1", np.zeros(8), sample_rate=8000, copy=True, told=set())
    assert first_record(silence) == RECORDS["audio_rank1"]


def test_a_pr_curve_is_the_golden_record():
    tp, fp = np.array([9, 6.75, 4.5, 2.25, 0]), np.array([5, 3.75, 2.5, 1.25, 0])
    precision, recall = np.linspace(0.5, 1, 5), np.linspace(1, 0, 5)
    curve = PrCurveRaw.of("pr", (tp, fp, 5 - fp, 9 - tp, precision, recall))
    assert first_record(curve) == RECORDS["pr_curves"]


def test_the_parts_of_a_mesh_are_the_golden_records():
    vertices = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], np.float64)
    faces, colors = np.array([[[0, 1, 2]]]), np.full((1, 3, 3), (255, 0, 0))
    parts = mesh("mesh", vertices, colors, faces, None, copy=True)
    assert [first_record(part) for part in parts] == [RECORDS["mesh_1"], RECORDS["mesh_2"], RECORDS["mesh_3"]]


def test_hyper_parameters_are_the_golden_record_but_for_their_order():
    golden = pb.Event.FromString(data_of(RECORDS["hparams_start"]))
    meta = golden.summary.value[0].metadata.plugin_data
    start = plugins.HParamsPluginData.FromString(meta.content).session_start_info.start_time_secs
    summary = trial_start(check_hparams({"lr": 0.1, "use_flash": True, "opt": "adamw"}), start)
    assert plugins.HParamsPluginData.FromString(summary.content) == plugins.HParamsPluginData.FromString(meta.content)
    meta.content = summary.content
    assert first_record(summary) == frame(golden.SerializeToString())


def test_the_end_of_a_trial_is_the_golden_record():
    assert first_record(trial_end(failed=False, end_time=1700000100.0)) == RECORDS["hparams_end"]


def test_a_layout_of_charts_is_the_golden_record():
    layout = check_layout({"c": {"m": ["Multiline", ["loss"]]}})
    assert first_record(CustomScalars(Layout(layout))) == RECORDS["custom_scalars"]


def test_a_graph_is_the_golden_record():
    golden = pb.Event.FromString(data_of(RECORDS["graph_def"]))
    assert frame(Graph.of(golden.graph_def).event(0, golden.wall_time)) == RECORDS["graph_def"]


@pytest.mark.parametrize("name", RECORDS)
def test_the_reader_takes_the_golden_record_whole(name):
    reader = RecordReader(io.BytesIO(RECORDS[name]), name)
    assert reader.read() == Record(0, data_of(RECORDS[name]))
    assert reader.read() is None


@pytest.mark.parametrize("name", RECORDS)
def test_our_classes_know_every_field_of_the_golden_record(name):
    data = data_of(RECORDS[name])
    assert pb.Event.FromString(data).SerializeToString() == data


def data_of(record):
    return record[12:-4]
