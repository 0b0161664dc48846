"""What the training loop itself waits for: the time of single calls, taken while the writer's thread works."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable

import numpy as np

from benchmarks._measure import alternate, quantile, ratio, ratios, spreads, timer_cost_ns
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting
from benchmarks._writers import FLOOR, TAGS, TBWRITER, TENSORBOARDX, open_writer

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
# A peer's call takes a hundred times as long; so many of them tell its distribution as well.
_PEER_SHARE = 10


def latency(setting: Setting) -> list[Figure]:
    """Measure the distribution of one `add_scalar` at full rate."""
    ours, theirs = setting.scalars, setting.scalars // _PEER_SHARE
    writers = [TBWRITER, *setting.peers, FLOOR]

    def sample(writer: str) -> dict[str, float]:
        logger = open_writer(writer, setting.fresh())
        warm, count = (ours // 10, ours) if writer in (TBWRITER, FLOOR) else (theirs // 10, theirs)
        for step in range(warm // len(TAGS)):
            logger.log_step(step)
        found = timed_scalars(logger.add_scalar, warm // len(TAGS), count // len(TAGS))
        logger.close()
        return quantiles(found)

    samples = alternate(writers, setting.rounds, sample, setting.progress.tick)
    how = (
        f"Every call timed with perf_counter_ns, ten scalars a step without a pause, so the writer's thread is behind "
        f"and busy; {ours} calls a round ({theirs} for the peers) after a tenth as many untimed; {setting.rounds} "
        "rounds."
    )
    note = f"Two readings of the clock around nothing show {timer_cost_ns():.0f} ns; that is in every number."
    figures = []
    for label in QUANTILES:
        us = {writer: [round_[label] for round_ in samples[writer]] for writer in writers}
        values = spreads(us)
        over = ratios(us, setting.peers, TBWRITER)
        targets = []
        if label == "p50" and TENSORBOARDX in setting.peers:
            times = over[f"{TENSORBOARDX} / {TBWRITER}"]
            targets.append(Target.judge(f"times tbwriter's, for {TENSORBOARDX}", "at least", 15, times))
        if label == "p99.9":
            targets.append(Target.judge("us", "at most", 1000, values[TBWRITER]))
        title = f"Caller's time for one add_scalar, {label}"
        figures.append(Figure(f"caller_{label}", title, "us", how, values, over, targets, [note]))
    return figures


def timed_scalars(add_scalar: Callable[[str, float, int], object], first: int, steps: int) -> array[int]:
    """Add ten scalars in each of `steps` steps from `first` on; return what every call took, in ns."""
    clock = time.perf_counter_ns
    found = array("q", bytes(8 * steps * len(TAGS)))
    at = 0
    for step in range(first, first + steps):
        value = 1.0 / (step + 1)
        for tag in TAGS:
            begin = clock()
            add_scalar(tag, value, step)
            found[at] = clock() - begin
            at += 1
    return found


def quantiles(found: array[int]) -> dict[str, float]:
    """Return the `QUANTILES` of times in ns, in us."""
    ordered = sorted(found)
    return {label: quantile(ordered, fraction) / 1000 for label, fraction in QUANTILES.items()}


def beside_histograms(setting: Setting) -> list[Figure]:
    """Measure `add_scalar` while the writer's thread counts large arrays, which holds the GIL for long."""
    values = np.random.default_rng(0).standard_normal(1_000_000, dtype=np.float32)
    arrays = 5 if setting.quick else 40

    def sample(writer: str) -> dict[str, float]:
        logger = open_writer(writer, setting.fresh())
        logger.log_step(0)
        assert logger.add_histogram is not None
        for step in range(arrays):
            logger.add_histogram("weights", values, step)
        found = timed_scalars(logger.add_scalar, 1, arrays * 100)
        logger.close()
        return quantiles(found)

    samples = alternate([TBWRITER], setting.rounds, sample, setting.progress.tick)[TBWRITER]
    us = spreads({label: [round_[label] for round_ in samples] for label in QUANTILES})
    return [
        Figure(
            name="caller_beside_histograms",
            title="Caller's time for one add_scalar while 1 M values after the other are counted",
            unit="us",
            how=f"As above, tbwriter alone: {arrays} histograms of 1 M float32 are queued, then {arrays * 1000} calls "
            f"of add_scalar timed; {setting.rounds} rounds.",
            values=us,
            targets=[Target.judge("us at p99.9", "at most", 1000, us["p99.9"])],
        )
    ]


def metrics(setting: Setting) -> list[Figure]:
    """Measure `add_metrics` of ten values beside ten calls of `add_scalar`."""
    from tbwriter import SummaryWriter

    steps = setting.scalars // len(TAGS)
    names = ["add_metrics", "ten add_scalar", "list of dicts"]

    def sample(name: str) -> float:
        writer = SummaryWriter(setting.fresh())
        items: list[tuple[dict[str, float], int, float]] = []

        def one_by_one(metrics: dict[str, float], step: int) -> None:
            for tag, value in metrics.items():
                writer.add_scalar(tag, value, step)

        def append(metrics: dict[str, float], step: int) -> None:
            items.append((metrics, step, time.time()))

        add: Callable[[dict[str, float], int], None] = {
            "add_metrics": writer.add_metrics,
            "ten add_scalar": one_by_one,
            "list of dicts": append,
        }[name]
        clock = time.perf_counter_ns
        found = []
        for step in range(steps):
            values = dict.fromkeys(TAGS, 1.0 / (step + 1))
            begin = clock()
            add(values, step)
            found.append(clock() - begin)
        writer.close()
        return quantile(sorted(found), 0.5) / 1000

    samples = alternate(names, setting.rounds, sample, setting.progress.tick)
    values = spreads(samples)
    return [
        Figure(
            name="add_metrics",
            title="Caller's median for add_metrics of ten values",
            unit="us",
            how=f"tbwriter alone, a new dict each step, {steps} steps without a pause; {setting.rounds} rounds.",
            values=values,
            ratios={"ten add_scalar / add_metrics": ratio(samples["ten add_scalar"], samples["add_metrics"])},
            targets=[Target.judge("us", "at most", 4, values["add_metrics"])],
            notes=[f"Two readings of the clock around nothing show {timer_cost_ns():.0f} ns; that is in every number."],
        )
    ]
