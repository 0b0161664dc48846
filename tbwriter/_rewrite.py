"""Write event files anew, record by record, from others: whole or not at all, in memory of one record.

A new file gets its name when all of it is stored. The old one is never touched, unless it is to be replaced.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO

from tbwriter import _record, _summary, sinks
from tbwriter._summary import Alike, Outliner, RawEvent, RawValue
from tbwriter._tree import Directory, Found


class NewFile:
    """An event file that comes to be at the end of a `with` block, or not at all when the block raises.

    Raises:
        FileExistsError: at the end of the block: the name is taken, and `replace` was not said.
        OSError: storage refuses.
    """

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None = None, *, replace: bool = False) -> None:
        self._path, self._options, self._replace = path, storage_options, replace
        self.size = 0
        """Bytes written so far."""
        self.records = 0
        """Records written so far."""
        self._remote = "://" in path
        # Beside its final place, so that a rename is enough; without "tfevents", so that no reader takes it.
        folder = None if self._remote else os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        try:
            handle, self._temporary = tempfile.mkstemp(prefix=".tbwriter-", suffix=".part", dir=folder)
        except OSError as exc:  # names a file that nobody asked for
            raise OSError(exc.errno, exc.strerror, folder or tempfile.gettempdir()) from exc
        self._file: BinaryIO = os.fdopen(handle, "wb", buffering=1 << 20)

    def write(self, data: bytes) -> None:
        """Add a record with this data."""
        framed = _record.frame(data)
        self._file.write(framed)
        self.size += len(framed)
        self.records += 1

    def write_all(self, many: Sequence[bytes]) -> None:
        """Add a record for each of `many`."""
        framed = b"".join(map(_record.frame, many))
        self._file.write(framed)
        self.size += len(framed)
        self.records += len(many)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._file:
                if kind is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if kind is None:
                self._publish()
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)

    def _publish(self) -> None:
        if self._remote:
            if not self._replace and sinks.is_file(self._path, self._options):
                raise already_there(self._path)
            sinks.upload(self._temporary, self._path, self._options)
            return
        if self._replace and os.path.exists(self._path):
            shutil.copymode(self._path, self._temporary)
            os.replace(self._temporary, self._path)
        else:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(self._temporary, 0o666 & ~mask)  # mkstemp gives 0600
            try:
                os.link(self._temporary, self._path)  # unlike a rename, fails where something is
            except FileExistsError:
                raise already_there(self._path) from None
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def already_there(path: str) -> FileExistsError:
    """Return what is raised where a new file would take the place of another."""
    return FileExistsError(
        f"{path} exists already, as of an earlier call; give another directory as output, or remove it"
    )


def batches(found: Found, storage_options: Mapping[str, Any] | None) -> Iterator[list[bytes]]:
    """Yield the data of all good records of a file, some at a time; damage is stepped over."""
    with sinks.open_file(found.path, storage_options) as file:
        yield from _record.iterate_data(file, found.path)


def records(found: Found, storage_options: Mapping[str, Any] | None) -> Iterator[bytes]:
    """Yield the data of all good records of a file; damage is stepped over."""
    for batch in batches(found, storage_options):
        yield from batch


def events(found: Found, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[bytes, RawEvent]]:
    """Yield the good records of a file that are Events, and what they hold."""
    for data in records(found, storage_options):
        with contextlib.suppress(ValueError):
            yield data, RawEvent(data)


def target(directory: Directory, found: Found, output: str | None) -> str:
    """Return where the new form of a file goes: below `output` as the file lies below its place; None is in place."""
    if output is None:
        return found.path
    parts = [] if directory.run == "." else directory.run.split("/")
    return sinks.join(output, *parts, found.name)


def targets(directories: Sequence[Directory], output: str) -> list[str]:
    """Return where the new forms of all files go."""
    return [target(directory, found, output) for directory in directories for found in directory.event_files]


def rewrite(
    directory: Directory,
    output: str | None,
    change: Callable[[Found, bytes], bytes | None],
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] = lambda _bytes: None,
) -> Iterator[tuple[Found, NewFile]]:
    """Write every event file of a run anew.

    Args:
        directory: the run.
        output: the directory for the new files, or None to replace the old.
        change: called with file and data of each good record, in order; returns what to store, None for nothing.
        storage_options: for the file system behind a URL.
        progress: called with the bytes of each file that is done.

    Yields:
        each file, and what became of it.

    Raises:
        FileExistsError: there is such a file in `output`.
    """
    for found in directory.event_files:
        with NewFile(target(directory, found, output), storage_options, replace=output is None) as new:
            for batch in batches(found, storage_options):
                kept = (change(found, data) for data in batch)
                new.write_all([data for data in kept if data is not None])
        progress(found.size)
        yield found, new


class Metadata:
    """Sees to it that the first value of each tag that is stored says what the tag's first value said."""

    def __init__(self) -> None:
        self._known: dict[str, RawValue] = {}
        self._stored: set[str] = set()
        self._settled: set[Alike] = set()

    def new_file(self) -> None:
        """Begin a file that must say it again."""
        self._stored.clear()
        self._settled.clear()

    def is_settled(self, alike: Alike) -> bool:
        """Say whether Events of a form can be stored, or left out, as they are: they tell nothing, and lack nothing."""
        if alike in self._settled:
            return True
        settled = all(
            row.tag in self._stored and (not row.has_metadata or row.tag in self._known) for row in alike.rows
        )
        if settled:
            self._settled.add(alike)
        return settled

    def see(self, value: RawValue) -> None:
        """Take in a value, whether it will be stored or not."""
        if value.tag not in self._known and value.metadata() is not None:
            self._known[value.tag] = value.metadata_alone()

    def give(self, value: RawValue) -> bool:
        """Give a value that will be stored what it must say; return whether it was changed."""
        if value.tag in self._stored:
            return False
        self._stored.add(value.tag)
        source = self._known.get(value.tag)
        if source is None or value.metadata() is not None:
            return False
        value.take_metadata(source)
        return True


def keep(event: RawEvent, data: bytes, flags: Sequence[bool], metadata: Metadata) -> bytes | None:
    """Return what to store of an Event: its values whose flag is set; None when there is none.

    Args:
        event: with values as they shall be stored.
        data: its bytes before.
        flags: one for each value.
        metadata: of the file that is written.
    """
    changed = False
    for value, wanted in zip(event.values, flags, strict=True):
        metadata.see(value)
        if wanted:
            changed = metadata.give(value) or changed
    if all(flags):
        return event.serialised() if changed else data
    remaining = iter(flags)
    return event.keep(lambda _value: next(remaining))


def earlier_than(step: int) -> tuple[Callable[[Found, bytes], bytes | None], Callable[[], int]]:
    """Return a change for `rewrite` that drops Events with values at `step` and later, and what is no Event.

    Returns:
        the change, and a function that returns how many values it dropped since it was called last.
    """
    outliner = Outliner()
    dropped = 0

    def change(_found: Found, data: bytes) -> bytes | None:
        nonlocal dropped
        known = outliner.known(data)
        if known is not None:
            at, count = known[1], len(known[3].rows)
        else:
            try:
                event, rows = outliner.outline(data)
            except ValueError:
                return None
            if event.what != "summary":
                return data
            at, count = event.step, len(rows)
        if at < step:
            return data
        dropped += count
        return None

    def so_far() -> int:
        nonlocal dropped
        count, dropped = dropped, 0
        return count

    return change, so_far


def header(wall_time: float) -> list[bytes]:
    """Return the data of the records with which a file of ours begins."""
    return [_summary.file_version(wall_time), _summary.session_start(0, wall_time)]
