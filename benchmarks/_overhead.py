"""What logging adds to a loop, case by case: blocks of all cases, and bare ones, take turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks._block import Block, block, noise
from benchmarks._loads import Load
from benchmarks._measure import alternate, exact, spread, spreads
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting
from benchmarks._stores import Store
from benchmarks._writers import Logger

# A tenth to half of a block: its thread has to work within a block, else a block would not show what that costs.
FLUSH_SECS = 0.25
_MOST_BLOCKS = 3.0
"""Storage that stops a loop ends its block when that has taken so many times as long as a bare one."""


@dataclass(frozen=True, eq=False)
class Case:
    """What is measured beside others.

    Attributes:
        label: names its row; cases of one label are one writer.
        writer: of `_writers`.
        store: where it writes.
        load: what a collected step logs.
        freq: which steps are collected.
    """

    label: str
    writer: str
    store: Store
    load: Load
    freq: int


@dataclass(frozen=True)
class Loop:
    """A training loop.

    Attributes:
        name: begins the names of its figures.
        title: begins their titles.
        how: what a step is.
        body: one step.
        others_delay: the processor time of other threads is taken from the loop's, so it counts wherever it is spent.
    """

    name: str
    title: str
    how: str
    body: Callable[[], object]
    others_delay: bool


@dataclass(frozen=True)
class Found:
    """Blocks by label and collect_freq, one a round, and the bare ones of the same rounds."""

    loop: Loop
    bare: list[Block]
    blocks: dict[tuple[str, int], list[Block]]

    def extra(self, label: str, freq: int) -> list[float]:
        """Return how much longer the steps of each round took, in percent of a bare step."""
        pairs = zip(self.blocks[label, freq], self.bare, strict=True)
        return [(self._training(a) / b.wall - 1) * 100 for a, b in pairs]

    def _training(self, found: Block) -> float:
        """Return the steps' time without the wait for the flush, but with the work that was left to it."""
        return found.wall - found.flush + (found.flush_cpu if self.loop.others_delay else 0.0)

    def direct(self, label: str, freq: int) -> list[float]:
        """Return what can be accounted for, in us a step."""
        others = self.loop.others_delay
        return [a.logging + (a.others if others else 0.0) for a in self.blocks[label, freq]]


def measure(setting: Setting, loop: Loop, cases: Sequence[Case]) -> Found:
    """Run all cases in turns, and bare blocks."""
    steps = setting.block_steps
    most_secs = _MOST_BLOCKS * block(loop.body, None, steps=steps).wall * steps / 1e6
    loggers: dict[str, Logger] = {}
    logs: dict[str, Callable[[int], object]] = {}
    done: dict[str, int] = {}

    def sample(case: Case | None) -> Block:
        if case is None:
            return block(loop.body, None, steps=steps)
        label = case.label
        done[label] = done.get(label, 0) + steps
        first, flush = done[label] - steps, loggers[label].flush
        return block(loop.body, logs[label], flush, first=first, steps=steps, freq=case.freq, most_secs=most_secs)

    with contextlib.ExitStack() as stack:
        for case in cases:
            if case.label not in loggers:
                logger = loggers[case.label] = case.store.open(case.writer, setting, flush_secs=FLUSH_SECS)
                stack.callback(logger.close)
                log = logs[case.label] = case.load(logger)
                log(0)  # first calls: layouts, imports, threads
                logger.flush()
        found = alternate([None, *cases], setting.blocks, sample, setting.progress.tick)
    bare = found.pop(None)
    return Found(loop, bare, {(case.label, case.freq): blocks for case, blocks in found.items() if case is not None})


def figures(
    setting: Setting,
    found: Found,
    *,
    extra: Sequence[Target] = (),
    direct: Sequence[Target] = (),
    notes: Sequence[str] = (),
) -> list[Figure]:
    """Return the tables: the extra time of each collect_freq, and what of it can be accounted for.

    Args:
        setting: what was asked for.
        found: what was measured.
        extra: targets of the extra time.
        direct: targets of what can be accounted for.
        notes: what to know to read it.
    """
    loop = found.loop
    walls = [one.wall for one in found.bare]
    step = spread(walls)
    what = "inside the calls that log" + (", and processor time of other threads" if loop.others_delay else "")
    worked = ", but its processor time" if loop.others_delay else ""
    how = (
        f"{loop.how} Blocks of {setting.block_steps} steps, the median of {setting.blocks} rounds. The flush behind "
        f"each is not in the time, as no training waits for it{worked}. "
        f"A step without logging took {step.median:,.0f} us ({min(walls):,.0f} to {max(walls):,.0f})."
    )
    first = min(freq for _, freq in found.blocks)
    tables: list[tuple[str, str, str, str, Callable[[str, int], list[float]], Sequence[Target], list[str]]] = [
        ("extra", "extra time", "% of a step", how, found.extra, extra, [*notes, *noise(walls)]),
        ("direct", what, "us a step", "In the same blocks, measured directly.", found.direct, direct, []),
    ]
    return [
        Figure(
            name=f"{loop.name}_{kind}_{freq}",
            title=f"{loop.title}, {title}: collect_freq {freq}",
            unit=unit,
            how=text,
            values=spreads({label: of(label, freq) for label, other in found.blocks if other == freq}),
            targets=list(targets) if freq == first else [],
            notes=about if freq == first else [],
        )
        for kind, title, unit, text, of, targets, about in tables
        for freq in sorted({freq for _, freq in found.blocks})
    ]


def below(
    of: Callable[[str, int], list[float]], ours: Sequence[str], theirs: Sequence[str], times: float, text: str
) -> list[Target]:
    """Judge, at collect_freq 1, each of ours against `times` the least of theirs.

    Differences, not ratios: near 0 a ratio says nothing, a difference still does.

    Args:
        of: `Found.extra` or `Found.direct`.
        ours: labels.
        theirs: labels; without any there is no target.
        times: the limit.
        text: the unit, "above", and the limit in words, up to the name of theirs.
    """
    if not theirs:
        return []
    least = min(theirs, key=lambda label: spread(of(label, 1)).median)
    targets = []
    for label in ours:
        over = spread([mine - other * times for mine, other in zip(of(label, 1), of(least, 1), strict=True)])
        targets.append(Target.judge(f"{text} {least}'s, for {label}", "at most", 0.0, over))
    return targets


def no_more(found: Found, above: tuple[str, int], than: tuple[str, int], text: str) -> Target:
    """Judge whether the extra time of one case lies above another's by more than the interval."""
    pairs = zip(found.extra(*above), found.extra(*than), strict=True)
    difference = spread([a - b for a, b in pairs])
    text = f"% of a step more on {text}, lower end of the interval"
    return Target.judge(text, "at most", 0.0, exact(difference.low))
