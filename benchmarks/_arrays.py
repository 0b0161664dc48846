"""What a histogram of a large array costs: the caller, the other threads, and memory."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from benchmarks import _child
from benchmarks._measure import alternate, exact, ratio, ratios, spreads
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting
from benchmarks._writers import EVENT_FILE, TBWRITER, TENSORBOARDX, open_writer

_SIZE = 1_000_000
_MIB = 2**20
# The dot products of tensorboardX and torch leave OpenBLAS threads behind that spin for some 30 ms, waiting for more:
# without a pause they would count as the next writer's.
_SETTLE_SECS = 0.1
_ABOUT_BLAS = (
    "What tensorboardX and torch show in threads other than the caller's are OpenBLAS threads that wait for the next "
    "dot product; with OPENBLAS_NUM_THREADS=1 it is gone."
)


@dataclass(frozen=True)
class _Cost:
    caller_ms: float
    caller_cpu_ms: float
    others_cpu_ms: float


def histograms(setting: Setting) -> list[Figure]:
    """Measure `add_histogram` of 1 M float32, until they are flushed."""
    values = np.random.default_rng(0).standard_normal(_SIZE, dtype=np.float32)
    arrays = 2 if setting.quick else 10
    writers = [TBWRITER, *(peer for peer in setting.peers if peer != EVENT_FILE)]

    def sample(writer: str) -> _Cost:
        logger = open_writer(writer, setting.fresh())
        assert logger.add_histogram is not None
        logger.add_histogram("weights", values, 0)
        logger.flush()
        time.sleep(_SETTLE_SECS)
        called = 0.0
        cpu, own = time.process_time(), time.thread_time()
        for step in range(1, arrays + 1):
            begin = time.perf_counter()
            logger.add_histogram("weights", values, step)
            called += time.perf_counter() - begin
        logger.flush()
        own = time.thread_time() - own
        cpu = time.process_time() - cpu
        logger.close()
        return _Cost(called / arrays * 1e3, own / arrays * 1e3, (cpu - own) / arrays * 1e3)

    costs = alternate(writers, setting.rounds, sample, setting.progress.tick)
    caller = {writer: [cost.caller_ms for cost in costs[writer]] for writer in writers}
    others = {writer: [cost.others_cpu_ms for cost in costs[writer]] for writer in writers}
    total = {writer: [cost.caller_cpu_ms + cost.others_cpu_ms for cost in costs[writer]] for writer in writers}
    how = (
        f"{arrays} histograms of 1 M normally distributed float32 with default bins, then flush; {setting.rounds} "
        "rounds. tbwriter copies the array in the caller."
    )
    targets = []
    if TENSORBOARDX in writers:
        over = ratio(total[TENSORBOARDX], others[TBWRITER])
        targets.append(Target.judge(f"times tbwriter's worker, for all threads of {TENSORBOARDX}", "at least", 6, over))
    return [
        Figure(
            name="histogram_worker",
            title="Histogram of 1 M float32: processor time of threads other than the caller's",
            unit="ms",
            how=how,
            values=spreads(others),
            targets=targets,
        ),
        Figure(
            name="histogram_cpu",
            title="Histogram of 1 M float32: processor time of all threads",
            unit="ms",
            how=how,
            values=spreads(total),
            notes=[_ABOUT_BLAS],
            ratios=ratios(total, writers[1:], TBWRITER),
        ),
        Figure(
            name="histogram_caller",
            title="Histogram of 1 M float32: caller's time",
            unit="ms",
            how=how,
            values=spreads(caller),
            ratios=ratios(caller, writers[1:], TBWRITER),
        ),
        _memory(setting, [TBWRITER] if setting.quick else writers),
    ]


def _memory(setting: Setting, writers: list[str]) -> Figure:
    extra = {}
    for writer in writers:
        found = _child.run("array-memory", writer, setting.fresh(), _SIZE)
        extra[writer] = exact(found["extra_bytes"] / _MIB)
        setting.progress.tick()
    return Figure(
        name="histogram_memory",
        title="Histogram of 1 M float32, extra memory",
        unit="MiB",
        how="Peak of tracemalloc over where it stood before, a process for each writer; the array itself, 3.8 MiB, is "
        "not in it, a copy of it is.",
        values=extra,
        targets=[Target.judge("MiB", "at most", 32, extra[TBWRITER])],
    )
