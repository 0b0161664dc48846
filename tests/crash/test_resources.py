"""What logging costs in system calls, memory, threads and handles."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from children import Child, run_well
from event_files import scalars, steps
from needs import cannot_run

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
TRACED = "open,openat,creat,write,writev,pwrite64,pwritev,lseek,ftruncate,fallocate,fsync,fdatasync,rename,unlink"


@pytest.fixture
def strace(tmp_path):
    """A function that runs a program and returns its system calls on event files: [(thread, call, rest)]."""
    if shutil.which("strace") is None:
        cannot_run("strace is not installed")
    probe = ["strace", "-o", str(tmp_path / "probe"), sys.executable, "-c", ""]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        cannot_run("strace may not trace here")

    def traced(code, logdir):
        out = tmp_path / "trace"
        prefix = ["strace", "-f", "-y", "-o", str(out), "-e", f"trace={TRACED}"]
        printed = run_well(code, logdir, prefix=prefix)
        calls = [CALL.match(line) for line in out.read_text(errors="replace").splitlines()]
        named = [(int(call[1]), call[2], call[3]) for call in calls if call]
        return printed, [call for call in named if str(logdir) in call[2]]

    return traced


THOUSAND = """
say(str(threading.get_native_id()))
with SummaryWriter(logdir) as writer:
    for step in range(100):
        for key in range(10):
            writer.add_scalar(f"tag{key}", float(step), step)
    writer.flush()
