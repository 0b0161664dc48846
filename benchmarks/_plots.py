"""Plots of results, as small SVG files whose text stays text: what `report` puts beside the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._results import Figure, Result, Spread

# Of Okabe and Ito: told apart by the colour-blind too.
_MUCH_PERCENT = 20.0
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "benchmarks",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

Series = dict[str, list[tuple[float, Spread]]]
"""By label: points of x and y."""


def draw(result: Result, directory: Path) -> list[tuple[str, Path]]:
    """Draw what there is to draw of a result into `directory`; return titles and files.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if result.command not in _PLOTS:
        return []
    import matplotlib as mpl

    mpl.use("svg")
    out = []
    with mpl.rc_context(_STYLE):
        for name, title, make in _PLOTS[result.command]:
            figure = make(result)
            if figure is not None:
                path = directory / f"{name}.svg"
                directory.mkdir(parents=True, exist_ok=True)
                figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Creator": None})
                out.append((title, path))
    return out


def _series(result: Result, pattern: str, x_of: Callable[[str], float] = float) -> Series:
    """Return the values of all figures whose names match, by label; x is the pattern's group."""
    series: Series = {}
    for figure in result.figures:
        match = re.fullmatch(pattern, figure.name)
        if match:
            for label, value in figure.values.items():
                series.setdefault(label, []).append((x_of(match[1]), value))
    return series


def _panels(panels: Sequence[tuple[Series, str, str, Mapping[str, Any]]]) -> Any:
    """Return a figure with one panel for each of `panels`: series, name of x, name of y, settings of the axes."""
    import matplotlib.pyplot as plt

    if not any(series for series, *_ in panels):
        return None
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 3.2), squeeze=False, layout="constrained")
    labels = dict.fromkeys(label for series, *_ in panels for label in series)
    colours = {label: _COLOURS[i % len(_COLOURS)] for i, label in enumerate(labels)}
    for axis, (series, x_name, y_name, settings) in zip(axes[0], panels, strict=True):
        for label, points in series.items():
            x = [at for at, _ in points]
            y = [value.median for _, value in points]
            below = [value.median - value.low for _, value in points]
            above = [value.high - value.median for _, value in points]
            axis.errorbar(
                x, y, yerr=(below, above), label=label, color=colours[label], marker="o", markersize=3, linewidth=1.2,
                elinewidth=0.7, capsize=2,
            )  # fmt: skip
        axis.set(xlabel=x_name, ylabel=y_name, **settings)
        axis.yaxis.set_major_formatter("{x:g}")
        ticks = sorted({at for points in series.values() for at, _ in points})
        if settings.get("xscale") == "log" and len(ticks) <= 8:
            axis.set_xticks(ticks, [f"{tick:,g}" if tick < 1e4 else f"{tick:.0e}" for tick in ticks])
            axis.minorticks_off()
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", frameon=False)
    plt.close(figure)
    return figure


def _against_freq(prefix: str) -> Callable[[Result], Any]:
    def make(result: Result) -> Any:
        extra = _series(result, rf"{prefix}_extra_(\d+)")
        direct = _series(result, rf"{prefix}_direct_(\d+)")
        scale = {"xscale": "log", "yscale": "log"}
        # Extra time may be negative; a logarithm serves where some writers take a hundred times what others do.
        largest = max((value.high for points in extra.values() for _, value in points), default=0.0)
        linear_or_not = {"xscale": "log", "yscale": "symlog" if largest > _MUCH_PERCENT else "linear"}
        return _panels([
            (extra, "collect_freq", "extra time, % of a step", linear_or_not),
            (direct, "collect_freq", "inside the calls that log, us a step", scale),
        ])  # fmt: skip

    return make


def _distribution(prefix: str) -> Callable[[Result], Any]:
    """Return what draws quantiles; the longest call stands where one in a hundred thousand would."""

    def tail(label: str) -> float:
        return 1e-5 if label == "max" else round(1 - float(label.removeprefix("p")) / 100, 6)

    def make(result: Result) -> Any:
        series = _series(result, rf"{prefix}_(p[\d.]+|max)", tail)
        settings = {"xscale": "log", "yscale": "log", "xlim": (0.7, 7e-6)}
        figure = _panels([(series, "share of calls that take longer; right: the longest", "us", settings)])
        if figure is not None:
            ticks = {0.5: "50 %", 0.01: "1 %", 0.001: "0.1 %", 1e-5: "max"}
            figure.axes[0].set_xticks(list(ticks), list(ticks.values()))
        return figure

    return make


def _by_number(name: str, pattern: str, axes: tuple[str, str], settings: Mapping[str, Any]) -> Callable[[Result], Any]:
    """Return what draws the values of one figure against the number in their labels."""

    def make(result: Result) -> Any:
        found: list[Figure] = [figure for figure in result.figures if figure.name == name]
        series: Series = {}
        for label, value in found[0].values.items() if found else ():
            match = re.search(pattern, label)
            if match:
                point = float(match[1].replace(",", "")), value
                series.setdefault(label[: match.start()].rstrip(" ,") or "tbwriter", []).append(point)
        return _panels([(series, *axes, settings)])

    return make


_PLOTS: dict[str, list[tuple[str, str, Callable[[Result], Any]]]] = {
    "collect_freq": [
        ("overhead-sinks", "What tbwriter adds to a step, on every sink", _against_freq("stores")),
        ("overhead-writers", "What every writer adds to a step, on a local disk", _against_freq("writers")),
    ],
    "write": [
        ("caller-latency", "The time of single calls of add_scalar, by writer", _distribution("caller")),
        (
            "memory",
            "Memory of a long run",
            _by_number("memory", r"after ([\d,]+) s", ("scalars", "MiB"), {"ylim": (0, None)}),
        ),
    ],
    "sinks": [
        ("caller-latency-sinks", "The time of single calls of add_scalar, by sink", _distribution("sinks_caller")),
        (
            "cost-by-length",
            "Processor time of a scalar after so many",
            _by_number("cost_by_length", r"after ([\d,]+)", ("scalars", "us"), {"xscale": "log", "ylim": (0, None)}),
        ),
        (
            "uploaded",
            "What an object store is sent, against the length of the run",
            _by_number("uploaded_bytes", r"after ([\d,]+) h", ("hours", "MiB"), {"xscale": "log", "yscale": "log"}),
        ),
    ],
}
