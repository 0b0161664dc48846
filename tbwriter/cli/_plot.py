"""`tbwriter plot`: pictures of curves, for archives and reports."""

from __future__ import annotations

import enum
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from tbwriter import _scan
from tbwriter._scanned import Bulk, RunScan
from tbwriter._tree import Directory
from tbwriter.cli import _common, _fonts, _order, _saving, _writing
from tbwriter.cli._curves import Curve, Smoothing
from tbwriter.cli._damage import Damage
from tbwriter.cli._going_on import GoingOn
from tbwriter.cli._visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TAGS = 64
_COLUMNS = 3
_MOST_NAMES = 20
"""Runs that a legend names: more would cover the curves."""
_ENDINGS = (".png", ".svg", ".pdf")


class Axis(str, enum.Enum):
    """What the horizontal axis is, as in TensorBoard."""

    STEP = "step"
    RELATIVE = "relative"
    WALL = "wall"


class _Wanted(NamedTuple):
    """Which curves are read, and in what form."""

    tags: re.Pattern[str] | None
    smoothing: float
    axis: Axis


@_common.command
def plot(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Event files or directories of runs: paths or URLs.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The picture, at a path or a URL: .png, .svg or .pdf.")
    ],
    tag: _common.TagPattern = None,
    run: Annotated[str | None, typer.Option(metavar="REGEX", help="Only runs in whose name this is found.")] = None,
    smoothing: Annotated[float, typer.Option(min=0.0, max=0.999, help="As TensorBoard's; its default is 0.6.")] = 0.6,
    log: Annotated[bool, typer.Option("--log", help="Logarithmic vertical axis.")] = False,
    x: Annotated[Axis, typer.Option("--x", help="What the horizontal axis is.")] = Axis.STEP,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECS", min=0.0, help="Draw again every so many seconds, until Ctrl-C; also after storage failed."
        ),
    ] = None,
    storage_options: _common.StorageOptions = None,
) -> None:
    r"""Draw curves over all runs, a panel for each tag, into a picture.

    All points are drawn, not the sample that TensorBoard keeps, but for those that a restart voids; long curves by the
    smallest and largest of neighbours.
    Of several paths, a run is called by its path and its name below it, for --run too.
    Needs `pip install 'tbwriter\[plots]'`. Exit codes: 0; 1 a file is damaged; 2 wrong usage, or no such tag; 3 nothing
    there, not readable or not writable.
    """
    options = _common.options_of(storage_options)
    wanted = _Wanted(_writing.pattern(tag, "--tag"), smoothing, x)
    runs = _writing.pattern(run, "--run")
    damage = Damage()
    _draw(paths, output, wanted, runs, log, options, damage)
    if every is None:
        damage.end()
        return
    drawn, going_on = True, GoingOn()
    while True:
        if drawn:
            damage.say()
            _common.say(f"{time.strftime('%H:%M:%S')}  {output}")
        time.sleep(every)
        drawn = False
        with going_on.look():
            _draw(paths, output, wanted, runs, log, options, damage)
            drawn = True


def _draw(
    paths: Sequence[str],
    output: str,
    wanted: _Wanted,
    runs: re.Pattern[str] | None,
    log: bool,
    options: Mapping[str, Any] | None,
    damage: Damage,
) -> None:
    below = {name: run for path in paths for name, run in _named_runs(path, len(paths) > 1, options)}
    chosen = {name: run for name, run in below.items() if runs is None or runs.search(name)}
    target = _saving.Output(output, [found.path for run in below.values() for found in run.event_files], "curves.png")
    ending = _ending(target)
    panels: dict[str, dict[str, tuple[Curve, Curve]]] = {}
    with _common.progress("reading", _common.size_of(list(chosen.values()))) as advance:
        for name, run in chosen.items():
            found, scan = _curves_of(run, wanted, options, advance)
            damage.see(scan)
            for file in scan.files:
                if file.error is not None:
                    raise OSError(f"{file.found.path} cannot be read: {file.error}")
            for tag, curves in found.items():
                panels.setdefault(tag, {})[name] = curves
    if not panels:
        raise ValueError(f"no scalars of such a tag in {', '.join(paths)}; `tbwriter inspect` lists the tags")
    _picture(dict(sorted(panels.items())[:_MOST_TAGS]), target, ending, log, wanted, options)
    if len(panels) > _MOST_TAGS:
        _common.say(f"{len(panels)} tags, of which {_MOST_TAGS} are drawn; choose with --tag")


def _named_runs(path: str, with_path: bool, options: Mapping[str, Any] | None) -> Iterator[tuple[str, Directory]]:
    """Yield the runs below `path`, each with the name that the picture calls it by."""
    for run in _common.runs_below(path, options):
        yield (path.rstrip("/") if run.run == "." else f"{path.rstrip('/')}/{run.run}") if with_path else run.run, run


