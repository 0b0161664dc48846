"""What must be so before event files are written anew: refused before anything is written, never half way."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tbwriter import _record, _rewrite, sinks
from tbwriter._summary import RawEvent
from tbwriter._tree import Directory, Found

COMPRESSED = "is compressed with gzip: gunzip it first"


class LeftAlone(NamedTuple):
    """An event file of which nothing can be made: which, why in words, and whether it is another kind of file."""

    found: Found
    why: str
    foreign: bool


def with_events(
    runs: Sequence[Directory], storage_options: Mapping[str, Any] | None
) -> tuple[list[Directory], list[LeftAlone]]:
    """Return runs with those of their event files that hold an Event, and the others, of which nothing must be made.

    Raises:
        ValueError: there is none with an Event, and one is another kind of file.
    """
    left: list[LeftAlone] = []
    kept = []
    for run in runs:
        nothing = [why for found in run.event_files if (why := _nothing_in(found, storage_options)) is not None]
        left += nothing
        without = {why.found for why in nothing}
        files = tuple(found for found in run.event_files if found not in without)
        if files:
            kept.append(dataclasses.replace(run, event_files=files))
    foreign = [why for why in left if why.foreign]
    if foreign and not kept:
        raise ValueError(f"{foreign[0].found.path} {foreign[0].why}; nothing was changed")
    return kept, left


def _nothing_in(found: Found, storage_options: Mapping[str, Any] | None) -> LeftAlone | None:
    """Say why a file holds no Event; None when it holds one."""
    with sinks.open_file(found.path, storage_options) as file:
        head = file.read(4096)
    what = foreign(head)
    if what == COMPRESSED:
        return LeftAlone(found, what, True)
    has_records = False
    for data in _rewrite.records(found, storage_options):
        has_records = True
        with contextlib.suppress(ValueError):
            RawEvent(data)
            return None
    if not head:
        return LeftAlone(found, "is empty: there is nothing to keep", False)
    if has_records:
        return LeftAlone(found, "is no event file: none of its records holds an event", True)
    if not head.strip(b"\0"):
        return LeftAlone(found, "begins with zeros, and not one record of it is good: there is nothing to keep", False)
    if what:
        return LeftAlone(found, what, True)
    return LeftAlone(found, "is damaged or cut off within its only record: there is nothing to keep", False)


def foreign(head: bytes) -> str:
    """Say from the first bytes of a file without a good record what it is; "" where it may be an event file."""
    if _is_gzip(head):
        return COMPRESSED
    # Of the length with which a record begins, the upper half is 0; a page that was lost is all zeros.
    begun = _record.is_header(head) or (len(head) < _record.HEADER_SIZE and not head[4:8].strip(b"\0"))
    return "" if begun or not head.strip(b"\0") else "is no event file: not one record of it is good"


def _is_gzip(head: bytes) -> bool:
    """Say whether a file that begins so is compressed; two damaged bytes before good records are not enough."""
    if not head.startswith(b"\x1f\x8b"):
        return False
    try:
        zlib.decompressobj(wbits=31).decompress(head, 1)
    except zlib.error:
        return False
    return True


def refuse_within(places: Sequence[str], output: str) -> None:
    """Raise where new files would lie among those that are read, as the next reader would take both.

    Args:
        places: normalised paths or URLs that are read, of directories or files.
        output: the directory for the new files, likewise.

    Raises:
        ValueError: it is one of these directories, lies in one, or is the directory of one of these files.
    """
    into = _real(output)
    for place in places:
        read = _real(place)
        below = read.rstrip("/") + "/" if "://" in read else os.path.join(read, "")
        if into == read or into.startswith(below) or (os.path.isfile(place) and into == _folder(read)):
            raise ValueError(
                f"--output {output!r} lies in what is read, {place!r}, where readers would take the new files for more "
                "of the same; name a directory beside it"
            )


def _real(place: str) -> str:
    return place if "://" in place else os.path.realpath(place)


def _folder(path: str) -> str:
    return path.rpartition("/")[0] if "://" in path else os.path.dirname(path)


def refuse_existing(paths: Sequence[str], storage_options: Mapping[str, Any] | None) -> None:
    """Raise where new files would take the place of others, before anything is written.

    Raises:
        FileExistsError: one of `paths` exists. NotADirectoryError: their directory is a file.
    """
    for path in paths:
        folder = _folder(path)
        if "://" not in path and os.path.exists(folder) and not os.path.isdir(folder):
            raise NotADirectoryError(f"{folder} is a file; want a directory for the new files")
        if sinks.is_file(path, storage_options) or ("://" not in path and os.path.lexists(path)):
            raise _rewrite.already_there(path)


def refuse_live(files: Sequence[Found], live: Callable[[Found], str]) -> None:
    """Raise for files that must not be replaced, as their writer would go on writing into what was replaced.

    Raises:
        ValueError: `live` gives a reason for one.
    """
    for found in files:
        words = live(found)
        if words:
            raise ValueError(
                f"{found.path} is still being written: {words}; stop the training first, write elsewhere with -o, "
                "or say --force"
            )
