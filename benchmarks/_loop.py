"""What logging adds to the steps of a loop: one that waits, as for a device, and one that holds the GIL.

A block is a number of steps, each with ten scalars, and the flush behind the last: so all that the writer's thread
does is inside the block, and nothing of it reaches the next one's. Blocks of all writers alternate with blocks that
log nothing; the extra time is the difference within a round.

A machine whose speed changes by more than what logging costs hides that in the difference. So what can be accounted
for is measured as well: the time inside the calls that log, and the processor time of all other threads, which in a
loop that holds the GIL is the most that they can take from it. A loop that waits loses the first alone: the other
threads run while it waits.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence

from benchmarks._block import NOTHING, Block, block, busy, calibrated, noise
from benchmarks._measure import alternate, ratio_of_medians, spread, spreads
from benchmarks._results import Figure, Spread, Target
from benchmarks._setting import Setting
from benchmarks._writers import BARE, FLOOR, TBWRITER, Logger, open_writer


def waiting(setting: Setting) -> list[Figure]:
    """Measure a loop whose steps sleep."""
    secs = setting.step_ms / 1000
    how = f"Steps of {setting.step_ms:g} ms in time.sleep, the GIL free."
    return _overhead(setting, "loop_waiting", "Waiting loop", how, lambda: time.sleep(secs), others_delay=False)


def holding_gil(setting: Setting) -> list[Figure]:
    """Measure a loop whose steps compute in Python."""
    turns = calibrated(setting.step_ms / 1000)
    how = f"Steps of a fixed amount of Python arithmetic, {setting.step_ms:g} ms, the GIL held."
    return _overhead(setting, "loop_gil", "GIL-bound loop", how, lambda: busy(turns), others_delay=True)


def _overhead(
    setting: Setting, name: str, title: str, how: str, body: Callable[[], object], *, others_delay: bool
) -> list[Figure]:
    steps = setting.block_steps
    writers = [TBWRITER, *setting.peers]
    loggers: dict[str, Logger] = {}
    done = dict.fromkeys((FLOOR, BARE, *writers), 0)

    def sample(writer: str) -> Block:
        if writer == NOTHING:
            return block(body, None, steps=steps)
        done[writer] += steps
        logger = loggers[writer]
        return block(body, logger.log_step, logger.flush, first=done[writer] - steps, steps=steps)

    with contextlib.ExitStack() as stack:
        for writer in done:
            logger = loggers[writer] = open_writer(writer, setting.fresh())
            stack.callback(logger.close)
            logger.log_step(0)  # first calls: layouts, imports, threads
            logger.flush()
        blocks = alternate([NOTHING, *done], setting.blocks, sample, setting.progress.tick)

    bare = blocks.pop(NOTHING)
    wall = {writer: [a.wall - b.wall for a, b in zip(found, bare, strict=True)] for writer, found in blocks.items()}
    cpu = {writer: [a.cpu - b.cpu for a, b in zip(found, bare, strict=True)] for writer, found in blocks.items()}
    how = (
        f"{how} Ten scalars a step. Blocks of {steps} steps and a flush, each minus the block without logging of its "
        f"round; {setting.blocks} rounds."
    )
    return [
        Figure(
            name=name,
            title=f"{title}: extra time",
            unit="us a step",
            how=how,
            values=spreads(wall),
            ratios=_ratios(wall, setting.peers),
            targets=_targets(wall, setting.peers),
            notes=_notes(wall, [a.wall for a in bare], [a.flush for a in blocks[TBWRITER]]),
        ),
        Figure(
            name=f"{name}_cpu",
            title=f"{title}: extra processor time",
            unit="us a step",
            how=how,
            values=spreads(cpu),
            ratios=_ratios(cpu, setting.peers),
        ),
        *_accounted(name, title, how, blocks, setting.peers, others_delay=others_delay),
    ]


def _accounted(
    name: str, title: str, how: str, blocks: dict[str, list[Block]], peers: Sequence[str], *, others_delay: bool
) -> list[Figure]:
    parts: dict[str, Callable[[Block], float]] = {
        "inside the calls": lambda found: found.logging,
        "processor time of other threads": lambda found: found.others,
        "both": lambda found: found.logging + found.others,
    }
    judged = "both" if others_delay else "inside the calls"
    how = f"In the same blocks, measured directly and not as a difference; the wait for the flush is not in it. {how}"
    figures = []
    for label, part in parts.items():
        extra = {writer: [part(one) for one in found] for writer, found in blocks.items()}
        figures.append(
            Figure(
                name=f"{name}_{label.split()[0]}",
                title=f"{title}, accounted for: {label}",
                unit="us a step",
                how=how,
                values=spreads(extra),
                ratios=_ratios(extra, peers) if label == judged else {},
                targets=_targets(extra, peers) if label == judged else [],
            )
        )
    return figures


def _ratios(extra: dict[str, list[float]], peers: Sequence[str]) -> dict[str, Spread]:
    found = {f"{peer} / {TBWRITER}": ratio_of_medians(extra[peer], extra[TBWRITER]) for peer in peers}
    found |= {f"{name} / {FLOOR}": ratio_of_medians(extra[name], extra[FLOOR]) for name in (TBWRITER, BARE)}
    return {name: value for name, value in found.items() if value is not None}


def _notes(extra: dict[str, list[float]], bare: Sequence[float], flush: Sequence[float]) -> list[str]:
    step = spread(bare)
    shares = ", ".join(f"{writer} {spread(us).median / step.median * 100:.2f} %" for writer, us in extra.items())
    sentences = (
        f"A step without logging took {step.median:.0f} us (between blocks {min(bare):.0f} to {max(bare):.0f}); in "
        f"percent of it: {shares}. The flush, which no training loop makes, is {spread(flush).median:.1f} us of "
        "tbwriter's."
    )
    return [sentences, *noise(bare)]


def _targets(extra: dict[str, list[float]], peers: Sequence[str]) -> list[Target]:
    """Judge differences, not ratios: near 0 a ratio says nothing, a difference still does."""
    ours = extra[TBWRITER]
    targets = []
    if peers:
        better = min(peers, key=lambda peer: spread(extra[peer]).median)
        share = spread([us - theirs / 5 for us, theirs in zip(ours, extra[better], strict=True)])
        targets.append(Target.judge(f"us a step above 1/5 of {better}'s", "at most", 0.0, share))
    over_floor = spread([us - 2 * floor for us, floor in zip(ours, extra[FLOOR], strict=True)])
    targets.append(Target.judge("us a step above twice the list's", "at most", 0.0, over_floor))
    return targets