def _curves_of(
    run: Directory,
    wanted: _Wanted,
    options: Mapping[str, Any] | None,
    advance: Callable[[int], None],
) -> tuple[dict[str, tuple[Curve, Curve]], RunScan]:
    """Return of each tag of a run the curve and the smoothed curve, of the points that no later session voids.

    And what the run holds.
    """
    found, scan = _read(run, wanted, options, advance, None)
    if found and _order.voids(scan):  # what a later session voids is known at the end alone
        found, scan = _read(run, wanted, options, lambda _bytes: None, scan)
    return found, scan


def _read(
    run: Directory,
    wanted: _Wanted,
    options: Mapping[str, Any] | None,
    advance: Callable[[int], None],
    known: RunScan | None,
) -> tuple[dict[str, tuple[Curve, Curve]], RunScan]:
    """Return as `_curves_of`, without the points that are voided as far as is known, and what the run holds."""
    found: dict[str, tuple[Curve, Curve, Smoothing]] = {}
    begin: float | None = None

    def observe(tag: str, bulk: Bulk) -> None:
        nonlocal begin
        if bulk.scan.plugin != "scalars" or (wanted.tags is not None and not wanted.tags.search(tag)):
            return
        left = slice(None) if known is None else ~_order.voided(known, tag, bulk)
        numbers = bulk.numbers[left]
        xs = (bulk.steps if wanted.axis is Axis.STEP else bulk.times)[left].astype(np.float64)
        if not len(xs):
            return
        if wanted.axis is Axis.RELATIVE:
            begin = float(xs[0]) if begin is None else begin
            xs = xs - begin
        plain, smooth, smoother = found.setdefault(tag, (Curve(), Curve(), Smoothing(wanted.smoothing)))
        for x, y in zip(xs.tolist(), numbers.tolist(), strict=True):
            plain.add(x, y)
            smooth.add(x, smoother(y))

    scan = _scan.scan(run.path, run.run, run.event_files, options, advance, observe)
    return {tag: (plain, smooth) for tag, (plain, smooth, _) in found.items()}, scan


def _ending(target: _saving.Output) -> str:
    """Return the form of the picture, which its name says; what is written into a pipe without one is a PNG.

    Raises:
        ValueError: it says none that is known.
    """
    ending = os.path.splitext(target.place)[1].lower()
    if not ending and target.is_special:
        return "png"
    if ending not in _ENDINGS:
        raise ValueError(f"--output {target.place!r} must end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}")
    return ending[1:]


def _picture(
    panels: Mapping[str, Mapping[str, tuple[Curve, Curve]]],
    target: _saving.Output,
    ending: str,
    log: bool,
    wanted: _Wanted,
    options: Mapping[str, Any] | None,
) -> None:
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise ImportError("plot needs matplotlib; install it with: pip install 'tbwriter[plots]'") from exc
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    texts = {text for tag, runs in panels.items() for text in (tag, *runs)}
    # A picture that is looked at while it is drawn anew is never half there.
    with mpl.rc_context({"font.family": _fonts.for_texts(texts)}), _fonts.quiet(), target.new_file(options) as path:
        figure = Figure(figsize=(5.2 * columns, 3.4 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        for number, (tag, runs) in enumerate(panels.items()):
            axes = figure.add_subplot(rows, columns, number + 1)
            # Names are shown as they are, not as formulas.
            axes.set_title(_name(tag), fontsize=10)
            axes.set_xlabel(
                {Axis.STEP: "step", Axis.RELATIVE: "seconds", Axis.WALL: "seconds since 1970"}[wanted.axis], fontsize=8
            )
            axes.tick_params(labelsize=8)
            axes.grid(alpha=0.3)
            if log:
                axes.set_yscale("log")
            _panel(axes, runs, wanted.smoothing)
        figure.savefig(path, format=ending, dpi=120)


def _panel(axes: Axes, runs: Mapping[str, tuple[Curve, Curve]], smoothing: float) -> None:
    """Draw the curves of one tag."""
    for index, (run, (plain, smooth)) in enumerate(runs.items()):
        colour = f"C{index % 10}"
        marker = "o" if len(smooth.xs) == 1 else None  # of one point there is no line
        if smoothing and marker is None:
            axes.plot(plain.xs, plain.ys, color=colour, alpha=0.25, linewidth=0.8)
        label = _name(run) if index < _MOST_NAMES else None
        axes.plot(smooth.xs, smooth.ys, color=colour, linewidth=1.4, marker=marker, markersize=4, label=label)
    if len(runs) > 1 or next(iter(runs)) != ".":
        more = len(runs) - _MOST_NAMES
        axes.legend(fontsize=7, title=f"and {more} more runs" if more > 0 else None, title_fontsize=7)


def _name(text: str) -> str:
    # A label that begins with an underscore is left out of the legend.
    shown = visible(text).replace("$", r"\$")
    return f"\N{ZERO WIDTH SPACE}{shown}" if shown.startswith("_") else shown
