"""Reading back: files of this and of other writers, whole and damaged."""

import struct

import fsspec
import numpy as np
import pytest
from storage import record

import tbwriter
from tbwriter import (
    CorruptRecordError,
    EventFileWriter,
    Fault,
    SummaryWriter,
    TruncatedRecordError,
    read_events,
    verify,
)

NAME = "events.out.tfevents.1700000000.host.1.000000"


def field(number, data):
    """A length-delimited field in protobuf's encoding; for lengths below 128."""
    return bytes([number << 3 | 2, len(data)]) + data


def double(number, value):
    return bytes([number << 3 | 1]) + struct.pack("<d", value)


def packed(number, *values):
    return field(number, struct.pack(f"<{len(values)}d", *values))


def event(step, *summary_values):
    """Event{wall_time: 1.5, step, summary{value...}}."""
    return double(1, 1.5) + b"\x10" + bytes([step]) + field(5, b"".join(field(1, value) for value in summary_values))


def simple(step, tag, number):
    return event(step, field(1, tag) + b"\x15" + struct.pack("<f", number))


@pytest.fixture
def file(tmp_path):
    """Write records into an event file; return its path."""

    def file(*parts):
        path = tmp_path / NAME
        path.write_bytes(b"".join(parts))
        return path

    return file


def points(place, **options):
    return [
        (value.tag, event.step, value.scalar()) for event in read_events(place, **options) for value in event.values
    ]


# ---- what tbwriter writes


def test_all_kinds_come_back(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 1, 1234.5)
        writer.add_scalar("titled", 0.25, 1, 1234.5, display_name="Title", summary_description="words")
        writer.add_histogram("w", [1.0, 1.0], 2)
        writer.add_text("t", "words", 3)
        writer.add_text("table", [["a", "b"]], 3)
    found = {value.tag: (event, value) for event in read_events(tmp_path) for value in event.values}
    event, value = found["loss"]
    assert (event.step, event.wall_time, value.plugin, value.data, value.scalar()) == (1, 1234.5, "scalars", 0.5, 0.5)
    _, value = found["titled"]
    assert (value.plugin, value.data, value.display_name, value.description) == ("scalars", 0.25, "Title", "words")
    event, value = found["w"]
    assert (event.step, value.plugin, value.scalar()) == (2, "histograms", None)
    np.testing.assert_array_equal(value.data, [[0.5, 1.5, 2.0]])
    _, value = found["t/text_summary"]
    assert (value.plugin, value.data) == ("text", "words")
    _, value = found["table/text_summary"]
    assert value.data.tolist() == [["a", "b"]]


def test_images_come_back_as_encoded_files(tmp_path):
    pytest.importorskip("PIL")
    with SummaryWriter(tmp_path) as writer:
        writer.add_images("i", np.zeros((2, 3, 4, 5)), 1)
    (value,) = [value for event in read_events(tmp_path) for value in event.values]
    assert value.plugin == "images"
    assert [picture[:8] for picture in value.data] == [b"\x89PNG\r\n\x1a\n"] * 2


def test_the_marks_of_file_and_session_come_back(tmp_path):
    SummaryWriter(tmp_path, purge_step=7).close()
    first, second = read_events(tmp_path)
    assert (first.file_version, first.writer, first.values) == ("brain.Event:2", "tbwriter", ())
    assert (second.session_log, second.step, second.file_version) == ("START", 7, None)


def test_a_value_without_metadata_has_the_plugin_of_the_first(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_text("t", "words", step)
    assert [value.plugin for event in read_events(tmp_path) for value in event.values] == ["text"] * 3


def test_files_come_in_the_order_of_their_names(tmp_path):
    with SummaryWriter(tmp_path, max_file_size=150) as writer:
        for step in range(50):
            writer.add_scalar("loss", float(step), step)
    assert points(tmp_path) == [("loss", step, float(step)) for step in range(50)]


def test_other_files_and_directories_beside_are_left_out(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b"no records")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / NAME).write_bytes(record(simple(1, b"other", 1.0)))
    (tmp_path / NAME).write_bytes(record(simple(1, b"loss", 1.0)))
    assert points(tmp_path) == [("loss", 1, 1.0)]
    assert len(verify(tmp_path).files) == 1


def test_a_directory_whose_name_looks_like_an_event_file_is_left_out(tmp_path):
    (tmp_path / "tfevents_of_yesterday").mkdir()
    (tmp_path / NAME).write_bytes(record(simple(1, b"loss", 1.0)))
    assert points(tmp_path) == [("loss", 1, 1.0)]
    assert len(verify(tmp_path).files) == 1


