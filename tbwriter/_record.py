"""Frame records and read them back: length, masked CRC, data, masked CRC. Pure bytes, no files.

    record = <uint64 length> <uint32 masked_crc(length)> <data> <uint32 masked_crc(data)>     little-endian

The format is TensorFlow's TFRecord (tensorflow/core/lib/io/record_writer.h); the mask is leveldb's
(util/crc32c.h): a CRC over bytes that hold CRCs is weak, so stored CRCs are rotated and offset.

Over 300 lines: the writing and the reading half of one format, with its checksums.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import crc32c as _crc32c
import numpy as np
import numpy.typing as npt

from tbwriter.errors import CorruptRecordError, TruncatedRecordError

HEADER_SIZE = 8 + 4
FOOTER_SIZE = 4
MASK_DELTA = 0xA282EAD8

# A length beyond this is damage, whatever its checksum says: protobuf messages end at 2 GiB.
MAX_RECORD_BYTES = 2**31 - 1
_READ_BYTES = 1 << 20
_RESYNC_BYTES = 1 << 16

_crc = _crc32c.crc32c
_pack_length = struct.Struct("<Q").pack
_pack_crc = struct.Struct("<I").pack
_unpack_header = struct.Struct("<QI").unpack_from
_unpack_crc = struct.Struct("<I").unpack_from


def crc32c(data: bytes | memoryview) -> int:
    """Return the CRC-32C (Castagnoli, RFC 3720) of `data`, unmasked."""
    return int(_crc(data))


def mask(crc: int) -> int:
    """Return the masked form of `crc` that is stored in files."""
    return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF


def masked_crc32c(data: bytes | memoryview) -> int:
    """Return the masked CRC-32C of `data`."""
    return mask(_crc(data))


# Few lengths occur in a run, and the header depends on the length alone.
_headers: dict[int, bytes] = {}


def header(length: int) -> bytes:
    """Return the 12 bytes before the data of a record of `length` bytes."""
    known = _headers.get(length)
    if known is None:
        packed = _pack_length(length)
        known = packed + _pack_crc(masked_crc32c(packed))
        if len(_headers) < 4096:
            _headers[length] = known
    return known


def is_header(data: bytes) -> bool:
    """Say whether `data` begins with the header of a record."""
    return len(data) >= HEADER_SIZE and masked_crc32c(data[:8]) == _unpack_header(data)[1]


def frame(data: bytes) -> bytes:
    """Return `data` as one record of `len(data) + 16` bytes."""
    crc = _crc(data)
    # mask(), written out: this runs once for each event.
    masked = (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF
    return (_headers.get(len(data)) or header(len(data))) + data + _pack_crc(masked)


def bodies(records: bytes) -> Iterator[bytes]:
    """Yield the data of each of `records`, whole records of our own making."""
    at = 0
    while at < len(records):
        begin = at + HEADER_SIZE
        at = begin + _unpack_header(records, at)[0] + FOOTER_SIZE
        yield records[begin : at - FOOTER_SIZE]


def first_size(records: bytes) -> int:
    """Return the size of the first of `records`, framing included."""
    return int(HEADER_SIZE + _unpack_header(records, 0)[0] + FOOTER_SIZE)


def whole(records: bytes, limit: int) -> int:
    """Return how many of the first `limit` bytes of `records` are whole records."""
    end = 0
    for body in bodies(records):
        after = end + HEADER_SIZE + len(body) + FOOTER_SIZE
        if after > limit:
            break
        end = after
    return end


def frame_rows(data: npt.NDArray[np.uint8], varying: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Return the rows of a matrix as records, without a Python step for each.

    CRC-32C is affine: for a fixed length, crc(row) is the CRC of the row with the varying bytes zeroed, XOR one term
    for each varying byte, which depends on the byte and its distance from the end alone.

    Args:
        data: of shape (n, length), n >= 1.
        varying: the columns that are not the same in all rows.

    Returns:
        uint8 of shape (n, length + 16); its bytes in order are n records.
    """
    count, length = data.shape
    base = data[0].copy()
    base[list(varying)] = 0
    crc = np.full(count, _crc(base.tobytes()), np.uint32)
    for column in varying:
        crc ^= _crc_terms(length - 1 - column).take(data[:, column])
    masked = _mask_all(crc)
    out = np.empty((count, length + HEADER_SIZE + FOOTER_SIZE), np.uint8)
    out[:, :HEADER_SIZE] = np.frombuffer(header(length), np.uint8)
    out[:, HEADER_SIZE:-FOOTER_SIZE] = data
    out[:, -FOOTER_SIZE:] = masked.astype("<u4").view(np.uint8).reshape(count, FOOTER_SIZE)
    return out


