"""A strict reader of event files for the tests, which shares no code with the one under test.

Framing after TensorFlow's record_writer.h, checksums by the crc32c package, protobuf's wire format by
hand, so that it needs neither TensorBoard nor generated code:

    events, status = read_file(path)  # status: "clean", "torn at 120 of 133", "bad checksum at 120 of 133"
    scalars(logdir, "loss")           # [(step, value)], in the order of file names and records
    event_files(logdir)               # paths in the order in which TensorBoard reads them
"""

import struct
from dataclasses import dataclass, field
from pathlib import Path

import crc32c

SESSION_START = 1  # SessionLog.START

# TensorFlow's DataType: how one element of tensor_content is unpacked.
_ELEMENT = {1: "f", 2: "d", 3: "i", 4: "B", 5: "h", 6: "b", 9: "q", 10: "?"}


@dataclass
class Tensor:
    dtype: int = 0
    shape: list[int] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    strings: list[bytes] = field(default_factory=list)


@dataclass
class Value:
    tag: str = ""
    simple_value: float | None = None
    tensor: Tensor | None = None
    image: bytes | None = None  # the serialised Summary.Image
    histo: bytes | None = None  # the serialised HistogramProto
    audio: bytes | None = None  # the serialised Summary.Audio
    has_metadata: bool = False
    plugin: str = ""
    plugin_content: bytes = b""
    data_class: int = 0
    display_name: str = ""
    description: str = ""

    def scalar(self):
        """Return the number of a scalar, None for anything else."""
        if self.simple_value is not None:
            return self.simple_value
        if self.tensor is not None and self.plugin == "scalars" and len(self.tensor.numbers) == 1:
            return self.tensor.numbers[0]
        return None


@dataclass
class Event:
    wall_time: float = 0.0
    step: int = 0
    file_version: str | None = None
    session: int | None = None  # SessionLog.status
    writer: str | None = None  # SourceMetadata.writer
    values: list[Value] = field(default_factory=list)
    raw: bytes = b""


def event_files(logdir, *, recursive=False):
    """Return the paths of the event files of `logdir`, sorted by name."""
    pattern = "**/*tfevents*" if recursive else "*tfevents*"
    return sorted(path for path in Path(logdir).glob(pattern) if path.is_file())


def records(data):
    """Split the bytes of a file into record bodies; return them and a status."""
    bodies, at, end = [], 0, len(data)
    while at < end:
        if at + 12 > end:
            return bodies, f"torn at {at} of {end}"
        length, length_crc = struct.unpack_from("<QI", data, at)
        if _masked_crc(data[at : at + 8]) != length_crc:
            return bodies, f"bad checksum at {at} of {end}"
        if at + 16 + length > end:
            return bodies, f"torn at {at} of {end}"
        body = data[at + 12 : at + 12 + length]
        if _masked_crc(body) != struct.unpack_from("<I", data, at + 12 + length)[0]:
            return bodies, f"bad checksum at {at} of {end}"
        bodies.append(body)
        at += 16 + length
    return bodies, "clean"


def read_file(path):
    """Return the events of one file and a status."""
    return read_bytes(Path(path).read_bytes())


def read_bytes(data):
    """Return the events in the bytes of one file and a status."""
    bodies, status = records(data)
    events = [parse_event(body) for body in bodies]
    plugins = {}
    for event in events:  # only the first Value of a tag carries metadata
        for value in event.values:
            value.plugin = plugins.setdefault(value.tag, value.plugin) or value.plugin
    return events, status


def statuses(logdir, *, recursive=False):
    """Return the status of each event file of `logdir`."""
    return [read_file(path)[1] for path in event_files(logdir, recursive=recursive)]


def events(logdir):
    """Return all events of a run, in the order of file names and records."""
    return [event for path in event_files(logdir) for event in read_file(path)[0]]


def values(logdir):
    """Return [(tag, step, Value)] of a run."""
    return [(value.tag, event.step, value) for event in events(logdir) for value in event.values]


def scalars(logdir, tag=None):
    """Return [(step, value)] of one tag of a run, or of all its tags."""
    return [
        (step, value.scalar())
        for name, step, value in values(logdir)
        if (tag is None or name == tag) and value.scalar() is not None
    ]


def steps(logdir, tag=None):
    """Return the steps of `scalars`."""
    return [step for step, _ in scalars(logdir, tag)]


def _masked_crc(data):
    crc = crc32c.crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


# ---- protobuf's wire format: fields of event.proto, summary.proto and tensor.proto of TensorFlow


def fields(data):
    """Return [(field number, int or bytes)] of a serialised message."""
    out, at = [], 0
    while at < len(data):
        key, at = _varint(data, at)
        wire_type = key & 7
        if wire_type == 0:
            value, at = _varint(data, at)
        elif wire_type == 2:
            size, at = _varint(data, at)
            value = data[at : at + size]
            if len(value) != size:
                raise ValueError(f"field {key >> 3}: {size} bytes announced, {len(value)} there")
            at += size
        elif wire_type in {1, 5}:
            size = 8 if wire_type == 1 else 4
            value = data[at : at + size]
            at += size
        else:
            raise ValueError(f"field {key >> 3}: wire type {wire_type}")
        out.append((key >> 3, value))
    return out


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _int64(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def _unpack(code, data):
    return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))


def parse_event(data):
    """Parse a serialised Event."""
    event = Event(raw=bytes(data))
    for number, value in fields(data):
        if number == 1:
            event.wall_time = _unpack("d", value)[0]
        elif number == 2:
            event.step = _int64(value)
        elif number == 3:
            event.file_version = value.decode()
        elif number == 5:
            event.values += [_parse_value(item) for inner, item in fields(value) if inner == 1]
        elif number == 7:
            event.session = dict(fields(value)).get(1, 0)
        elif number == 10:
            event.writer = dict(fields(value)).get(1, b"").decode()
    return event


def _parse_value(data):
    out = Value()
    for number, value in fields(data):
        if number == 1:
            out.tag = value.decode("utf-8")
        elif number == 2:
            out.simple_value = _unpack("f", value)[0]
        elif number == 4:
            out.image = value
        elif number == 5:
            out.histo = value
        elif number == 6:
            out.audio = value
        elif number == 8:
            out.tensor = _parse_tensor(value)
        elif number == 9:
            _parse_metadata(value, out)
    return out


def _parse_metadata(data, out):
    out.has_metadata = True
    for number, value in fields(data):
        if number == 1:
            plugin = dict(fields(value))
            out.plugin, out.plugin_content = plugin.get(1, b"").decode(), plugin.get(2, b"")
        elif number == 2:
            out.display_name = value.decode("utf-8")
        elif number == 3:
            out.description = value.decode("utf-8")
        elif number == 4:
            out.data_class = value


def _parse_tensor(data):
    out, content = Tensor(), b""
    for number, value in fields(data):
        if number == 1:
            out.dtype = value
        elif number == 2:
            out.shape = [_int64(dict(fields(dim)).get(1, 0)) for inner, dim in fields(value) if inner == 2]
        elif number == 4:
            content = value
        elif number == 5:
            out.numbers += _unpack("f", value) if isinstance(value, bytes) else [value]
        elif number == 6:
            out.numbers += _unpack("d", value)
        elif number == 8:
            out.strings.append(value)
    if content and out.dtype in _ELEMENT:
        out.numbers = _unpack(_ELEMENT[out.dtype], content)
    return out
