"""Event files with everything that goes wrong with them, written byte by byte; `CASES` has one run for each fault.

Each run holds the scalar "loss", whose value is its step, at steps 0 to 9, unless its fault says otherwise.
"""

import gzip
import struct

import crc32c

NAME = "events.out.tfevents.{second}.host.{pid}.000000"
BEGIN = 1_700_000_000.0


def masked(data):
    crc = crc32c.crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    """One framed record."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


# ---- messages, in protobuf's wire format


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    if isinstance(value, float):
        return bytes([number << 3 | 1]) + struct.pack("<d", value)
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def event(step, body, wall_time=None):
    """A framed Event."""
    return record(field(1, BEGIN + step if wall_time is None else wall_time) + field(2, step) + body)


def version(wall_time=BEGIN):
    return event(0, field(3, b"brain.Event:2"), wall_time)


def start(step, wall_time):
    return event(step, field(7, field(1, 1)), wall_time)


def value(step, tag, body, wall_time=None):
    return event(step, field(5, field(1, field(1, tag.encode()) + body)), wall_time)


def scalar(step, number, tag="loss", wall_time=None):
    return value(step, tag, b"\x15" + struct.pack("<f", number), wall_time)


def metadata(plugin, data_class, content=b""):
    return field(9, field(1, field(1, plugin.encode()) + field(2, content)) + field(4, data_class))


def tensor(dtype, shape, body):
    dims = b"".join(field(2, field(1, size)) for size in shape)
    return field(8, field(1, dtype) + field(2, dims) + body)


FLOAT, DOUBLE, INT64, STRING, HALF = 1, 2, 9, 7, 19
SCALARS, HISTOGRAMS, TEXT = metadata("scalars", 1), metadata("histograms", 2), metadata("text", 2)
ONE_BUCKET = tensor(DOUBLE, [1, 3], field(4, struct.pack("<3d", 0, 1, 5)))
WORD = tensor(STRING, [], field(8, b"word"))

PICTURE = field(4, field(1, 1) + field(2, 1) + field(3, 3) + field(4, b"\x89PNG"))


def floats(number):
    return tensor(FLOAT, [], field(4, struct.pack("<f", number)))


def doubles(number):
    return tensor(DOUBLE, [], field(4, struct.pack("<d", number)))


GOOD = [scalar(step, float(step)) for step in range(10)]
SIZE = len(GOOD[5])


def flip(data, at):
    """`data` with a bit of one byte changed."""
    out = bytearray(data)
    out[at] ^= 0x40
    return bytes(out)


def each(steps, body, first=b""):
    """Values of "loss" whose first carries `first`."""
    return [value(step, "loss", body(step) + (first if step == steps[0] else b"")) for step in steps]


def files(*contents, names=None):
    """Return {name: bytes} of files that sort in this order."""
    names = names or [NAME.format(second=int(BEGIN) + number, pid=1 + number) for number in range(len(contents))]
    return {name: b"".join(parts) for name, parts in zip(names, contents, strict=True)}


HEAD = [version(), *GOOD[:5]]
MARKED = [version(), start(0, BEGIN), *GOOD]


def again(first, steps, later=20):
    """A session that begins with a mark for step `first`; each value is its step and 100."""
    return [
        version(BEGIN + later),
        start(first, BEGIN + later),
        *[scalar(step, step + 100.0, wall_time=BEGIN + later + step) for step in steps],
    ]


CASES = {
    "good": files([version(), *GOOD]),
    "torn-tail": files([*HEAD, GOOD[5][:-3]]),
    "torn-in-header": files([*HEAD, GOOD[5][:5]]),
    "torn-and-more": files([*HEAD, GOOD[5][:-3], *GOOD[6:]]),
    "bad-data": files([*HEAD, flip(GOOD[5], -6), *GOOD[6:]]),
    "bad-length": files([*HEAD, flip(GOOD[5], 9), *GOOD[6:]]),
    "bad-data-then-file": files([*HEAD, flip(GOOD[5], 9), GOOD[6]], [version(), *GOOD[7:]]),
    "zero-hole": files([*HEAD, bytes(4096), *GOOD[5:]]),
    "zero-tail": files([*HEAD, bytes(4096)]),
    "no-event": files([*HEAD, record(b"\xff" * 20), *GOOD[5:]]),
    "empty": files([]),
    "empty-then-good": files([], [version(), *GOOD]),
    "only-version": files([version()]),
    "no-version": files(GOOD),
    "double": files([version(), *each(range(10), doubles, SCALARS)]),
    "int64": files([version(), *each(range(10), lambda n: tensor(INT64, [], field(4, struct.pack("<q", n))), SCALARS)]),
    "rank-1": files(
        [version(), *each(range(10), lambda n: tensor(FLOAT, [1], field(4, struct.pack("<f", n))), SCALARS)]
    ),
    "double-later": files([version(), *each(range(5), floats, SCALARS), *each(range(5, 10), doubles)]),
    "no-metadata": files([version(), *each(range(10), floats)]),
    "no-plugin": files([version(), *each(range(10), lambda n: tensor(FLOAT, [2], field(4, struct.pack("<2f", n, n))))]),
    "late-metadata": files([version(), *each(range(3), floats), *each(range(3, 10), floats, SCALARS)]),
    "plugin-version": files([version(), *each(range(10), floats, metadata("scalars", 1, b"\x08\x01"))]),
    "scalars-then-histograms": files([*HEAD, *each(range(5, 10), lambda _: ONE_BUCKET, HISTOGRAMS)]),
    "scalars-then-text": files([*HEAD, *each(range(5, 10), lambda _: WORD, TEXT)]),
    "histograms-then-scalars": files([version(), *each(range(5), lambda _: ONE_BUCKET, HISTOGRAMS), *GOOD[5:]]),
    "nan-time": files([*HEAD, scalar(5, 5.0, wall_time=float("nan")), *GOOD[6:]]),
    "infinite-time": files([*HEAD, scalar(5, 5.0, wall_time=float("inf")), *GOOD[6:]]),
    "clock-back": files([*HEAD, *[scalar(step, float(step), wall_time=BEGIN + step - 1000) for step in range(5, 10)]]),
    "step-as-time": files([version(0.0), *[scalar(step, float(step), wall_time=float(step)) for step in range(10)]]),
    "two-writers-one-tag": files([version(), *GOOD], [version(), *[scalar(step, step + 100.0) for step in range(5)]]),
    "two-writers": files([version(), *GOOD], [version(), *[scalar(step, step + 100.0, "val") for step in range(5)]]),
    "names": files(
        [version(BEGIN + 5), *GOOD[5:]],
        HEAD,
        names=["events.out.tfevents.1700000000.host.1.10", "events.out.tfevents.1700000000.host.1.9"],
    ),
    "back": files([version(), *GOOD, *[scalar(step, step + 100.0, wall_time=BEGIN + 20) for step in range(5, 8)]]),
    "back-no-version": files([*GOOD, *[scalar(step, step + 100.0, wall_time=BEGIN + 20) for step in range(5, 8)]]),
    "second-session": files(
        [version(), *GOOD],
        [version(BEGIN + 20), *[scalar(step, step + 100.0, wall_time=BEGIN + 20 + step) for step in range(5, 8)]],
    ),
    "first-mark-in-second": files(
        [version(), *GOOD],
        [
            version(BEGIN + 20),
            start(5, BEGIN + 20),
            *[scalar(step, step + 100.0, wall_time=BEGIN + 20 + step) for step in range(5, 8)],
        ],
    ),
    **{
        case: files(MARKED, again(step, range(5, 8)))
        for case, step in (("mark-that-voids-nothing", 2**63 - 1), ("mark-too-late", 8))
    },
    "marked": files(MARKED, again(5, range(5, 8))),
    "stale": files(
        [version(), start(0, BEGIN), *GOOD],
        [
            version(BEGIN + 20),
            start(5, BEGIN + 20),
            *[scalar(step, 1.0, "other", BEGIN + 20 + step) for step in range(5, 8)],
        ],
    ),
    "two-trainings": files(MARKED, again(0, range(3))),
    "begun-early": files(MARKED, again(3, range(3, 6))),
    "two-writers-marked": files(MARKED, again(0, range(5), later=0)),
    "copies": files(MARKED, MARKED),
    "copies-unmarked": files([version(), *GOOD], [version(), *GOOD]),
    "names-marked": files(again(0, range(10)), [version(), start(0, BEGIN), *GOOD[:5]]),
    "voided-samples": files(
        [version(), start(0, BEGIN), *[scalar(step, float(step)) for step in range(1500)]],
        again(0, range(3), later=2000),
    ),
    "texts": files([version(), *[value(step, "loss", WORD + TEXT * (step == 0)) for step in range(20)]]),
    "plain": files([b"no records at all, but a text of some length\n" * 3]),
    "gzip": files([gzip.compress(b"".join([version(), *GOOD]), mtime=0)]),
    "nan-from": files([*HEAD, *[scalar(step, float("nan")) for step in range(5, 10)]]),
    "mindspore-beside": files(
        [version(), *GOOD],
        [record(b"anything")],
        names=[NAME.format(second=1_700_000_000, pid=1), "events.out.events.summary.1700000000.0.host_MS"],
    ),
    "repeated": files([version(), *GOOD[:5], *GOOD[4:]]),
    "many": files([version(), *[scalar(step, float(step)) for step in range(2000)]]),
    "half": files([version(), *each(range(10), lambda _: tensor(HALF, [], field(4, b"\x00\x3c")), SCALARS)]),
    "mindspore-renamed": files(
        [
            event(0, field(3, b"MindSpore.Event:1")),
            value(0, "picture", PICTURE),
            *[value(step, "loss", b"\x1d" + struct.pack("<f", step)) for step in range(10)],
            value(10, "later", PICTURE),
        ]
    ),
    "name": files([version(), *GOOD], names=["events.out.1700000000.host"]),
    "mindspore": files([record(b"anything")], names=["events.out.events.summary.1700000000.0.host_MS"]),
}
"""Fault -> {file name: bytes}."""


def put(directory, case):
    """Write the files of a case, as they would be a day later."""
    import os

    directory.mkdir(parents=True, exist_ok=True)
    for name, data in CASES[case].items():
        (directory / name).write_bytes(data)
        os.utime(directory / name, (BEGIN, BEGIN))
    return directory
