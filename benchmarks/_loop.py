"""What logging adds to the steps of a loop: one that waits, as for a device, and one that holds the GIL.

A block is a number of steps, each with ten scalars, and the flush behind the last: so all that the writer's thread
does is inside the block, and nothing of it reaches the next one's. Blocks of all writers alternate with blocks that
log nothing; the extra time is the difference within a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks._measure import alternate, ratio_of_medians, spread
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting
from benchmarks._writers import FLOOR, TBWRITER, Logger, open_writer

NOTHING = "nothing"


def waiting(setting: Setting) -> list[Figure]:
    """Measure a loop whose steps sleep."""
    secs = setting.step_ms / 1000
    how = f"Steps of {setting.step_ms:g} ms in time.sleep, the GIL free."
    return [_overhead(setting, "loop_waiting", "Extra time of a waiting loop", how, lambda: time.sleep(secs))]


def holding_gil(setting: Setting) -> list[Figure]:
    """Measure a loop whose steps compute in Python."""
    turns = _calibrated(setting.step_ms / 1000)
    how = f"Steps of a fixed amount of Python arithmetic, {setting.step_ms:g} ms, the GIL held."
    return [_overhead(setting, "loop_gil", "Extra time of a GIL-bound loop", how, lambda: _busy(turns))]


def _busy(turns: int) -> int:
    number = 1
    for _ in range(turns):
        number = (number * 1664525 + 1013904223) & 0xFFFFFFFF
    return number


def _calibrated(secs: float) -> int:
    """Return how many turns of `_busy` take `secs`: by the fastest of some tries, so that noise does not count."""
    turns = 20_000
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        _busy(turns)
        took.append(time.perf_counter() - begin)
    return max(1, round(turns * secs / min(took)))


def _block(body: Callable[[], object], logger: Logger | None, first: int, steps: int) -> float:
    begin = time.perf_counter()
    if logger is None:
        for _ in range(steps):
            body()
    else:
        log_step = logger.log_step
        for step in range(first, first + steps):
            body()
            log_step(step)
        logger.flush()
    return time.perf_counter() - begin


def _overhead(setting: Setting, name: str, title: str, how: str, body: Callable[[], object]) -> Figure:
    steps = setting.block_steps
    writers = [TBWRITER, *setting.peers]
    loggers = {writer: open_writer(writer, setting.fresh()) for writer in (FLOOR, *writers)}
    done = dict.fromkeys(loggers, 0)

    def sample(writer: str) -> float:
        if writer == NOTHING:
            return _block(body, None, 0, steps)
        done[writer] += steps
        return _block(body, loggers[writer], done[writer] - steps, steps)

    for writer in loggers:  # first calls: layouts, imports, threads
        loggers[writer].log_step(0)
        loggers[writer].flush()
    took = alternate([NOTHING, FLOOR, *writers], setting.blocks, sample, setting.progress.tick)
    for logger in loggers.values():
        logger.close()

    bare = took.pop(NOTHING)
    # In microseconds a step.
    extra = {
        writer: [(with_ - without) / steps * 1e6 for with_, without in zip(secs, bare, strict=True)]
        for writer, secs in took.items()
    }
    step_us = spread([secs / steps * 1e6 for secs in bare])
    ratios = {}
    for above, below in [(TBWRITER, FLOOR), *((peer, TBWRITER) for peer in setting.peers)]:
        found = ratio_of_medians(extra[above], extra[below])
        if found is not None:
            ratios[f"{above} / {below}"] = found
    return Figure(
        name=name,
        title=title,
        unit="us a step",
        how=f"{how} Ten scalars a step. Blocks of {steps} steps and a flush, each minus the block without logging of "
        f"its round; {setting.blocks} rounds.",
        values={writer: spread(samples) for writer, samples in extra.items()},
        ratios=ratios,
        targets=_targets(extra, setting.peers),
        notes=[
            f"A step without logging took {step_us.median:.0f} us ({step_us.low:.0f} to {step_us.high:.0f}); in percent "
            "of it: "
            + ", ".join(f"{who} {spread(us).median / step_us.median * 100:.2f} %" for who, us in extra.items())
            + "."
        ],
    )


def _targets(extra: dict[str, list[float]], peers: Sequence[str]) -> list[Target]:
    """Judge differences, not ratios: near 0 a ratio says nothing, a difference still does."""
    ours = extra[TBWRITER]
    over_floor = spread([us - 2 * floor for us, floor in zip(ours, extra[FLOOR], strict=True)])
    targets = [Target.judge("less twice the list's extra time, us a step", "at most", 0.0, over_floor)]
    if peers:
        better = min(peers, key=lambda peer: spread(extra[peer]).median)
        share = spread([us - theirs / 5 for us, theirs in zip(ours, extra[better], strict=True)])
        targets.insert(0, Target.judge(f"less 1/5 of {better}'s extra time, us a step", "at most", 0.0, share))
    return targets
