"""Checks of MindSpore's own summaries, which no reader of TensorBoard shows: their framing alone is known here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tbwriter import reader
from tbwriter._scanned import RunScan
from tbwriter._tree import Directory, Found
from tbwriter.cli._common import counted, in_words, megabytes, shell_word
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding, being_written, both, into, let_read, names

_VERSION = "MindSpore.Event"
_ENDINGS = ("_MS", "_lineage")


def check(directory: Directory, storage_options: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Check the summaries of MindSpore that lie in a directory; they are read."""
    if not directory.mindspore_files:
        return
    beside = bool(directory.event_files)
    yield Finding(
        "mindspore-format",
        NOTE if beside else ERROR,
        directory.path,
        f"{counted(len(directory.mindspore_files), 'file')} of MindSpore's own summary format "
        f"({names([found.name for found in directory.mindspore_files], 1)})"
        + (" beside the event files" if beside else ""),
        **both(
            "shows the event files alone"
            if beside
            else "shows nothing of them: their names lack 'tfevents', and the records are others"
        ),
        **_convert(directory, "writes event files of the same values"),
    )
    for found in directory.mindspore_files:
        yield from _check_damage(directory, found, storage_options)


def check_renamed(run: RunScan) -> Iterator[Finding]:
    """Check whether files that have the name of event files are of MindSpore's format, as their first record says."""
    for file in run.files:
        if not file.version.startswith(_VERSION):
            continue
        path = file.found.path
        command = ""
        if "://" not in path:
            folder, name = os.path.split(path)
            rest = name.replace("events.out.", "").replace("tfevents", "").strip(".")
            old = os.path.join(folder, f"events.out.events.summary.{rest}" + ("" if rest.endswith(_ENDINGS) else "_MS"))
            words = into("CONVERTED", run.path, run.name)
            command = f"mv {shell_word(path)} {shell_word(old)} && tbwriter convert {shell_word(old)} {words}"
        yield Finding(
            "mindspore-renamed",
            ERROR,
            path,
            f"it is of MindSpore's own summary format ({file.version}), and only its name is that of an event file",
            python="shows nothing of it but pictures: its numbers stand in a field of another kind",
            data_server="shows nothing of it from the first number on, which ends its reading",
            fix="gives it back its name, and writes an event file of the same values"
            if command
            else "give it back its name, events.out.events.summary...._MS, and convert it with `tbwriter convert`",
            command=command,
        )


def _check_damage(directory: Directory, found: Found, storage_options: Mapping[str, Any] | None) -> Iterator[Finding]:
    try:
        # Records are framed as those of event files.
        (report,) = reader.verify(found.path, storage_options=storage_options).files
    except OSError as exc:
        yield Finding(
            "unreadable",
            ERROR,
            found.path,
            f"the file cannot be read: {in_words(exc)}",
            **both("shows nothing of it, as it is of MindSpore's own format"),
            **let_read(found.path, "`tbwriter convert`"),
        )
        return
    faults = [fault for fault in report.faults if not (fault.torn_tail and being_written(found))]
    if faults:
        lost = report.file_bytes - report.record_bytes
        yield Finding(
            "mindspore-damage",
            WARNING,
            f"{found.path}, at byte {faults[0].offset}",
            f"{counted(len(faults), 'damaged place')}: {faults[0].what.removeprefix(f'{found.path}: ')}; "
            f"{megabytes(lost)} lie in them, {counted(report.records, 'record')} are good",
            **both("shows nothing of the file, as it is of MindSpore's own format"),
            **_convert(directory, "steps over the damage, and keeps what is in the good records"),
        )


def _convert(directory: Directory, fix: str) -> dict[str, str]:
    words = into("CONVERTED", directory.path, directory.run)
    return {"command": f"tbwriter convert {shell_word(directory.path)} {words}", "fix": fix}
