"""The figures of `python -m benchmarks collect_freq`: what logging costs a training loop, against collect_freq.

The whole product of loops, loads, sinks, writers and frequencies is thousands of cases. These slices hold all but one
or two of them fixed:

    stores     tbwriter on every sink at every collect_freq; a loop that waits, ten scalars
    writers    every writer at every collect_freq; the same loop and scalars, a local disk
    slow       every writer on slow file systems at the lowest and the highest collect_freq; the same loop and scalars
    many       every writer with a hundred scalars, by add_metrics where it has that; the same loop, a local disk
    histograms every writer with histograms of all weights as well
    images     every writer with images as well
    gil        every writer in a loop that holds the GIL
    torch      every writer in a training with torch
    mindspore  tbwriter's callback, EventFileWriter and SummaryCollector in Model.train

All but the first two measure the lowest and the highest collect_freq alone, to keep the whole short.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from benchmarks import _loads, _model_train, _stores, _torch_step
from benchmarks._block import busy, calibrated
from benchmarks._overhead import FLUSH_SECS, Case, Found, Loop, below, figures, measure, no_more
from benchmarks._results import Figure, Target
from benchmarks._run import LeftOutError
from benchmarks._setting import Setting
from benchmarks._stores import LOCAL, SLOW5, SLOW50, Store
from benchmarks._writers import EVENT_FILE, FLOOR, TBWRITER

_MANY = 100
_FLUSH = f"flush_secs={FLUSH_SECS:g}, so that its thread works within a block, more often than by default"


def stores(setting: Setting) -> list[Figure]:
    """Measure tbwriter on every sink."""
    count, freqs = setting.step_scalars, setting.freqs
    load = _loads.scalars(count)
    loop = _waiting(setting, "stores", f"Every sink, {count} scalars", "tbwriter, and appending to a list")
    with _stores.opened(setting) as (there, missing):
        cases = [Case(name, TBWRITER, store, load, freq) for name, store in there.items() for freq in freqs]
        found = measure(setting, loop, [*cases, *_floor(load, freqs)])
    extra, direct = [], []
    if 1 in freqs:
        extra += below(found.extra, list(there), [FLOOR], 2.0, "% of a step above twice the")
        direct += below(found.direct, list(there), [FLOOR], 2.0, "us a step above twice the")
        others = [name for name in there if name != LOCAL] if LOCAL in there else []
        extra += [no_more(found, (name, 1), (LOCAL, 1), f"{name} than on local, collect_freq 1") for name in others]
    if len(freqs) > 1:
        low, high = min(freqs), 50 if 50 in freqs else max(freqs)
        extra += [no_more(found, (name, low), (name, high), f"{name} at {low} than at {high}") for name in there]
    return figures(setting, found, extra=extra, direct=direct, notes=[_stores.ABOUT, *missing])


def writers(setting: Setting) -> list[Figure]:
    """Measure every writer on a local disk."""
    count = setting.step_scalars
    loop = _waiting(setting, "writers", f"Every writer, {count} scalars", "a local disk")
    return _beside(setting, loop, _loads.scalars(count), setting.freqs)


def slow(setting: Setting) -> list[Figure]:
    """Measure every writer on slow file systems."""
    names = [name for name in (SLOW5, SLOW50) if name in setting.sinks]
    if not names:
        raise LeftOutError("no slow sink asked for")
    load = _loads.scalars(setting.step_scalars)
    loop = _waiting(setting, "slow", f"Slow file systems, {setting.step_scalars} scalars", "each writer has its own")
    with _stores.opened(replace(setting, sinks=names, logdir=None)) as (there, missing):
        cases = [
            Case(f"{writer}, {name}", writer, store, load, freq)
            for name, store in there.items()
            for writer in (TBWRITER, *setting.peers)
            if writer in store.writers
            for freq in _ends(setting.freqs)
        ]
        found = measure(setting, loop, cases)
    direct = []
    for name in there:
        direct += _below_peers(found, [case for case in cases if case.store.name == name], 1 / 5)
    about = "A writer whose calls wait for storage is given three times a bare block's time, then the block ends."
    return figures(setting, found, direct=direct, notes=[_stores.ABOUT, about, *missing])


def many(setting: Setting) -> list[Figure]:
    """Measure every writer with a hundred scalars."""
    loop = _waiting(setting, "many", f"{_MANY} scalars", "by add_metrics where a writer has it; a local disk")
    return _beside(setting, loop, _loads.scalars(_MANY), _ends(setting.freqs), share=1 / 10)


def histograms(setting: Setting) -> list[Figure]:
    """Measure every writer with histograms."""
    count = setting.step_scalars
    loop = _waiting(setting, "histograms", f"{count} scalars and histograms of all weights", "a local disk")
    return _beside(_rich(setting), loop, _loads.histograms(count), _ends(setting.freqs), floor=False)


def images(setting: Setting) -> list[Figure]:
    """Measure every writer with images."""
    count = setting.step_scalars
    loop = _waiting(setting, "images", f"{count} scalars and four images", "64 x 64 pixels; a local disk")
    return _beside(_rich(setting), loop, _loads.images(count), _ends(setting.freqs), floor=False)


def _rich(setting: Setting) -> Setting:
    """Return a setting with the writers that have more than scalars."""
    return replace(setting, peers=[peer for peer in setting.peers if peer != EVENT_FILE])


def gil(setting: Setting) -> list[Figure]:
    """Measure every writer in a loop that holds the GIL."""
    turns = calibrated(setting.step_ms / 1000)
    how = f"Steps of a fixed amount of Python arithmetic, {setting.step_ms:g} ms, the GIL held; a local disk."
    count = setting.step_scalars
    loop = Loop("gil", f"GIL-bound loop, {count} scalars", how, lambda: busy(turns), others_delay=True)
    return _beside(setting, loop, _loads.scalars(count), _ends(setting.freqs))


def torch(setting: Setting) -> list[Figure]:
    """Measure every writer in a training with torch."""
    if missing := _torch_step.missing():
        raise LeftOutError(missing)
    how = f"{_torch_step.ABOUT} A local disk."
    count = setting.step_scalars
    loop = Loop("torch", f"Training with torch, {count} scalars", how, _torch_step.step(), others_delay=False)
    return _beside(setting, loop, _loads.scalars(count), _ends(setting.freqs))


def mindspore(setting: Setting) -> list[Figure]:
    """Measure callbacks in a training with MindSpore."""
    if missing := _model_train.missing():
        raise LeftOutError(missing)
    return _model_train.training(setting, _ends(setting.freqs))


def _waiting(setting: Setting, name: str, title: str, what: str) -> Loop:
    secs = setting.step_ms / 1000
    how = f"Steps of {setting.step_ms:g} ms in time.sleep, as for a device; {what}; tbwriter with {_FLUSH}."
    return Loop(name, title, how, lambda: time.sleep(secs), others_delay=False)


def _beside(
    setting: Setting, loop: Loop, load: _loads.Load, freqs: Sequence[int], *, share: float = 1 / 5, floor: bool = True
) -> list[Figure]:
    """Measure tbwriter and its peers with one load on a local disk, and the list."""
    store = Store(LOCAL)
    cases = [Case(name, name, store, load, freq) for name in (TBWRITER, *setting.peers) for freq in freqs]
    found = measure(setting, loop, [*cases, *(_floor(load, freqs) if floor else ())])
    return figures(setting, found, direct=_below_peers(found, cases, share))


def _below_peers(found: Found, cases: Iterable[Case], share: float) -> list[Target]:
    once = [case for case in cases if case.freq == 1]
    ours = [case.label for case in once if case.writer == TBWRITER]
    peers = [case.label for case in once if case.writer != TBWRITER]
    return below(found.direct, ours, peers, share, f"us a step above 1/{1 / share:g} of")


def _floor(load: _loads.Load, freqs: Sequence[int]) -> list[Case]:
    """Return the case of appending to a list, at collect_freq 1."""
    return [Case(FLOOR, FLOOR, Store(LOCAL), load, 1)] if 1 in freqs else []


def _ends(freqs: Sequence[int]) -> list[int]:
    """Return the lowest and the highest collect_freq, where these slices are to stay short."""
    return sorted({min(freqs), max(freqs)})


FIGURES: dict[str, Callable[[Setting], list[Figure]]] = {
    "stores": stores,
    "writers": writers,
    "slow": slow,
    "many": many,
    "histograms": histograms,
    "images": images,
    "gil": gil,
    "torch": torch,
    "mindspore": mindspore,
}
