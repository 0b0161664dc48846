"""The figures of `python -m benchmarks soak`: long at full rate on storage that fails, and whether all came through.

One writer, laps of some seconds: scalars as fast as the loop gives them while single operations fail and storage is
away for a while; then, with storage well again, a flush, and every file is read back in another process and deleted but
for the one that grows. What the files hold must be what was added.
"""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import _child
from benchmarks._measure import exact
from benchmarks._results import Figure, Target
from benchmarks._run import FigureMaker, StoppedError
from benchmarks._setting import Setting
from benchmarks._writers import TAGS
from tbwriter import SummaryWriter, sinks
from tbwriter.testing import FaultySink

_SCHEME = "benchmark-faulty"
_LAP_SECS = 2.0
_OUTAGE_SECS = 0.4
_FAULT_SHARE = 0.01
_ERRORS = (errno.EIO, errno.ENOSPC, errno.EAGAIN, errno.ETIMEDOUT)
_MAX_FILE_BYTES = 8 << 20
_SAMPLE_STEPS = 2000
_MIB = 2**20
_FLAT_MIB = 8.0


@dataclass
class _Faults:
    """Decides what fails: single operations at random, and all of them in the middle of a lap.

    Attributes:
        begun: when the lap began, by time.monotonic(); None between laps, when nothing fails.
        raised: how many operations failed.
    """

    begun: float | None = None
    raised: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def __call__(self, call: str, number: int) -> OSError | None:
        if self.begun is None:
            return None
        away = 0 <= time.monotonic() - self.begun - _LAP_SECS / 4 < _OUTAGE_SECS
        if not away and self.chance.random() >= _FAULT_SHARE:
            return None
        self.raised += 1
        code = self.chance.choice(_ERRORS)
        return OSError(code, f"{os.strerror(code)} (injected)")


@dataclass
class _Seen:
    """What was watched: one sample every few thousand steps, and sums."""

    resident_mib: list[float] = field(default_factory=list)
    lap_mib: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    added: int = 0
    read_back: int = 0
    backwards: int = 0
    busy_secs: float = 0.0
    laps: int = 0


def soak(setting: Setting) -> list[Figure]:
    """Write for `setting.minutes` and look what became of it."""
    directory = setting.fresh()
    faults, seen = _Faults(), _Seen()

    def opened(url: str, name: str, header: bytes, options: Mapping[str, Any]) -> sinks.Sink:
        sink = sinks.open_sink(_path(url), name=name, header=header, storage_options=options)
        return FaultySink(sink, faults, header=header, remember=False)

    sinks.register_sink(_SCHEME, opened, lambda url, _: sinks.list_names(_path(url)))
    writer = SummaryWriter(f"{_SCHEME}://{directory}", max_file_size=_MAX_FILE_BYTES)
    until = time.monotonic() + setting.minutes * 60
    stored: dict[str, int] = {}
    try:
        while seen.laps == 0 or time.monotonic() < until:
            _lap(writer, faults, seen)
            _read_back(directory, stored, seen)
            setting.progress.tick()
    except KeyboardInterrupt as stop:
        if not seen.laps:
            raise
        raise StoppedError(_figures(writer, faults, seen, "Interrupted. ")) from stop
    finally:
        writer.close()
    return _figures(writer, faults, seen, "")


def _path(url: str) -> str:
    return url.removeprefix(f"{_SCHEME}://")


def _lap(writer: SummaryWriter, faults: _Faults, seen: _Seen) -> None:
    """Add at full rate, storage away in the middle; then let it recover and flush."""
    begin = faults.begun = time.monotonic()
    add_scalar = writer.add_scalar
    while time.monotonic() - begin < _LAP_SECS:
        first = seen.added // len(TAGS)
        for step in range(first, first + _SAMPLE_STEPS):
            value = 1.0 / (step + 1)
            for tag in TAGS:
                add_scalar(tag, value, step)
        seen.added += _SAMPLE_STEPS * len(TAGS)
        seen.queued.append(writer.stats().queued)
        seen.resident_mib.append(_child.resident_bytes() / _MIB)
        seen.descriptors.append(len(os.listdir("/proc/self/fd")))
        seen.threads.append(threading.active_count())
    faults.begun = None
    if not writer.flush(30.0):
        raise RuntimeError("soak: storage is well again, and flush did not return in 30 s")
    seen.busy_secs += time.monotonic() - begin
    seen.lap_mib.append(_child.resident_bytes() / _MIB)
    seen.laps += 1


def _read_back(directory: Path, stored: dict[str, int], seen: _Seen) -> None:
    """Count what the files hold, and delete those that will not grow."""
    found = _child.run("check", directory)
    stored.update(found["values"])
    seen.backwards += found["backwards"]
    seen.read_back = sum(stored.values())
    for name in sorted(found["values"])[:-1]:
        (directory / name).unlink()


def _figures(writer: SummaryWriter, faults: _Faults, seen: _Seen, remark: str) -> list[Figure]:
    stats = writer.stats()
    how = (
        f"{remark}{seen.laps} laps of {_LAP_SECS:g} s at full rate, ten scalars a step, on a local disk where "
        f"{_FAULT_SHARE:.0%} of all operations fail and, for {_OUTAGE_SECS:g} s a lap, all of them; then a flush, and "
        f"all files are read back. {faults.raised:,} operations failed, {seen.added / max(seen.busy_secs, 1e-9):,.0f} "
        f"scalars a second came through."
    )
    half = len(seen.lap_mib) // 2
    grown = max(seen.lap_mib[half:]) - max(seen.lap_mib[: half or 1])
    lost = seen.added - seen.read_back
    counts: dict[str, tuple[float, float | None]] = {
        "values added": (seen.added, None),
        "values not read back": (lost, 0),
        "values dropped by the writer's own count": (stats.dropped, 0),
        "steps out of order": (seen.backwards, 0),
        "threads more at the end than at first": (seen.threads[-1] - seen.threads[0], 0),
        "file descriptors more at the end than at first": (seen.descriptors[-1] - seen.descriptors[0], 1),
    }
    targets = [
        Target.judge(name, "at most", limit, exact(n)) for name, (n, limit) in counts.items() if limit is not None
    ]
    return [
        Figure("soak_counts", "Soak: counts", "", how, {n: exact(v) for n, (v, _) in counts.items()}, targets=targets),
        Figure(
            name="soak_most",
            title="Soak: the most at any moment",
            unit="",
            how=how,
            values={
                "values in the queue": exact(max(seen.queued)),
                "resident memory, MiB": exact(max(seen.resident_mib)),
                "file descriptors": exact(max(seen.descriptors)),
                "threads": exact(max(seen.threads)),
            },
        ),
        Figure(
            name="soak_memory",
            title="Soak: resident memory after a lap",
            unit="MiB",
            how=how,
            values={
                "first lap": exact(seen.lap_mib[0]),
                "largest of the first half": exact(max(seen.lap_mib[: half or 1])),
                "largest of the second half": exact(max(seen.lap_mib[half:])),
            },
            targets=[Target.judge("MiB from the first half to the second", "at most", _FLAT_MIB, exact(grown))],
        ),
    ]


FIGURES: dict[str, FigureMaker] = {"soak": soak}
