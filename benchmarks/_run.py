"""Run the figures of a command, and keep what is finished: an interrupted run leaves a valid, incomplete result."""

from __future__ import annotations

import dataclasses
import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import _machine, _progress
from benchmarks._results import SCHEMA, Figure, Result
from benchmarks._setting import Setting

FigureMaker = Callable[[Setting], list[Figure]]
_NOT_RECORDED = {"directory", "peers", "progress", "logdir"}


def smaller(make: FigureMaker, **sizes: int) -> FigureMaker:
    """Return a maker of the same figures that measures at most so much."""

    def made(setting: Setting) -> list[Figure]:
        return make(replace(setting, **{name: min(size, getattr(setting, name)) for name, size in sizes.items()}))

    return made


class LeftOutError(Exception):
    """These figures cannot be measured here; its text says why."""


class StoppedError(KeyboardInterrupt):
    """Ctrl-C in the middle of figures that mean something all the same."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        super().__init__()
        self.figures = list(figures)


def run(
    command: str,
    figures: Mapping[str, FigureMaker],
    setting: Setting,
    left_out: Mapping[str, str],
    output: Path | None,
) -> Result:
    """Measure `figures` one after the other, and save the result to `output` after each.

    Ctrl-C ends it; the result is then incomplete.
    """
    load = _machine.load()
    result = Result(
        schema=SCHEMA,
        command=command,
        begun=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        complete=False,
        options=_options(setting),
        commit=_machine.commit(),
        machine=_machine.machine(setting.directory, load),
        versions=_machine.versions(),
        left_out=dict(left_out),
        figures=[],
    )

    def keep(found: Sequence[Figure], *, complete: bool = False) -> Result:
        machine = _machine.machine(setting.directory, load)
        grown = replace(result, figures=[*result.figures, *found], machine=machine, complete=complete)
        if output is not None:
            grown.save(output)
        return grown

    try:
        with _progress.showing(len(figures)) as progress:
            for i, (name, make) in enumerate(figures.items()):
                progress.begin(name)
                found: list[Figure] = []
                try:
                    found = make(replace(setting, progress=progress))
                except LeftOutError as why:
                    result = replace(result, left_out={**result.left_out, f"the figures of {name}": str(why)})
                result = keep(found, complete=i == len(figures) - 1)
    except KeyboardInterrupt as stop:
        if isinstance(stop, StoppedError):
            result = keep(stop.figures)
        print("interrupted; what was measured until then:", file=sys.stderr)
    return result


def _options(setting: Setting) -> dict[str, str]:
    """Return what a result says of its setting; no path or URL of the user's."""
    names = [field.name for field in dataclasses.fields(setting) if field.name not in _NOT_RECORDED]
    values = {name: getattr(setting, name) for name in names}
    return {name: ",".join(map(str, v)) if isinstance(v, (tuple, list)) else str(v) for name, v in values.items()}
