"""Run the figures of a command, and keep what is finished: an interrupted run leaves a valid, incomplete result."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import subprocess
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


class UnusableError(Exception):
    """Nothing can be measured with these options; its text says why."""


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
) -> tuple[Result, int]:
    """Measure `figures` one after the other, and save the result to `output` after each.

    Figures that need a package which is not installed are left out. Those that fail, as where the disk is full, are
    left out too, and the others measured; Ctrl-C ends it. The result is then incomplete.

    Returns:
        The result, and an exit status: 0, 1 when some figures failed, 130 after Ctrl-C.

    Raises:
        UnusableError: nothing can be measured with this setting.
    """
    status = 0
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
            with contextlib.suppress(OSError):  # after the next figure again, and by the caller
                grown.save(output)
        return grown

    try:
        with _progress.showing(len(figures)) as progress:
            for i, (name, make) in enumerate(figures.items()):
                progress.begin(name)
                found: list[Figure] = []
                try:
                    found = make(replace(setting, progress=progress))
                except (LeftOutError, ImportError, OSError, RuntimeError, subprocess.SubprocessError) as exc:
                    failed = not isinstance(exc, (LeftOutError, ImportError))
                    status = 1 if failed else status
                    why = f"failed: {exc}" if failed else str(exc)
                    print(f"{name}: {why}", file=sys.stderr)
                    # Results name no path: an error may.
                    told = "it failed" if failed else why
                    result = replace(result, left_out={**result.left_out, f"the figures of {name}": told})
                result = keep(found, complete=i == len(figures) - 1 and status == 0)
    except KeyboardInterrupt as stop:
        if isinstance(stop, StoppedError):
            result = keep(stop.figures)
        print("interrupted; what was measured until then:", file=sys.stderr)
        status = 130
    return result, status


def _options(setting: Setting) -> dict[str, str]:
    """Return what a result says of its setting; no path or URL of the user's."""
    names = [field.name for field in dataclasses.fields(setting) if field.name not in _NOT_RECORDED]
    values = {name: getattr(setting, name) for name in names}
    return {name: ",".join(map(str, v)) if isinstance(v, (tuple, list)) else str(v) for name, v in values.items()}
