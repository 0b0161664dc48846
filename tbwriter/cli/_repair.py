"""`tbwriter repair` and `tbwriter rewind`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tbwriter import _repair, _rewrite, _scan
from tbwriter._scanned import Bulk
from tbwriter._tree import Directory
from tbwriter.cli import _common, _writing
from tbwriter.cli._damage import Damage


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
    changed. Files without a good record are left alone. Exit codes: 0; 1 files were left alone; 2 wrong usage, or no
    event file; 3 nothing there, not readable or not writable.
    """
    options = _common.options_of(storage_options)
    runs, into, left_alone = _writing.plan(path, output, in_place, force, options)
    done = []
    with _common.progress("repairing", _common.size_of(runs)) as advance:
        for run in runs:
            done += [dataclasses.asdict(file) for file in _repair.repair_run(run, into, clock, options, advance)]
    _writing.tell(done, as_json, left_alone)


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
    Damage is left out. Exit codes: 0; 1 a file is damaged; 2 wrong usage, or no event file; 3 nothing there, not
    readable or not writable.
    """
    options = _common.options_of(storage_options)
    runs, into, damage = _writing.plan(path, output, in_place, force, options)
    lowest = _look(runs, damage, options)
    if step < 0 and step <= lowest:
        raise typer.BadParameter(f"--step {step} would leave nothing: no step is below it; give the step to resume at")
    change, dropped = _rewrite.earlier_than(step)
    done = []
    with _common.progress("rewinding", _common.size_of(runs)) as advance:
        for run in runs:
            for found, new in _rewrite.rewrite(run, into, change, options, advance):
                where = _rewrite.target(run, found, into)
                done.append({"path": found.path, "output": where, "records": new.records, "values_dropped": dropped()})
    _writing.tell(done, as_json, damage)


def _look(runs: list[Directory], damage: Damage, options: Mapping[str, Any] | None) -> float:
    """Go through `runs` for their damage; return the lowest step of all values, infinity without any."""
    lowest = math.inf

    def observe(_tag: str, bulk: Bulk) -> None:
        nonlocal lowest
        lowest = min(lowest, float(bulk.steps.min()))

    for run in runs:
        damage.see(_scan.scan(run.path, run.run, run.event_files, options, observe=observe))
    return lowest
