"""Measure side by side: alternate writers round by round, and say how sure the medians are. No clocks here but one.

Every figure takes its samples in rounds. A round measures each writer once, and every round begins with the next
writer, so that what slowly changes on the machine and what one writer leaves behind reach all of them alike.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from benchmarks._results import Spread

N = TypeVar("N", bound=Hashable)
K = TypeVar("K")

# Fewer rounds than this carry no bootstrap; the interval is then the smallest and the largest sample.
_MIN_BOOTSTRAP = 8
_RESAMPLES = 2000


def alternate(
    names: Sequence[N], rounds: int, sample: Callable[[N], K], tick: Callable[[], None] = lambda: None
) -> dict[N, list[K]]:
    """Call `sample` for each name in each round: A B C, B C A, C A B, and so on.

    Args:
        names: what is compared.
        rounds: how often each is measured.
        sample: measures one; the garbage of the one before is collected first.
        tick: called between samples, to show progress.
    """
    found: dict[N, list[K]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            gc.collect()
            found[name].append(sample(name))
            tick()
    return found


def spread(samples: Sequence[float], statistic: Callable[[Sequence[float]], float] = statistics.median) -> Spread:
    """Return the median of `samples`, one a round, and its interval."""
    return _spread([float(sample) for sample in samples], lambda chosen: statistic([samples[i] for i in chosen]))


def exact(value: float) -> Spread:
    """Return a number that is counted, not measured."""
    return Spread(float(value), float(value), float(value), "exact", [float(value)])


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Return the median of the ratios pair by pair, one pair a round."""
    return spread([a / b for a, b in zip(above, below, strict=True)])


def ratios(samples: Mapping[str, Sequence[float]], above: Sequence[str], below: str) -> dict[str, Spread]:
    """Return `ratio` of each of `above` to `below`, by "A / B"."""
    return {f"{name} / {below}": ratio(samples[name], samples[below]) for name in above}


def spreads(samples: Mapping[str, Sequence[float]]) -> dict[str, Spread]:
    """Return the spread of each writer's samples."""
    return {name: spread(values) for name, values in samples.items()}


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> Spread | None:
    """Return median(above) / median(below) with an interval over rounds; None when `below` may as well be 0.

    For differences of two measured times: single rounds may be near 0 or negative, so ratios pair by pair say little.
    """

    def at(chosen: Sequence[int]) -> float:
        return statistics.median(above[i] for i in chosen) / statistics.median(below[i] for i in chosen)

    if spread(below).low <= 0:
        return None
    return _spread([a / b if b else 0.0 for a, b in zip(above, below, strict=True)], at)


def _spread(samples: list[float], at: Callable[[Sequence[int]], float]) -> Spread:
    everything = range(len(samples))
    middle = at(everything)
    if len(samples) < _MIN_BOOTSTRAP:
        return Spread(middle, min(*samples, middle), max(*samples, middle), "min to max", samples)
    rng = random.Random(1)
    drawn = sorted(at(rng.choices(everything, k=len(samples))) for _ in range(_RESAMPLES))
    return Spread(middle, drawn[_RESAMPLES // 40], drawn[-_RESAMPLES // 40 - 1], "bootstrap 95 %", samples)


def quantile(ordered: Sequence[int], fraction: float) -> float:
    """Return the smallest element of the sorted `ordered` that at least `fraction` of them do not exceed."""
    return float(ordered[min(len(ordered) - 1, int(fraction * len(ordered)))])


def timer_cost_ns() -> float:
    """Return what two readings of the clock around nothing show, in ns: by so much each timed call is too long."""
    clock = time.perf_counter_ns
    found = []
    for _ in range(20_000):
        begin = clock()
        found.append(clock() - begin)
    return float(statistics.median(found))


def cpu_secs(work: Callable[[], object]) -> float:
    """Return the processor time of all threads while `work` runs, in seconds."""
    begin = time.process_time()
    work()
    return time.process_time() - begin
