"""`tbwriter repair` and `tbwriter rewind`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from tbwriter import _repair, _rewrite
from tbwriter.cli import _common, _writing


@_common.command
def repair(
    path: _common.Path,
    output: _writing.Output = None,
    in_place: _writing.InPlace = False,
    clock: Annotated[bool, typer.Option("--clock", help="Also keep the wall time from going back.")] = False,
    force: _writing.Force = False,
    as_json: _common.Json = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Mend files: cut torn tails, step over damage, store values so that both readers show them.

    Every good record is kept, in its order; files without fault stay byte for byte as they are. `repair` says what it
    changed. Exit codes: 0; 2 wrong usage; 3 nothing there, not readable or not writable.
    """
    options = _common.options_of(storage_options)
    runs, into = _writing.targets(path, output, in_place, force, options)
    done = []
    with _common.progress("repairing", _common.size_of(runs)) as advance:
        for run in runs:
            done += [dataclasses.asdict(file) for file in _repair.repair_run(run, into, clock, options, advance)]
    _writing.tell(done, as_json)


@_common.command
def rewind(
    path: _common.Path,
    step: Annotated[int, typer.Option(help="The step at which training resumes, as for purge_step=.")],
    output: _writing.Output = None,
    in_place: _writing.InPlace = False,
    force: _writing.Force = False,
    as_json: _common.Json = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Drop all points of step STEP and later, of all tags, so that a resumed training goes on cleanly.

    Where the writer is another than tbwriter and cannot void what came after a checkpoint, this does it in the files.
    Exit codes: 0; 2 wrong usage; 3 nothing there, not readable or not writable.
    """
    options = _common.options_of(storage_options)
    runs, into = _writing.targets(path, output, in_place, force, options)
    change, dropped = _rewrite.earlier_than(step)
    done = []
    with _common.progress("rewinding", _common.size_of(runs)) as advance:
        for run in runs:
            for found, new in _rewrite.rewrite(run, into, change, options, advance):
                where = _rewrite.target(run, found, into)
                done.append({"path": found.path, "output": where, "records": new.records, "values_dropped": dropped()})
    _writing.tell(done, as_json)
