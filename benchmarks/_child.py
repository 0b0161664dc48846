"""Programs that are measured from outside, or whose memory must hold nothing else: `python -m benchmarks._child`.

Each prints one JSON object on standard output. `run` starts one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._machine import ROOT
from benchmarks._writers import TAGS, open_writer

BEGIN, END = "/benchmark-begins", "/benchmark-ends"
"""Paths whose stat marks in a trace of system calls where the measured part begins and ends."""


def run(program: str, *arguments: object, under: Sequence[str] = ()) -> dict[str, Any]:
    """Run a program of this module in a process of its own, below the command `under`; return what it prints.

    Raises:
        RuntimeError: it fails; with the last line of its standard error.
    """
    command = [*under, sys.executable, "-m", "benchmarks._child", program, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise RuntimeError(f"benchmark child {program}: exit status {done.returncode}: {last}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _mark(path: str) -> None:
    os.path.exists(path)


def _scalars(writer: str, directory: str, count: str) -> dict[str, Any]:
    """Add `count` scalars, ten a step, between two marks; the first includes opening, the second closing."""
    # Opened once before, so that the imports of the writer lie outside the marks.
    open_writer(writer, Path(directory) / "warm-up").close()
    _mark(BEGIN)
    logger = open_writer(writer, Path(directory) / "run")
    for step in range(int(count) // len(TAGS)):
        logger.log_step(step)
    logger.close()
    _mark(END)
    return {}


def _watched(writer: str, directory: str, count: str) -> dict[str, Any]:
    """As `_scalars`, for tbwriter where there is no strace: count what goes through the os module, by thread."""
    caller = threading.get_ident()
    calls: dict[str, dict[str, int]] = {"caller": {}, "others": {}}

    def watch(name: str) -> None:
        wrapped = getattr(os, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            who = calls["caller" if threading.get_ident() == caller else "others"]
            who[name] = who.get(name, 0) + 1
            return wrapped(*arguments, **options)

        setattr(os, name, watched)

    def opened(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and "tfevents" in str(arguments[0]) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            who = calls["caller" if threading.get_ident() == caller else "others"]
            who["open"] = who.get("open", 0) + 1

    open_writer(writer, Path(directory) / "warm-up").close()
    for name in ("write", "writev", "pwrite", "fsync", "fdatasync"):
        if hasattr(os, name):
            watch(name)
    sys.addaudithook(opened)
    logger = open_writer(writer, Path(directory) / "run")
    for step in range(int(count) // len(TAGS)):
        logger.log_step(step)
    logger.close()
    return calls


def _array_memory(writer: str, directory: str, count: str) -> dict[str, Any]:
    """Add histograms of `count` float32 and return how far traced memory rises above where it was, in bytes."""
    import numpy as np

    logger = open_writer(writer, Path(directory))
    assert logger.add_histogram is not None
    values = np.random.default_rng(0).standard_normal(int(count), dtype=np.float32)
    logger.add_histogram("weights", values[:1000], 0)
    logger.flush()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for step in range(1, 4):
        tracemalloc.reset_peak()
        logger.add_histogram("weights", values, step)
        logger.flush()
    peak = tracemalloc.get_traced_memory()[1]
    logger.close()
    return {"extra_bytes": peak - before}


def _memory(directory: str, count: str, samples: str) -> dict[str, Any]:
    """Add `count` scalars at full rate; return the resident memory at the start and after each part, in bytes."""
    from tbwriter import SummaryWriter

    writer = SummaryWriter(directory)
    add_scalar = writer.add_scalar
    steps = int(count) // len(TAGS) // int(samples)
    begin = time.perf_counter()
    resident = []
    for part in range(int(samples)):
        for step in range(part * steps, part * steps + steps):
            value = 1.0 / (step + 1)
            for tag in TAGS:
                add_scalar(tag, value, step)
        writer.flush()
        resident.append(resident_bytes())
    stats = writer.stats()
    writer.close()
    return {
        "resident": resident,
        "peak": _status("VmHWM"),
        "dropped": stats.dropped,
        "written": stats.written,
        "secs": time.perf_counter() - begin,
    }


def resident_bytes() -> int:
    """Return the memory of this process that is in the machine."""
    return _status("VmRSS")


def _status(field: str) -> int:
    """Return a field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def _ranks(place: str, options: str, ranks: str, secs: str, step_ms: str) -> dict[str, Any]:
    """Fork `ranks` processes that log ten scalars each step for `secs`, all at once; return what each of them did."""
    import fsspec  # noqa: F401 (before the fork: every process would import it)

    import tbwriter.testing  # noqa: F401

    if place.startswith("s3://"):
        import s3fs  # noqa: F401
    begin = time.time() + 0.2 + 0.02 * int(ranks)
    pipes = []
    for rank in range(int(ranks)):
        read, write = os.pipe()
        if os.fork() == 0:
            status = 1
            try:
                try:
                    step_secs = float(step_ms) / 1000
                    found = _rank(f"{place}/rank_{rank}", json.loads(options), begin, float(secs), step_secs)
                except Exception as exc:  # whatever a store's driver raises
                    found = {"failed": f"rank {rank}: {exc}"}
                os.write(write, json.dumps(found).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        pipes.append(read)
    told = []
    for read in pipes:
        with os.fdopen(read, "rb") as pipe:
            told.append(json.loads(pipe.read()))
    if failed := [one["failed"] for one in told if "failed" in one]:
        raise RuntimeError(f"{len(failed)} of {ranks} processes failed; {failed[0]}")
    return {"ranks": told}


def _rank(place: str, options: dict[str, Any], begin: float, secs: float, step_secs: float) -> dict[str, Any]:
    from benchmarks._watch import Watch
    from tbwriter import SummaryWriter

    watch = Watch()
    writer = SummaryWriter(watch.place(place), **options)
    writer.add_metrics(dict.fromkeys(TAGS, 0.0), 0)
    time.sleep(max(0.0, begin - time.time()))
    clock = time.perf_counter
    calls = []
    steps, first = 0, clock()
    while clock() - first < secs:
        steps += 1
        metrics = dict.fromkeys(TAGS, 1.0 / steps)
        called = clock()
        writer.add_metrics(metrics, steps)
        calls.append(clock() - called)
        time.sleep(step_secs)
    took = clock() - first
    writer.close()
    totals = watch.totals()
    return {
        "steps": steps,
        "secs": took,
        "call_us": sorted(calls)[len(calls) // 2] * 1e6,
        # A store is sent some bytes more than once, and asked less often than its sink.
        "bytes": totals.bytes_uploaded or totals.bytes_os,
        "operations": totals.puts or watch.operations,
        "dropped": writer.stats().dropped,
    }


def _instructions(directory: str, count: str, how: str) -> dict[str, Any]:
    """Under callgrind, begun with --instr-atstart=no: have it count `count` scalars, ten a step, and their flush."""
    from tbwriter import SummaryWriter

    writer = SummaryWriter(directory, flush_secs=3600)

    def log_ten(step: int) -> None:
        for tag in TAGS:
            writer.add_scalar(tag, 1.0 / (step + 1), step)

    def log_metrics(step: int) -> None:
        writer.add_metrics(dict.fromkeys(TAGS, 1.0 / (step + 1)), step)

    log = {"add_scalar": log_ten, "add_metrics": log_metrics}[how]
    steps = int(count) // len(TAGS)
    for step in range(100):  # layouts and caches
        log(step)
    writer.flush()
    _callgrind("on")
    for step in range(100, 100 + steps):
        log(step)
    writer.flush()
    _callgrind("off")
    writer.close()
    return {"scalars": steps * len(TAGS)}


def _callgrind(state: str) -> None:
    subprocess.run(["callgrind_control", f"--instr={state}", str(os.getpid())], stdout=subprocess.DEVNULL, check=True)


def _check(directory: str) -> dict[str, Any]:
    """Read all event files of a directory: how many values each holds, and how often a step is below the one before."""
    from tbwriter import read_events

    values = {}
    backwards = 0
    last = -1
    for path in sorted(Path(directory).glob("*tfevents*")):
        values[path.name] = 0
        for event in read_events(path, strict=True):
            found = sum(value.tag in TAGS for value in event.values)
            if found:
                values[path.name] += found
                backwards += event.step < last
                last = event.step
    return {"values": values, "backwards": backwards}


_PROGRAMS: dict[str, Callable[..., dict[str, Any]]] = {
    "scalars": _scalars,
    "watched": _watched,
    "array-memory": _array_memory,
    "memory": _memory,
    "ranks": _ranks,
    "check": _check,
    "instructions": _instructions,
}

if __name__ == "__main__":
    print(json.dumps(_PROGRAMS[sys.argv[1]](*sys.argv[2:])))
