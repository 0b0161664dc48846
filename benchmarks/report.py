"""Turn results into Markdown tables and plots, and put them between the markers of docs/performance.md."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import _plots
from benchmarks._results import Figure, Result, Spread

_BUSY_SHARE = 0.5
"""A machine whose cores were busier than this before the run is called noisy."""


def main(results: Path, docs: Path) -> int:
    """Write tables and plots of all results into `docs` and the folder `plots` beside it; return the exit status.

    A result that cannot be read, or has no place there, is named and left out: what stood there stays, and the exit
    status is 1.
    """
    paths = sorted(results.glob("*.json"))
    if not paths:
        print(f"no results in {results}; run `python -m benchmarks write` first", file=sys.stderr)
        return 1
    text = docs.read_text(encoding="utf-8")
    done = []
    for path in paths:
        grown = _with(path, text, docs.parent)
        if grown is not None:
            text = grown
            done.append(path.stem)
    docs.write_text(text, encoding="utf-8")
    print(f"{docs}: {', '.join(done)}", file=sys.stderr)
    return 0 if len(done) == len(paths) else 1


def _with(path: Path, text: str, directory: Path) -> str | None:
    """Return `text` with the result of `path` in it, its plots below `directory`; None when it cannot be used."""
    try:
        result = Result.load(path)
        return insert(text, result.command, render(result) + _plots_of(result, directory))
    except (OSError, ValueError) as exc:
        print(f"{path.name} was left out: {exc}", file=sys.stderr)
        return None


def _plots_of(result: Result, directory: Path) -> str:
    """Draw into `directory`/plots; return the lines that show it."""
    try:
        drawn = _plots.draw(result, directory / "plots")
    except ImportError:
        print(f"{result.command}: no plots, as matplotlib is not installed", file=sys.stderr)
        return ""
    return "".join(f"\n\n![{title}]({path.relative_to(directory)})" for title, path in drawn)


def insert(text: str, command: str, table: str) -> str:
    """Return `text` with `table` between the markers of `command`.

    Raises:
        ValueError: there is no such pair of markers.
    """
    begin, end = f"<!-- results: {command} -->", "<!-- end of results -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"docs: want one {begin} ... {end}")
    return pattern.sub(lambda _: f"{begin}\n\n{table}\n\n{end}", text)


def render(result: Result) -> str:
    """Return a result as Markdown: the machine, the targets, and a table for each figure."""
    parts = [_facts(result)]
    targets = _targets(result.figures)
    if targets:
        parts.append(targets)
    for _, group in itertools.groupby(result.figures, key=lambda figure: (figure.how, figure.unit)):
        parts.append(_group(list(group)))
    return "\n\n".join(parts)


def _facts(result: Result) -> str:
    machine = result.machine
    software = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    sentences = (
        f"Measured on {result.begun[:10]} on {machine.cores} cores of {machine.cpu}, {machine.memory_gib:g} GiB, "
        f"{machine.system}, {machine.file_system}; {machine.python}, {software}; tbwriter at commit {result.commit}. "
        f"Load average over a minute: {_first(machine.load_before)} before, {_first(machine.load_after)} after."
    )
    lines = [sentences]
    lines += [f"Left out: {name}, {why}." for name, why in result.left_out.items()]
    if not result.complete:
        lines.append("The run was interrupted; figures are missing.")
    if machine.load_before and machine.load_before[0] > _BUSY_SHARE * machine.cores:
        lines.append("Other programs were running when it began, so the intervals are wide.")
    return " ".join(lines)


def _first(load: Sequence[float]) -> str:
    return f"{load[0]:.2f}" if load else "unknown"


def _targets(figures: Sequence[Figure]) -> str:
    rows = [
        (figure.title, f"{target.bound} {target.limit:g} {target.text}", _interval(target.measured), target.verdict)
        for figure in figures
        for target in figure.targets
    ]
    return _table(("figure", "target", "measured", "verdict"), rows, align="---") if rows else ""


def _group(figures: Sequence[Figure]) -> str:
    """Return one table for figures that were measured together."""
    prefix = _common([figure.title for figure in figures])
    first = figures[0]
    title = prefix.rstrip(" ,:") or ("; ".join(figure.title for figure in figures))
    headers = [""]
    columns: list[dict[str, str]] = []
    for figure in figures:
        counted = all(value.interval == "exact" for value in figure.values.values())
        label = figure.title[len(prefix) :].strip() if prefix else "counted" if counted else "median"
        headers.append(f"{label}, {figure.unit}")
        columns.append({name: _interval(value) for name, value in figure.values.items()})
        ours = {name.removesuffix(" / tbwriter"): ratio for name, ratio in figure.ratios.items()}
        ours = {name: ratio for name, ratio in ours.items() if name in figure.values}
        if ours:
            headers.append("times tbwriter's")
            columns.append({name: _interval(ratio) for name, ratio in ours.items()})
    names = dict.fromkeys(itertools.chain.from_iterable(figure.values for figure in figures))
    rows = [(name, *(column.get(name, "") for column in columns)) for name in names]
    notes = dict.fromkeys(note for figure in figures for note in figure.notes)
    others = [
        f"{name}{', ' + figure.title[len(prefix) :].strip() if prefix else ''}: {_interval(ratio)}."
        for figure in figures
        for name, ratio in figure.ratios.items()
        if name.removesuffix(" / tbwriter") not in figure.values
    ]
    text = " ".join([first.how, *notes, *others])
    return f"**{title}.** {text}\n\n{_table(headers, rows)}"


def _common(titles: Sequence[str]) -> str:
    """Return what several titles begin with, up to a comma or colon; nothing for one title."""
    if len(titles) < 2:
        return ""
    first, last = min(titles), max(titles)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: max(first.rfind(", ", 0, same), first.rfind(": ", 0, same)) + 1]


def _interval(value: Spread) -> str:
    if value.interval == "exact":
        return _number(value.median)
    return f"{_number(value.median)} [{_number(value.low)}, {_number(value.high)}]"


def _number(value: float) -> str:
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], align: str = "---:") -> str:
    lines = [headers, ["---", *[align for _ in headers[1:]]], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
