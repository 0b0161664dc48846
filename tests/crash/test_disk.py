"""Local disks that fill up, lose files, or fail for a while."""

import errno
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from children import run_well
from event_files import event_files, read_file, scalars, statuses, steps, values
from needs import cannot_run

from tbwriter import SinkError, SummaryWriter

KEEP_LOG = """
import json, logging
class Kept(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
said = []
logging.getLogger().addHandler(Kept(logging.WARNING))
"""


@pytest.fixture
def own_mounts(tmp_path):
    """The words before a command that may mount file systems which nobody else sees."""
    place = tmp_path / "probe"
    place.mkdir()
    for prefix in (["unshare", "-m"], ["unshare", "-rm"]):
        mount = [*prefix, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
        try:
            if subprocess.run(mount, capture_output=True, timeout=20, check=False).returncode == 0:
                return prefix
        except (OSError, subprocess.TimeoutExpired):
            continue
    return cannot_run("cannot mount a tmpfs in a namespace of our own (unshare -m)")


SMALL_DISK = (
    KEEP_LOG
    + """
import subprocess
subprocess.check_call(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", logdir])
ballast = os.path.join(logdir, "ballast")
"""
)


def test_a_disk_that_fills_up_and_is_freed_costs_nothing(own_mounts, tmp_path):
    """256 KiB, of which 50 KiB are free; 4200 scalars need 190 KiB."""
    code = """
with open(ballast, "wb") as file:
    file.write(bytes(200_000))
run = os.path.join(logdir, "run")
writer = SummaryWriter(run, flush_secs=0.1)
longest = 0.0
for step in range(4000):
    begin = time.monotonic()
    writer.add_scalar("a", float(step), step)
    longest = max(longest, time.monotonic() - begin)
full = writer.flush(timeout=1)
from waiting import wait_until
wait_until(lambda: writer.stats().last_error, within=30)
error = writer.stats().last_error
os.remove(ballast)
for step in range(4000, 4200):
    writer.add_scalar("a", float(step), step)
free = writer.flush(timeout=60)
writer.close()
from event_files import scalars, statuses
say(json.dumps({
    "no add waited for room": longest < 4.5, "full": full, "error": error, "free": free, "said": said,
    "all": scalars(run, "a") == [(step, float(step)) for step in range(4200)],
    "statuses": sorted(set(statuses(run))), "dropped": writer.stats().dropped,
}))
"""
    out = json.loads(run_well(SMALL_DISK + code, tmp_path, prefix=own_mounts))
    assert "No space left on device" in out.pop("error")
    said = out.pop("said")
    assert len(said) == 2
    assert "the data waits and is tried again" in said[0]
    assert "again after" in said[1]
    assert out == {
        "no add waited for room": True,
        "full": False,
        "free": True,
        "all": True,
        "statuses": ["clean"],
        "dropped": 0,
    }


def test_a_disk_that_stays_full_ends_in_a_readable_file_and_a_count_of_what_is_lost(own_mounts, tmp_path):
    code = """
with open(ballast, "wb") as file:
    file.write(bytes(200_000))
run = os.path.join(logdir, "run")
writer = SummaryWriter(run, flush_secs=0.1)
for step in range(4000):
    writer.add_scalar("a", float(step), step)
writer.close(timeout=1)
from event_files import scalars, statuses
got = scalars(run, "a")
say(json.dumps({
    "prefix": got == [(step, float(step)) for step in range(len(got))], "some": 500 < len(got) < 2000,
    "statuses": statuses(run), "counted": len(got) + writer.stats().dropped,
}))
"""
    out = json.loads(run_well(SMALL_DISK + code, tmp_path, prefix=own_mounts))
    assert out == {"prefix": True, "some": True, "statuses": ["clean"], "counted": 4000}


def test_a_full_disk_at_construction_is_an_error_there_and_leaves_no_file(own_mounts, tmp_path):
    code = """
import errno
from tbwriter import SinkError
run = os.path.join(logdir, "run")
os.mkdir(run)
try:
    with open(ballast, "wb") as file:
        file.write(bytes(1 << 20))
except OSError:
    pass
try:
    SummaryWriter(run)
except SinkError as error:
    say(json.dumps([error.errno == errno.ENOSPC, os.listdir(run), threading.active_count()]))
"""
    assert json.loads(run_well(SMALL_DISK + code, tmp_path, prefix=own_mounts)) == [True, [], 1]


def test_after_its_directory_was_deleted_a_new_file_takes_all_that_follows(tmp_path, caplog):
    logdir = tmp_path / "run"
    with SummaryWriter(logdir) as writer:
        for step in range(10):
            writer.add_scalar("a", float(step), step)
        writer.add_histogram("h", [1.0], 0)
        assert writer.flush()
        shutil.rmtree(logdir)
        for step in range(10, 30):
            writer.add_scalar("a", float(step), step)
            writer.add_histogram("h", [1.0], step)
        assert writer.flush()
        assert steps(logdir, "a") == list(range(10, 30))
        for step in range(30, 40):
            writer.add_scalar("a", float(step), step)
    assert steps(logdir, "a") == list(range(10, 40))
    (path,) = event_files(logdir)
    events, status = read_file(path)
    assert (events[0].file_version, status) == ("brain.Event:2", "clean")
    # The new file stands alone: what a tag needs once a file is there again.
    assert next(value.plugin for tag, _, value in values(logdir) if tag == "h") == "histograms"
    assert len([record for record in caplog.records if "deleted" in record.getMessage()]) == 1


def test_after_its_file_was_deleted_a_new_file_takes_all_that_follows(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush()
        (first,) = event_files(tmp_path)
        first.unlink()
        writer.add_scalar("a", 2.0, 2)
        assert writer.flush()
        assert scalars(tmp_path, "a") == [(2, 2.0)]
    assert not first.exists()


def test_a_directory_deleted_again_and_again_stops_nothing(tmp_path):
    logdir = tmp_path / "run"
    with SummaryWriter(logdir) as writer:
        for step in range(5):
            writer.add_scalar("a", 1.0, step)
            assert writer.flush()
            assert steps(logdir, "a") == [step]
            shutil.rmtree(logdir)
        writer.add_scalar("a", 1.0, 5)
    assert steps(logdir, "a") == [5]


def test_the_sub_runs_of_add_scalars_outlive_their_directory(tmp_path):
    logdir = tmp_path / "run"
    with SummaryWriter(logdir) as writer:
        writer.add_scalars("acc", {"x": 1.0}, 1)
        assert writer.flush()
        shutil.rmtree(logdir)
        writer.add_scalars("acc", {"x": 2.0}, 2)
        assert writer.flush()
    assert scalars(logdir / "acc_x", "acc") == [(2, 2.0)]


def test_a_directory_that_was_moved_keeps_receiving(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush()
        (tmp_path / "run").rename(tmp_path / "moved")
        writer.add_scalar("a", 2.0, 2)
        assert writer.flush()
    assert scalars(tmp_path / "moved", "a") == [(1, 1.0), (2, 2.0)]
    assert not (tmp_path / "run").exists()


# A file system that fails: the hooks stand in for os-level calls on our files, whichever of them the writer uses.
FAILING = (
    KEEP_LOG
    + """
import errno
hits = 0
def rule(size):
    "Return how many of `size` bytes go through, or raise OSError."
    return size
def ours(handle):
    return "tfevents" in os.readlink(f"/proc/self/fd/{handle}")
def hooked(real):
    def write(handle, data, *rest):
        global hits
        if not ours(handle):
            return real(handle, data, *rest)
        data = memoryview(data).cast("B")
        try:
            size = rule(len(data))
        except OSError:
            hits += 1
            raise
        hits += size < len(data)
        return real(handle, data[:size], *rest)
    return write
os.write, os.pwrite = hooked(os.write), hooked(os.pwrite)
def fail(number):
    raise OSError(number, os.strerror(number))
"""
)
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@needs_proc
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(["fail(errno.ESTALE)"], id="one ESTALE"),
        pytest.param(["fail(errno.EACCES)"], id="one EACCES"),
        pytest.param(["fail(errno.EIO)"], id="one EIO"),
        pytest.param(["fail(errno.EINTR)"], id="one EINTR"),
        pytest.param(["fail(errno.EAGAIN)"], id="one EAGAIN"),
        pytest.param(["fail(errno.EIO)"] * 8, id="eight EIO"),
        pytest.param(["fail(errno.ENOSPC)"] * 5, id="five ENOSPC"),
        pytest.param(["fail(errno.EDQUOT)"] * 2, id="two EDQUOT"),
        pytest.param(["size // 2"], id="half a write"),
        pytest.param(["1"] * 5, id="five writes of one byte"),
        pytest.param(["size // 2", "fail(errno.EIO)"], id="half a write, then EIO"),
        pytest.param(["size // 2", "fail(errno.EIO)"] * 4, id="half a write, then EIO, four times"),
        pytest.param(["size // 2", "fail(errno.ESTALE)"], id="half a write, then ESTALE"),
        pytest.param(["size - 1", "fail(errno.ENOSPC)"], id="all but a byte, then ENOSPC"),
        pytest.param(["0"] * 3, id="writes of nothing"),
    ],
)
def test_a_fault_of_the_disk_loses_nothing_and_repeats_nothing(tmp_path, faults):
    code = f"""
writer = SummaryWriter(logdir, flush_secs=0.05)
writer.add_scalar("a", 0.0, 0)
writer.flush()
faults = [lambda size: {", lambda size: ".join(faults)}]
def rule(size):
    return faults.pop(0)(size) if faults else size
for step in range(1, 500):
    writer.add_scalar("a", float(step), step)
flushed = writer.flush(timeout=40)
writer.close()
from event_files import scalars, statuses
say(json.dumps([flushed, hits, scalars(logdir, "a") == [(step, float(step)) for step in range(500)],
    sorted(set(statuses(logdir))), writer.stats().dropped]))
"""
    assert json.loads(run_well(FAILING + code, tmp_path)) == [True, len(faults), True, ["clean"], 0]


@needs_proc
def test_an_outage_is_told_once_and_never_reaches_the_caller(tmp_path):
    code = """
writer = SummaryWriter(logdir, flush_secs=0.02)
def rule(size):
    fail(errno.EACCES)
pause = threading.Event()
for step in range(100):
    writer.add_scalar("a", float(step), step)
    pause.wait(0.005)
flushed = writer.flush(timeout=0.5)
from waiting import wait_until
wait_until(lambda: hits > 1, within=30)
told = len(said)
def rule(size):
    return size
writer.close()
from event_files import steps
say(json.dumps([flushed, hits > 1, told, len(said), len(steps(logdir, "a"))]))
"""
    assert json.loads(run_well(FAILING + code, tmp_path)) == [False, True, 1, 2, 100]


@needs_proc
def test_strict_raises_the_storage_error_at_the_next_call_and_keeps_the_data(tmp_path):
    code = """
from tbwriter import SinkError
writer = SummaryWriter(logdir, flush_secs=0.02, strict=True)
def rule(size):
    fail(errno.EACCES)
errors = []
pause = threading.Event()
step = 0
deadline = time.monotonic() + 20
while not errors and time.monotonic() < deadline:
    try:
        writer.add_scalar("a", float(step), step)
    except SinkError as error:
        errors.append([type(error.__cause__).__name__, error.errno == errno.EACCES])
    step += 1
    pause.wait(0.005)
def rule(size):
    return size
writer.close()
from event_files import steps
say(json.dumps([errors, steps(logdir, "a") == list(range(step))]))
"""
    assert json.loads(run_well(FAILING + code, tmp_path)) == [[["PermissionError", True]], True]


@needs_proc
def test_every_write_is_whole_records_at_the_end_of_the_file(tmp_path):
    """A reader that once saw a hole or a torn record that others follow never recovers."""
    code = """
from event_files import event_files, records
writes, ends = [], {}
def watched(real, positioned):
    def write(handle, data, *rest):
        if ours(handle):
            path = os.readlink(f"/proc/self/fd/{handle}")
            end = ends.setdefault(path, 0)
            at = rest[0] if positioned else os.lseek(handle, 0, os.SEEK_CUR)
            ends[path] = end + len(data)
            writes.append([at - end, records(bytes(data))[1]])
        return real(handle, data, *rest)
    return write
os.write, os.pwrite = watched(os.write, False), watched(os.pwrite, True)
cuts = []
for name in ("truncate", "ftruncate", "posix_fallocate"):
    setattr(os, name, lambda *args: cuts.append(args))
with SummaryWriter(logdir, flush_secs=0.02, max_file_size=100_000) as writer:
    for step in range(4000):
        writer.add_scalar("some/tag", float(step), step)
        if step % 100 == 0:
            writer.add_text("text", "x" * 5000, step)
        if step % 1000 == 0:
            writer.flush()
real = {str(path): path.stat().st_size for path in event_files(logdir)}
say(json.dumps([cuts, [one for one in writes if one != [0, "clean"]], ends == real, len(real) > 2]))
"""
    assert json.loads(run_well(FAILING + code, tmp_path)) == [[], [], True, True]


def test_a_path_through_a_file_is_an_error_at_construction(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match=str(tmp_path / "file")) as caught:
        SummaryWriter(tmp_path / "file" / "run")
    assert caught.value.errno in {errno.ENOTDIR, errno.EEXIST}


def test_a_file_of_an_earlier_session_is_never_touched(tmp_path):
    contents = {}
    for session in range(3):
        with SummaryWriter(tmp_path) as writer:
            writer.add_scalar_series("a", np.arange(100.0), np.arange(100))
        for path in event_files(tmp_path):
            contents.setdefault(path, path.read_bytes())
        assert len(contents) == session + 1
    assert {path: path.read_bytes() for path in event_files(tmp_path)} == contents
    assert statuses(tmp_path) == ["clean"] * 3
