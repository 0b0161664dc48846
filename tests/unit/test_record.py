import io
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbwriter._record import (
    MAX_RECORD_BYTES,
    Record,
    RecordReader,
    crc32c,
    frame,
    frame_rows,
    header,
    iterate,
    mask,
    masked_crc32c,
)
from tbwriter.errors import CorruptRecordError, TruncatedRecordError

# The record of file_version in a run that both readers of TensorBoard 2.21 accept.
GOLDEN_DATA = bytes.fromhex("0900000040fc54d9411a0d627261696e2e4576656e743a32520a0a087462777269746572")
GOLDEN_RECORD = bytes.fromhex("2400000000000000422b804d") + GOLDEN_DATA + bytes.fromhex("24a357c1")

FIRST, SECOND, THIRD = b"first", b"the second", b"third"
FILE = frame(FIRST) + frame(SECOND) + frame(THIRD)
BEGINS = [0, len(frame(FIRST)), len(frame(FIRST) + frame(SECOND))]


class GrowingFile(io.BytesIO):
    """A file to which another process appends while it is read."""

    def append(self, data):
        at = self.tell()
        self.seek(0, io.SEEK_END)
        self.write(data)
        self.seek(at)


class ShortReads(io.BytesIO):
    """A file that returns less than it was asked for, as a raw file or a network may."""

    def read(self, size=-1):
        return super().read(min(size, 3))


def reader_of(data):
    return RecordReader(io.BytesIO(data), "events")


def good(data):
    """Return the data of the records that `iterate` finds."""
    return [item.data for item in iterate(io.BytesIO(data), "events") if isinstance(item, Record)]


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


# ---- checksums


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        # RFC 3720 B.4 (the values there are the bytes of the little-endian number).
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (
            bytes.fromhex(
                "01c00000000000000000000000000000140000000000040000000014000000182800000000000000" + "0200000000000000"
            ),
            0xD9963A56,
        ),
        # The check value of CRC-32C in the catalogue of parametrised CRC algorithms.
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_crc32c_of_known_messages(data, crc):
    assert crc32c(data) == crc


def test_the_masked_crc_is_rustboards():
    assert masked_crc32c(b"\x1a\x11CRC test, one two") == 0x5794D08A  # rustboard masked_crc.rs


def test_mask_rotates_right_by_15_and_adds_the_constant():
    # leveldb util/crc32c.h: ((crc >> 15) | (crc << 17)) + 0xa282ead8
    assert mask(0) == 0xA282EAD8
    assert mask(1) == 0xA284EAD8
    assert mask(0xFFFFFFFF) == 0xA282EAD7
    assert mask(0x00008000) == 0xA282EAD9


# ---- framing


def test_frame_gives_the_golden_record():
    assert frame(GOLDEN_DATA) == GOLDEN_RECORD


def test_frame_of_nothing_is_16_bytes():
    # Length 0, the masked CRC of eight zero bytes, and the masked CRC of no bytes.
    assert frame(b"") == bytes.fromhex("000000000000000029039807d8ea82a2")


def test_frame_is_length_crc_data_crc_in_little_endian():
    record = frame(b"abc")
    assert record[:8] == b"\x03\0\0\0\0\0\0\0"
    assert record[8:12] == struct.pack("<I", masked_crc32c(record[:8]))
    assert record[12:15] == b"abc"
    assert record[15:] == struct.pack("<I", masked_crc32c(b"abc"))


def test_headers_stay_right_when_more_lengths_occur_than_are_remembered():
    for length in range(5000):
        packed = struct.pack("<Q", length)
        assert header(length) == packed + struct.pack("<I", masked_crc32c(packed))


@given(st.lists(st.binary(max_size=300)))
def test_what_was_framed_reads_back(items):
    assert good(b"".join(map(frame, items))) == items


@st.composite
def matrices(draw):
    count = draw(st.integers(1, 20))
    length = draw(st.integers(0, 80))
    varying = draw(st.lists(st.integers(0, length - 1), unique=True)) if length else []
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    data = np.tile(rng.integers(0, 256, length, dtype=np.uint8), (count, 1))
    data[:, varying] = rng.integers(0, 256, (count, len(varying)), dtype=np.uint8)
    return data, varying


