"""Find the event files below a path or URL, run by run, and look at them without reading them."""

from __future__ import annotations

import contextlib
import datetime
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tbwriter import sinks

MINDSPORE_MARK = ".out.events.summary."
"""In the name of every file of MindSpore's own summaries (mindspore/train/summary/_summary_adapter.py)."""


class Found(NamedTuple):
    """A file: where it is, its size in bytes, and when it was changed, in seconds since 1970 where that is known."""

    path: str
    name: str
    size: int
    changed: float | None


@dataclass(frozen=True)
class Directory:
    """A directory and what lies in it.

    Attributes:
        path: where it is.
        run: its path below the place that was asked for, as TensorBoard names runs: "." for the place itself.
        event_files: those whose name holds "tfevents", in the order in which readers go through them.
        mindspore_files: MindSpore's own summaries.
        other_files: how many other files there are.
        error: why it cannot be listed, or None.
    """

    path: str
    run: str
    event_files: tuple[Found, ...] = ()
    mindspore_files: tuple[Found, ...] = ()
    other_files: int = 0
    error: OSError | None = None


def is_event_file(name: str) -> bool:
    """Say whether TensorBoard's readers take a file of this name for an event file."""
    return "tfevents" in name and not name.endswith(".profile-empty")


def walk(place: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[Directory]:
    """Yield every directory from `place` down, parents first; a file is a directory that holds it alone.

    Symbolic links to directories are followed, as both of TensorBoard's readers do, each directory once.

    Args:
        place: a normalised path or URL.
        storage_options: for the file system behind a URL.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: it cannot be asked; below it, such a directory is yielded with its error.
    """
    listing = _Local() if "://" not in place else _Remote(storage_options)
    if sinks.is_file(place, storage_options):
        found = listing.file(place)
        mindspore = MINDSPORE_MARK in found.name
        yield Directory(place, ".", () if mindspore else (found,), (found,) if mindspore else ())
        return
    if not sinks.is_directory(place, storage_options):
        if "://" not in place:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.stat(place)  # says why nobody may look there
        raise FileNotFoundError(f"nothing is at {place!r}")
    waiting = [(place, ".")]
    while waiting:
        path, run = waiting.pop()
        try:
            names, files = listing.entries(path)
        except OSError as exc:
            yield Directory(path, run, error=exc)
            continue
        files.sort(key=lambda found: found.name)
        event_files = tuple(found for found in files if is_event_file(found.name))
        mindspore_files = tuple(found for found in files if MINDSPORE_MARK in found.name)
        yield Directory(path, run, event_files, mindspore_files, len(files) - len(event_files) - len(mindspore_files))
        below = "" if run == "." else f"{run}/"
        waiting += [(sinks.join(path, name), below + name) for name in sorted(names, reverse=True)]


def look(path: str, storage_options: Mapping[str, Any] | None = None) -> Found:
    """Return what is known of one file.

    Raises:
        OSError: it cannot be asked.
    """
    return (_Local() if "://" not in path else _Remote(storage_options)).file(path)


class _Local:
    """Local file systems."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()  # directories; links can make circles

    def file(self, path: str) -> Found:
        known = os.stat(path)
        return Found(path, os.path.basename(path), known.st_size, known.st_mtime)

    def entries(self, path: str) -> tuple[list[str], list[Found]]:
        itself = os.stat(path)
        if (itself.st_dev, itself.st_ino) in self._seen:
            return [], []
        self._seen.add((itself.st_dev, itself.st_ino))
        directories, files = [], []
        with os.scandir(path) as found:
            for entry in found:
                try:
                    known = entry.stat()
                except PermissionError:
                    if entry.is_symlink():
                        continue  # to where we may not look
                    raise
                except OSError:
                    continue  # deleted meanwhile, or a link to nothing
                if stat.S_ISDIR(known.st_mode):
                    directories.append(entry.name)
                elif stat.S_ISREG(known.st_mode):
                    files.append(Found(entry.path, entry.name, known.st_size, known.st_mtime))
        return directories, files


class _Remote:
    """What fsspec reaches."""

    def __init__(self, storage_options: Mapping[str, Any] | None) -> None:
        self._options = storage_options

    def file(self, path: str) -> Found:
        return self._found(path, sinks.remote_info(path, self._options))

    def entries(self, path: str) -> tuple[list[str], list[Found]]:
        directories, files = [], []
        for name, known in sinks.remote_entries(path, self._options):
            if known["type"] == "directory":
                directories.append(name)
            elif name:
                files.append(self._found(sinks.join(path, name), known))
        return directories, files

    @staticmethod
    def _found(path: str, known: Mapping[str, Any]) -> Found:
        # Every fsspec file system has a name of its own for the time of the last change.
        changed = next(
            (known[key] for key in ("mtime", "LastModified", "last_modified", "updated") if key in known), None
        )
        if isinstance(changed, datetime.datetime):
            changed = changed.timestamp()
        return Found(
            path,
            path.rsplit("/", 1)[-1],
            int(known.get("size") or 0),
            float(changed) if isinstance(changed, (int, float)) else None,
        )
