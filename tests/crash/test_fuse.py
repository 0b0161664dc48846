"""A shared file system that fails, stalls or caches: a real mount, whose server's side the tests look at."""

import errno
import signal
import threading
import time
import zlib

import numpy as np
import pytest
from children import Child
from event_files import event_files, records, scalars, statuses, steps
from waiting import wait_until

from tbwriter import SummaryWriter, open_sink, sinks
from tbwriter.testing import SinkTests

COUNT = 300


def write(directory, *, before=lambda step: None, **options):
    """Write COUNT scalars, a flush for every tenth; return the writer, closed, and what the flushes said."""
    said = []
    with SummaryWriter(directory, flush_secs=0.05, **options) as writer:
        for step in range(COUNT):
            before(step)
            writer.add_scalar("a", float(step), step)
            if step % 10 == 9:
                said.append(writer.flush(timeout=30))
    return writer, said


def whole(directory):
    return scalars(directory, "a") == [(step, float(step)) for step in range(COUNT)]


def test_a_mount_that_is_well_gets_one_file_with_everything(mount):
    writer, said = write(mount.path / "run")
    assert all(said)
    assert whole(mount.server / "run")
    assert statuses(mount.server / "run") == ["clean"]
    assert writer.stats().retries == 0


@pytest.mark.parametrize(
    ("operation", "name", "plan", "files"),
    [
        ("write", "ENOSPC", {"times": 10}, 1),
        ("write", "ENOSPC", {"times": 10, "short": 30}, 1),
        ("write", "EDQUOT", {"times": 2}, 1),
        ("write", "EACCES", {"times": 3}, 1),
        ("write", "EIO", {"times": 2}, 1),
        ("write", "EIO", {"times": 10, "short": 30}, 4),
        ("fsync", "EIO", {"times": 1}, 1),
        ("fsync", "EIO", {"times": 10}, 4),
        ("fsync", "ENOSPC", {"times": 3}, 1),
        ("write", "ESTALE", {"times": 1, "short": 30}, 2),
        ("fsync", "ESTALE", {"times": 1}, 2),
        ("truncate", "EIO", {"times": 5}, 1),
    ],
    ids=lambda value: " ".join(f"{key}={number}" for key, number in value.items()) if isinstance(value, dict) else None,
)
def test_a_fault_of_the_mount_loses_nothing_repeats_nothing_and_tears_nothing(mount, operation, name, plan, files):
    def break_it(step):
        if step == 95:
            mount.fail(operation, name, **plan)

    writer, said = write(mount.path / "run", before=break_it)
    assert all(said)
    assert whole(mount.server / "run")
    assert set(statuses(mount.server / "run")) == {"clean"}
    assert len(event_files(mount.server / "run")) <= files
    assert writer.stats().dropped == 0


