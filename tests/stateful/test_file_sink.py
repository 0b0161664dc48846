"""The file sink on a disk that fails: what is in the file afterwards, byte for byte."""

import errno
import os
import shutil
import stat

import pytest
from storage import IO_ERROR, NO_SPACE, STALE, error, record

from tbwriter import Durability, SegmentLostError, open_sink
from tbwriter.sinks import FileSink

FIRST = "events.out.tfevents.1700000000.host.1.000000"
SECOND = "events.out.tfevents.1700000000.host.1.000001"
HEADER = record(b"header")  # 22 bytes
ONE = record(b"one")  # 19 bytes
TWO = record(b"two" * 10)  # 46 bytes
THREE = record(b"three" * 100)


@pytest.fixture
def sink(disk, tmp_path):
    sink = open_sink(tmp_path / "run", name=FIRST, header=HEADER)
    disk.calls.clear()
    yield sink
    sink.close()


@pytest.fixture
def stored(tmp_path):
    return lambda name=FIRST: (tmp_path / "run" / name).read_bytes()


def append_again_and_again(sink, records):
    """Pass the same records until they are taken, as the event file does."""
    while not is_taken(sink, records):
        pass


def is_taken(sink, records):
    try:
        sink.append(records)
    except SegmentLostError:
        raise
    except OSError:
        return False
    return True


# ---- when all is well


def test_every_append_is_one_write_at_the_end_of_the_file(sink, disk):
    sink.append(ONE)
    sink.append(TWO + THREE)
    assert [offset for _, _, offset in disk.arguments("pwrite")] == [22, 41]
    assert [bytes(data) for _, data, _ in disk.arguments("pwrite")] == [ONE, TWO + THREE]


def test_nothing_but_writes_happens_until_a_sync(sink, disk):
    for _ in range(10):
        sink.append(ONE)
        sink.flush(Durability.OS)
    assert {name for name, _ in disk.calls} == {"pwrite"}


def test_a_flush_to_the_system_reaches_it_without_a_system_call(sink, disk):
    sink.append(ONE)
    disk.calls.clear()
    assert sink.flush(Durability.OS) is Durability.OS
    assert disk.calls == []


def test_a_sync_syncs_the_data_each_time_and_the_directory_once(sink, disk):
    sink.append(ONE)
    assert sink.flush(Durability.SYNC) is Durability.SYNC
    sink.append(TWO)
    assert sink.flush(Durability.SYNC) is Durability.SYNC
    assert (disk.count("fdatasync"), disk.count("fsync")) == (2, 1)


def test_the_directory_is_synced_again_for_the_next_file(sink, disk):
    sink.flush(Durability.SYNC)
    sink.roll(SECOND, HEADER)
    sink.flush(Durability.SYNC)
    assert disk.count("fsync") == 2


def test_close_syncs(sink, disk):
    sink.append(ONE)
    sink.close()
    assert disk.count("fdatasync") == 1


def test_close_syncs_a_file_that_was_released(sink, disk):
    sink.append(ONE)
    sink.release()
    sink.close()
    assert disk.count("fdatasync") == 1
    assert disk.count("close") == disk.count("open") + 1  # and the handle of before


def test_close_without_any_time_left_cuts_and_closes_and_does_not_sync(sink, disk, stored):
    """Of hundreds of sub-runs on a slow disk."""
    sink.append(ONE)
    disk.plan("pwrite", 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.append(TWO)
    sink.close(timeout=0)
    assert stored() == HEADER + ONE
    assert disk.count("fdatasync") == 0


def test_a_file_is_created_exclusively_and_not_inherited_by_child_processes(disk, tmp_path):
    sink = open_sink(tmp_path, name=FIRST, header=HEADER)
    (path, flags, mode) = disk.arguments("open")[0]
    assert path == str(tmp_path / FIRST)
    assert flags & os.O_CREAT
    assert flags & os.O_EXCL
    assert flags & os.O_CLOEXEC
    assert not flags & (os.O_TRUNC | os.O_APPEND)
    assert mode == 0o666
    sink.close()


def test_an_existing_file_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / FIRST).write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        open_sink(tmp_path, name=FIRST, header=HEADER)
    assert (tmp_path / FIRST).read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("umask", "file_mode", "directory_mode"), [(0o002, 0o664, 0o775), (0o077, 0o600, 0o700), (0o022, 0o644, 0o755)]
)
def test_the_umask_alone_limits_the_modes(tmp_path, umask, file_mode, directory_mode):
    before = os.umask(umask)
    try:
        open_sink(tmp_path / "a" / "b", name=FIRST, header=HEADER).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "b" / FIRST).stat().st_mode) == file_mode
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == directory_mode
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == directory_mode