@given(matrices())
def test_frame_rows_gives_what_frame_gives_row_by_row(matrix):
    data, varying = matrix
    assert frame_rows(data, varying).tobytes() == b"".join(frame(row.tobytes()) for row in data)


def test_frame_rows_takes_a_slice_of_a_larger_matrix():
    data = np.arange(60, dtype=np.uint8).reshape(6, 10)[::2, :7]
    assert frame_rows(data, range(7)).tobytes() == b"".join(frame(row.tobytes()) for row in data)


# ---- reading


def test_records_come_with_their_offsets():
    reader = reader_of(FILE)
    assert [reader.read(), reader.read(), reader.read(), reader.read()] == [
        Record(BEGINS[0], FIRST),
        Record(BEGINS[1], SECOND),
        Record(BEGINS[2], THIRD),
        None,
    ]
    assert reader.offset == len(FILE)


def test_an_empty_file_holds_no_record():
    assert reader_of(b"").read() is None


def test_offsets_count_from_where_reading_began():
    file = io.BytesIO(b"x" * 100 + frame(FIRST))
    file.seek(100)
    assert RecordReader(file, "events", offset=100).read() == Record(100, FIRST)


def test_a_file_that_returns_few_bytes_at_a_time_is_read_whole():
    reader = RecordReader(ShortReads(FILE), "events")
    assert [reader.read().data for _ in range(3)] == [FIRST, SECOND, THIRD]
    assert reader.read() is None


def test_records_larger_than_the_read_size_are_read_whole():
    large = bytes(range(256)) * (12 << 10)  # 3 MiB
    assert good(frame(FIRST) + frame(large) + frame(THIRD)) == [FIRST, large, THIRD]