def test_faults_of_all_kinds_in_one_run_lose_nothing(mount):
    kinds = [("write", "ENOSPC"), ("write", "EIO"), ("fsync", "EIO"), ("write", "ESTALE"), ("fsync", "ENOSPC")]

    def break_it(step):
        if step % 20 == 5:
            mount.fail(*kinds[step // 20 % len(kinds)], times=1 + step % 3, short=step)

    _, said = write(mount.path / "run", before=break_it)
    assert all(said)
    assert whole(mount.server / "run")
    assert set(statuses(mount.server / "run")) == {"clean"}


def test_a_file_that_was_deleted_on_the_server_is_followed_by_a_new_one(mount):
    """What was flushed went with it; everything after is in the new file."""

    def delete(step):
        if step == 100:
            (path,) = event_files(mount.server / "run")
            path.unlink()

    _, said = write(mount.path / "run", before=delete)
    assert all(said)
    assert steps(mount.server / "run", "a") == list(range(100, COUNT))
    assert statuses(mount.server / "run") == ["clean"]


def test_a_mount_that_cannot_sync_gets_everything_and_claims_nothing(mount):
    mount.fail("fsync", "EINVAL", times=100_000)
    with SummaryWriter(mount.path / "run") as writer:
        for step in range(COUNT):
            writer.add_scalar("a", float(step), step)
        assert writer.flush()
        assert not writer.sync()
        assert whole(mount.server / "run")
    assert len(event_files(mount.server / "run")) == 1


def test_a_mount_that_counts_no_links_gets_one_file(mount):
    mount.tell(no_links=True)
    _, said = write(mount.path / "run")
    assert all(said)
    assert whole(mount.server / "run")
    assert len(event_files(mount.server / "run")) == 1


class TestAFileSinkOnAMountThatCaches(SinkTests):
    """What other machines see is what a sink must show."""

    @pytest.fixture(autouse=True)
    def _place(self, mount):
        mount.tell(write_back=True)
        self.mount = mount

    def open(self, name, header):
        return open_sink(self.mount.path / "run", name=name, header=header)

    def stored(self, name):
        path = self.mount.server / "run" / name
        return path.read_bytes() if path.exists() else None


def test_another_machine_sees_everything_after_each_flush_of_a_client_that_caches(mount):
    mount.tell(write_back=True)
    with SummaryWriter(mount.path / "run", flush_secs=3600) as writer:
        for step in range(30):
            writer.add_scalar("a", float(step), step)
            assert writer.flush()
            assert steps(mount.server / "run", "a") == list(range(step + 1))
            assert statuses(mount.server / "run") == ["clean"]


def test_another_machine_sees_a_beginning_of_the_file_at_every_moment_and_never_a_hole(mount):
    """Read again and again while 2 MB are written by a client that caches and sends in an order of its own.

    A look between two steps of the server's own write may end within a record, as on a local disk; readers wait for
    the rest of that one. What they never get over is a place that reads other than it will.
    """
    mount.tell(write_back=True)
    seen, over = set(), threading.Event()
    with SummaryWriter(mount.path / "run") as writer:

        def look():
            while not over.is_set():
                for path in event_files(mount.server / "run"):
                    data = path.read_bytes()
                    seen.add((len(data), zlib.crc32(data)))

        reader = threading.Thread(target=look)
        reader.start()
        for step in range(2000):
            writer.add_text("text", "x" * 1000, step)
        assert writer.flush()
        over.set()
        reader.join()
    (path,) = event_files(mount.server / "run")
    stored = path.read_bytes()
    assert records(stored)[1] == "clean"
    assert len(seen) > 5
    assert [size for size, checksum in seen if zlib.crc32(stored[:size]) != checksum] == []


def test_where_others_see_a_file_at_its_end_only_files_that_end_by_age_show_what_is_older(mount):
    """As mounts of object stores are: a sync shows nothing."""
    mount.tell(close_only=True)
    with SummaryWriter(mount.path / "run", flush_secs=0.05, max_file_age=1) as writer:
        written = 0
        seen = []
        give_up_at = time.monotonic() + 30
        while not seen and time.monotonic() < give_up_at:
            writer.add_scalar("a", float(written), written)
            assert writer.flush()
            written += 1
            seen = steps(mount.server / "run", "a")
        assert 0 < len(seen) < written
        assert seen == list(range(len(seen)))
    assert steps(mount.server / "run", "a") == list(range(written))


def test_where_others_see_a_file_at_its_end_a_flush_that_ends_it_shows_everything(mount):
    mount.tell(close_only=True)
    with SummaryWriter(mount.path / "run", flush_secs=0.05, rotate_on_flush=True) as writer:
        for step in range(5):
            writer.add_scalar("a", float(step), step)
            writer.add_scalars("b", {"key": float(step)}, step)
            assert writer.flush()
            assert steps(mount.server / "run", "a") == list(range(step + 1))
            assert steps(mount.server / "run" / "b_key", "b") == list(range(step + 1))
    assert steps(mount.server / "run", "a") == list(range(5))


def test_of_a_file_system_with_50_ms_per_operation_the_loop_feels_none(mount):
    """Counted by thread and not by time: every operation is the worker's."""
    with SummaryWriter(mount.path / "run", flush_secs=3600) as writer:
        writer.add_scalar("warm", 0.0, 0)
        writer.flush()
        mount.calls()
        mount.tell(delay_secs=0.05)
        for step in range(100):
            for key in range(20):
                writer.add_scalar(f"k{key}", float(step), step)
    mount.tell(delay_secs=0.0)
    calls = mount.calls()
    own = threading.get_native_id()
    assert [operation for operation, thread in calls if thread == own] == []
    counted = {name: sum(operation == name for operation, _ in calls) for name in ("open", "create", "write", "fsync")}
    assert counted["create"] == 0
    assert counted["open"] <= 1  # of the directory, for its sync
    assert 1 <= counted["fsync"] <= 2
    assert counted["write"] <= 4  # the kernel splits a write at a page
    assert len(scalars(mount.server / "run")) == 2001


def test_one_file_is_created_and_no_other_is_opened(mount):
    write(mount.path / "run")
    operations = [operation for operation, _ in mount.calls()]
    assert operations.count("create") == 1
    assert operations.count("open") == 0
    assert operations.count("fsyncdir") == 1


def test_with_a_mount_that_hangs_close_returns_in_time_and_says_what_is_left(mount):
    code = """
import logging
logging.basicConfig(format="%(message)s")
writer = SummaryWriter(logdir, flush_secs=0.05)
writer.add_scalar("a", 0.0, 0)
assert writer.flush()
say("ready")
wait_for_parent()
begin = time.monotonic()
longest = 0.0
for step in range(1, 1000):
    moment = time.monotonic()
    writer.add_scalar("a", float(step), step)
    longest = max(longest, time.monotonic() - moment)
flushed = writer.flush(timeout=0.2)
writer.close(timeout=1)
say(repr((longest < 4.5, flushed, time.monotonic() - begin < 10, writer.stats().queued)))
wait_for_parent()
os._exit(0)
"""
    with Child(code, mount.path / "run") as child:
        child.hears()
        mount.tell(hang="write")
        child.go_on()
        child.hears(repr((True, False, True, 999)))
        mount.tell(release=True)
        # What hung is stored after all: nothing of it was given up but the wait.
        wait_until(lambda: steps(mount.server / "run", "a") == list(range(1000)), within=20, what="the rest")
        child.go_on()
        ended = child.end()
    assert ended.returncode == 0
    assert "storage hangs; closed with 999 values not stored" in ended.err


def test_after_kill_9_another_machine_sees_all_that_was_flushed(mount):
    """And what was not is gone with the client's cache, as when its machine fails."""
    mount.tell(write_back=True)
    code = """
writer = SummaryWriter(logdir, flush_secs=3600)
for step in range(500):
    writer.add_scalar("a", float(step), step)
assert writer.flush()
for step in range(500, 600):
    writer.add_scalar("a", float(step), step)
say("ready")
wait_for_parent()
"""
    with Child(code, mount.path / "run") as child:
        child.hears()
        child.send(signal.SIGKILL)
        child.end()
    assert steps(mount.server / "run", "a") == list(range(500))
    assert statuses(mount.server / "run") == ["clean"]


def test_by_default_a_mount_is_flushed_every_five_seconds(mount):
    """Each flush is a sync there. Less than a second, as on a local disk, would be many; here is only a lower bound."""
    begin = time.monotonic()
    with SummaryWriter(mount.path / "run") as writer:
        writer.add_scalar("a", 1.0, 1)
        wait_until(lambda: steps(mount.server / "run", "a") == [1], within=20, what="the first flush")
        assert time.monotonic() - begin > 3


@pytest.mark.parametrize(("mount", "said"), [("s3fs", 1), ("sshfs", 0)], indirect=["mount"])
def test_a_mount_of_an_object_store_is_said_to_have_a_better_way(mount, said, caplog):
    with SummaryWriter(mount.path / "run") as writer:
        writer.add_scalar("a", 1.0, 1)
    assert steps(mount.server / "run", "a") == [1]
    assert len([record for record in caplog.records if "give the URL of the store" in record.getMessage()]) == said


@pytest.mark.parametrize("name", ["EPERM", "EINVAL", "EOPNOTSUPP", "ESPIPE"])
def test_on_a_mount_where_no_file_grows_each_flush_has_a_file_and_everything_is_there(mount, caplog, name):
    """As on Mountpoint for S3, goofys, DBFS and rclone: what was synced or closed takes no more."""
    mount.tell(no_growth=getattr(errno, name))
    with SummaryWriter(mount.path / "run", flush_secs=3600) as writer:
        for step in range(5):
            writer.add_scalar("a", float(step), step)
            writer.add_scalars("group", {"one": float(step)}, step)
            assert writer.flush(timeout=30)
    everything = [(step, float(step)) for step in range(5)]
    assert scalars(mount.server / "run", "a") == everything
    assert statuses(mount.server / "run") == ["clean"] * 5
    assert scalars(mount.server / "run" / "group_one", "group") == everything
    assert writer.stats().retries <= 4  # the first two refusals of the run and of its sub-run
    said = [record.getMessage() for record in caplog.records if "lets no file grow" in record.getMessage()]
    assert len(said) == 2


def test_a_single_refusal_to_grow_costs_one_new_file(mount, caplog):
    _, said = write(mount.path / "run", before=lambda step: step == 100 and mount.fail("write", "EPERM"))
    assert all(said)
    assert whole(mount.server / "run")
    assert len(event_files(mount.server / "run")) == 2
    assert not [record for record in caplog.records if "lets no file grow" in record.getMessage()]


@pytest.mark.parametrize("name", ["ENOSYS", "EOPNOTSUPP", "EPERM"])
def test_on_a_mount_without_rename_embeddings_are_stored_all_the_same(mount, name):
    """As on Mountpoint for S3. They held up every flush of the run."""
    mount.tell(no_growth=errno.EPERM)
    mount.fail("rename", name, times=1000)
    with SummaryWriter(mount.path / "run", flush_secs=3600) as writer:
        for step in range(2):
            writer.add_embedding(np.eye(2) + step, global_step=step)
            assert writer.flush(timeout=30)
    run = mount.server / "run"
    assert [(run / f"0000{step}" / "default" / "tensors.tsv").read_bytes() for step in range(2)] == [
        b"1\t0\n0\t1\n",
        b"2\t1\n1\t2\n",
    ]
    assert (run / "projector_config.pbtxt").read_text().count("tensor_path") == 2
    assert not list(run.rglob("*.part"))


def test_a_mount_has_the_defaults_of_shared_storage_and_the_disk_below_it_its_own(mount):
    assert sinks.defaults(str(mount.path / "not" / "there" / "yet")) == (5.0, 256 << 20)
    assert sinks.defaults(str(mount.server)) == (1.0, 1 << 30)