# ---- short writes, and a disk that is full for a while


def test_a_short_write_is_continued_where_it_stopped(sink, disk, stored):
    disk.plan("pwrite", 5, 1, 30)
    sink.append(ONE + TWO)
    assert [offset for _, _, offset in disk.arguments("pwrite")] == [22, 27, 28, 58]
    assert stored() == HEADER + ONE + TWO


def test_what_a_full_disk_took_of_an_append_is_not_written_twice(sink, disk, stored):
    disk.plan("pwrite", 30, NO_SPACE, NO_SPACE, 3, NO_SPACE)
    append_again_and_again(sink, ONE + TWO)
    sink.append(THREE)
    assert stored() == HEADER + ONE + TWO + THREE


def test_an_append_to_a_full_disk_raises_what_the_system_says(sink, disk):
    disk.plan("pwrite", NO_SPACE)
    with pytest.raises(OSError, match="No space left") as raised:
        sink.append(ONE)
    assert raised.value.errno == errno.ENOSPC
    assert not isinstance(raised.value, SegmentLostError)


def test_a_failed_append_counts_as_a_retry_with_its_error(sink, disk):
    disk.plan("pwrite", NO_SPACE)
    append_again_and_again(sink, ONE)
    status = sink.status()
    assert (status.retries, status.last_error, status.bytes_os) == (1, "[Errno 28] No space left on device", 41)


