"""Costs that are counted and not timed: they are the same on every machine, so a regression shows in CI.

Copies from a device are counted in tests/msbridge/test_cost.py.
"""

import gc
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from needs import cannot_run

from benchmarks import _child, _instructions, _syscalls
from benchmarks._watch import Watch
from benchmarks._writers import TAGS
from tbwriter import SummaryWriter, sinks
from tbwriter.testing import SlowSink

SCALARS = 1000

# System calls for a thousand scalars, from opening to closing. Two writes: the header when the file is made, and all
# the rest when it is closed. About 90 calls of any kind are counted, of which 26 read the table of mounts and 4 ask
# whose file a handle is by now; how often threads wake each other may vary. The peers make more than ten a scalar.
MAX_WRITES = 2
MAX_SYSTEM_CALLS = 120

# Bytes a scalar. Ten tags of 12.9 bytes on average: a Value is tag + 9 bytes, and 33 bytes of Event and frame are
# shared by a step.
MAX_BYTES_TEN_TAGS = 25.5

# Memory of a waiting scalar, CPython 3.10 to 3.12. add_scalar: a tuple of 5 (80 bytes with the collector's part), a
# float for the wall time, and a tenth of the step and of the value; the list's slot. add_metrics packs ten values into
# one bytes object.
MAX_QUEUED_BYTES = {"add_scalar": 165, "add_metrics": 30}
MAX_QUEUED_BLOCKS = {"add_scalar": 3.2, "add_metrics": 0.6}

# A copy of the array, and what counting it takes beside; 7.6 MiB with a million float32.
MAX_HISTOGRAM_BYTES = 10 << 20

# Operations on storage while no time passes: the append of what was added, and the flush of closing.
MAX_OPERATIONS = 2

# Instructions of a scalar, all threads: 9,150 and 5,050 with CPython 3.11; other versions and compilers differ by less
# than half.
MAX_INSTRUCTIONS = {"add_scalar": 14_000, "add_metrics": 7_600}


def add(writer, way, steps):
    for step in steps:
        value = 1.0 / (step + 1)
        if way == "add_metrics":
            writer.add_metrics(dict.fromkeys(TAGS, value), step)
        else:
            for tag in TAGS:
                writer.add_scalar(tag, value, step)


@pytest.mark.parametrize("traced", [True, False], ids=["strace", "from inside"])
def test_a_thousand_scalars_open_one_file_write_twice_and_sync_in_no_call(tmp_path, traced):
    if traced and not _syscalls.strace_works():
        cannot_run("strace is missing or may not trace")
    counts = _syscalls.counted(tmp_path, "tbwriter", traced=traced)
    assert counts.opens == 1
    assert 1 <= counts.writes <= MAX_WRITES
    assert counts.caller_syncs == 0
    if traced:
        assert 0 < counts.total <= MAX_SYSTEM_CALLS


@pytest.mark.parametrize("way", ["add_scalar", "add_metrics"])
def test_a_scalar_is_stored_in_few_bytes(tmp_path, way):
    with SummaryWriter(tmp_path, flush_secs=3600) as writer:
        add(writer, way, range(SCALARS))
        writer.flush()
        header = 200
        assert 0 < (writer.stats().bytes - header) / (SCALARS * len(TAGS)) <= MAX_BYTES_TEN_TAGS


@pytest.fixture
def gate():
    """Storage that lets nothing through until the gate is opened, as the scheme `gated`."""
    event = threading.Event()

    def opened(url, name, header, options):
        sink = sinks.open_sink(url.removeprefix("gated://"), name=name, header=header, storage_options=options)
        return SlowSink(sink, 0.0, sleep=lambda _: event.wait())

    sinks.register_sink("gated", opened, lambda url, _: sinks.list_names(url.removeprefix("gated://")))
    event.set()
    yield event
    event.set()


@pytest.mark.parametrize("way", ["add_scalar", "add_metrics"])
def test_a_scalar_that_waits_holds_little_memory(tmp_path, gate, way):
    with SummaryWriter(f"gated://{tmp_path}", flush_secs=3600) as writer:
        add(writer, way, range(50))  # layouts and caches
        writer.flush()
        gc.collect()
        gate.clear()
        tracemalloc.start()
        try:
            memory, blocks = tracemalloc.get_traced_memory()[0], sys.getallocatedblocks()
            add(writer, way, range(1000, 1000 + SCALARS))
            memory = tracemalloc.get_traced_memory()[0] - memory
            blocks = sys.getallocatedblocks() - blocks
        finally:
            tracemalloc.stop()
            gate.set()
    scalars = SCALARS * len(TAGS)
    assert 4 < memory / scalars <= MAX_QUEUED_BYTES[way]
    assert 0 < blocks / scalars <= MAX_QUEUED_BLOCKS[way]


def test_storage_is_asked_once_for_a_thousand_scalars(tmp_path):
    watch = Watch()
    with SummaryWriter(watch.place(str(tmp_path)), flush_secs=3600) as writer:
        add(writer, "add_scalar", range(SCALARS // len(TAGS)))  # more would wake the worker before the end
    assert 1 <= watch.operations <= MAX_OPERATIONS
    stored = sum(path.stat().st_size for path in Path(tmp_path).iterdir())
    assert watch.totals().bytes_os == stored


def test_a_histogram_of_a_million_values_takes_little_memory(tmp_path):
    extra = _child.run("array-memory", "tbwriter", tmp_path, 1_000_000)["extra_bytes"]
    assert 4_000_000 <= extra <= MAX_HISTOGRAM_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("way", _instructions.WAYS)
def test_a_scalar_takes_few_instructions(tmp_path, way):
    reason = _instructions.missing()
    if reason:
        cannot_run(reason)
    assert 500 < _instructions.per_scalar(tmp_path, way) <= MAX_INSTRUCTIONS[way]
