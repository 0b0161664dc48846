"""One block of a training loop: so many steps, with or without logging, and what they took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks._measure import spread

NOTHING = "nothing"
"""The name of the blocks that log nothing."""

_NOISY_SHARE = 0.02


@dataclass(frozen=True)
class Block:
    """What the steps of one block took, in microseconds a step.

    Attributes:
        wall: all of it.
        cpu: processor time of all threads.
        flush: of `wall`, in the flush behind the last step.
        flush_cpu: of `cpu`, in that flush.
        logging: of `wall`, in the calls that log.
        others: of `cpu`, in threads other than the loop's.
    """

    wall: float
    cpu: float
    flush: float
    flush_cpu: float
    logging: float
    others: float


def block(
    body: Callable[[], object],
    log: Callable[[int], object] | None,
    flush: Callable[[], object] = lambda: None,
    *,
    first: int = 0,
    steps: int,
    freq: int = 1,
    most_secs: float = math.inf,
) -> Block:
    """Run `steps` steps and a flush.

    Args:
        body: one step of the training.
        log: logs a step; None logs nothing.
        flush: returns when all that was logged is stored.
        first: the number of the first step.
        steps: how many.
        freq: the steps that are multiples of it are logged.
        most_secs: storage that stops the loop for longer ends the block early.
    """
    clock = time.perf_counter
    logging = flushing = flush_cpu = 0.0
    done = steps
    own, cpu, begin = time.thread_time(), time.process_time(), clock()
    if log is None:
        for _ in range(steps):
            body()
    else:
        until = begin + most_secs
        for step in range(first, first + steps):
            body()
            if step % freq == 0:
                called = clock()
                log(step)
                returned = clock()
                logging += returned - called
                if returned > until:
                    done = step - first + 1
                    break
        flush_cpu = time.process_time()
        flushing = clock()
        flush()
        flushing = clock() - flushing
        flush_cpu = time.process_time() - flush_cpu
    wall = clock() - begin
    cpu, own = time.process_time() - cpu, time.thread_time() - own
    return Block(*(secs / done * 1e6 for secs in (wall, cpu, flushing, flush_cpu, logging, cpu - own)))


def busy(turns: int) -> int:
    """Compute in Python, the GIL held."""
    number = 1
    for _ in range(turns):
        number = (number * 1664525 + 1013904223) & 0xFFFFFFFF
    return number


def calibrated(secs: float) -> int:
    """Return how many turns of `busy` take `secs`: by the fastest of some tries, so that noise does not count."""
    turns = 20_000
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        busy(turns)
        took.append(time.perf_counter() - begin)
    return max(1, round(turns * secs / min(took)))


def noise(bare: Sequence[float]) -> list[str]:
    """Return a sentence when the times of blocks without logging say that the machine cannot tell small costs."""
    if max(bare) - min(bare) <= _NOISY_SHARE * spread(bare).median:
        return []
    return ["Blocks without logging differ by more than 2 %: the machine was too noisy to tell small costs."]
