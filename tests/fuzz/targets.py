"""What must hold for any bytes: each target takes some, writes them as files, and has everything read them.

    raw        the bytes are an event file
    events     the bytes are parts of one, between separators: most become records, so that what lies in them is reached
    tensors    the bytes are a TensorProto, in a value of each plugin in turn
    summaries  the parts are records of MindSpore's summaries

A record that was framed must come out, whatever lies around it; nothing may raise but what is documented.
"""

import contextlib
import logging
import os
import tempfile
from pathlib import Path

from damaged import field, record

import tbwriter
from msbridge import _foreign
from msbridge.convert import convert
from tbwriter import _scan, _tree, read_events, read_records, repair, verify
from tbwriter._summary import RawEvent

SEPARATOR = b"\n=\n"
"""Between parts: bytes that a mutation moves and copies as a whole."""
NAME = "events.out.tfevents.1700000000.host.1.000000"
MINDSPORE_NAMES = (
    "events.out.events.summary.1700000000.0.host_MS",
    "events.out.events.summary.1700000000.0.host_lineage",
)
PLUGINS = (b"", b"scalars", b"histograms", b"images", b"audio", b"text", b"pr_curves", b"mesh", b"hparams",
           b"custom_scalars", b"other")  # fmt: skip
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def be_quiet():
    """Have nothing said of damage, of which there is much; returns a function that ends it."""
    loggers = [logging.getLogger(name) for name in ("tbwriter", "msbridge")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    return lambda: [logger.setLevel(level) for logger, level in zip(loggers, before, strict=True)]


def raw(data):
    """An event file of these bytes."""
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        (Path(folder) / NAME).write_bytes(data)
        _read_by_all(Path(folder))


def events(data):
    """An event file of these parts; those that begin with "!" stand there as they are, the others as records."""
    parts = data.split(SEPARATOR)
    framed = [part for part in parts if not part.startswith(b"!")]
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        (Path(folder) / NAME).write_bytes(
            b"".join(part[1:] if part.startswith(b"!") else record(part) for part in parts)
        )
        found = _read_by_all(Path(folder))
    remaining = iter(found)
    assert all(part in remaining for part in framed), "a record that was framed did not come out"


def tensors(data):
    """A tensor of these bytes in one value of each plugin."""
    values = b"".join(
        field(1, field(1, b"tag " + plugin) + field(9, field(1, field(1, plugin))) + field(8, data))
        for plugin in PLUGINS
    )
    events(field(1, 1.5) + field(5, values))


def summaries(data):
    """MindSpore's two kinds of file, of these parts."""
    parts = [part for part in data.split(SEPARATOR) if len(part) < 1 << 16]
    for part in parts:
        for decode in (_foreign.decode, _foreign.decode_lineage):
            with contextlib.suppress(ValueError):
                decode(part)
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        for name in MINDSPORE_NAMES:
            (Path(folder) / name).write_bytes(b"".join(map(record, parts)))
        (report,) = convert(folder, Path(folder) / "out")
        assert report.records == 2 * len(parts)
        if report.values:
            assert verify(Path(folder) / "out").ok


TARGETS = {target.__name__: target for target in (raw, events, tensors, summaries)}


def _read_by_all(folder):
    """Read an event file in every way; return the data of its good records."""
    path = folder / NAME
    records = [found.data for found in read_records(path)]
    report = verify(path)
    (directory,) = _tree.walk(str(folder))
    scan = _scan.scan(directory.path, directory.run, directory.event_files)
    found = list(read_events(path))
    assert len(records) == report.files[0].records == scan.files[0].records
    assert len(found) == len(records) - scan.files[0].no_events
    assert sum(len(event.values) for event in found) == scan.values
    for data in records:
        _outline(data)
    if not found:
        with contextlib.suppress(ValueError):  # this is no event file
            assert repair(path, folder / "mended") == ()
        assert not (folder / "mended").exists()
        return records
    (mended,) = repair(path, folder / "mended")
    assert verify(folder / "mended").ok
    assert mended.records == len(found)
    (again,) = repair(folder / "mended", folder / "again")
    assert not again.lost_bytes
    assert not again.no_events
    return records


def _outline(data):
    try:
        RawEvent(data).outline()
    except ValueError:
        try:
            tbwriter._summary.decode(data, {})
        except ValueError:
            return
        raise
