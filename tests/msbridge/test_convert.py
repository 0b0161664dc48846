"""MindSpore's own summaries, as it writes them itself, turned into event files."""

import io
import json
import shlex
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from damaged import record as framed
from event_files import event_files, records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import wait_until

from msbridge import _foreign
from msbridge._pb import mindspore_summary_pb2 as pb
from msbridge.convert import Conversion, convert
from tbwriter import read_events, verify

NAME = "events.out.events.summary.1700000000.0.host_MS"


LINEAGE = {"train_lineage", "evaluation_lineage", "dataset_graph", "user_defined_info"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What MindSpore wrote in a process of its own: one collector is all that a process can have.

    Its collector only warns of an error inside the data set, and then leaves the graph of the data set out.
    """
    said = []
    program = Path(__file__).parent / "summary_of_mindspore.py"
    for _ in range(3):
        place = tmp_path_factory.mktemp("summary")
        ended = subprocess.run([sys.executable, str(program), str(place)], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr[-3000:]
        kept = lineage_kept(place)
        if kept == LINEAGE:
            return place
        said.append(f"left out {LINEAGE - kept}: {ended.stderr[-3000:]}")
    raise AssertionError(f"three times MindSpore wrote less than was asked for: {said}")


def lineage_kept(place):
    """Which kinds of lineage MindSpore's own messages find in its files."""
    from mindspore.train.lineage_pb2 import LineageEvent

    events = [
        LineageEvent.FromString(body) for path in place.glob("*_lineage") for body in records(path.read_bytes())[0]
    ]
    return {event.WhichOneof("what") for event in events} - {"version", None}


def theirs(place):
    """What MindSpore's own messages say is in its files: {tag: {step: value}}, graph, lineage."""
    from mindspore.train.summary_pb2 import Event

    found, graph = defaultdict(dict), None
    for path in sorted(place.glob("*_MS")):
        for body in records(path.read_bytes())[0]:
            event = Event.FromString(body)
            if event.WhichOneof("what") == "graph_def":
                graph = event.graph_def
            for value in event.summary.value:
                found[value.tag].setdefault(event.step, getattr(value, value.WhichOneof("value")))
    return found, graph


@pytest.fixture(scope="module")
def converted(written, tmp_path_factory):
    output = tmp_path_factory.mktemp("converted")
    (report,) = convert(written, output)
    values = defaultdict(dict)
    events = list(read_events(output))
    for event in events:
        for value in event.values:
            values[value.tag][event.step] = value
    return output, report, values, events


def test_every_scalar_of_mindspore_is_there(written, converted):
    want, _ = theirs(written)
    _, _, values, _ = converted
    for tag in ("mean", "loss/auto"):
        assert len(want[tag]) == 8
        assert {step: value.scalar() for step, value in values[tag].items()} == want[tag]


def test_histograms_have_the_same_buckets(written, converted):
    want, _ = theirs(written)
    for tag in ("spread", "conv.weight/auto", "dense.bias/auto"):
        for step, histogram in want[tag].items():
            found = converted[2][tag][step].data
            assert found[:, 2].sum() == histogram.count
            np.testing.assert_allclose(found[0, 0], histogram.min, rtol=1e-6)
            np.testing.assert_allclose(found[-1, 1], histogram.max, rtol=1e-6)


def test_images_are_mindspores_byte_for_byte(written, converted):
    want, _ = theirs(written)
    assert len(want["input"]) == 8
    for step, picture in want["input"].items():
        assert converted[2]["input"][step].data == [picture.encoded_image]


def test_tensors_are_kept_whole_and_shown_as_histograms(written, converted):
    want, _ = theirs(written)
    for step, tensor in want["logits"].items():
        np.testing.assert_array_equal(
            converted[2]["logits/tensor"][step].data, np.reshape(tensor.float_data, list(tensor.dims)).astype("f4")
        )
        assert converted[2]["logits"][step].data[:, 2].sum() == 12


def test_the_graph_has_every_node_under_its_full_name(written, converted):
    _, graph = theirs(written)
    (data,) = [event.graph_def for event in converted[3] if event.graph_def]
    made = pb.GraphDef.FromString(data)
    names = [node.name for node in made.node]
    assert len(set(names)) == len(names)
    assert {node.full_name for node in graph.node} <= set(names)
    assert {parameter.name for parameter in graph.parameters} <= set(names)
    assert {edge.lstrip("^") for node in made.node for edge in node.input} <= set(names)
    assert sum(len(node.input) for node in graph.node) == sum(len(node.input) for node in made.node)


def test_lineage_becomes_a_row_of_hparams(converted):
    plugin = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    _, _, values, _ = converted
    (start,) = values["_hparams_/session_start_info"].values()
    hparams = plugin.HParamsPluginData.FromString(start.content).session_start_info.hparams
    assert hparams["optimizer"].string_value == "Momentum"
    assert hparams["learning_rate"].number_value == pytest.approx(0.01)
    assert (hparams["note"].string_value, hparams["layers"].number_value) == ("words", 2)
    assert hparams["dropout"].number_value == 0.5
    (accuracy,) = values["eval/acc"].values()
    assert 0 <= accuracy.scalar() <= 1


def test_the_graph_of_the_data_set_becomes_a_text(converted):
    _, report, values, _ = converted
    assert report.values["dataset graph"] == 1
    lines = values["dataset_graph/text_summary"][0].data.splitlines()
    assert [line.split("**")[1] for line in lines[:2]] == ["Batch", "GeneratorDataset"]
    assert "batch_size=`4`" in lines[0]
    assert lines[1].startswith("    - ")


def test_wall_times_are_mindspores(written, converted):
    from mindspore.train.summary_pb2 import Event

    (path,) = written.glob("*_MS")
    bodies = [Event.FromString(body) for body in records(path.read_bytes())[0]]
    want = {}
    for event in bodies:
        for value in event.summary.value:
            want.setdefault((value.tag, event.step), event.wall_time)
    found = {(v.tag, e.step): e.wall_time for e in converted[3] for v in e.values if v.tag == "loss/auto"}
    assert found == {key: time for key, time in want.items() if key[0] == "loss/auto"}


def test_what_is_written_is_sound_and_counted(converted):
    output, report, _, _ = converted
    assert verify(output).ok
    assert report.values["scalars"] == 16
    assert report.values["graph"] == report.values["hparams"] == 1


def test_our_messages_are_mindspores():
    from google.protobuf.descriptor import FieldDescriptor
    from mindspore.train import anf_ir_pb2, lineage_pb2, summary_pb2

    pairs = {
        "MindSporeEvent": summary_pb2.Event,
        "Summary": summary_pb2.Summary,
        "Tensor": anf_ir_pb2.TensorProto,
        "Graph": anf_ir_pb2.GraphProto,
        "Node": anf_ir_pb2.NodeProto,
        "Attribute": anf_ir_pb2.AttributeProto,
        "NamedConstant": anf_ir_pb2.NamedValueProto,
        "Constant": anf_ir_pb2.ValueProto,
        "Parameter": anf_ir_pb2.ParameterProto,
        "Input": anf_ir_pb2.InputProto,
        "Type": anf_ir_pb2.TypeProto,
        "Shape": anf_ir_pb2.TensorShapeProto,
        "LineageEvent": lineage_pb2.LineageEvent,
        "UserDefinedInfo": lineage_pb2.UserDefinedInfo,
        "TrainLineage": lineage_pb2.TrainLineage,
        "EvaluationLineage": lineage_pb2.EvaluationLineage,
        "DatasetGraph": lineage_pb2.DatasetGraph,
        "Operation": lineage_pb2.Operation,
        "OperationParameter": lineage_pb2.OperationParameter,
        "LossLandscape": summary_pb2.LossLandscape,
    }
    checked = 0

    def compare(ours, other):
        nonlocal checked
        for field in ours.fields:
            same = other.fields_by_number[field.number]
            kind = FieldDescriptor.TYPE_INT32 if same.type == FieldDescriptor.TYPE_ENUM else same.type
            assert (field.name, field.type) == (same.name, kind), (ours.name, field.name)
            checked += 1
        for nested in ours.nested_types:
            name = {"Bucket": "bucket", "TensorType": "Tensor"}.get(nested.name, nested.name)
            compare(nested, other.nested_types_by_name[name])

    for name, other in pairs.items():
        compare(getattr(pb, name).DESCRIPTOR, other.DESCRIPTOR)
    assert checked > 80


def test_importing_and_converting_needs_no_mindspore(written, tmp_path):
    code = f"""
import sys
sys.modules["mindspore"] = None
from msbridge.convert import convert
print(convert({str(written)!r}, {str(tmp_path / "out")!r})[0].values["scalars"])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout == "16\n", ended.stderr


def test_doctor_finds_mindspores_files_and_no_fault_in_ours(written, converted, tmp_path):
    pytest.importorskip("typer")
    from tbwriter.cli._doctor import diagnose

    (found,) = diagnose(str(written), None)
    assert found.code == "mindspore-format"
    words = shlex.split(found.command.replace("CONVERTED", str(tmp_path / "new")))
    assert subprocess.run([sys.executable, "-m", *words], capture_output=True, check=False).returncode == 0
    assert [len(list(read_events(place))) for place in (tmp_path / "new", converted[0])] == [len(converted[3])] * 2
    assert [finding.code for finding in diagnose(str(converted[0]), None) if finding.level != "note"] == []


def test_the_command_converts_and_tells(written, tmp_path):
    pytest.importorskip("typer")
    command = [sys.executable, "-m", "tbwriter", "convert", str(written), "-o", str(tmp_path / "out"), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["values"]["scalars"] == 16
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 3
    assert "has event files already" in again.stderr


def test_a_landscape_as_mindspore_writes_it_becomes_a_picture_and_keeps_its_numbers(tmp_path):
    pytest.importorskip("PIL")
    from mindspore.train.summary_pb2 import Event

    def fill(message, array):
        message.data_type = 11
        message.dims.extend(array.shape)
        message.float_data.extend(array.ravel().tolist())

    event = Event(wall_time=1000.0, step=3)
    landscape = event.summary.value.add(tag="landscape").loss_landscape
    x, y, z = np.arange(4.0), np.arange(3.0), np.arange(12.0).reshape(3, 4)
    path = np.arange(6.0).reshape(3, 2)
    for point, arrays in (
        (landscape.landscape, (x, y, z)),
        (landscape.loss_path.points, path),
        (landscape.convergence_point, path[:, :1]),
    ):
        for name, array in zip("xyz", arrays, strict=True):
            fill(getattr(point, name), array)
    (report,) = convert(put(tmp_path / "in", framed(event.SerializeToString())), tmp_path / "out")
    assert (report.values, report.skipped) == ({"landscapes": 1}, {})
    found = {v.tag: v.data for e in read_events(tmp_path / "out") for v in e.values}
    for name, array in {"x": x, "y": y, "z": z, "path": path, "end": path[:, :1]}.items():
        np.testing.assert_array_equal(found.pop(f"landscape/{name}"), array)
    picture = np.asarray(pytest.importorskip("PIL.Image").open(io.BytesIO(found.pop("landscape")[0])).convert("L"))
    assert picture.shape == (3, 4)
    assert picture.ravel().tolist() == [round(255 * height / 11) for height in range(12)]
    assert not found


def test_what_is_left_out_is_said_once_and_counted(tmp_path, caplog):
    parts = [
        event(1, pb.Summary.Value(tag="odd", tensor=pb.Tensor(dims=[3], data_type=11, float_data=[1.0]))),
        *(framed(pb.MindSporeEvent(explain=pb.Explain()).SerializeToString()) for _ in range(3)),
        scalar(1, 1.0),
    ]
    (report,) = convert(put(tmp_path / "in", *parts), tmp_path / "out")
    assert points(tmp_path / "out") == [("loss", 1, 1.0)]
    assert sorted(report.skipped.values()) == [1, 3]
    assert len(caplog.records) == 2
    assert "explanations" in caplog.text
    assert "'odd'" in caplog.text


# ---- files made by hand: what MindSpore's own training does not come to


def event(step, *values, wall_time=1000.0):
    return framed(
        pb.MindSporeEvent(wall_time=wall_time + step, step=step, summary=pb.Summary(value=values)).SerializeToString()
    )


def scalar(step, number, tag="loss"):
    return event(step, pb.Summary.Value(tag=tag, scalar_value=number))


def put(directory, *parts, name=NAME):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(b"".join(parts))
    return directory


def points(place):
    return [(v.tag, e.step, v.scalar()) for e in read_events(place) for v in e.values]


def test_a_growing_file_is_followed(tmp_path):
    whole = [scalar(step, float(step)) for step in range(1, 7)]
    place = put(tmp_path / "in", *whole[:2], whole[2][:10])
    with Conversion(place, tmp_path / "out") as conversion:
        assert conversion.step() == 2
        assert points(tmp_path / "out") == [("loss", 1, 1.0), ("loss", 2, 2.0)]
        put(place, *whole[:5])
        assert conversion.step() == 3
        assert conversion.step() == 0
        put(place, *whole)
        put(tmp_path / "in" / "rank_1", whole[0])
        assert conversion.step() == 2
    assert points(tmp_path / "out") == [("loss", step, float(step)) for step in range(1, 7)]
    assert points(tmp_path / "out" / "rank_1") == [("loss", 1, 1.0)]


def test_following_goes_on_until_it_is_ended(tmp_path):
    place = put(tmp_path / "in", scalar(1, 1.0))
    with Conversion(place, tmp_path / "out") as conversion:
        looks = conversion.follow(pause=lambda _seconds: put(place, scalar(1, 1.0), scalar(2, 2.0)))
        assert [next(looks), next(looks), next(looks)] == [1, 1, 0]
    assert points(tmp_path / "out") == [("loss", 1, 1.0), ("loss", 2, 2.0)]


def test_the_command_goes_on_following_when_storage_failed(tmp_path):
    pytest.importorskip("typer")
    place, away, err = put(tmp_path / "in", scalar(1, 1.0)), tmp_path / "away", tmp_path / "err"
    words = ["convert", str(place), "-o", str(tmp_path / "out"), "--follow", "--interval", "0.05"]
    with err.open("w") as told:
        process = subprocess.Popen([sys.executable, "-m", "tbwriter", *words], stdout=told, stderr=told)
        wait_until(lambda: event_files(tmp_path / "out") and points(tmp_path / "out"), within=60, what="a first look")
        place.rename(away)
        place.symlink_to(place)  # cannot be listed, not even by root
        wait_until(lambda: "trying again" in err.read_text(), within=60, what="what fails")
        put(away, scalar(1, 1.0), scalar(2, 2.0))
        place.unlink()
        away.rename(place)
        wait_until(lambda: len(points(tmp_path / "out")) == 2, within=60, what="what came meanwhile")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert err.read_text().count("trying again") == 1


def test_a_step_that_comes_again_is_written_once(tmp_path):
    """MindSpore writes the last step of an epoch twice, and what is left at the end of training with step 0."""
    place = put(tmp_path / "in", scalar(1, 1.0), scalar(2, 2.0), scalar(2, 2.0), scalar(0, 9.0), scalar(3, 3.0))
    (report,) = convert(place, tmp_path / "out")
    assert points(tmp_path / "out") == [("loss", 1, 1.0), ("loss", 2, 2.0), ("loss", 3, 3.0)]
    assert sum(report.skipped.values()) == 2


DTYPES = [
    (1, "?"), (2, "i1"), (3, "i2"), (4, "i4"), (5, "i8"), (6, "u1"), (7, "u2"), (8, "u4"), (9, "u8"), (10, "f2"),
    (11, "f4"), (12, "f8"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "dtype"), DTYPES)
def test_raw_tensors_of_every_dtype_are_read(number, dtype):
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    found = _foreign.tensor(pb.Tensor(dims=array.shape, data_type=number, raw_data=array.tobytes()))
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


def test_bfloat16_is_read_exactly():
    bits = np.array([0x3FC0, 0xC000, 0x7F80], "u2")  # 1.5, -2, infinity
    found = _foreign.tensor(pb.Tensor(dims=[3], data_type=46, raw_data=bits.tobytes()))
    assert found.tolist() == [1.5, -2.0, np.inf]


@pytest.mark.parametrize(
    "message",
    [
        pb.Tensor(dims=[3], data_type=11, float_data=[1.0, 2.0]),
        pb.Tensor(dims=[-5], data_type=11, float_data=[1.0]),
        pb.Tensor(dims=[1], data_type=99, float_data=[1.0]),
        pb.Tensor(dims=[1], data_type=11, raw_data=b"abc"),
    ],
)
def test_a_tensor_that_contradicts_itself_is_left_out(message):
    assert _foreign.tensor(message) is None


def test_counts_of_values_that_are_no_numbers_become_curves(tmp_path):
    histogram = pb.Summary.Histogram(nan_count=2, pos_inf_count=1, neg_inf_count=3, count=0)
    place = put(tmp_path / "in", event(1, pb.Summary.Value(tag="w", histogram=histogram)))
    convert(place, tmp_path / "out")
    assert points(tmp_path / "out") == [("w/nan_count", 1, 2.0), ("w/inf_count", 1, 4.0)]


def test_a_histogram_of_one_value_is_a_bucket(tmp_path):
    bucket = pb.Summary.Histogram.Bucket(left=2.0, width=0.0, count=7)
    histogram = pb.Summary.Histogram(buckets=[bucket], count=7, min=2.0, max=2.0)
    place = put(tmp_path / "in", event(1, pb.Summary.Value(tag="w", histogram=histogram)))
    convert(place, tmp_path / "out")
    ((value,),) = [e.values for e in read_events(tmp_path / "out") if e.values]
    assert value.data[:, 2].sum() == 7


def test_directories_become_runs_of_the_same_names(tmp_path):
    for name in ("rank_0", "deep/rank_1"):
        put(tmp_path / "in" / name, scalar(1, 1.0))
    reports = convert(tmp_path / "in", tmp_path / "out")
    assert {report.output for report in reports} == {f"{tmp_path}/out/deep/rank_1", f"{tmp_path}/out/rank_0"}
    assert points(tmp_path / "out" / "deep" / "rank_1") == [("loss", 1, 1.0)]


def test_urls_are_converted():
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe(f"/test-convert/in/rank_0/{NAME}", scalar(1, 1.0))
    convert("memory://test-convert/in", "memory://test-convert/out")
    assert points("memory://test-convert/out/rank_0") == [("loss", 1, 1.0)]
    fs.rm("/test-convert", recursive=True)


def test_a_place_without_summaries_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no summaries of MindSpore"):
        convert(tmp_path, tmp_path / "out")


def test_event_files_in_the_way_are_not_mixed_with(tmp_path):
    place = put(tmp_path / "in", scalar(1, 1.0))
    convert(place, tmp_path / "out")
    before = event_files(tmp_path / "out")
    with pytest.raises(FileExistsError, match="has event files already"):
        convert(place, tmp_path / "out")
    assert event_files(tmp_path / "out") == before
    (tmp_path / "both" / "b").mkdir(parents=True)
    place.rename(tmp_path / "both" / "b" / "in")
    put(tmp_path / "both" / "a", scalar(1, 1.0))
    (tmp_path / "out").rename(tmp_path / "in")
    (tmp_path / "more" / "b").mkdir(parents=True)
    (tmp_path / "in").rename(tmp_path / "more" / "b" / "in")
    with pytest.raises(FileExistsError, match="has event files already"):
        convert(tmp_path / "both", tmp_path / "more")
    assert not (tmp_path / "more" / "a").exists()


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(framed)), max_size=6), st.booleans())
def test_any_bytes_end_in_event_files(tmp_path_factory, parts, lineage):
    place = tmp_path_factory.mktemp("any")
    put(place / "in", *parts, name=NAME.replace("_MS", "_lineage") if lineage else NAME)
    convert_all(place)
    if (place / "out").exists():
        assert verify(place / "out").ok
    shutil.rmtree(place)


def convert_all(place):
    with Conversion(place / "in", place / "out") as conversion:
        conversion.step()


# ---- damage


def cut(data, place):
    return data[: len(data) // 2]


def hole(data, place):
    return data[: place - 60] + bytes(120) + data[place + 60 :]


@pytest.mark.parametrize("harm", [cut, hole], ids=["cut", "hole"])
def test_a_file_of_mindspores_gives_all_its_good_records_and_says_what_is_lost(written, tmp_path, harm):
    (path,) = written.glob("*_MS")
    place = tmp_path / "in"
    place.mkdir()
    sound = path.read_bytes()
    damaged = place / path.name
    damaged.write_bytes(harm(sound, len(sound) // 2))
    good = verify(damaged).files[0]
    assert 0 < good.records < verify(path).files[0].records
    command = [sys.executable, "-m", "tbwriter", "convert", str(place), "-o", str(tmp_path / "out"), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.count(str(damaged)) == 1
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["records"] == good.records
    (told,) = run["damage"]
    assert told["path"] == str(damaged)
    assert told["lost_bytes"] + told["tail_bytes"] == good.file_bytes - good.record_bytes
    assert told["offsets"] == [fault.offset for fault in good.faults if not fault.torn_tail]


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from([scalar(1, 1.0), scalar(2, 2.0), bytes(40), scalar(3, 3.0)[:-4]]), max_size=8))
def test_what_a_report_says_is_lost_is_what_no_good_record_holds(tmp_path_factory, parts):
    place = tmp_path_factory.mktemp("damaged")
    path = put(place / "in", *parts) / NAME
    good = verify(path).files[0]
    (report,) = convert(place / "in", place / "out")
    lost = [(file.lost_bytes, file.tail_bytes) for file in report.damage]
    assert sum(map(sum, lost)) == good.file_bytes - good.record_bytes
    assert bool(lost) == (not good.ok)
    shutil.rmtree(place)


def test_a_tail_that_is_completed_is_no_damage_any_more(tmp_path):
    whole = [scalar(step, float(step)) for step in range(1, 4)]
    place = put(tmp_path / "in", whole[0], whole[1][:10])
    with Conversion(place, tmp_path / "out") as conversion:
        conversion.step()
        (damaged,) = conversion.reports[0].damage
        assert (damaged.places, damaged.tail_bytes) == (0, 10)
        put(place, *whole[:2])
        conversion.step()
        assert conversion.reports[0].damage == []
        put(place, *whole[:2], bytes(50), whole[2])
        conversion.step()
        (damaged,) = conversion.reports[0].damage
        assert (damaged.places, damaged.lost_bytes, damaged.tail_bytes) == (1, 50, 0)
        assert damaged.offsets == [len(whole[0] + whole[1])]


def test_converting_logs_each_damaged_file_once(tmp_path, caplog):
    put(tmp_path / "in", scalar(1, 1.0), bytes(50), scalar(2, 2.0), bytes(50), scalar(3, 3.0))
    convert(tmp_path / "in", tmp_path / "out")
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"{tmp_path / 'in' / NAME}: 2 damaged places, at byte ")
    assert "100 bytes lost" in line
