"""`tbwriter cat`: values as lines of JSON."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from tbwriter import reader
from tbwriter.cli import _common


@_common.command
def cat(
    path: _common.Path,
    tag: _common.TagPattern = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind: scalars, histograms, images, text, ...")] = None,
    from_step: Annotated[int | None, typer.Option(help="Only from this step on.")] = None,
    to_step: Annotated[int | None, typer.Option(help="Only up to this step.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Images and sounds as base64, huge arrays as lists, instead of their size.")
    ] = False,
    storage_options: _common.StorageOptions = None,
    as_json: Annotated[bool, typer.Option("--json", help="Lines of JSON; there is no other form.")] = True,
) -> None:
    """Print the values as lines of JSON: run, step, wall_time, tag, kind, value.

    In the order of readers: runs, files by name, records as they stand. NaN and infinities are strings. Damage is
    stepped over, and told on stderr. Exit codes: 0; 2 wrong usage; 3 nothing there or not readable.
    """
    del as_json
    options = _common.options_of(storage_options)
    pattern = re.compile(tag or "")
    for run in _common.runs_below(path, options):
        for event in reader.read_events(run.path, storage_options=options):
            if (from_step is not None and event.step < from_step) or (to_step is not None and event.step > to_step):
                continue
            for value in event.values:
                if pattern.search(value.tag) and kind in {None, value.plugin}:
                    line = {
                        "run": run.run,
                        "step": event.step,
                        "wall_time": event.wall_time,
                        "tag": value.tag,
                        "kind": value.plugin,
                        "value": value.data,
                    }
                    _common.print_line(line, full=full)