def test_a_flush_within_an_unfinished_append_reaches_nothing(sink, disk):
    disk.plan("pwrite", 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.append(ONE)
    assert sink.flush(Durability.SYNC) is Durability.BUFFER
    sink.append(ONE)


@pytest.mark.parametrize("end", ["close", "roll"])
def test_the_torn_part_of_an_unfinished_append_is_cut_off_at_the_end_of_a_file(sink, disk, stored, end):
    sink.append(ONE)
    disk.plan("pwrite", 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.append(TWO)
    sink.close() if end == "close" else sink.roll(SECOND, HEADER)
    assert stored() == HEADER + ONE


@pytest.mark.parametrize("end", ["close", "roll"])
def test_whole_records_of_an_unfinished_append_are_never_cut_off(sink, disk, stored, end):
    """A reader may have read them: a file that shrinks below what was read stops its curves."""
    disk.plan("pwrite", len(ONE) + 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.append(ONE + TWO)
    sink.close() if end == "close" else sink.roll(SECOND, HEADER)
    assert stored() == HEADER + ONE


def test_a_tail_that_cannot_be_cut_off_does_not_stop_the_next_file(sink, disk, stored):
    disk.plan("pwrite", 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.append(ONE)
    disk.plan("ftruncate", IO_ERROR)
    sink.roll(SECOND, HEADER)
    sink.append(TWO)
    assert stored(SECOND) == HEADER + TWO


# ---- EIO and lost handles


@pytest.mark.parametrize("times", [1, 2])
def test_a_hiccup_of_the_disk_is_no_reason_for_a_new_file(sink, disk, stored, times):
    disk.plan("pwrite", *[IO_ERROR] * times)
    append_again_and_again(sink, ONE)
    assert stored() == HEADER + ONE


def test_the_third_eio_in_a_row_gives_the_file_up(sink, disk):
    disk.plan("pwrite", IO_ERROR, IO_ERROR, IO_ERROR)
    with pytest.raises(SegmentLostError, match=rf"{FIRST}: Input/output error") as lost:
        append_again_and_again(sink, ONE)
    assert lost.value.accepted == 0
    assert lost.value.__cause__ is IO_ERROR


def test_eio_counts_in_a_row_only(sink, disk, stored):
    disk.plan("pwrite", IO_ERROR, IO_ERROR, None, IO_ERROR, IO_ERROR, None)
    append_again_and_again(sink, ONE)
    append_again_and_again(sink, TWO)
    assert stored() == HEADER + ONE + TWO


def test_a_file_that_is_given_up_keeps_its_whole_records_and_says_which(sink, disk, stored):
    disk.plan("pwrite", len(ONE) + len(TWO) + 7, IO_ERROR, IO_ERROR, IO_ERROR)
    with pytest.raises(SegmentLostError) as lost:
        append_again_and_again(sink, ONE + TWO + THREE)
    assert lost.value.accepted == 65  # the whole records: 19 + 46 bytes
    sink.roll(SECOND, HEADER)
    sink.append(THREE)
    assert stored() == HEADER + ONE + TWO
    assert stored(SECOND) == HEADER + THREE


def test_bytes_os_counts_the_whole_records_of_a_file_that_is_given_up(sink, disk):
    disk.plan("pwrite", len(ONE) + 7, IO_ERROR, IO_ERROR, IO_ERROR)
    with pytest.raises(SegmentLostError):
        append_again_and_again(sink, ONE + TWO)
    sink.roll(SECOND, HEADER)
    sink.append(TWO)
    assert sink.status().bytes_os == len(HEADER + ONE + HEADER + TWO)


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EBADF, errno.ENOENT, errno.ENOTDIR])
def test_a_handle_that_the_server_does_not_know_any_more_gives_the_file_up_at_once(sink, disk, number):
    disk.plan("pwrite", error(number))
    with pytest.raises(SegmentLostError, match=FIRST) as lost:
        sink.append(ONE)
    assert lost.value.accepted == 0


@pytest.mark.parametrize("failures", [[STALE], [IO_ERROR] * 3])
def test_a_file_that_is_given_up_holds_what_was_said_to_be_accepted_and_no_more(sink, disk, stored, failures):
    """What is there and not accepted comes again in the next file, and the curves would show it twice."""
    disk.plan("pwrite", len(ONE) + 5, *failures)
    with pytest.raises(SegmentLostError) as lost:
        append_again_and_again(sink, ONE + TWO)
    sink.roll(SECOND, HEADER)
    assert stored() == HEADER + (ONE + TWO)[: lost.value.accepted]


def test_after_a_stale_handle_the_next_file_takes_the_same_records(sink, disk, stored):
    disk.plan("pwrite", 5, STALE)
    with pytest.raises(SegmentLostError):
        sink.append(ONE)
    sink.roll(SECOND, HEADER)
    sink.append(ONE)
    assert stored(SECOND) == HEADER + ONE


def test_a_deleted_file_is_noticed_by_the_append_whose_records_went_with_it(sink, tmp_path, stored):
    sink.append(ONE)
    (tmp_path / "run" / FIRST).unlink()
    with pytest.raises(SegmentLostError, match=f"{FIRST} was deleted") as lost:
        sink.append(TWO)
    assert lost.value.accepted == 0
    sink.roll(SECOND, HEADER)
    sink.append(TWO)
    assert stored(SECOND) == HEADER + TWO


def test_a_deleted_directory_is_made_again_for_the_next_file(sink, tmp_path, stored):
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(SegmentLostError):
        sink.append(ONE)
    sink.roll(SECOND, HEADER)
    sink.append(ONE)
    assert stored(SECOND) == HEADER + ONE


# ---- the first record of a file


def test_a_header_is_continued_after_a_short_write(disk, tmp_path):
    disk.plan("pwrite", 5)
    open_sink(tmp_path, name=FIRST, header=HEADER).close()
    assert (tmp_path / FIRST).read_bytes() == HEADER


def test_a_header_that_cannot_be_written_leaves_no_file_and_no_handle(disk, tmp_path):
    disk.plan("pwrite", 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        open_sink(tmp_path, name=FIRST, header=HEADER)
    assert list(tmp_path.iterdir()) == []
    assert disk.count("open") == disk.count("close")


def test_a_roll_that_fails_leaves_the_old_file_whole_and_can_be_repeated(sink, disk, tmp_path, stored):
    sink.append(ONE)
    disk.plan("pwrite", NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.roll(SECOND, HEADER)
    assert [path.name for path in (tmp_path / "run").iterdir()] == [FIRST]
    sink.roll(SECOND, HEADER)
    sink.append(TWO)
    assert (stored(), stored(SECOND)) == (HEADER + ONE, HEADER + TWO)


# ---- handles


def test_release_closes_the_handle_and_the_next_append_opens_the_file_again(sink, disk, stored):
    sink.append(ONE)
    sink.release()
    sink.release()
    assert disk.count("close") == 1
    sink.append(TWO)
    ((_, flags, *_),) = disk.arguments("open")
    assert not flags & (os.O_CREAT | os.O_TRUNC)
    assert flags & os.O_CLOEXEC
    assert stored() == HEADER + ONE + TWO


def test_a_file_that_was_deleted_while_it_was_released_is_given_up(sink, tmp_path, stored):
    sink.release()
    (tmp_path / "run" / FIRST).unlink()
    with pytest.raises(SegmentLostError, match="No such file"):
        sink.append(ONE)
    sink.roll(SECOND, HEADER)
    sink.append(ONE)
    assert stored(SECOND) == HEADER + ONE


def test_release_keeps_the_handle_of_an_unfinished_append(sink, disk, stored):
    disk.plan("pwrite", 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.append(ONE)
    sink.release()
    sink.append(ONE)
    assert stored() == HEADER + ONE


def test_a_released_file_can_be_synced(sink, disk):
    sink.append(ONE)
    sink.release()
    assert sink.flush(Durability.SYNC) is Durability.SYNC


def test_roll_and_close_leave_no_handle(disk, tmp_path):
    sink = open_sink(tmp_path, name=FIRST, header=HEADER)
    sink.append(ONE)
    sink.roll(SECOND, HEADER)
    sink.flush(Durability.SYNC)
    sink.close()
    sink.close()
    assert disk.count("open") == disk.count("close")


# ---- errors that are told and not raised


def test_a_sync_of_the_directory_that_fails_reaches_the_system_only_and_is_tried_again(sink, disk):
    sink.append(ONE)
    disk.plan("fsync", IO_ERROR)
    assert sink.flush(Durability.SYNC) is Durability.OS
    assert sink.status().last_error == "[Errno 5] Input/output error"
    assert sink.flush(Durability.SYNC) is Durability.SYNC
    assert disk.count("fsync") == 2


def test_after_a_sync_that_failed_no_later_one_is_believed_until_the_next_file(sink, disk):
    """The system forgets pages that it could not write back: the next fdatasync succeeds without them."""
    sink.append(ONE)
    assert not sink.roll_due()
    disk.plan("fdatasync", IO_ERROR)
    assert sink.flush(Durability.SYNC) is Durability.OS
    assert sink.status().last_error == "[Errno 5] Input/output error"
    assert sink.flush(Durability.SYNC) is Durability.OS
    assert sink.roll_due()
    sink.roll(SECOND, HEADER)
    sink.append(TWO)
    assert sink.flush(Durability.SYNC) is Durability.SYNC


def test_a_sync_that_fails_at_the_end_of_a_file_is_told_by_one_flush(sink, disk):
    sink.append(ONE)
    disk.plan("fdatasync", IO_ERROR)
    sink.roll(SECOND, HEADER)
    assert sink.flush(Durability.OS) is Durability.OS
    assert sink.flush(Durability.SYNC) is Durability.OS
    assert sink.flush(Durability.SYNC) is Durability.SYNC


def test_a_file_is_synced_before_the_next_one_begins(sink, disk):
    sink.append(ONE)
    sink.roll(SECOND, HEADER)
    assert [name for name, _ in disk.calls if name in {"fdatasync", "open", "close"}][:2] == ["fdatasync", "open"]
    sink.append(TWO)
    assert sink.flush(Durability.SYNC) is Durability.SYNC
    assert disk.count("fdatasync") == 2


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_that_cannot_sync_directories_reaches_a_sync_all_the_same(sink, disk, number):
    disk.plan("fsync", error(number))
    assert sink.flush(Durability.SYNC) is Durability.SYNC
    assert sink.flush(Durability.SYNC) is Durability.SYNC
    assert disk.count("fsync") == 1


def test_an_error_of_close_is_told_and_not_raised(sink, disk, stored):
    """NFS reports there that a write failed."""
    sink.append(ONE)
    disk.plan("close", error(errno.EDQUOT))
    assert "Errno 122" in sink.close().last_error
    assert stored() == HEADER + ONE


def test_a_place_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "run").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        open_sink(tmp_path / "run", name=FIRST, header=HEADER)


# ---- a file system that other machines see: every append is synced


@pytest.fixture
def shared(disk, tmp_path):
    sink = FileSink(str(tmp_path / "run"), name=FIRST, header=HEADER, shared=True)
    disk.calls.clear()
    yield sink
    sink.close()


def writes_and_syncs(disk):
    """Return ("pwrite", offset, length) and ("fdatasync",) in order."""
    return [
        (name, arguments[2], len(arguments[1])) if name == "pwrite" else (name,)
        for name, arguments in disk.calls
        if name in {"pwrite", "fdatasync"}
    ]


def test_on_a_shared_file_system_an_append_is_synced_before_it_returns(shared, disk):
    shared.append(ONE)
    assert writes_and_syncs(disk) == [("pwrite", 22, 19), ("fdatasync",)]
    assert shared.flush(Durability.OS) is Durability.SYNC
    assert disk.count("fdatasync") == 1


def test_a_large_append_is_synced_in_chunks_of_whole_records_of_at_most_64_kib(shared, disk, stored):
    records = record(b"x" * 25_000) * 4  # 25,016 bytes each
    shared.append(records)
    assert writes_and_syncs(disk) == [
        ("pwrite", 22, 50_032),
        ("fdatasync",),
        ("pwrite", 22 + 50_032, 50_032),
        ("fdatasync",),
    ]
    assert stored() == HEADER + records


def test_a_record_above_64_kib_is_synced_in_pieces_and_what_follows_by_records(shared, disk, stored):
    large, small = record(b"x" * 100_000), record(b"y" * 20_000)
    shared.append(ONE + large + small)
    assert [call[2] for call in writes_and_syncs(disk) if call[0] == "pwrite"] == [19, 65_536, 54_496]
    assert stored() == HEADER + ONE + large + small


def test_a_header_alone_is_synced_by_a_flush(shared, disk):
    assert shared.flush(Durability.OS) is Durability.SYNC
    assert writes_and_syncs(disk) == [("fdatasync",)]


def test_what_a_failed_sync_left_is_cut_off_and_written_once_more_with_the_header(shared, disk, stored):
    """The system may have forgotten both, and a later sync would succeed without them."""
    disk.plan("fdatasync", IO_ERROR)
    with pytest.raises(OSError, match="Input/output error"):
        shared.append(ONE)
    assert stored() == HEADER
    disk.calls.clear()
    shared.append(ONE)
    assert writes_and_syncs(disk) == [("pwrite", 22, 19), ("pwrite", 0, 22), ("fdatasync",)]
    assert stored() == HEADER + ONE
    assert shared.flush(Durability.SYNC) is Durability.SYNC
    assert not shared.roll_due()


def test_a_chunk_that_was_synced_is_not_written_again_when_a_later_one_fails(shared, disk, stored):
    records = record(b"x" * 40_000) * 3
    disk.plan("fdatasync", None, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        shared.append(records)
    assert stored() == HEADER + records[:40_016]
    disk.calls.clear()
    shared.append(records)
    assert [call[1] for call in writes_and_syncs(disk) if call[0] == "pwrite"] == [22 + 40_016, 0, 22 + 80_032]
    assert stored() == HEADER + records


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_a_shared_file_that_is_given_up_keeps_what_was_synced_and_no_more(shared, disk, stored, call):
    records = record(b"x" * 40_000) * 3
    disk.plan(call, None, IO_ERROR, IO_ERROR, IO_ERROR)
    with pytest.raises(SegmentLostError, match="Input/output error") as lost:
        append_again_and_again(shared, records)
    assert lost.value.accepted == 40_016
    assert stored() == HEADER + records[:40_016]
    shared.roll(SECOND, HEADER)
    shared.append(records[40_016:])
    assert stored(SECOND) == HEADER + records[40_016:]


def test_a_stale_handle_of_a_file_that_is_still_there_keeps_what_was_synced(shared, disk, stored):
    """A server that was restarted: the file is there and its handle is not. All of it again would show twice."""
    records = record(b"x" * 40_000) * 3
    disk.plan("pwrite", None, STALE)
    disk.plan("ftruncate", STALE)
    with pytest.raises(SegmentLostError, match="Stale file handle") as lost:
        shared.append(records)
    assert lost.value.accepted == 40_016
    assert stored() == HEADER + records[:40_016]


def test_a_full_disk_that_took_half_of_a_chunk_shows_whole_records_only(shared, disk, stored):
    disk.plan("pwrite", len(ONE) + 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        shared.append(ONE + TWO)
    assert stored() == HEADER
    shared.append(ONE + TWO)
    assert stored() == HEADER + ONE + TWO


def test_a_deleted_shared_file_is_noticed_by_the_append_whose_records_went_with_it(shared, tmp_path):
    (tmp_path / "run" / FIRST).unlink()
    with pytest.raises(SegmentLostError, match=f"{FIRST} was deleted") as lost:
        shared.append(ONE)
    assert lost.value.accepted == 0


def test_a_file_that_was_cut_after_an_unfinished_append_is_never_made_longer(sink, disk, tmp_path, stored):
    """Zeros at its end would stop every reader."""
    sink.append(ONE)
    disk.plan("pwrite", 5, NO_SPACE)
    with pytest.raises(OSError, match="No space left"):
        sink.append(TWO)
    os.truncate(tmp_path / "run" / FIRST, 10)
    with pytest.raises(SegmentLostError, match="cut short"):
        sink.append(TWO)
    sink.roll(SECOND, HEADER)
    assert stored() == HEADER[:10]
