"""Checks of MindSpore's own summaries, which no reader of TensorBoard shows: their framing alone is known here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tbwriter import reader
from tbwriter._tree import Directory, Found
from tbwriter.cli._common import counted, in_words, megabytes, shell_word
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding, being_written, both, into, names


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
            fix="or run `tbwriter convert` as a user who may read it",
            command=f"chmod u+r {shell_word(found.path)}" if "://" not in found.path else "",
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
