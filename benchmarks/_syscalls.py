"""Which system calls a thousand scalars make, and in which thread: by strace, or from inside where it is missing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _child
from benchmarks._measure import exact
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting
from benchmarks._writers import TBWRITER

_COUNT = 1000
_WRITES = frozenset({"write", "writev", "pwrite64", "pwritev", "pwrite"})
_SYNCS = frozenset({"fsync", "fdatasync", "sync_file_range", "msync"})
# "1234 pwrite64(3</tmp/x/events.out.tfevents.1>, ..." and "1234 <... openat resumed>..."
_CALL = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(?:\(| resumed)(.*)")
_FOR_WRITING = re.compile(r"O_WRONLY|O_RDWR")


@dataclass(frozen=True)
class Counts:
    """System calls of one run; `opens` to `caller_syncs` are those on event files.

    Attributes:
        opens: for writing.
        writes: of any kind.
        syncs: in all threads.
        caller_syncs: in the thread that called add_scalar.
        caller_writes: in that thread.
        total: of every kind, on anything; None when unknown.
    """

    opens: int
    writes: int
    syncs: int
    caller_syncs: int
    caller_writes: int
    total: int | None


def count(setting: Setting) -> list[Figure]:
    """Count what 1000 scalars cost, opening and closing included."""
    traced = strace_works()
    writers = [TBWRITER, *(setting.peers if traced and not setting.quick else [])]
    found = {}
    for writer in writers:
        found[writer] = counted(setting.fresh(), writer, traced=traced)
        setting.progress.tick()
    how = (
        f"{_COUNT} scalars, ten a step, opening and closing included, one process for each writer, counted by "
        + ("strace -f" if traced else "wrapped functions of the os module and an audit hook, as strace is missing")
        + "; no time passes between the steps."
    )
    ours = found[TBWRITER]
    header = f"Of tbwriter's, {ours.caller_writes} in the caller: the header, when the writer is made."
    close = f"In all of its threads tbwriter made {ours.syncs}, when it closed."
    kinds = [
        ("open", "event files opened for writing", "opens", 1, []),
        ("write", "writes to event files, all threads", "writes", 5, [header]),
        ("sync", "fsync and fdatasync, caller's thread", "caller_syncs", 0, [close]),
    ]
    figures = []
    for name, what, field, limit, notes in kinds:
        calls = {writer: exact(getattr(counts, field)) for writer, counts in found.items()}
        target = Target.judge(f"{name}s", "at most", limit, calls[TBWRITER])
        title = f"System calls for {_COUNT} scalars: {what}"
        figures.append(Figure(f"syscalls_{name}", title, "calls", how, calls, targets=[target], notes=notes))
    totals = {writer: exact(counts.total) for writer, counts in found.items() if counts.total is not None}
    if totals:
        title = f"System calls for {_COUNT} scalars: all, of any kind and thread"
        figures.append(Figure("syscalls_all", title, "calls", how, totals))
    return figures


def counted(directory: Path, writer: str, *, traced: bool) -> Counts:
    """Count what a process with `writer` does in an empty directory; without strace, of tbwriter alone."""
    return _traced(directory, writer) if traced else _watched(directory, writer)


def strace_works() -> bool:
    """Tell whether strace is there and may trace: containers often forbid it."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


def _traced(directory: Path, writer: str) -> Counts:
    trace = directory / "trace"
    _child.run("scalars", writer, directory, _COUNT, under=["strace", "-f", "-y", "-o", str(trace)])
    return _parse(trace, directory / "run")


def _parse(trace: Path, directory: Path) -> Counts:
    """Count the calls between the marks of the child program."""
    total = 0
    found: Counter[tuple[str, bool]] = Counter()
    caller = None
    with trace.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = _CALL.match(line)
            if match is None:
                continue
            thread, name, rest = match.groups()
            if _child.BEGIN in rest:
                caller = thread
                continue
            if _child.END in rest:
                break
            # A call that another thread interrupts has two lines; the first tells its arguments.
            if caller is None or "<... " in line:
                continue
            total += 1
            if f"{directory}/" not in rest or "tfevents" not in rest:
                continue
            is_caller = thread == caller
            if name in ("open", "openat", "creat") and (name == "creat" or _FOR_WRITING.search(rest)):
                found["open", is_caller] += 1
            elif name in _WRITES:
                found["write", is_caller] += 1
            elif name in _SYNCS:
                found["sync", is_caller] += 1
    if caller is None:
        raise RuntimeError(
            "strace: the trace holds no mark of the benchmark's child; is stat traced under another name?"
        )
    return _counts(found, total)


def _watched(directory: Path, writer: str) -> Counts:
    calls = _child.run("watched", writer, directory, _COUNT)
    found: Counter[tuple[str, bool]] = Counter()
    for who, counts in calls.items():
        for name, number in counts.items():
            kind = "write" if name in _WRITES else "sync" if name in _SYNCS else name
            found[kind, who == "caller"] += number
    return _counts(found, None)


def _counts(found: Counter[tuple[str, bool]], total: int | None) -> Counts:
    return Counts(
        opens=found["open", True] + found["open", False],
        writes=found["write", True] + found["write", False],
        syncs=found["sync", True] + found["sync", False],
        caller_syncs=found["sync", True],
        caller_writes=found["write", True],
        total=total,
    )
