"""`tbwriter tail`: a table of the newest values, live."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from tbwriter import _summary, _tree, reader, sinks
from tbwriter._tree import Found
from tbwriter.cli import _common, _writing
from tbwriter.cli._curves import sparkline

_SPARK = 40


class Follower:
    """Reads event files as they grow, each from where it stopped."""

    def __init__(self, place: str, storage_options: Mapping[str, Any] | None) -> None:
        self._place, self._options = place, storage_options
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
            for record in reader.read_records(found.path, offset=offset, storage_options=self._options):
                self._offsets[found.path] = record.end
                yield from self._values(run, record.data)
        except FileNotFoundError:
            return  # deleted meanwhile

    def _values(self, run: str, data: bytes) -> Iterator[tuple[str, str, int, float, float]]:
        try:
            event, rows = self._outliner.outline(data)
        except ValueError:
            return
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
        self.values: deque[float] = deque(maxlen=_SPARK)
        self.points = 0


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

    Ends with Ctrl-C, or at once with --once; new files and runs are found as they come. Exit codes: 0; 2 wrong usage; 3
    nothing there or not readable; 130 Ctrl-C.
    """
    options = _common.options_of(storage_options)
    pattern = _writing.pattern(tag, "--tag")
    place = sinks.normalise(path, "path", reading=True)
    if once:
        _common.runs_below(path, options)
    follower = Follower(place, options)
    lines: dict[tuple[str, str], _Line] = {}

    def look() -> None:
        for run, name, step, wall_time, number in follower.new_values():
            if pattern is not None and not pattern.search(name):
                continue
            if as_json:
                _common.print_line({"run": run, "tag": name, "step": step, "wall_time": wall_time, "value": number})
                continue
            line = lines.setdefault((run, name), _Line())
            line.step, line.wall_time = step, wall_time
            line.values.append(number)
            line.points += 1

    out = _common.console()
    look()
    if once:
        if not as_json:
            out.print(_table(lines, out))
        return
    if as_json:
        while True:
            time.sleep(interval)
            look()
    with Live(_table(lines, out), console=out, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            look()
            live.update(_table(lines, out), refresh=True)


def _table(lines: Mapping[tuple[str, str], _Line], out: Console) -> Table:
    table = Table("run", "tag", "step", "value", "last values", "points", "age", box=None, padding=(0, 1))
    height = max(out.height - 3, 5) if out.is_terminal else len(lines)
    for (run, tag), line in sorted(lines.items())[:height]:
        value = line.values[-1]
        table.add_row(
            escape(run),
            escape(tag),
            str(line.step),
            f"{value:.6g}" if math.isfinite(value) else f"[red]{value}[/red]",
            sparkline(line.values, _SPARK),
            str(line.points),
            _common.duration(max(time.time() - line.wall_time, 0.0)),
        )
    if len(lines) > height:
        table.caption = f"{len(lines) - height} more tags; choose with --tag"
    return table
