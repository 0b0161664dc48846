"""`tbwriter verify`: check framing and both checksums of every record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import typer

from tbwriter import _record, reader, sinks
from tbwriter._preflight import foreign
from tbwriter.cli import _common
from tbwriter.cli._visible import cell


@_common.command
def verify(path: _common.Path, as_json: _common.Json = False, storage_options: _common.StorageOptions = None) -> None:
    """Check the framing and the checksums of every record.

    Exit codes: 0 all good; 1 a file is damaged; 2 wrong usage; 3 nothing there or not readable.
    """
    options = _common.options_of(storage_options)
    unreadable: list[OSError] = []
    runs = _common.runs_below(path, options, unreadable)
    reports, others, mendable = [], [], False
    out = _common.console()
    with _common.progress("checking", _common.size_of(runs)) as advance:
        for run in runs:
            for found in run.event_files:
                try:
                    (report,) = reader.verify(found.path, storage_options=options).files
                except OSError as exc:
                    _common.say(f"tbwriter: {_common.in_words(exc)}")
                    unreadable.append(exc)
                    continue
                finally:
                    advance(found.size)
                reports.append(report)
                other = "" if report.records or report.ok else _what_else(found.path, options)
                mendable = mendable or not (report.ok or other)
                others.append(other)
                if not as_json:
                    mark = "[green]good[/green]" if report.ok else "[red]bad[/red] "
                    out.print(f"{mark}  {report.records} records  {cell(report.path)}", soft_wrap=True)
                    if other:
                        out.print(f"      {other}")
                        continue
                    for fault in report.faults:
                        out.print(f"      {cell(fault.what.removeprefix(f'{report.path}: '))}", soft_wrap=True)
    good = all(report.ok for report in reports) and not unreadable
    if as_json:
        files = [
            {**dataclasses.asdict(report), "no_event_file": other}
            for report, other in zip(reports, others, strict=True)
        ]
        _common.print_json({"ok": good, "files": files, "unreadable": [_common.in_words(exc) for exc in unreadable]})
    elif mendable:
        line = f"`tbwriter repair {cell(_common.shell_word(path))} --in-place` keeps every good record"
        out.print(line, soft_wrap=True)
    if unreadable:
        raise typer.Exit(_common.Exit.UNREADABLE)
    raise typer.Exit(_common.Exit.OK if good else _common.Exit.FOUND)


def _what_else(path: str, options: Mapping[str, Any] | None) -> str:
    """Say what a file without a good record is, if it is no event file; "" otherwise."""
    with sinks.open_file(path, options) as file:
        what = foreign(file.read(_record.HEADER_SIZE))
    return what and f"it {what}"