"""


def names(calls):
    return [name for _, name, rest in calls if "tfevents" in rest]


def test_a_thousand_scalars_are_one_open_and_at_most_five_writes(strace, tmp_path):
    _, calls = strace(THOUSAND, tmp_path / "run")
    opened = [rest for _, name, rest in calls if name in {"open", "openat", "creat"} and "tfevents" in rest]
    written = [name for name in names(calls) if "write" in name]
    assert len(opened) == 1, opened
    assert 1 <= len(written) <= 5, written
    assert len(scalars(tmp_path / "run")) == 1000


def test_nothing_is_sought_cut_preallocated_renamed_or_deleted(strace, tmp_path):
    _, calls = strace(THOUSAND, tmp_path / "run")
    assert {name for name in names(calls) if "write" not in name} <= {"openat", "open", "fsync", "fdatasync"}


def test_the_training_thread_neither_writes_nor_syncs(strace, tmp_path):
    printed, calls = strace(THOUSAND + "    writer.sync()\n", tmp_path / "run")
    caller = int(printed.split()[0])
    # The constructor creates the file and writes its header: that is where an error belongs.
    assert names(call for call in calls if call[0] == caller) == ["openat", "pwrite64"]
    assert "fdatasync" in names(call for call in calls if call[0] != caller)


def test_flush_syncs_nothing(strace, tmp_path):
    code = """
    writer = SummaryWriter(logdir)
    writer.add_scalar("a", 1.0, 1)
    writer.flush()
    os._exit(0)
    """
    _, calls = strace(code, tmp_path / "run")
    assert [name for _, name, _ in calls if "sync" in name] == []


def test_sync_syncs_the_file_and_its_directory_before_it_returns(strace, tmp_path):
    code = """
    writer = SummaryWriter(logdir)
    writer.add_scalar("a", 1.0, 1)
    writer.sync()
    os._exit(0)
    """
    _, calls = strace(code, tmp_path / "run")
    synced = [rest for _, name, rest in calls if "sync" in name]
    assert len([rest for rest in synced if "tfevents" in rest]) == 1
    assert len([rest for rest in synced if rest.split(">")[0].endswith("/run")]) == 1


@linux_only
def test_two_hundred_writers_leave_no_thread_no_handle_and_no_exit_handler(tmp_path):
    code = """
    import atexit, gc, json
    def counts():
        gc.collect()
        return threading.active_count(), len(os.listdir("/proc/self/fd")), atexit._ncallbacks()
    def job(name):
        with SummaryWriter(os.path.join(logdir, name)) as writer:
            writer.add_scalar("a", 1.0, 1)
            writer.add_scalars("b", {"x": 1.0}, 1)
    job("first")
    before = counts()
    for number in range(200):
        job(str(number))
    say(json.dumps([before, counts()]))
    """
    before, after = json.loads(run_well(code, tmp_path))
    assert after == before


@linux_only
def test_writers_that_are_forgotten_instead_of_closed_end_too(tmp_path):
    code = """
    import gc, json
    from waiting import wait_until
    def job(name):
        writer = SummaryWriter(os.path.join(logdir, name), flush_secs=3600)
        writer.add_scalar("a", 1.0, 1)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        job(str(number))
    gc.collect()
    wait_until(lambda: threading.active_count() == 1, within=20, what="the end of the threads")
    say(json.dumps(len(os.listdir("/proc/self/fd")) - before))
    """
    assert json.loads(run_well(code, tmp_path)) == 0
    for number in range(20):
        assert steps(tmp_path / str(number), "a") == [1]


@linux_only
def test_a_hundred_sub_runs_hold_few_handles(tmp_path):
    code = """
    import json
    writer = SummaryWriter(logdir)
    before = len(os.listdir("/proc/self/fd"))
    for step in range(3):
        writer.add_scalars("acc", {f"key{key}": float(key) for key in range(100)}, step)
        writer.flush()
    say(json.dumps([len(os.listdir("/proc/self/fd")) - before, threading.active_count()]))
    writer.close()
    """
    handles, threads = json.loads(run_well(code, tmp_path))
    assert handles <= 20
    assert threads == 2
    for key in range(100):
        assert scalars(tmp_path / f"acc_key{key}", "acc") == [(step, float(key)) for step in range(3)]


# Python's memory and the process's, in KiB, at five moments, after as many steps each.
MEMORY = """
import gc, json, tracemalloc
import numpy as np
def resident():
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
tracemalloc.start()
marks = []
# A short queue: how much of a long one a busy machine fills would show as well.
with SummaryWriter(logdir, max_file_size=1_000_000, max_queue=1000, block_secs=100) as writer:
    for part in range(5):
        for step in range(part * 5_000, part * 5_000 + 5_000):
            {add}
        writer.flush()
        now = resident()  # after a collection, with which Python also gives up the objects that it keeps for reuse
        marks.append([tracemalloc.get_traced_memory()[0] // 1024, now])
say(json.dumps(marks))
"""


@linux_only
@pytest.mark.parametrize(
    "add",
    [
        pytest.param("for key in range(10): writer.add_scalar(f'tag{key}', float(step), step)", id="add_scalar"),
        pytest.param("writer.add_metrics({'a': float(step), 'b': 1.0, 'c': 2.0}, step)", id="add_metrics"),
        pytest.param(
            "step % 100 or writer.add_scalar_series('a', np.arange(1000.0), np.arange(1000))", id="add_scalar_series"
        ),
        pytest.param("step % 20 or writer.add_histogram('h', np.arange(1000.0), step)", id="add_histogram"),
        pytest.param("step % 4 or writer.add_text('t', 'x' * 200, step)", id="add_text"),
        pytest.param("step % 20 or writer.add_scalars('acc', {'x': 1.0, 'y': 2.0}, step)", id="add_scalars"),
    ],
)
def test_memory_stays_flat(tmp_path, add):
    """Between 15,000 and 25,000 steps; before, a busy machine may not have made all that is kept for repeated steps.

    Python's allocations are counted exactly: 128 KiB would be 1.3 bytes a scalar for add_scalar. What C code allocates
    shows in the resident memory only, which takes 1 million scalars to settle, 12 MiB higher.
    """
    _, _, first, _, last = json.loads(run_well(MEMORY.replace("{add}", add), tmp_path))
    assert last[0] - first[0] < 128
    assert last[1] - first[1] < 16 * 1024


def test_importing_loads_no_framework_no_backend_and_no_tensorboard():
    code = """
    heavy = ("torch", "mindspore", "tensorflow", "tensorboard", "tensorboardX", "jax", "s3fs", "gcsfs", "adlfs",
             "paramiko", "aiohttp", "boto3", "botocore", "PIL", "matplotlib", "pandas", "scipy")
    say(str(sorted(set(heavy) & {name.split(".")[0] for name in sys.modules})))
    """
    assert run_well(code) == "[]\n"


def test_a_writer_starts_one_thread(tmp_path):
    with Child("SummaryWriter(logdir); say(str(threading.active_count()))", tmp_path) as child:
        child.hears("2")