@pytest.mark.parametrize("kind", [str, lambda path: path, lambda path: f"file://{path}"])
def test_a_place_is_a_path_or_a_url_of_a_file_or_a_directory(file, kind):
    path = file(record(simple(1, b"loss", 0.5)))
    assert points(kind(path)) == points(kind(path.parent)) == [("loss", 1, 0.5)]
    assert verify(kind(path)) == verify(kind(path.parent))


def test_a_place_in_memory_is_a_file_or_a_directory():
    with SummaryWriter("memory://test-reader/run") as writer:
        writer.add_scalar("loss", 0.5, 1)
    assert points("memory://test-reader/run") == [("loss", 1, 0.5)]
    (path,) = fsspec.filesystem("memory").ls("/test-reader/run", detail=False)
    assert points(f"memory:/{path}") == [("loss", 1, 0.5)]
    report = verify("memory://test-reader/run")
    assert report.ok
    assert report.files[0].records == 3


@pytest.mark.parametrize("place", ["nothing", "empty", "memory://test-reader/nothing"])
@pytest.mark.parametrize("read", [lambda place: list(read_events(place)), verify])
def test_a_place_without_event_files_is_not_found(tmp_path, monkeypatch, place, read):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="is no event file and no directory that holds one"):
        read(place)


def test_a_file_of_any_name_is_read(tmp_path):
    (tmp_path / "copy.bin").write_bytes(record(simple(1, b"loss", 0.5)))
    assert points(tmp_path / "copy.bin") == [("loss", 1, 0.5)]


def test_an_empty_file_is_good_and_holds_nothing(file):
    path = file()
    assert list(read_events(path)) == []
    assert verify(path).ok


def test_a_file_that_is_being_written_can_be_read(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 1)
        assert writer.flush()
        assert points(tmp_path) == [("loss", 1, 0.5)]


# ---- what other writers write


def test_a_file_of_tensorboardx_is_read(tmp_path):
    theirs = pytest.importorskip("tensorboardX")
    with theirs.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_histogram("w", np.array([1.0, 2.0, 2.0]), 2)
        writer.add_text("t", "words", 3)
        writer.add_image("i", np.zeros((3, 2, 2)), 4)
    found = {value.tag: (event.step, value) for event in read_events(tmp_path) for value in event.values}
    assert {tag: (step, value.plugin) for tag, (step, value) in found.items()} == {
        "loss": (1, "scalars"),
        "w": (2, "histograms"),
        "t/text_summary": (3, "text"),
        "i": (4, "images"),
    }
    assert found["loss"][1].scalar() == 0.5
    assert found["w"][1].data[:, 2].sum() == 3.0
    assert found["w"][1].data[0, 0] <= 1.0 <= 2.0 <= found["w"][1].data[-1, 1]
    assert found["t/text_summary"][1].data.tolist() == ["words"]
    assert found["i"][1].data[0][:4] == b"\x89PNG"
    assert verify(tmp_path).ok


def test_a_file_of_torch_is_read(tmp_path):
    torch = pytest.importorskip("torch.utils.tensorboard")
    with torch.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("old", 0.5, 1)
        writer.add_scalar("new", 0.25, 2, new_style=True)
        writer.add_scalar("double", 0.125, 3, new_style=True, double_precision=True)
        writer.add_histogram("w", np.array([1.0, 2.0, 2.0]), 4)
    assert points(tmp_path)[:3] == [("old", 1, 0.5), ("new", 2, 0.25), ("double", 3, 0.125)]
    assert verify(tmp_path).ok


def test_a_file_of_tensorboard_is_read(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.histogram.summary_v2 import histogram_pb
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.plugins.text.summary_v2 import text_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter as Theirs

    writer = Theirs(str(tmp_path))
    for step, summary in enumerate([scalar_pb("loss", 0.5, description="words"), text_pb("t", "文字")]):
        writer.add_event(Event(step=step, summary=summary))
    writer.add_event(Event(step=2, summary=histogram_pb("w", np.array([1.0, 2.0, 2.0]), buckets=2)))
    writer.close()
    found = {value.tag: value for event in read_events(tmp_path) for value in event.values}
    assert (found["loss"].scalar(), found["loss"].description) == (0.5, "words")
    assert (found["t"].plugin, found["t"].data) == ("text", "文字")
    np.testing.assert_array_equal(found["w"].data, [[1.0, 1.5, 1.0], [1.5, 2.0, 2.0]])


def test_what_tbwriter_writes_tensorboards_own_reader_reads(tmp_path):
    module = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 1)
    path = str(next(tmp_path.iterdir()))
    last = list(module.LegacyEventFileLoader(path).Load())[-1]
    assert (last.step, last.summary.value[0].tag, last.summary.value[0].simple_value) == (1, "loss", 0.5)


