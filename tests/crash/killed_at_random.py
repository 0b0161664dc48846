"""A program: forks children that write until they are killed, so that 200 of them need one import only.

Reads lines "logdir journal kind flush_secs" from stdin; answers each with the child's process id. The child
writes pairs (time.monotonic() after the add returned, step) to its journal, with one write(2) each, which outlive
it. Dead children are waited for only at the end, so that no process id is used twice.
"""

import contextlib
import os
import random
import struct
import sys
import threading
import time

import numpy as np

from tbwriter import SummaryWriter

RECORD = struct.Struct("<dq")


def add(writer, kind, step):
    """Add `step`, and where the kind takes several at once, those after it; return the last."""
    if kind == "metrics":
        writer.add_metrics({"a": float(step), "b": 1.0}, step)
    elif kind == "series":
        steps = np.arange(step, step + 10)
        writer.add_scalar_series("a", steps * 1.0, steps)
        return step + 9
    else:
        writer.add_scalar("a", float(step), step)
    if kind == "arrays" and step % 100 == 0:
        writer.add_histogram("h", np.arange(1000.0), step)
        writer.add_text("t", "x" * 5000, step)
    return step


def write_for_ever(logdir, journal, kind, flush_secs):
    """Add until killed, in bursts with pauses, so that the moments of flushes and adds mix."""
    pause = threading.Event()
    handle = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    options = {"max_file_size": 20_000} if kind == "rotating" else {}
    writer = SummaryWriter(logdir, flush_secs=flush_secs, **options)
    # A series of 10 points costs the writer's thread 0.1 ms: more of them would measure its speed.
    burst = 1 if kind == "series" else random.choice([1, 5, 20])
    step = 0
    while True:
        for _ in range(burst):
            step = add(writer, kind, step) + 1
            os.write(handle, RECORD.pack(time.monotonic(), step - 1))
        pause.wait(random.choice([0.002, 0.005, 0.02]))


def main():
    for line in sys.stdin:
        logdir, journal, kind, flush_secs = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            try:
                write_for_ever(logdir, journal, kind, float(flush_secs))
            finally:
                os._exit(1)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    main()
