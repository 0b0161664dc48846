"""The figures of `python -m benchmarks` without a command: the main ones of every command, in three minutes."""

from __future__ import annotations

from benchmarks import _caller, _scalars, _syscalls, collect_freq, encode
from benchmarks._run import FigureMaker, smaller

FIGURES: dict[str, FigureMaker] = {
    "encode": smaller(encode.scalars, scalars=20_000),
    "cpu": smaller(_scalars.queue_to_disk, scalars=50_000),
    "caller": smaller(_caller.latency, scalars=50_000),
    "stores": smaller(collect_freq.stores, block_steps=50, blocks=4),
    "writers": smaller(collect_freq.writers, block_steps=50, blocks=4),
    "gil": smaller(collect_freq.gil, block_steps=50),
    "syscalls": _syscalls.count,
}
