"""`tbwriter tail`: a table of the newest values, live."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from tbwriter import _record, _summary, _tree, sinks
from tbwriter._left import Room, Steps
from tbwriter._tree import Found
from tbwriter.cli import _common, _writing
from tbwriter.cli._curves import sparkline
from tbwriter.cli._damage import Damage, FileDamage
from tbwriter.cli._finding import being_written
from tbwriter.cli._going_on import GoingOn
from tbwriter.cli._visible import cell
from tbwriter.errors import CorruptRecordError

_SPARK = 40
_BESIDE_BARS = 66  # columns that the rest of a line takes
_COUNTED = 10_000


class Follower:
    """Reads event files as they grow, each from where it stopped."""

    def __init__(
        self,
        place: str,
        storage_options: Mapping[str, Any] | None,
        restarted: Callable[[str, int], None] = lambda _run, _step: None,
    ) -> None:
        """Begin at the start of all files below `place`.

        `restarted` is called with a run and the step from which on a session voids what came before, as the marks say
        by which the Python reader goes.
        """
        self._place, self._options = place, storage_options
        self._restarted = restarted
        self.damage = Damage()
        self._places: dict[str, dict[int, int]] = {}  # damaged places of each file, and their sizes
        self._marked: set[str] = set()  # runs that had a mark: the first is no restart
        self._outliner = _summary.Outliner()
        self._offsets: dict[str, int] = {}
        self._plugins: dict[tuple[str, str], str] = {}

    def new_values(self) -> Iterator[tuple[str, str, int, float, float]]:
        """Yield run, tag, step, wall time and number of the scalars that came since the last call."""
        for directory in _tree.walk(self._place, self._options):
            for found in directory.event_files:
                if found.size > self._offsets.get(found.path, 0):
                    yield from self._file(directory.run, found)

    def _file(self, run: str, found: Found) -> Iterator[tuple[str, str, int, float, float]]:
        offset = self._offsets.get(found.path, 0)
        try:
            with sinks.open_file(found.path, self._options) as file:
                file.seek(offset)
                errors: list[CorruptRecordError] = []
                for item in _record.iterate(file, found.path, offset=offset):
                    if isinstance(item, CorruptRecordError):
                        errors.append(item)
                        continue
                    self._tell(found, errors, item.offset)
                    self._offsets[found.path] = item.end
                    yield from self._values(run, item.data)
                # What no good record follows may be completed yet; but not in a file that no one writes any more.
                if not being_written(found):
                    self._tell(found, errors, file.seek(0, 2))
        except FileNotFoundError:
            return  # deleted meanwhile

    def _tell(self, found: Found, errors: list[CorruptRecordError], end: int) -> None:
        """Take in what was stepped over up to `end`, where the next good record begins, or the file ends."""
        if errors:
            places = self._places.setdefault(found.path, {})
            for error, behind in zip(errors, [*(error.offset for error in errors[1:]), end], strict=True):
                places[error.offset] = behind - error.offset
            self.damage.add([FileDamage(found, len(places), sum(places.values()))])
            errors.clear()

    def _values(self, run: str, data: bytes) -> Iterator[tuple[str, str, int, float, float]]:
        try:
            event, rows = self._outliner.outline(data)
        except ValueError:
            return
        if event.is_session_start:
            if run in self._marked:
                self._restarted(run, event.step)
            self._marked.add(run)
        for number, row in enumerate(rows):
            plugin = self._plugins.get((run, row.tag))
            if plugin is None:
                metadata = event.values[number].metadata()
                plugin = (metadata.plugin if metadata else "") or _summary.PLUGIN_OF_FORM.get(row.form, "")
                self._plugins[run, row.tag] = plugin
            if plugin == "scalars" and row.number is not None:
                yield run, row.tag, event.step, event.wall_time, row.number


class _Line:
    """What is shown of a tag."""

    def __init__(self) -> None:
        self.step = 0
        self.wall_time = 0.0
        self.values: deque[tuple[int, float]] = deque(maxlen=_SPARK)  # steps and values
        self._steps = Steps(Room())
        self._waiting: list[int] = []  # steps that are not counted yet
        self._came = 0

    @property
    def points(self) -> int:
        """How many values came; without those that a restart voids, where that can be told."""
        self._count()
        left = self._steps.left
        return left.points if left is not None else self._came

    def _count(self) -> None:
        self._steps.append(np.array(self._waiting, np.int64))
        self._waiting.clear()

    def add(self, step: int, wall_time: float, number: float) -> None:
        """Take a value."""
        self.step, self.wall_time = step, wall_time
        self.values.append((step, number))
        self._waiting.append(step)
        self._came += 1
        if len(self._waiting) >= _COUNTED:
            self._count()

    def void(self, step: int) -> None:
        """Leave out what came at and after a step."""
        self._count()
        self._steps.cut(step)
        self.values = deque((pair for pair in self.values if pair[0] < step), maxlen=_SPARK)


@_common.command
def tail(
    path: _common.Path,
    tag: _common.TagPattern = None,
    once: Annotated[bool, typer.Option("--once", help="Show what is there and end.")] = False,
    interval: Annotated[float, typer.Option(min=0.05, metavar="SECS", help="Between two looks.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print each new value as a line of JSON.")] = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Follow live runs: the newest value of each tag, its step, and its last values as a line of bars.

    Ends with Ctrl-C, or at once with --once; new files and runs are found as they come, and what a restart voids goes.
    Storage that fails on the way is told, and asked again.
    Exit codes: 0; with --once 1 a file is damaged; 2 wrong usage, or with --once no such tag; 3 nothing there or not
    readable.
    """
    options = _common.options_of(storage_options)
    pattern = _writing.pattern(tag, "--tag")
    place = _common.place(path)
    if once:
        _common.runs_below(path, options)
    lines: dict[tuple[str, str], _Line] = {}
    matched: set[str] = set()

    def restarted(run: str, step: int) -> None:
        for (of, _), line in lines.items():
            if of == run:
                line.void(step)

    follower = Follower(place, options, restarted)

    def look() -> None:
        for run, name, step, wall_time, number in follower.new_values():
            if pattern is not None and not pattern.search(name):
                continue
            matched.add(name)
            if as_json:
                _common.print_line({"run": run, "tag": name, "step": step, "wall_time": wall_time, "value": number})
                continue
            lines.setdefault((run, name), _Line()).add(step, wall_time, number)

    out = _common.console()
    look()
    follower.damage.say()
    if once and tag is not None and not matched:
        raise ValueError(f"no tag in which {tag!r} is found has scalars in {path}; `tbwriter inspect` lists the tags")
    if once:
        if not as_json:
            out.print(_table(lines, out))
        follower.damage.end()
    going_on = GoingOn()
    if as_json:
        while True:
            time.sleep(interval)
            with going_on.look():
                look()
            follower.damage.say()
    with Live(_table(lines, out), console=out, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            with going_on.look():
                look()
            follower.damage.say()
            live.update(_table(lines, out), refresh=True)


def _table(lines: Mapping[tuple[str, str], _Line], out: Console) -> Table:
    table = Table(box=None, padding=(0, 1))
    for heading in ("run", "tag", "step", "value", "last values", "points", "age"):
        table.add_column(heading, overflow="fold", no_wrap=heading not in {"run", "tag"})
    width = max(min(_SPARK, out.width - _BESIDE_BARS), 1)
    height = max(out.height - 3, 5) if out.is_terminal else len(lines)
    shown = {key: line for key, line in lines.items() if line.values}
    for (run, tag), line in sorted(shown.items())[:height]:
        value = line.values[-1][1]
        table.add_row(
            cell(run),
            cell(tag),
            str(line.step),
            f"{value:.6g}" if math.isfinite(value) else f"[red]{value}[/red]",
            sparkline((number for _, number in line.values), width),
            str(line.points),
            _common.duration(max(time.time() - line.wall_time, 0.0)),
        )
    if len(shown) > height:
        table.caption = f"{len(shown) - height} more tags; choose with --tag"
    return table
