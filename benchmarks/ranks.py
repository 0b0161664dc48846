"""The figures of `python -m benchmarks ranks`: many processes that write to one store, and what ten thousand would do.

All processes of one count run at once, each into a directory of its own and each at the pace of a training: a step, ten
scalars, and the wait for the next step. The model takes what one process does times their count; the measured points
say whether it holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import _child, _stores
from benchmarks._measure import exact, spread
from benchmarks._results import Figure, Spread, Target
from benchmarks._run import FigureMaker
from benchmarks._setting import Setting
from benchmarks._stores import LOCAL, NFS, S3, Store

_STEP_MS = 20.0
_SECS, _QUICK_SECS = 4.0, 0.5
_MODELLED = (100, 1_000, 10_000)
_TOLERANCE = 0.1
_ASSUMED = (
    "The model is one process times their number. It assumes that processes share nothing but the store (each has its "
    "own directory, and there is no lock), that each asks by its own clock, so that requests grow with time and not "
    "with steps, that the store serves what is asked, and that its limits, which only its operator knows, are not "
    "reached. The measured points check the first three, as long as the cores suffice for the processes."
)


@dataclass(frozen=True)
class _Point:
    """What the processes of one run did."""

    ranks: int
    steps_per_sec: list[float]
    call_us: list[float]
    bytes: float
    operations: float
    dropped: int


def shared_store(setting: Setting) -> list[Figure]:
    """Measure 1, 2, 4, ... processes at once on each kind of storage that processes can share."""
    shared = replace(setting, sinks=[name for name in setting.sinks if name in (LOCAL, NFS, S3)])
    with _stores.opened(shared) as (there, missing):
        return [
            figure
            for store in there.values()
            for figure in _figures(store.name, _points(setting, store), missing, _secs(setting))
        ]


def _secs(setting: Setting) -> float:
    return _QUICK_SECS if setting.quick else _SECS


def _points(setting: Setting, store: Store) -> list[_Point]:
    found = []
    ranks = 1
    while ranks <= setting.most_ranks:
        place, options = store.fresh(setting), json.dumps(dict(store.options))
        told: list[dict[str, Any]] = _child.run("ranks", place, options, ranks, _secs(setting), _STEP_MS)["ranks"]
        found.append(
            _Point(
                ranks=ranks,
                steps_per_sec=[one["steps"] / one["secs"] for one in told],
                call_us=[one["call_us"] for one in told],
                bytes=sum(one["bytes"] for one in told),
                operations=sum(one["operations"] for one in told),
                dropped=sum(one["dropped"] for one in told),
            )
        )
        setting.progress.tick()
        ranks *= 2
    return found


def _figures(store: str, points: list[_Point], missing: list[str], secs: float) -> list[Figure]:
    how = (
        f"Processes at once on {store}, each with a step every {_STEP_MS:g} ms for {secs:g} s and ten scalars a step "
        "by add_metrics, then close."
    )
    one = points[0]
    totals: dict[str, Callable[[_Point], float]] = {"bytes": lambda p: p.bytes, "operations": lambda p: p.operations}
    over = {name: {_label(p): exact(of(p) / (of(one) * p.ranks)) for p in points[1:]} for name, of in totals.items()}
    lost = exact(sum(point.dropped for point in points))
    each = {"steps": [p.steps_per_sec for p in points], "calls": [p.call_us for p in points]}
    figures = [
        Figure(
            f"ranks_{store}_{kind}",
            f"Ranks on {store}: {title}",
            unit,
            how,
            {_label(point): _over_ranks(values) for point, values in zip(points, each[kind], strict=True)},
            notes=["An interval here is over the processes."] if kind == "steps" else [],
            targets=[Target.judge("values dropped, all processes", "at most", 0, lost)] if kind == "steps" else [],
        )
        for kind, title, unit in (
            ("steps", "throughput of a process", "steps/s"),
            ("calls", "inside add_metrics, median", "us"),
        )
    ]
    for name, of in totals.items():
        worst = exact(max((abs(ratio.median - 1) for ratio in over[name].values()), default=0.0))
        modelled = {f"{ranks:,} processes, by the model": exact(of(one) / secs * ranks) for ranks in _MODELLED}
        figures.append(
            Figure(
                f"ranks_{store}_{name}",
                f"Ranks on {store}: {name} of all",
                f"{name}/s",
                f"{how} Opening and closing included.",
                {_label(point): exact(of(point) / secs) for point in points} | modelled,
                notes=[_ASSUMED, *missing] if name == "bytes" else [],
                targets=[
                    Target.judge(f"measured / modelled {name}, farthest from 1, less 1", "at most", _TOLERANCE, worst)
                ],
            )
        )
    return figures


def _label(point: _Point) -> str:
    return f"{point.ranks} process" + ("es" if point.ranks > 1 else "")


def _over_ranks(values: list[float]) -> Spread:
    found = spread(values)
    return Spread(found.median, min(values), max(values), "min to max", values)


FIGURES: dict[str, FigureMaker] = {"shared_store": shared_store}