@functools.lru_cache(maxsize=4096)
def _crc_terms(behind: int) -> npt.NDArray[np.uint32]:
    """Return, for each byte value, what it adds to the CRC of a message in which `behind` bytes follow it."""
    zero = _crc(bytes(behind + 1))
    terms = np.zeros(256, np.uint32)
    for bit in range(8):
        # Linear over bits: the terms of the values with this bit are those without it, XOR the bit's own.
        terms[1 << bit : 2 << bit] = terms[: 1 << bit] ^ np.uint32(zero ^ _crc(bytes([1 << bit]) + bytes(behind)))
    return terms


def _headers_in(data: bytes) -> list[int]:
    """Return where in `data`, of at least 12 bytes, a length below 4 GiB and its right checksum stand."""
    columns = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), HEADER_SIZE)
    where = np.flatnonzero(~columns[:, 4:8].any(axis=1))
    crc = np.full(len(where), _crc(bytes(8)), np.uint32)
    for column in range(4):
        crc ^= _crc_terms(7 - column)[columns[where, column]]
    stored = np.ascontiguousarray(columns[where, 8:]).view("<u4")[:, 0]
    return [int(at) for at in where[_mask_all(crc) == stored]]


def _mask_all(crcs: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    masked: npt.NDArray[np.uint32] = ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(MASK_DELTA)
    return masked


class Record(NamedTuple):
    """A record that passed both checksums: where it begins in the file, in bytes, and its data."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.offset + HEADER_SIZE + len(self.data) + FOOTER_SIZE


class RecordReader:
    """Read records from a file that may still grow, or be damaged.

    `read()` never moves past a record that it could not return, so that it can be called again once more data is
    there. Memory stays at one record and 1 MiB.
    """

    def __init__(self, file: BinaryIO, name: str, *, offset: int = 0) -> None:
        self._file = file
        self._name = name
        self._buffer = b""
        self._at = 0  # of the next record, in _buffer
        self.offset = offset
        """Where the next record begins, in bytes from the start of the file."""

    def _need(self, size: int) -> bool:
        """Have `size` bytes from the next record on in the buffer; False at the end of the file."""
        missing = self._at + size - len(self._buffer)
        if missing <= 0:
            return True
        parts = [self._buffer[self._at :]]
        self._at = 0
        while missing > 0:
            chunk = self._file.read(max(missing, _READ_BYTES))
            if not chunk:
                break
            parts.append(chunk)
            missing -= len(chunk)
        self._buffer = b"".join(parts)
        return missing <= 0

    def read(self) -> Record | None:
        """Return the next record, or None at the end of the file.

        Raises:
            TruncatedRecordError: the file ends inside the record; call again when it has grown.
            CorruptRecordError: a checksum differs; `resync()` looks for the next good record.
        """
        data = self._peek()
        if data is None:
            return None
        record = Record(self.offset, data)
        self._skip(HEADER_SIZE + len(data) + FOOTER_SIZE)
        return record

    def read_buffered(self) -> list[bytes]:
        """Return the data of the good records that are in memory already; the fast way through many small ones.

        They follow one another without a gap, each HEADER_SIZE + FOOTER_SIZE bytes longer in the file than its data.

        The list ends where `read()` is needed: to get more of the file, or to say what is wrong.
        """
        buffer, at, end = self._buffer, self._at, len(self._buffer)
        found = []
        known_header = _headers.get
        while at + HEADER_SIZE <= end:
            (length, _) = _unpack_header(buffer, at)
            data_at = at + HEADER_SIZE
            stop = data_at + length
            if stop + FOOTER_SIZE > end or buffer[at:data_at] != (known_header(length) or header(length)):
                break
            data = buffer[data_at:stop]
            crc = _crc(data)
            # mask(), written out, as in frame().
            if (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF != _unpack_crc(buffer, stop)[0]:
                break
            found.append(data)
            at = stop + FOOTER_SIZE
        self._skip(at - self._at)
        return found

    def resync(self) -> int | None:
        """Move to the next whole, good record after the place where `read()` failed.

        Returns:
            How many bytes were skipped, or None when no good record follows; the reader is then at the end.
        """
        start = self.offset
        if not self._need(1):
            return None
        self._skip(1)
        while self._need(HEADER_SIZE):
            block = self._buffer[self._at : self._at + _RESYNC_BYTES]
            begin = self.offset
            for at in _headers_in(block):
                self._skip(begin + at - self.offset)
                try:
                    self._peek()
                except CorruptRecordError:
                    continue
                return self.offset - start
            self._skip(begin + len(block) - HEADER_SIZE + 1 - self.offset)
        self._skip(len(self._buffer) - self._at)
        return None

    def _skip(self, size: int) -> None:
        self._at += size
        self.offset += size

    def _peek(self) -> bytes | None:
        if not self._need(HEADER_SIZE):
            have = len(self._buffer) - self._at
            if have == 0:
                return None
            raise self._truncated(HEADER_SIZE)
        length, want = _unpack_header(self._buffer, self._at)
        got = masked_crc32c(self._buffer[self._at : self._at + 8])
        if got != want:
            raise self._corrupt(f"length checksum mismatch: got {got:#010x}, want {want:#010x}")
        if length > MAX_RECORD_BYTES:
            raise self._corrupt(f"length is {length}, want at most {MAX_RECORD_BYTES}")
        size = HEADER_SIZE + length + FOOTER_SIZE
        if not self._need(size):
            raise self._truncated(size)
        begin = self._at + HEADER_SIZE
        data = self._buffer[begin : begin + length]
        (want,) = _unpack_crc(self._buffer, begin + length)
        got = masked_crc32c(data)
        if got != want:
            raise self._corrupt(f"data checksum mismatch: got {got:#010x}, want {want:#010x}")
        return data

    def _truncated(self, want: int) -> TruncatedRecordError:
        have = len(self._buffer) - self._at
        return TruncatedRecordError(
            f"{self._name}: record at byte {self.offset} is cut off: got {have} bytes, want {want}", self.offset
        )

    def _corrupt(self, what: str) -> CorruptRecordError:
        return CorruptRecordError(f"{self._name}: record at byte {self.offset}: {what}", self.offset)


def iterate_data(file: BinaryIO, name: str) -> Iterator[list[bytes]]:
    """Yield the data of every good record of `file`, as many at a time as are in memory; damage is stepped over."""
    reader = RecordReader(file, name)
    while True:
        buffered = reader.read_buffered()
        if buffered:
            yield buffered
        try:
            record = reader.read()
        except CorruptRecordError:
            if reader.resync() is None:
                return
            continue
        if record is None:
            return
        yield [record.data]


def iterate(file: BinaryIO, name: str, *, offset: int = 0) -> Iterator[Record | CorruptRecordError]:
    """Yield every good record of `file`, which stands at `offset`, and in its place each error that is stepped over."""
    reader = RecordReader(file, name, offset=offset)
    while True:
        begin = reader.offset
        for data in reader.read_buffered():
            yield Record(begin, data)
            begin += HEADER_SIZE + len(data) + FOOTER_SIZE
        try:
            record = reader.read()
        except CorruptRecordError as error:
            yield error
            if reader.resync() is None:
                return
            continue
        if record is None:
            return
        yield record
