"""Checks of the place that was given as log directory: is there anything for TensorBoard, and where instead."""

from __future__ import annotations

import difflib
import os
from collections.abc import Container, Iterator
from itertools import islice

from tbwriter import _record, _summary, _tree, sinks
from tbwriter._tree import Directory
from tbwriter.cli._common import counted, shell_word
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding, being_written, both, let_read, names
from tbwriter.errors import CorruptRecordError

_SOME_DIRECTORIES = 2000
_LEVELS_UP = 2
_LEVELS_DOWN = 2
_FEW = 4
_MANY_OTHERS = 20_000
NOTHING_THERE = {"no-such-place", "wrong-logdir"}
"""Codes of findings that say that the path leads nowhere."""
UNREADABLE = {"unreadable"}
"""Codes of findings that say that something could not be looked at."""


def check_text(path: str) -> Iterator[Finding]:
    """Check what was typed, where nothing of this name exists."""
    _name, colon, behind = path.partition(":")
    if colon and "://" not in path and (behind.startswith(("/", "~", ".")) or os.path.exists(behind)):
        yield Finding(
            "wrong-logdir",
            ERROR,
            path,
            "this is the form name:path, which --logdir takes as one path",
            **both("shows nothing"),
            command=f"tensorboard --logdir_spec {shell_word(path)}",
            fix="or --logdir with the parent of the runs",
        )
    elif "," in path and all(os.path.exists(os.path.expanduser(part)) for part in path.split(",")):
        yield Finding(
            "wrong-logdir",
            ERROR,
            path,
            "these are several directories, which --logdir takes as one path",
            **both("shows nothing"),
            command=f"tensorboard --logdir_spec {shell_word(path)}",
            fix="or --logdir with a directory above them",
        )


def check_nothing(place: str) -> Iterator[Finding]:
    """Tell what is near a local place where nothing is."""
    near = place
    while near != os.path.dirname(near) and not os.path.exists(near):
        missing, near = os.path.basename(near), os.path.dirname(near)
    hint, command = "make sure that the training writes there", ""
    if "://" not in place and os.path.isdir(near):
        entries = sorted(os.listdir(near))[:_SOME_DIRECTORIES]
        similar = difflib.get_close_matches(missing, entries, n=3, cutoff=0.6)
        if similar:
            hint = f"did you mean {names([os.path.join(near, name) for name in similar])}?"
            if len(similar) == 1:
                command = f"tbwriter doctor {shell_word(os.path.join(near, similar[0]))}"
        else:
            places = _places_with_event_files(near)
            hint = f"event files lie in {names(places)}" if places else f"{near!r} exists, but holds no event files"
    yield Finding("no-such-place", ERROR, place, "nothing is there", **both("shows nothing"), fix=hint, command=command)


def check_tree(place: str, directories: list[Directory]) -> Iterator[Finding]:
    """Check which files are there at all."""
    files = [found for directory in directories for found in directory.event_files]
    if [found.path for found in files] == [place]:
        folder = place.rpartition("/")[0] or "/"
        yield Finding(
            "file-as-logdir",
            ERROR,
            place,
            "this is a file, and --logdir takes a directory",
            **both("does not list the run"),
            command=f"tensorboard --logdir {shell_word(folder)}",
            fix="shows the run",
        )
    for directory in directories:
        if directory.error is not None:
            yield Finding(
                "unreadable",
                ERROR,
                directory.path,
                f"the directory cannot be listed: {directory.error.strerror or directory.error}",
                **both("shows none of its runs"),
                **let_read(directory.path, "TensorBoard", "rx"),
            )
    renamed = sorted(_files_that_hold_events(place, [found for found in directories if not found.event_files]))
    if renamed:
        yield Finding(
            "name-without-tfevents",
            ERROR,
            place,
            f"{names(renamed)} hold{'s' * (len(renamed) == 1)} events, but the name lacks 'tfevents'",
            **both("shows nothing: it goes by the name"),
            command=" && ".join(_renaming(os.path.join(place, path)) for path in renamed[:_FEW]),
            fix="gives "
            + (
                "it such a name"
                if len(renamed) == 1
                else "them such names"
                if len(renamed) <= _FEW
                else "the first of them such names"
            ),
        )
    if any(directory.event_files for directory in directories):
        yield from _check_size(place, directories)
        return
    if renamed or any(directory.mindspore_files or directory.error for directory in directories):
        return
    above, places = ("", []) if "://" in place else _places_above(place)
    yield Finding(
        "wrong-level" if places else "no-event-file",
        ERROR,
        place,
        f"no event file at or below it, in {len(directories)} director{'ies' if len(directories) > 1 else 'y'} "
        f"with {sum(directory.other_files for directory in directories)} other files",
        **both("shows nothing"),
        command=f"tensorboard --logdir {shell_word(os.path.commonpath(places))}" if 0 < len(places) <= _FEW else "",
        fix=f"event files lie in {names(places)}"
        if 0 < len(places) <= _FEW
        else f"{len(places)} directories near it in {above!r} hold event files, such as {names(places[:_FEW])}; give "
        "TensorBoard the one that is meant"
        if places
        else "make sure that the training writes here, and that it flushes",
    )


