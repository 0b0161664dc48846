"""The segments of one sink while the store does not have them: on disk, or in memory where no disk can be written."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tbwriter.sinks._credentials import safe_options, without_user
from tbwriter.sinks._file import FileSink
from tbwriter.sinks._handles import open_apart
from tbwriter.sinks._local_names import local
from tbwriter.sinks._spool_dirs import SIDE, disown, key, own, own_again

_VERSION = 1


class Spool(Protocol):
    """Segments of one sink. The sink's thread appends and rolls; the uploader's threads read and remove."""

    @property
    def directory(self) -> str | None:
        """Where it is; None in memory."""

    @property
    def size(self) -> int:
        """How long the current segment is, in bytes: whole records."""

    def append(self, records: bytes) -> None:
        """As `Sink.append`."""

    def roll(self, name: str, header: bytes) -> int:
        """As `Sink.roll`; returns the final size of the segment that ends."""

    def read(self, name: str, size: int) -> bytes:
        """Return the first `size` bytes of a segment."""

    def remove(self, name: str) -> None:
        """Forget a segment that the store has."""

    def put_side(self, number: int, name: str, data: bytes) -> None:
        """Keep another file."""

    def read_side(self, number: int, name: str) -> bytes:
        """Return another file."""

    def remove_side(self, number: int, name: str) -> None:
        """Forget another file that the store has."""

    def seal(self) -> None:
        """End the current segment; nothing is appended after it, and `size` is final."""

    def release(self) -> None:
        """Give back file handles until the next append."""

    def close(self) -> None:
        """Give up the ownership; what is left belongs to whoever takes it."""


class DiskSpool:
    """A directory of its own below the root."""

    def __init__(self, root: Path, url: str, options: Mapping[str, Any], *, name: str, header: bytes) -> None:
        """Create the directory and the first segment.

        Raises:
            OSError: it cannot be created, or the file system knows no flock.
        """
        stem = f"{key(url)}.{int(time.time())}.{os.getpid()}.{secrets.token_hex(4)}"
        self._path = root / stem
        self._path.mkdir(mode=0o700)
        own(self._path)
        about = {
            "v": _VERSION,
            "url": without_user(url),
            "options": safe_options(options),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "boot_id": _boot_id(),
        }
        self._about = json.dumps(about)
        try:
            self._url_file.write_text(self._about, encoding="utf-8")
            self._files = FileSink(str(self._path), name=name, header=header)
        except BaseException:
            shutil.rmtree(self._path, ignore_errors=True)
            disown(self._path)
            raise
        self.directory: str | None = str(self._path)
        self._before = 0  # bytes of earlier segments

    @property
    def _url_file(self) -> Path:
        return self._path / "url.json"

    @property
    def size(self) -> int:
        """How long the current segment is."""
        return self._files.status().bytes_os - self._before

    def append(self, records: bytes) -> None:
        """Write at the end of the current segment."""
        self._files.append(records)

    def roll(self, name: str, header: bytes) -> int:
        """Begin a segment."""
        if not self._url_file.exists():  # somebody has deleted it all: nobody would know whose the new segment is
            try:
                self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
            except FileExistsError as exc:  # which would say that another name helps
                raise NotADirectoryError(errno.ENOTDIR, "a file is in the way", str(self._path)) from exc
            own_again(self._path)
            self._url_file.write_text(self._about, encoding="utf-8")
        self._files.roll(name, header)
        # More than `size` was before, where whole records of an append that failed were kept.
        final = self._files.status().bytes_os - len(header) - self._before
        self._before += final
        return final

    def read(self, name: str, size: int) -> bytes:
        """Read a segment."""
        with open(self._path / local(name), "rb") as file:
            return file.read(size)

    def remove(self, name: str) -> None:
        """Delete a segment."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path / local(name))

    def put_side(self, number: int, name: str, data: bytes) -> None:
        """Write another file, by a rename: what is there is whole."""
        target = self._side(number, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = self._path / f"{number}.part"
        try:
            with open(part, "wb", opener=open_apart) as file:
                file.write(data)
            os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)  # or each attempt would take what a full disk still has
            raise

    def read_side(self, number: int, name: str) -> bytes:
        """Read another file."""
        return self._side(number, name).read_bytes()

    def remove_side(self, number: int, name: str) -> None:
        """Delete another file."""
        with contextlib.suppress(FileNotFoundError):
            self._side(number, name).unlink()

    def _side(self, number: int, name: str) -> Path:
        return self._path / SIDE / f"{number:06d}" / local(name)

    def seal(self) -> None:
        """Close the file; what is left of a torn record is cut off."""
        self._files.close()

    def release(self) -> None:
        """Close the handle for now."""
        self._files.release()

    def close(self) -> None:
        """Give the directory up; delete it when nothing is left in it."""
        disown(self._path)


class MemorySpool:
    """Segments in memory, where no disk can be written; gone with the process."""

    directory: str | None = None

    def __init__(self, *, name: str, header: bytes) -> None:
        self._segments = {name: bytearray(header)}
        self._name = name
        self._sides: dict[int, bytes] = {}

    @property
    def size(self) -> int:
        """How long the current segment is."""
        return len(self._segments[self._name])

    def append(self, records: bytes) -> None:
        """Add to the current segment."""
        self._segments[self._name] += records

    def roll(self, name: str, header: bytes) -> int:
        """Begin a segment."""
        final = self.size
        self._segments[name] = bytearray(header)
        self._name = name
        return final

    def read(self, name: str, size: int) -> bytes:
        """Copy a segment."""
        with memoryview(self._segments[name]) as view:
            return bytes(view[:size])

    def remove(self, name: str) -> None:
        """Forget a segment."""
        self._segments.pop(name, None)

    def put_side(self, number: int, name: str, data: bytes) -> None:
        """Keep another file."""
        del name
        self._sides[number] = data

    def read_side(self, number: int, name: str) -> bytes:
        """Return another file."""
        del name
        return self._sides[number]

    def remove_side(self, number: int, name: str) -> None:
        """Forget another file."""
        del name
        self._sides.pop(number, None)

    def seal(self) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Forget everything."""
        self._segments.clear()
        self._sides.clear()


def _boot_id() -> str:
    """Return what tells this boot of the machine from others; "" where nothing does."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