def test_a_long_file_of_short_records_is_read_in_4_mib(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(frame(bytes(1000)) * 16_000)
    tracemalloc.start()
    try:
        with path.open("rb") as file:
            assert sum(1 for _ in iterate(file, "events")) == 16_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


# ---- a file that is cut, or not yet whole


@pytest.mark.parametrize("cut", range(len(FILE)))
def test_a_cut_file_yields_every_whole_record(cut):
    whole = [data for data, end in zip([FIRST, SECOND, THIRD], [*BEGINS[1:], len(FILE)], strict=True) if end <= cut]
    assert good(FILE[:cut]) == whole


@pytest.mark.parametrize("cut", range(len(FILE)))
def test_a_cut_file_goes_on_where_it_was_cut_once_the_rest_is_there(cut):
    file = GrowingFile(FILE[:cut])
    reader = RecordReader(file, "events")
    found = []
    while True:
        try:
            record = reader.read()
        except TruncatedRecordError:
            break
        if record is None:
            break
        found.append(record.data)
    file.append(FILE[cut:])
    while (record := reader.read()) is not None:
        found.append(record.data)
    assert found == [FIRST, SECOND, THIRD]


def test_a_record_that_arrives_byte_by_byte_is_truncated_until_its_last_byte():
    file = GrowingFile()
    reader = RecordReader(file, "events")
    record = frame(SECOND)
    for at in range(len(record) - 1):
        file.append(record[at : at + 1])
        with pytest.raises(TruncatedRecordError):
            reader.read()
    file.append(record[-1:])
    assert reader.read() == Record(0, SECOND)


def test_the_end_of_a_file_is_no_end_for_a_file_that_grows():
    file = GrowingFile(frame(FIRST))
    reader = RecordReader(file, "events")
    assert reader.read() == Record(0, FIRST)
    assert reader.read() is None
    assert reader.read() is None
    file.append(frame(SECOND))
    assert reader.read() == Record(BEGINS[1], SECOND)


def test_a_file_cut_in_the_header_says_where_and_how_much_is_missing():
    with pytest.raises(
        TruncatedRecordError, match=r"^events: record at byte 0 is cut off: got 5 bytes, want 12$"
    ) as info:
        reader_of(FILE[:5]).read()
    assert info.value.offset == 0


def test_a_file_cut_in_the_data_says_where_and_how_much_is_missing():
    reader = reader_of(FILE[: BEGINS[1] + 20])
    reader.read()
    with pytest.raises(
        TruncatedRecordError, match=r"^events: record at byte 21 is cut off: got 20 bytes, want 26$"
    ) as info:
        reader.read()
    assert info.value.offset == BEGINS[1] == 21


def test_a_truncated_record_is_a_corrupt_one_too():
    assert issubclass(TruncatedRecordError, CorruptRecordError)


# ---- damage


def test_a_wrong_length_checksum_says_where_got_and_want():
    bad = bytearray(frame(SECOND))
    bad[8:12] = struct.pack("<I", 0x12345678)
    got = masked_crc32c(bytes(bad[:8]))
    reader = reader_of(frame(FIRST) + bytes(bad))
    reader.read()
    with pytest.raises(
        CorruptRecordError,
        match=rf"^events: record at byte 21: length checksum mismatch: got {got:#010x}, want 0x12345678$",
    ) as info:
        reader.read()
    assert info.value.offset == 21
    assert not isinstance(info.value, TruncatedRecordError)


def test_a_wrong_data_checksum_says_where_got_and_want():
    bad = frame(SECOND)[:-4] + struct.pack("<I", 0x12345678)
    got = masked_crc32c(SECOND)
    reader = reader_of(frame(FIRST) + bad)
    reader.read()
    with pytest.raises(
        CorruptRecordError,
        match=rf"^events: record at byte 21: data checksum mismatch: got {got:#010x}, want 0x12345678$",
    ) as info:
        reader.read()
    assert info.value.offset == 21


def test_a_length_beyond_2_gib_is_damage_though_its_checksum_is_right():
    with pytest.raises(CorruptRecordError, match=r"length is 2147483648, want at most 2147483647") as info:
        reader_of(header(MAX_RECORD_BYTES + 1) + bytes(100)).read()
    assert not isinstance(info.value, TruncatedRecordError)


def test_a_damaged_record_stays_where_it_is_until_resync():
    reader = reader_of(flipped(FILE, 14))
    for _ in range(2):
        with pytest.raises(CorruptRecordError):
            reader.read()
    assert reader.offset == 0


@pytest.mark.parametrize("at", range(len(FILE)))
def test_a_flipped_bit_costs_the_record_it_is_in_and_no_other(at):
    hit = sum(begin <= at for begin in BEGINS) - 1
    assert good(flipped(FILE, at)) == [data for i, data in enumerate([FIRST, SECOND, THIRD]) if i != hit]


@pytest.mark.parametrize(
    "hole",
    [
        b"\0" * 4096,  # a page that was never written: file systems over the network, full disks
        b"\0" * 65_536,
        b"\xff" * 4096,
        b"no event file at all\n",
        frame(b"cut off in its data")[:-7],
        frame(b"cut off in its header")[:7],
        header(1 << 30),  # a good header with nothing behind it
        header(MAX_RECORD_BYTES + 1),
    ],
    ids=["zeros 4k", "zeros 64k", "ones", "text", "cut data", "cut header", "long length", "absurd length"],
)
@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_records_on_both_sides_of_damage_are_read(hole, place):
    first, rest = frame(FIRST), frame(SECOND) + frame(THIRD)
    data = {"before": hole + first + rest, "between": first + hole + rest, "after": first + rest + hole}[place]
    items = list(iterate(io.BytesIO(data), "events"))
    assert [item.data for item in items if isinstance(item, Record)] == [FIRST, SECOND, THIRD]
    faults = [item for item in items if not isinstance(item, Record)]
    assert [fault.offset for fault in faults] == [{"before": 0, "between": 21, "after": len(FILE)}[place]]


def test_iterate_yields_each_fault_in_its_place():
    data = frame(FIRST) + b"???" + frame(SECOND) + b"?" + frame(THIRD) + frame(FIRST)[:9]
    kinds = [type(item) for item in iterate(io.BytesIO(data), "events")]
    assert kinds == [Record, CorruptRecordError, Record, CorruptRecordError, Record, TruncatedRecordError]


def test_resync_returns_how_many_bytes_were_skipped():
    reader = reader_of(b"\0" * 37 + frame(FIRST))
    with pytest.raises(CorruptRecordError):
        reader.read()
    assert reader.resync() == 37
    assert reader.read() == Record(37, FIRST)


pieces = st.one_of(
    st.tuples(st.just("record"), st.binary(max_size=60)),
    st.tuples(st.just("garbage"), st.binary(min_size=1, max_size=60)),
    # Not 8 bytes: cut behind its header, such a record is made whole by the length and its checksum of the next one.
    st.tuples(st.just("cut"), st.binary(min_size=1, max_size=60).filter(lambda content: len(content) != 8)),
    st.tuples(st.just("flipped"), st.binary(max_size=60)),
    st.tuples(st.just("hole"), st.integers(1, 60).map(bytes)),
)


@pytest.mark.parametrize("edge", [1 << 16, 1 << 20])
@pytest.mark.parametrize("around", range(-20, 20))
@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\x15\0\0"])
def test_resync_finds_a_record_across_the_edges_of_what_it_looks_at_together(edge, around, fill):
    hole = (fill * (edge + around))[: edge + around]
    reader = reader_of(hole + frame(FIRST) + frame(SECOND))
    assert reader.resync() == len(hole)
    assert [reader.read(), reader.read(), reader.read()] == [
        Record(len(hole), FIRST),
        Record(len(hole) + 21, SECOND),
        None,
    ]


@given(st.lists(pieces, max_size=8), st.integers(0, 40))
def test_resync_stops_where_trying_byte_after_byte_would(parts, start):
    data = b"".join(frame(content)[: len(content) + 9] if kind == "cut" else frame(content) for kind, content in parts)
    data = data[start:]

    def is_good(at):
        try:
            return RecordReader(io.BytesIO(data[at:]), "events").read() is not None
        except CorruptRecordError:
            return False

    want = next((at for at in range(1, len(data)) if is_good(at)), None)
    reader = reader_of(data)
    assert reader.resync() == want
    assert reader.offset == (len(data) if want is None else want)


def test_resync_returns_none_at_the_end_when_no_record_follows():
    data = frame(FIRST)[:-1] + b"\0" * 50
    reader = reader_of(data)
    with pytest.raises(CorruptRecordError):
        reader.read()
    assert reader.resync() is None
    assert reader.offset == len(data)
    assert reader.read() is None


def test_resync_at_the_end_of_a_file_stays_there():
    reader = reader_of(frame(FIRST))
    reader.read()
    assert reader.read() is None
    assert reader.resync() is None
    assert reader.offset == len(frame(FIRST))


def test_records_that_are_appended_behind_damage_are_read():
    file = GrowingFile(frame(FIRST)[:-1])
    reader = RecordReader(file, "events")
    with pytest.raises(TruncatedRecordError):
        reader.read()
    assert reader.resync() is None
    file.append(frame(SECOND))
    assert reader.read() == Record(20, SECOND)


@given(st.lists(pieces, max_size=12), st.randoms(use_true_random=False))
def test_every_intact_record_is_found_between_any_damage(parts, random):
    data, intact = b"", []
    for kind, content in parts:
        if kind == "record":
            intact.append(Record(len(data), content))
            data += frame(content)
        elif kind == "cut":
            record = frame(content)
            data += record[: random.randrange(1, len(record))]
        elif kind == "flipped":
            record = frame(content)
            data += flipped(record, random.randrange(len(record)))
        else:
            data += content
    found = [item for item in iterate(io.BytesIO(data), "events") if isinstance(item, Record)]
    assert found == intact


@given(st.binary(max_size=500))
def test_any_bytes_are_read_without_a_crash(data):
    for item in iterate(io.BytesIO(data), "events"):
        assert isinstance(item, (Record, CorruptRecordError))


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.data())
def test_a_file_that_grows_in_any_pieces_yields_the_same_records(items, data):
    whole = b"".join(map(frame, items))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    file = GrowingFile()
    reader = RecordReader(file, "events")
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        file.append(whole[begin:end])
        try:
            while (record := reader.read()) is not None:
                found.append(record.data)
        except TruncatedRecordError:
            pass
    assert found == items
