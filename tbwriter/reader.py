"""Read event files back: of tbwriter, TensorFlow, torch, tensorboardX, JAX; local or behind a URL.

Every whole, undamaged record is returned, in the order of TensorBoard's readers: files by name, records as they
stand. Damage is stepped over and reported, it never ends the reading. Memory stays at one record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tbwriter import _record, _summary, sinks
from tbwriter._logger import get_logger
from tbwriter._record import Record
from tbwriter._summary import Event, Value
from tbwriter.errors import CorruptRecordError, TruncatedRecordError

__all__ = ["Event", "Fault", "FileReport", "Record", "Report", "Value", "read_events", "read_records", "verify"]

_log = get_logger(__name__)


def read_events(
    path: str | sinks.PathLike, *, storage_options: Mapping[str, Any] | None = None, strict: bool = False
) -> Iterator[Event]:
    """Yield the events of an event file, or of all event files of a run's directory.

    A Value whose metadata stands in an earlier event, as is usual, still has its plugin here.

    Args:
        path: a file or a directory, as path or URL; sub-directories are other runs and are left out.
        storage_options: for the file system behind a URL.
        strict: raise at the first damaged record instead of logging it and going on.

    Raises:
        FileNotFoundError: nothing there, or no event file in it.
        CorruptRecordError: with `strict`; a torn last record counts as damage too.
    """
    plugins: dict[str, str] = {}
    for name in _event_files(path, storage_options):
        with sinks.open_file(name, storage_options) as file:
            for item in _record.iterate(file, name):
                if isinstance(item, CorruptRecordError):
                    if strict:
                        raise item
                    _log.warning("%s; going on behind it", item)
                    continue
                try:
                    yield _summary.decode(item.data, plugins)
                except ValueError as exc:
                    error = CorruptRecordError(f"{name}: record at byte {item.offset} is no Event: {exc}", item.offset)
                    if strict:
                        raise error from exc
                    _log.warning("%s; going on behind it", error)


def points_of(
    directory: str, tag: str, storage_options: Mapping[str, Any] | None
) -> list[tuple[float, int, float | str]]:
    """Return (wall time, step, value) of one scalar of a run; what JSON has no number for is a text.

    Raises:
        OSError: the run cannot be read.
    """
    options = storage_options if "://" in directory else None
    try:
        return [
            (event.wall_time, event.step, number if math.isfinite(number) else str(number))
            for event in read_events(directory, storage_options=options)
            for value in event.values
            if value.tag == tag and (number := value.scalar()) is not None
        ]
    except FileNotFoundError:  # nothing of it is stored yet
        return []


def read_records(
    path: str | sinks.PathLike, *, offset: int = 0, storage_options: Mapping[str, Any] | None = None
) -> Iterator[Record]:
    """Yield the whole, undamaged records of a file, whatever they hold; damage is stepped over.

    Args:
        path: a file of any name, as path or URL.
        offset: where to begin, in bytes. To follow a file that grows, call again with the `end` of the last record.
        storage_options: for the file system behind a URL.

    Raises:
        OSError: the file cannot be read.
    """
    place = sinks.normalise(path, "path", reading=True)
    with sinks.open_file(place, storage_options) as file:
        file.seek(offset)
        for item in _record.iterate(file, place, offset=offset):
            if isinstance(item, Record):
                yield item


@dataclass(frozen=True)
class Fault:
    """A damaged place in an event file.

    Attributes:
        offset: where it begins, in bytes from the start of the file.
        what: what is wrong, in words.
        torn_tail: the file ends inside a record: it is still being written, or its writer was killed.
    """

    offset: int
    what: str
    torn_tail: bool


@dataclass(frozen=True)
class FileReport:
    """What `verify` found in one event file.

    Attributes:
        path: the file.
        records: how many records are whole and undamaged.
        record_bytes: their size, framing included.
        file_bytes: the size of the file.
        faults: the damaged places in order; empty for a good file.
    """

    path: str
    records: int
    record_bytes: int
    file_bytes: int
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        """Whether every byte of the file belongs to an undamaged record."""
        return not self.faults


@dataclass(frozen=True)
class Report:
    """What `verify` found.

    Attributes:
        files: one report for each event file, in the order in which readers go through them.
    """

    files: tuple[FileReport, ...]

    @property
    def ok(self) -> bool:
        """Whether all files are good."""
        return all(file.ok for file in self.files)


def verify(path: str | sinks.PathLike, *, storage_options: Mapping[str, Any] | None = None) -> Report:
    """Check framing and both checksums of every record; contents are not decoded.

    Args:
        path: a file or a run's directory, as path or URL.
        storage_options: for the file system behind a URL.

    Raises:
        FileNotFoundError: nothing there, or no event file in it.
    """
    return Report(tuple(_verify(name, storage_options) for name in _event_files(path, storage_options)))


def _verify(name: str, storage_options: Mapping[str, Any] | None) -> FileReport:
    records = size = 0
    faults = []
    with sinks.open_file(name, storage_options) as file:
        for item in _record.iterate(file, name):
            if isinstance(item, CorruptRecordError):
                faults.append(Fault(item.offset, str(item), isinstance(item, TruncatedRecordError)))
            else:
                records += 1
                size += len(item.data) + _record.HEADER_SIZE + _record.FOOTER_SIZE
        file_bytes = file.seek(0, 2)
    return FileReport(name, records, size, file_bytes, tuple(faults))


def _event_files(path: str | sinks.PathLike, storage_options: Mapping[str, Any] | None) -> list[str]:
    place = sinks.normalise(path, "path", reading=True)
    if sinks.is_file(place, storage_options):
        return [place]
    names = sorted(name for name in sinks.list_names(place, storage_options) if "tfevents" in name)
    if not names:
        raise FileNotFoundError(f"{place!r} is no event file and no directory that holds one")
    return [sinks.join(place, name) for name in names]
