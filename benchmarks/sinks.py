"""The figures of `python -m benchmarks sinks`: what each kind of storage makes of the same scalars."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import tbwriter
from benchmarks import _stores
from benchmarks._caller import QUANTILES, quantiles, timed_scalars
from benchmarks._measure import alternate, cpu_secs, exact, ratios, spreads
from benchmarks._results import Figure, Target
from benchmarks._run import FigureMaker
from benchmarks._setting import Setting
from benchmarks._stores import LOCAL, NONE, Store
from benchmarks._watch import Watch
from benchmarks._writers import TAGS, TBWRITER, Logger, open_writer

_HOURS = (1, 4, 24, 96, 720)
_BYTES_PER_SEC = 1000
_WHOLE, _WHOLE_SECS = "whole file", 120
_MIB = 2**20


@dataclass(frozen=True)
class _Flood:
    """What one sample at full rate showed."""

    rate: float
    flush_ms: float
    caller: dict[str, float]
    operations: int


def full_rate(setting: Setting) -> list[Figure]:
    """Measure scalars that come as fast as a loop can give them, until they are stored."""
    steps = setting.scalars // len(TAGS)

    with _stores.opened(setting) as (there, missing):

        def sample(name: str) -> _Flood:
            store, watch = there[name], Watch()
            place = store.fresh(setting)
            logger = open_writer(TBWRITER, place if name == NONE else watch.place(place), **store.options)
            begin = time.perf_counter()
            found = timed_scalars(logger.add_scalar, 0, steps)
            flushed = time.perf_counter()
            logger.flush()
            end = time.perf_counter()
            logger.close()
            rate = steps * len(TAGS) / (end - begin)
            return _Flood(rate, (end - flushed) * 1e3, quantiles(found), watch.operations)

        found = alternate(list(there), setting.rounds, sample, setting.progress.tick)
    how = (
        f"{steps * len(TAGS)} scalars by add_scalar, ten a step without a pause, each call timed; then flush; "
        f"tbwriter, {setting.rounds} rounds."
    )
    rates = {name: [one.rate for one in floods] for name, floods in found.items()}
    figures = [
        Figure(
            name="sinks_rate",
            title="Scalars a second, until all is stored",
            unit="1/s",
            how=how,
            values=spreads(rates),
            ratios=ratios(rates, [name for name in rates if name != LOCAL], LOCAL) if LOCAL in rates else {},
            notes=[_stores.ABOUT, *missing],
        )
    ]
    figures += [
        Figure(
            name=f"sinks_caller_{label}",
            title=f"Caller's time for one add_scalar at full rate, {label}",
            unit="us",
            how=how,
            values=spreads({name: [one.caller[label] for one in floods] for name, floods in found.items()}),
        )
        for label in QUANTILES
    ]
    stored = {name: floods for name, floods in found.items() if name != NONE}
    return [
        *figures,
        Figure(
            name="sinks_flush",
            title="The flush behind them",
            unit="ms",
            how=how,
            values=spreads({name: [one.flush_ms for one in floods] for name, floods in found.items()}),
        ),
        Figure(
            name="sinks_operations",
            title="What the writer asked of its sink",
            unit="operations",
            how=f"{how} Appends, flushes and new files, closing included.",
            values=spreads({name: [float(one.operations) for one in floods] for name, floods in stored.items()}),
        ),
    ]


def age(setting: Setting) -> list[Figure]:
    """Measure whether a scalar costs more after many: writers that have taken different numbers take turns."""
    lengths = [10**power for power in (4, 5, 6, 7) if 10**power <= setting.memory_scalars]
    count = min(lengths[0], setting.scalars)
    store = Store(LOCAL)
    loggers: dict[str, Logger] = {}
    done: dict[str, int] = {}

    def sample(label: str) -> float:
        logger, first = loggers[label], done[label]
        done[label] += count // len(TAGS)

        def work() -> None:
            _add(logger.add_scalar, range(first, done[label]))
            logger.flush()

        return cpu_secs(work) / count * 1e6

    with contextlib.ExitStack() as stack:
        for length in lengths:
            label = f"after {length:,}"
            logger = loggers[label] = store.open(TBWRITER, setting)
            stack.callback(logger.close)
            done[label] = length // len(TAGS)
            _add(logger.add_scalar, range(done[label]))
            logger.flush()
            setting.progress.tick()
        costs = alternate(list(loggers), setting.blocks, sample, setting.progress.tick)
    youngest, *older = costs
    over = ratios(costs, older, youngest)
    return [
        Figure(
            name="cost_by_length",
            title="Processor time per scalar in a long run",
            unit="us",
            how=f"Writers that have stored so many scalars before take turns with {count} more, ten a step, flush "
            f"included; a local disk, tbwriter, {setting.blocks} rounds.",
            values=spreads(costs),
            ratios=over,
            targets=[
                Target.judge(f"times the youngest's, {label}", "at most", 1.1, over[f"{label} / {youngest}"])
                for label in older
            ],
        )
    ]


def uploaded(setting: Setting) -> list[Figure]:
    """Compute what an object store is sent in runs of an hour to a month."""
    policy = tbwriter.SegmentPolicy()
    sent, puts, objects = {}, {}, {}
    for hours in _HOURS:
        label = f"after {hours:,} h"
        found = _simulated(policy, hours * 3600)
        sent[f"tbwriter, {label}"] = exact(found.sent / _MIB)
        sent[f"{_WHOLE}, {label}"] = exact(_whole_files(hours * 3600) / _MIB)
        puts[label], objects[label] = exact(found.puts), exact(found.objects)
        setting.progress.tick()
    how = (
        f"Computed, not measured: a run that writes {_BYTES_PER_SEC} bytes a second, forty scalars, and the writer's "
        f"own rules for when an object is sent and ended. The other row sends the whole file every {_WHOLE_SECS} s, "
        "as tensorboardX does by default."
    )
    return [
        Figure("uploaded_bytes", "Object store, sent", "MiB", how, sent),
        Figure("uploaded_puts", "Object store, tbwriter: requests", "requests", how, puts),
        Figure("uploaded_objects", "Object store, tbwriter: objects", "objects", how, objects),
    ]


@dataclass
class _Sent:
    """What an object store was sent."""

    sent: float = 0.0
    puts: int = 0
    objects: int = 1


def _simulated(policy: tbwriter.SegmentPolicy, secs: float) -> _Sent:
    """Follow `policy` through a run: each request sends the growing object whole."""
    rng = random.Random(1)
    found = _Sent()
    age = begun = 0.0
    left = policy.puts(0)
    while age < secs:
        age += policy.interval(age, rng)
        size = (age - begun) * _BYTES_PER_SEC
        found.sent += size
        found.puts += 1
        left -= 1
        if left == 0 or size >= policy.max_bytes:
            begun, left = age, policy.puts(found.objects)
            found.objects += 1
    return found


def _whole_files(secs: float) -> float:
    times = int(secs // _WHOLE_SECS)
    return _BYTES_PER_SEC * _WHOLE_SECS * times * (times + 1) / 2


def _add(add_scalar: Callable[[str, float, int], object], steps: range) -> None:
    for step in steps:
        value = 1.0 / (step + 1)
        for tag in TAGS:
            add_scalar(tag, value, step)


FIGURES: dict[str, FigureMaker] = {"full_rate": full_rate, "age": age, "uploaded": uploaded}