def check_files(directories: list[Directory], others: Container[str]) -> Iterator[Finding]:
    """Check what the names, sizes and times of event files tell; `others` are paths of files that are none."""
    for directory in directories:
        growing: list[str] = []
        for found in directory.event_files:
            live = being_written(found)
            if found.size == 0:
                yield Finding(
                    "empty-file",
                    NOTE if live or len(directory.event_files) > 1 else WARNING,
                    found.path,
                    "the file is empty" + (f"; {live}, and has flushed nothing" if live else ""),
                    python="lists the run without curves" if len(directory.event_files) == 1 else "goes on to the next",
                    data_server="does not list the run" if len(directory.event_files) == 1 else "reads the others",
                    fix="wait, or make the training flush" if live else "nothing is lost with it",
                    command="" if live or "://" in found.path else f"rm {shell_word(found.path)}",
                )
            elif live and found.path not in others:
                growing.append(f"{found.name!r} ({live})")
        if growing:
            yield Finding(
                "still-growing",
                NOTE,
                directory.path,
                f"may still be written: {growing[-1]}"
                + (f", and {counted(len(growing) - 1, 'earlier file')}" if growing[1:] else ""),
                **both("shows what was flushed so far"),
                fix="nothing; if a training writes it, more comes with its next flush",
            )


def _check_size(place: str, directories: list[Directory]) -> Iterator[Finding]:
    others = sum(directory.other_files for directory in directories)
    if others > _MANY_OTHERS:
        with_events = [directory.path for directory in directories if directory.event_files]
        yield Finding(
            "large-logdir",
            NOTE,
            place,
            f"{others} other files in {len(directories)} directories beside the event files",
            **both("lists all of them at every reload"),
            fix=f"give TensorBoard the directory of the runs: {names(with_events, 2)}",
        )


def _files_that_hold_events(place: str, directories: list[Directory]) -> Iterator[str]:
    """Yield local files that begin with an Event, by their paths below `place`, of the first few hundred."""
    paths = (
        entry.path
        for directory in directories
        if "://" not in directory.path and os.path.isdir(directory.path) and directory.error is None
        for entry in os.scandir(directory.path)
        if entry.is_file() and "tfevents" not in entry.name and _tree.MINDSPORE_MARK not in entry.name
    )
    for path in islice(paths, 300):
        try:
            with open(path, "rb") as file:
                head = file.read(64)
                if len(head) < 16 or not _record.is_header(head):
                    continue
                file.seek(0)
                record = _record.RecordReader(file, path).read()
            if record is not None and _summary.RawEvent(record.data).file_version:
                yield os.path.relpath(path, place)
        except (OSError, ValueError, CorruptRecordError):
            continue


def _renaming(path: str) -> str:
    """Return the command that gives an event file a name by which it is known to be one."""
    folder, name = os.path.split(path)
    second = int(os.stat(path).st_mtime)
    return f"mv {shell_word(path)} {shell_word(os.path.join(folder, f'events.out.tfevents.{second:010d}.{name}'))}"


def _places_above(place: str) -> tuple[str, list[str]]:
    """Return a directory above a local one without event files, and near places below it that have some."""
    above = place
    for _ in range(_LEVELS_UP):
        parent = os.path.dirname(above)
        if parent in {above, os.path.expanduser("~"), "/", "/tmp"}:  # noqa: S108 - where everything lies
            return "", []
        above = parent
        found = _places_with_event_files(above)
        if above in found:
            return above, [above]
        near = [path for path in found if os.path.relpath(path, above).count("/") < _LEVELS_DOWN]
        if near:
            return above, near
    return "", []


def _places_with_event_files(place: str) -> list[str]:
    found = islice(_tree.walk(sinks.normalise(place)), _SOME_DIRECTORIES)
    return [directory.path for directory in found if directory.event_files]