# ---- the forms of TensorBoard 1


def test_a_legacy_histogram_becomes_buckets_between_the_datas_own_ends(file):
    """HistogramProto: min 1, max 2, num 3, sum 4, sum_squares 5, bucket_limit 6, bucket 7 (summary.proto)."""
    histo = double(1, 1.0) + double(2, 3.5) + double(3, 6.0)
    histo += packed(6, 0.5, 1.5, 2.5, 1.7e308) + packed(7, 0.0, 2.0, 3.0, 1.0)
    path = file(record(event(1, field(1, b"w") + field(5, histo))))
    ((value,),) = [found.values for found in read_events(path)]
    assert value.plugin == "histograms"
    np.testing.assert_array_equal(value.data, [[1.0, 1.5, 2.0], [1.5, 2.5, 3.0], [2.5, 3.5, 1.0]])


def test_a_legacy_histogram_of_nothing_is_empty(file):
    path = file(record(event(1, field(1, b"w") + field(5, packed(6, 1.0) + packed(7, 0.0)))))
    ((value,),) = [found.values for found in read_events(path)]
    assert value.data.shape == (0, 3)


def test_a_legacy_image_is_its_encoded_bytes(file):
    """Image: height 1, width 2, colorspace 3, encoded_image_string 4."""
    path = file(record(event(1, field(1, b"i") + field(4, b"\x08\x02\x10\x03\x18\x03" + field(4, b"\x89PNG")))))
    ((value,),) = [found.values for found in read_events(path)]
    assert (value.plugin, value.data) == ("images", [b"\x89PNG"])


def test_a_legacy_sound_is_its_encoded_bytes(file):
    """Audio: sample_rate 1, num_channels 2, length_frames 3, encoded_audio_string 4, content_type 5."""
    path = file(record(event(1, field(1, b"a") + field(6, field(4, b"RIFF")))))
    ((value,),) = [found.values for found in read_events(path)]
    assert (value.plugin, value.data) == ("audio", [b"RIFF"])


def test_a_graph_comes_back_serialised(file):
    (found,) = read_events(file(record(double(1, 1.5) + field(4, b"graph"))))
    assert found.graph_def == b"graph"


# ---- damage

GOOD = [record(simple(step, b"losses", float(step))) for step in range(5)]  # 44 bytes each
SIZE = len(GOOD[0])
ALL = [("losses", step, float(step)) for step in range(5)]


def test_the_record_that_the_damage_is_done_to_is_44_bytes_long():
    assert SIZE == 44


@pytest.mark.parametrize("missing", [1, 4, 20, 33, 43])
def test_a_torn_tail_is_told_with_its_place_and_all_before_it_is_read(file, missing):
    path = file(*GOOD, GOOD[0][:-missing])
    assert points(path) == ALL
    report = verify(path)
    assert not report.ok
    (found,) = report.files
    assert (found.records, found.record_bytes, found.file_bytes) == (5, 220, 220 + 44 - missing)
    (fault,) = found.faults
    want = 12 if missing > 32 else 44
    assert fault == Fault(220, f"{path}: record at byte 220 is cut off: got {44 - missing} bytes, want {want}", True)


@pytest.mark.parametrize("at", range(44))
def test_one_flipped_byte_costs_its_record_alone(file, at):
    """Wherever it is: in the length, in a checksum, in the data."""
    bad = bytearray(GOOD[2])
    bad[at] ^= 0x40
    path = file(*GOOD[:2], bytes(bad), *GOOD[3:])
    assert points(path) == [*ALL[:2], *ALL[3:]]
    (found,) = verify(path).files
    assert (found.records, [fault.offset for fault in found.faults]) == (4, [88])
    assert not found.faults[0].torn_tail


def test_a_hole_of_zeros_is_stepped_over(file):
    """As a reader of NFS sees a page that has not arrived."""
    path = file(*GOOD[:3], bytes(4096), *GOOD[3:])
    assert points(path) == ALL
    (found,) = verify(path).files
    assert [(fault.offset, fault.torn_tail) for fault in found.faults] == [(132, False)]
    assert "length checksum mismatch: got 0x07980329, want 0x00000000" in found.faults[0].what


def test_zeros_at_the_end_are_told(file):
    path = file(*GOOD, bytes(1000))
    assert points(path) == ALL
    assert [fault.offset for fault in verify(path).files[0].faults] == [220]


