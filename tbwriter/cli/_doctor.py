"""`tbwriter doctor`: why TensorBoard shows nothing, too little or too much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from tbwriter import _tree, sinks
from tbwriter._preflight import foreign
from tbwriter._scan import RunScan
from tbwriter.cli import _checks_files, _checks_place, _checks_tags, _common, _scanning
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding
from tbwriter.cli._visible import cell

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

    Each finding says what is wrong and where, what each of TensorBoard's readers makes of it, and what to do. Files are
    only read, so a live run can be looked at. Exit codes: 0 nothing wrong, or notes alone; 1 something is; 2 wrong
    usage; 3 nothing is there, or the storage cannot be asked.
    """
    options = _common.options_of(storage_options)
    findings = [finding for finding in diagnose(path, options, jobs=jobs) if notes or finding.level != NOTE]
    findings.sort(key=lambda finding: _ORDER[finding.level])
    wrong = sum(finding.level != NOTE for finding in findings)
    if as_json:
        _common.print_json({"path": path, "ok": not wrong, "findings": findings})
    else:
        out = _common.console()
        for finding in findings:
            _show(out, finding)
        out.print(f"{wrong} thing{'s' * (wrong != 1)} wrong, {len(findings) - wrong} notes")
    if any(finding.code in _checks_place.NOTHING_THERE for finding in findings):
        raise typer.Exit(_common.Exit.UNREADABLE)
    raise typer.Exit(_common.Exit.FOUND if wrong else _common.Exit.OK)


def diagnose(path: str, storage_options: Mapping[str, Any] | None, *, jobs: int = 1) -> Iterator[Finding]:
    """Yield what is wrong with `path` as TensorBoard's log directory.

    Raises:
        OSError: the storage cannot be asked.
        ValueError: `path` is no path and no URL that is served.
    """
    place = sinks.normalise(path, "path", reading=True)
    try:
        directories = list(_tree.walk(place, storage_options))
    except FileNotFoundError:
        told = list(_checks_place.check_text(path))
        yield from told or _checks_place.check_nothing(place)
        return
    yield from _checks_place.check_tree(place, directories)
    runs: list[RunScan] = []
    with_events = [directory for directory in directories if directory.event_files]
    for run in _scanning.scan_all(with_events, storage_options, jobs=jobs, what="examining"):
        runs.append(run)
        yield from _checks_files.check(run)
        yield from _checks_tags.check(run)
    others = {file.found.path for run in runs for file in run.files if foreign(file.head)}
    yield from _checks_place.check_files(directories, others)
    yield from _checks_tags.check_spellings(runs)
    yield from _checks_tags.check_columns(place, runs)


def _show(out: Console, finding: Finding) -> None:
    colour = _COLOUR[finding.level]
    out.print(f"[{colour}]{finding.level}[/{colour}] [bold]{finding.code}[/bold]  {cell(finding.where)}")
    out.print(f"  what         {cell(finding.what)}")
    if finding.python == finding.data_server:
        out.print(f"  TensorBoard  {cell(finding.python)}")
    else:
        out.print(f"  Python       {cell(finding.python)}")
        out.print(f"  data server  {cell(finding.data_server)}")
    out.print(f"  do           {cell(finding.fix)}")
    out.print()
