"""The figures of `python -m benchmarks write`: what logging costs from the call to the file on a local disk."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import _arrays, _caller, _instructions, _loop, _memory, _scalars, _syscalls
from benchmarks._results import Figure
from benchmarks._setting import Setting

FIGURES: dict[str, Callable[[Setting], list[Figure]]] = {
    "cpu": _scalars.queue_to_disk,
    "series": _scalars.series,
    "caller": _caller.latency,
    "beside_histograms": _caller.beside_histograms,
    "metrics": _caller.metrics,
    "loop_waiting": _loop.waiting,
    "loop_gil": _loop.holding_gil,
    "syscalls": _syscalls.count,
    "instructions": _instructions.count,
    "histogram": _arrays.histograms,
    "memory": _memory.growth,
}