def test_every_damaged_place_is_told(file):
    path = file(GOOD[0], b"x", GOOD[1], b"yy", GOOD[2], GOOD[3][:-1])
    assert points(path) == ALL[:3]
    (found,) = verify(path).files
    assert [fault.offset for fault in found.faults] == [44, 89, 135]
    assert (found.records, found.record_bytes, found.file_bytes) == (3, 132, 178)


def test_a_file_with_nothing_good_is_told(file):
    path = file(b"this is no event file, although its name says so")
    assert list(read_events(path)) == []
    (found,) = verify(path).files
    assert (found.records, len(found.faults)) == (0, 1)


def test_a_good_file_is_told_so(file):
    path = file(*GOOD)
    report = verify(path)
    assert report.ok
    assert report.files == (tbwriter.FileReport(str(path), 5, 220, 220, ()),)
    assert report.files[0].ok


def test_one_damaged_file_makes_a_report_bad(tmp_path):
    for number, data in enumerate([GOOD[0], GOOD[1] + b"x", GOOD[2]]):
        (tmp_path / f"events.out.tfevents.170000000{number}.h").write_bytes(data)
    report = verify(tmp_path)
    assert [found.ok for found in report.files] == [True, False, True]
    assert not report.ok
    assert points(tmp_path) == ALL[:3]


def test_damage_is_logged_once_a_place(file, caplog):
    path = file(GOOD[0], b"x", GOOD[1])
    assert points(path) == ALL[:2]
    (entry,) = caplog.records
    assert entry.getMessage().startswith(f"{path}: record at byte 44: length checksum mismatch")
    assert entry.getMessage().endswith("; going on behind it")


def test_strict_raises_at_the_first_damage_with_its_place(file):
    path = file(*GOOD[:2], b"x", *GOOD[2:])
    found = read_events(path, strict=True)
    assert [next(found).step, next(found).step] == [0, 1]
    with pytest.raises(CorruptRecordError, match=r"record at byte 88: length checksum mismatch") as raised:
        next(found)
    assert raised.value.offset == 88
    assert not isinstance(raised.value, TruncatedRecordError)


def test_strict_takes_a_torn_tail_for_damage(file):
    with pytest.raises(TruncatedRecordError, match="record at byte 220 is cut off: got 43 bytes, want 44") as raised:
        points(file(*GOOD, GOOD[0][:-1]), strict=True)
    assert raised.value.offset == 220


def test_a_whole_record_that_is_no_event_is_stepped_over(file, caplog):
    path = file(GOOD[0], record(b"\xff" * 20), GOOD[1])
    assert points(path) == ALL[:2]
    assert "record at byte 44 is no Event" in caplog.text
    assert verify(path).ok  # framing and checksums are right
    with pytest.raises(CorruptRecordError, match="record at byte 44 is no Event") as raised:
        points(path, strict=True)
    assert raised.value.offset == 44


@pytest.mark.parametrize(
    "tensor",
    [
        b"",  # no dtype
        b"\x08\x01" + field(2, field(2, b"\x08\x05")) + field(4, bytes(8)),  # 5 floats announced, 2 there
        b"\x08\x01" + field(4, bytes(7)),  # not a whole number of floats
        b"\x08\x63",  # a dtype that TensorFlow does not have
        b"\x08\x07",  # a string tensor without strings
        b"\x08\x01" + field(2, field(2, b"\x08" + b"\xff" * 9 + b"\x01")),  # a dimension of -1
    ],
)
@pytest.mark.parametrize("plugin", [b"scalars", b"histograms", b"images", b"text", b"other"])
def test_a_tensor_that_contradicts_itself_never_stops_the_reading(file, tensor, plugin):
    odd = event(1, field(1, b"odd") + field(8, tensor) + field(9, field(1, field(1, plugin))))
    path = file(record(odd), GOOD[1])
    assert points(path)[-1] == ALL[1]
    assert len(list(read_events(path))) == 2


def test_raw_events_come_back(tmp_path):
    with EventFileWriter(tmp_path) as writer:
        writer.add_event(simple(9, b"loss", 0.5))
    assert points(tmp_path) == [("loss", 9, 0.5)]


def test_storage_options_go_to_the_file_system():
    with SummaryWriter("memory://test-reader-options/run") as writer:
        writer.add_scalar("loss", 0.5, 1)
    assert points("memory://test-reader-options/run", storage_options={"skip_instance_cache": True}) == [
        ("loss", 1, 0.5)
    ]


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ValueError, match="no sink serves nowhere://"):
        list(read_events("nowhere://run"))
