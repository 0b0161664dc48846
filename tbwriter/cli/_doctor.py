"""`tbwriter doctor`: why TensorBoard shows nothing, too little or too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tbwriter import _tree
from tbwriter._preflight import foreign
from tbwriter._scanned import RunScan
from tbwriter.cli import (
    _checks_files,
    _checks_mindspore,
    _checks_names,
    _checks_place,
    _checks_tags,
    _common,
    _scanning,
)
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding
from tbwriter.cli._visible import visible

_ORDER = {ERROR: 0, WARNING: 1, NOTE: 2}
_COLOUR = {ERROR: "red", WARNING: "yellow", NOTE: "cyan"}


@_common.command
def doctor(
    path: _common.Path,
    as_json: _common.Json = False,
    notes: Annotated[bool, typer.Option(help="Tell also what is worth knowing, though nothing is wrong.")] = True,
    jobs: Annotated[int, typer.Option(min=0, help="Processes to read with; 0 chooses.")] = 0,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Find out why TensorBoard shows nothing, too little or too much of PATH, its --logdir.

    Each finding says what is wrong and where, what each of TensorBoard's readers makes of it, and what to do, as a
    command line where one helps. Files are only read, so a live run can be looked at. Exit codes: 0 nothing wrong, or
    notes alone; 1 something is; 2 wrong usage; 3 nothing is there, or something cannot be read.
    """
    options = _common.options_of(storage_options)
    findings = [finding for finding in diagnose(path, options, jobs=jobs) if notes or finding.level != NOTE]
    findings.sort(key=lambda finding: _ORDER[finding.level])
    wrong = sum(finding.level != NOTE for finding in findings)
    if as_json:
        _common.print_json({"path": path, "ok": not wrong, "findings": findings})
    else:
        out = _common.console()
        told: set[str] = set()
        for finding in findings:
            _show(out, finding, again=finding.command in told)
            told.add(finding.command)
        out.print(f"{_common.counted(wrong, 'thing')} wrong, {_common.counted(len(findings) - wrong, 'note')}")
    if any(finding.code in _checks_place.NOTHING_THERE | _checks_place.UNREADABLE for finding in findings):
        raise typer.Exit(_common.Exit.UNREADABLE)
    raise typer.Exit(_common.Exit.FOUND if wrong else _common.Exit.OK)


def diagnose(path: str, storage_options: Mapping[str, Any] | None, *, jobs: int = 1) -> Iterator[Finding]:
    """Yield what is wrong with `path` as TensorBoard's log directory.

    Raises:
        OSError: the storage cannot be asked.
        ValueError: `path` is no path and no URL that is served.
    """
    place = _common.place(path)
    try:
        directories = list(_tree.walk(place, storage_options))
    except FileNotFoundError:
        told = list(_checks_place.check_text(path))
        yield from told or _checks_place.check_nothing(place)
        return
    yield from _checks_place.check_tree(place, directories)
    for directory in directories:
        yield from _checks_mindspore.check(directory, storage_options)
    runs: list[RunScan] = []
    with_events = [directory for directory in directories if directory.event_files]
    for run in _scanning.scan_all(with_events, storage_options, jobs=jobs, what="examining"):
        runs.append(run)
        renamed = list(_checks_mindspore.check_renamed(run))
        yield from renamed
        yield from _checks_files.check(run, storage_options)
        if len(renamed) < len(run.files):  # what else would be said of MindSpore's tags misleads
            yield from _checks_tags.check(run)
    others = {file.found.path for run in runs for file in run.files if foreign(file.head)}
    yield from _checks_place.check_files(directories, others)
    yield from _checks_names.check_spellings(runs)
    yield from _checks_names.check_columns(place, runs)


def _show(out: Console, finding: Finding, *, again: bool) -> None:
    """Print a finding; `again` where its command was printed with another already."""
    heads = Text.assemble((finding.level, _COLOUR[finding.level]), " ", (finding.code, "bold"), "  ")
    _line(out, heads, finding.where)
    rows = [("what", finding.what)]
    if finding.python == finding.data_server:
        rows.append(("TensorBoard", finding.python))
    else:
        rows += [("Python", finding.python), ("data server", finding.data_server)]
    for label, text in rows:
        _line(out, Text(f"  {label:<13}"), text)
    if not finding.command:
        _line(out, Text("  do           "), finding.fix)
    else:
        # Whatever the width of the terminal, a command line that is copied must stay in one piece.
        command = "the same as above" if again else visible(finding.command)
        out.print(Text(f"  do           {command}"), soft_wrap=True)
        if not again:
            _line(out, Text(" " * 15), finding.fix)
    out.print()


def _line(out: Console, label: Text, text: str) -> None:
    """Print a text that, where it is too long for the terminal, goes on below its own beginning."""
    line = Table.grid()
    line.add_column(no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(label, Text(visible(text)))
    out.print(line)
