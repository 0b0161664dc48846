"""The event files of one run: headers, metadata, rotation, coalescing, and faults that lose and repeat nothing."""

import itertools
import os
import re
import shutil
import struct
import tracemalloc

import numpy as np
import pytest
from event_files import event_files, read_file, scalars, statuses, values
from hypothesis import given
from hypothesis import strategies as st
from storage import IO_ERROR, NO_SPACE, STALE, Disk, Faults, faulty, record, through

from tbwriter import SegmentLostError, SummaryWriter
from tbwriter._entries import Pending, RawSummary, Scalars, Series, SubRun, pack_floats
from tbwriter._event_file import EventFile, Place
from tbwriter._runs import Runs
from tbwriter._summary import Histogram, Text
from tbwriter._wall_times import Given
from tbwriter.sinks import Durability
from tbwriter.testing import FaultySink

NOW = 1700000000.5
MARKER = 2**63 - 1


def place(directory, **options):
    return Place(url=str(directory), pid=7, host="host", **options)


@pytest.fixture
def make(tmp_path):
    files = []

    def make(purge_step=None, clock=lambda: NOW, **options):
        files.append(EventFile(place(tmp_path, **options), purge_step=purge_step, clock=clock))
        return files[-1]

    yield make
    for file in files:
        file.close(0)


def scalars_of(path):
    return [(event.step, value.scalar()) for event in read_file(path)[0] for value in event.values]


def store(file, *entries, coalesce=True):
    file.add(entries, coalesce=coalesce)
    file.drain()


def scalar(tag, value, step, wall_time=NOW):
    return (tag, value, step, wall_time)


def histogram(tag, array, step=1, wall_time=NOW):
    kept = Histogram.of(tag, np.asarray(array), bins="tensorflow", max_bins=None, copy=True, told={tag})
    return Pending(kept, step, wall_time)


def text(tag, words, step=1):
    return Pending(Text.of(tag, words), step, NOW)


def grouped(directory):
    """Return [(step, wall time, {tag: value})] of the Events of scalars."""
    return [
        (event.step, event.wall_time, {value.tag: value.scalar() for value in event.values})
        for path in event_files(directory)
        for event in read_file(path)[0]
        if event.values
    ]


def sessions(path):
    return [(event.session, event.step) for event in read_file(path)[0] if event.session is not None]


# ---- the beginning of a file


def test_a_file_begins_with_the_version_and_the_writer(make, tmp_path):
    make()
    (path,) = event_files(tmp_path)
    first = read_file(path)[0][0]
    # Event{wall_time: 1700000000.5, file_version: "brain.Event:2", source_metadata {writer: "tbwriter"}}
    body = struct.pack("<Bd", 0x09, NOW) + b"\x1a\x0dbrain.Event:2" + b"\x52\x0a\x0a\x08tbwriter"
    assert first.raw == body
    assert path.read_bytes().startswith(record(body))


def test_the_name_tells_second_host_process_and_number(make, tmp_path):
    make(suffix=".mine")
    assert [path.name for path in event_files(tmp_path)] == ["events.out.tfevents.1700000000.host.7.000000.mine"]


def test_the_first_session_of_an_empty_directory_starts_at_step_0(make, tmp_path):
    make()
    assert [sessions(path) for path in event_files(tmp_path)] == [[(1, 0)]]


def test_the_first_session_of_an_empty_directory_starts_at_its_purge_step(make, tmp_path):
    make(purge_step=500)
    assert [sessions(path) for path in event_files(tmp_path)] == [[(1, 500)]]


def test_a_later_session_starts_with_a_mark_that_voids_nothing(make, tmp_path):
    make()
    make()
    assert [sessions(path) for path in event_files(tmp_path)] == [[(1, 0)], [(1, MARKER)]]


def test_a_session_that_resumes_marks_its_purge_step_behind_one_that_voids_nothing(make, tmp_path):
    """TensorBoard's Python reader ignores the first START of a run, and the earlier files may have none."""
    make()
    make(purge_step=500)
    assert [sessions(path) for path in event_files(tmp_path)] == [[(1, 0)], [(1, MARKER), (1, 500)]]


def test_files_that_are_no_event_files_make_no_earlier_session(make, tmp_path):
    (tmp_path / "checkpoint.ckpt").write_bytes(b"")
    make()
    assert [sessions(path) for path in event_files(tmp_path)] == [[(1, 0)]]


def test_a_file_of_another_program_is_an_earlier_session(make, tmp_path):
    (tmp_path / "events.out.tfevents.1600000000.other").write_bytes(b"")
    make(purge_step=3)
    assert sessions(event_files(tmp_path)[-1]) == [(1, MARKER), (1, 3)]


def test_a_rotated_file_starts_no_session(make, tmp_path):
    file = make(max_file_bytes=200)
    for step in range(10):
        store(file, scalar("loss", 1.0, step))
    assert [sessions(path) for path in event_files(tmp_path)][:3] == [[(1, 0)], [], []]
    assert {read_file(path)[0][0].file_version for path in event_files(tmp_path)} == {"brain.Event:2"}
    assert {read_file(path)[0][0].writer for path in event_files(tmp_path)} == {"tbwriter"}


def test_a_file_that_has_reached_its_age_is_followed_by_a_new_one_when_there_is_something_to_write(make, tmp_path):
    now = [NOW]
    file = make(max_file_age_secs=60, clock=lambda: now[0])
    for second in (0, 30, 59.9, 60, 100, 119.9, 300):
        now[0] = NOW + second
        store(file, scalar("loss", 1.0, int(second)))
        file.drain()
    assert [[step for step, _ in scalars_of(path)] for path in event_files(tmp_path)] == [
        [0, 30, 59],
        [60, 100, 119],
        [300],
    ]
    now[0] = NOW + 1000
    file.drain()
    assert len(event_files(tmp_path)) == 3


def test_a_flush_that_is_asked_for_ends_the_file_and_the_timers_does_not(make, tmp_path):
    file = make(rotates_on_flush=True)
    for step, level in enumerate([Durability.OS, Durability.OS, None, Durability.REMOTE, Durability.OS]):
        store(file, scalar("loss", 1.0, step))
        assert file.flush(level)
    assert [[step for step, _ in scalars_of(path)] for path in event_files(tmp_path)] == [[0, 1, 2], [3], [4]]
    for _ in range(3):  # of a file without a value it ends none
        assert file.flush(None)
    store(file, scalar("loss", 1.0, 5))
    assert len(event_files(tmp_path)) == 4


def test_a_new_file_that_takes_nothing_is_a_failure_of_storage_and_not_followed_by_one_after_the_other(tmp_path):
    """A file system that loses each file at once would be filled with names."""
    faults = Faults()
    faults.error = SegmentLostError("gone")
    file = EventFile(place(faulty(tmp_path, faults)), purge_step=None, clock=lambda: NOW)
    file.add([scalar("loss", 1.0, 1)], coalesce=True)
    for attempt in range(1, 4):
        with pytest.raises(SegmentLostError, match="gone"):
            file.drain()
        assert faults.attempts == attempt
    faults.error = None
    file.drain()
    file.close(0)
    assert len(event_files(tmp_path, recursive=True)) == 4
    assert scalars(tmp_path / "run", "loss") == [(1, 1.0)]


def test_a_new_file_sorts_after_all_that_are_there_even_from_the_future(make, tmp_path):
    (tmp_path / "events.out.tfevents.1800000000.zzz.9.000000").write_bytes(b"")
    make()
    assert event_files(tmp_path)[-1].name == "events.out.tfevents.1800000001.host.7.000000"


def test_an_earlier_file_is_never_appended_to(make, tmp_path):
    old = tmp_path / "events.out.tfevents.1600000000.host.7.000000"
    old.write_bytes(record(b"whole") + b"torn")
    store(make(), scalar("loss", 1.0, 1))
    assert old.read_bytes() == record(b"whole") + b"torn"


def create_just_before_us(path, monkeypatch):
    """Have another writer create `path` between our look into the directory and our own creation."""
    real = os.open

    def open_after_them(name, flags, *arguments, **options):
        if os.fspath(name) == str(path) and flags & os.O_CREAT and not path.exists():
            path.write_bytes(b"theirs")
        return real(name, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", open_after_them)


def test_a_name_that_another_writer_takes_meanwhile_is_left_to_it(make, tmp_path, monkeypatch):
    theirs = tmp_path / "events.out.tfevents.1700000000.host.7.000000"
    create_just_before_us(theirs, monkeypatch)
    store(make(), scalar("loss", 1.0, 1))
    assert theirs.read_bytes() == b"theirs"
    assert event_files(tmp_path)[-1].name == "events.out.tfevents.1700000001.host.7.000000"
    assert read_file(event_files(tmp_path)[-1])[0][-1].values[0].tag == "loss"


def test_a_name_that_another_writer_takes_before_a_rotation_is_left_to_it(make, tmp_path, monkeypatch):
    file = make(max_file_bytes=150)
    theirs = tmp_path / "events.out.tfevents.1700000000.host.7.000001"
    create_just_before_us(theirs, monkeypatch)
    store(file, scalar("loss", 1.0, 1), scalar("loss", 2.0, 2), scalar("loss", 3.0, 3))
    assert theirs.read_bytes() == b"theirs"
    theirs.unlink()
    assert scalars(tmp_path, "loss") == [(1, 1.0), (2, 2.0), (3, 3.0)]


# ---- metadata


def described(directory):
    """Return, for each file, [(tag, carries metadata)]."""
    return [
        [(value.tag, value.has_metadata) for event in read_file(path)[0] for value in event.values]
        for path in event_files(directory)
    ]


def test_only_the_first_value_of_a_tag_carries_metadata(make, tmp_path):
    store(make(), histogram("h", [1.0, 2.0]), text("t", "words"), histogram("h", [3.0]), text("t", "more"))
    assert described(tmp_path) == [[("h", True), ("t", True), ("h", False), ("t", False)]]


def test_metadata_comes_once_over_several_drains(make, tmp_path):
    file = make()
    for number in range(3):
        store(file, histogram("h", [number]))
    assert described(tmp_path) == [[("h", True), ("h", False), ("h", False)]]


def test_the_first_value_of_a_tag_in_each_rotated_file_carries_metadata(make, tmp_path):
    file = make(max_file_bytes=500)
    for number in range(12):
        store(file, text("t", "x" * 100 + str(number)))
    files = described(tmp_path)
    assert len(files) > 3
    assert all(flags == [("t", True)] + [("t", False)] * (len(flags) - 1) for flags in files)
    assert sum(map(len, files)) == 12


def test_a_histogram_of_nan_leaves_the_metadata_to_the_first_that_is_shown(make, tmp_path):
    """The data server never shows a tag whose first Value lacks it."""
    file = make()
    store(file, histogram("h", [np.nan], 1))
    store(file, histogram("h", [1.0, 2.0], 2))
    assert described(tmp_path) == [[("h/nan_count", False), ("h", True)]]


def test_an_empty_histogram_leaves_the_metadata_to_the_first_that_is_shown(make, tmp_path):
    store(make(), histogram("h", [], 1), histogram("h", [1.0, 2.0], 2))
    assert described(tmp_path) == [[("h", True)]]


def test_a_summary_that_cannot_be_encoded_leaves_the_metadata_to_the_next(make, tmp_path):
    class Broken:
        tag = "t"
        nbytes = 0

        def values(self, first):
            raise MemoryError

    broken = Pending(Broken(), 1, NOW)
    file = make()
    store(file, broken, text("t", "words", 2))
    assert described(tmp_path) == [[("t", True)]]
    assert (file.written, file.dropped, file.waiting) == (1, 1, 0)


# ---- rotation


@pytest.mark.parametrize("limit", [150, 1000, 4096])
def test_no_file_grows_beyond_its_limit(make, tmp_path, limit):
    file = make(max_file_bytes=limit)
    for begin in range(0, 300, 50):
        store(file, *(scalar("loss", float(step), step) for step in range(begin, begin + 50)))
    assert max(path.stat().st_size for path in event_files(tmp_path)) <= limit
    assert scalars(tmp_path) == [(step, float(step)) for step in range(300)]


def test_rotated_files_are_used_well(make, tmp_path):
    """A file ends when the next record would not fit, not long before: half full at the least."""
    file = make(max_file_bytes=4096)
    store(file, *(scalar("loss", float(step), step) for step in range(1000)))
    *full, _ = (path.stat().st_size for path in event_files(tmp_path))
    assert min(full) >= 2048


def test_a_series_is_divided_among_files(make, tmp_path):
    steps = np.arange(500)
    series = Series("loss", steps.astype(np.float32), steps, np.full(500, NOW))
    store(make(max_file_bytes=2000), series)
    assert max(path.stat().st_size for path in event_files(tmp_path)) <= 2000
    assert scalars(tmp_path) == [(step, float(step)) for step in range(500)]


def test_a_record_that_is_larger_than_the_limit_stands_alone_behind_the_header(make, tmp_path):
    file = make(max_file_bytes=1000)
    store(file, scalar("a", 1.0, 1), text("t", "x" * 5000), scalar("a", 2.0, 2))
    assert [
        [value.tag for event in read_file(path)[0] for value in event.values] for path in event_files(tmp_path)
    ] == [
        ["a"],
        ["t"],
        ["a"],
    ]


def test_rotated_files_keep_the_second_and_count_up(make, tmp_path):
    file = make(max_file_bytes=150)
    for step in range(25):
        store(file, scalar("loss", 1.0, step))
    names = [path.name for path in event_files(tmp_path)]
    assert names == [f"events.out.tfevents.1700000000.host.7.{number:06d}" for number in range(len(names))]
    assert len(names) > 10  # so that "9" before "10" would show


def test_bytes_counts_every_byte_of_all_files(make, tmp_path):
    file = make(max_file_bytes=150)
    for step in range(10):
        store(file, scalar("loss", 1.0, step))
    assert file.bytes == sum(path.stat().st_size for path in event_files(tmp_path))


# ---- which scalars share an Event


def test_scalars_of_one_step_share_an_event_with_the_first_wall_time(make, tmp_path):
    store(make(), scalar("a", 1.0, 5, NOW), scalar("b", 2.0, 5, NOW + 0.05), scalar("c", 3.0, 5, NOW + 0.0999))
    assert grouped(tmp_path) == [(5, NOW, {"a": 1.0, "b": 2.0, "c": 3.0})]


def test_another_step_starts_a_new_event(make, tmp_path):
    store(make(), scalar("a", 1.0, 5), scalar("b", 2.0, 6), scalar("c", 3.0, 5))
    assert grouped(tmp_path) == [(5, NOW, {"a": 1.0}), (6, NOW, {"b": 2.0}), (5, NOW, {"c": 3.0})]


def test_a_repeated_tag_starts_a_new_event(make, tmp_path):
    store(make(), scalar("a", 1.0, 5), scalar("b", 2.0, 5), scalar("a", 3.0, 5), scalar("b", 4.0, 5))
    assert grouped(tmp_path) == [(5, NOW, {"a": 1.0, "b": 2.0}), (5, NOW, {"a": 3.0, "b": 4.0})]


def test_a_scalar_more_than_a_tenth_of_a_second_later_starts_a_new_event(make, tmp_path):
    store(make(), scalar("a", 1.0, 5, NOW), scalar("b", 2.0, 5, NOW + 0.125))
    assert grouped(tmp_path) == [(5, NOW, {"a": 1.0}), (5, NOW + 0.125, {"b": 2.0})]


def test_wall_times_are_measured_from_the_first_scalar_of_an_event(make, tmp_path):
    """Not from the one before: else a steady stream would be moved by any amount."""
    entries = [scalar(tag, 1.0, 5, NOW + 0.0625 * number) for number, tag in enumerate("abcd")]
    store(make(), *entries)
    assert [(wall_time, list(found)) for _, wall_time, found in grouped(tmp_path)] == [
        (NOW, ["a", "b"]),
        (NOW + 0.125, ["c", "d"]),
    ]


def test_scalars_that_another_thread_overtook_have_its_wall_time(make, tmp_path):
    store(make(), scalar("a", 1.0, 5, NOW), scalar("b", 2.0, 5, NOW - 0.0625), scalar("c", 2.0, 6, NOW + 1))
    assert [wall_time for _, wall_time, _ in grouped(tmp_path)] == [NOW, NOW, NOW + 1]


def test_a_new_file_makes_nothing_older_than_what_waits(make, tmp_path):
    file = make(clock=lambda: NOW + 1000, max_file_bytes=200)
    for step in range(20):
        store(file, scalar("a", 1.0, step, NOW + step))
    assert len(event_files(tmp_path)) > 1
    assert [wall_time for _, wall_time, _ in grouped(tmp_path)] == [NOW + step for step in range(20)]


def test_wall_times_go_on_from_where_they_were_after_the_clock_was_set_back(make, tmp_path):
    file = make()
    store(file, scalar("a", 1.0, 1, NOW), scalar("a", 2.0, 2, NOW - 3600), scalar("a", 3.0, 3, NOW - 3590))
    store(file, Scalars(("b", "c"), pack_floats((1.0, 2.0)), 4, NOW - 3580), scalar("a", 3.0, 4, NOW - 3580))
    store(file, histogram("h", [1.0], wall_time=NOW - 3570), RawSummary(b"", 5, NOW - 3560))
    series = Series("s", np.float32([7.0, 8.0]), np.array([5, 6]), np.full(2, NOW - 3550), at_once=True)
    store(file, series, scalar("a", 3.0, 7, NOW - 3540))
    (path,) = event_files(tmp_path)
    wall_times = [event.wall_time - NOW for event in read_file(path)[0] if event.values or event.step]
    assert wall_times == [0, 0, 10, 20, 20, 30, 40, 50, 50, 60]


@given(
    ticks=st.lists(st.sampled_from([0.0, 0.001, 0.5, 30.0, -3600.0, -1e5]), min_size=1, max_size=30),
    cut=st.integers(0, 30),
)
def test_wall_times_keep_their_distances_however_often_the_clock_is_set_back(tmp_path_factory, ticks, cut):
    directory = tmp_path_factory.mktemp("clock")
    file = EventFile(place(directory), purge_step=None, clock=lambda: NOW)
    clock = itertools.accumulate(ticks, initial=NOW)
    entries = [scalar("a", 1.0, step, now) for step, now in enumerate(clock)]
    store(file, *entries[:cut])
    store(file, *entries[cut:])
    file.close(0)
    want = itertools.accumulate((max(0.0, tick) for tick in ticks), initial=NOW)
    assert [wall_time for _, wall_time, _ in grouped(directory)] == pytest.approx([*want], rel=0, abs=1e-4)
    shutil.rmtree(directory)


def test_an_explicit_wall_time_is_never_moved(make, tmp_path):
    store(make(), scalar("a", 1.0, 5, NOW), scalar("b", 2.0, 5, Given(NOW + 0.03125)), scalar("c", 3.0, 5, NOW))
    assert [(wall_time, list(found)) for _, wall_time, found in grouped(tmp_path)] == [
        (NOW, ["a"]),
        (NOW + 0.03125, ["b"]),
        (NOW, ["c"]),
    ]


def test_equal_explicit_wall_times_share_an_event(make, tmp_path):
    store(make(), scalar("a", 1.0, 5, Given(3.5)), scalar("b", 2.0, 5, Given(3.5)))
    assert grouped(tmp_path) == [(5, 3.5, {"a": 1.0, "b": 2.0})]


def test_coalescing_can_be_turned_off(make, tmp_path):
    store(make(), scalar("a", 1.0, 5), scalar("b", 2.0, 5), coalesce=False)
    assert grouped(tmp_path) == [(5, NOW, {"a": 1.0}), (5, NOW, {"b": 2.0})]


def by_the_rule(entries):
    """Return what `grouped` should: scalar by scalar, as the rule of coalescing says it."""
    groups = []
    for tag, value, step, wall_time in entries:
        if groups:
            group_step, group_wall_time, group = groups[-1]
            slack = 0.0 if isinstance(wall_time, Given) else 0.1
            if step == group_step and tag not in group and group_wall_time <= wall_time <= group_wall_time + slack:
                group[tag] = value
                continue
        groups.append((step, wall_time, {tag: value}))
    return groups


def not_falling(groups):
    """Return groups with the wall times that are stored, where the clock went back by milliseconds only."""
    latest, stored = 0.0, []
    for step, wall_time, group in groups:
        given = isinstance(wall_time, Given)
        latest = latest if given else max(latest, wall_time)
        stored.append((step, wall_time if given else latest, group))
    return stored


# A loop: the same tags step after step, now and then something that does not fit.
LOOPS = st.lists(
    st.tuples(
        st.sampled_from(["abc", "abc", "abc", "ab", "abcd", "cba", "aab", ""]),
        st.sampled_from([1, 1, 1, 0, -1]),  # how far the step moves
        st.sampled_from([0.0, 0.001, 0.06, 0.2, -0.001]),  # how far the clock moves from one scalar to the next
        st.sampled_from([float, float, float, Given]),
    ),
    max_size=12,
)


@given(loop=LOOPS, cuts=st.lists(st.integers(1, 40), max_size=3))
def test_repeated_steps_are_grouped_as_scalar_by_scalar(tmp_path_factory, loop, cuts):
    entries, step, now = [], 0, 0.0
    for tags, forward, tick, kind in loop:
        step += forward
        for tag in tags:
            now += tick
            entries.append(scalar(tag, float(len(entries)), step, kind(NOW + now)))
    directory = tmp_path_factory.mktemp("loop")
    file = EventFile(place(directory), purge_step=None, clock=lambda: NOW)
    want = []
    for begin, end in itertools.pairwise([0, *itertools.accumulate(cuts), len(entries)]):
        store(file, *entries[begin:end])
        want += by_the_rule(entries[begin:end])
    file.close(0)
    assert grouped(directory) == not_falling(want)
    shutil.rmtree(directory)


def test_metrics_stay_one_event_and_share_it_with_nobody(make, tmp_path):
    metrics = Scalars(("a", "b"), pack_floats((1.0, 2.0)), 5, NOW)
    store(make(), scalar("x", 0.0, 5), metrics, scalar("y", 3.0, 5), coalesce=False)
    assert [list(found) for _, _, found in grouped(tmp_path)] == [["x"], ["a", "b"], ["y"]]


def test_all_kinds_keep_the_order_in_which_they_were_added(make, tmp_path):
    series = Series("s", np.float32([7.0, 8.0]), np.array([1, 2]), np.full(2, NOW))
    store(
        make(),
        scalar("a", 1.0, 1),
        histogram("h", [1.0]),
        scalar("b", 1.0, 1),
        Scalars(("c", "d"), pack_floats((1.0, 2.0)), 1, NOW),
        series,
        text("t", "words"),
        scalar("a", 1.0, 2),
    )
    assert [tag for tag, _, _ in values(tmp_path)] == ["a", "h", "b", "c", "d", "s", "s", "t", "a"]


# ---- storage that fails


class Plain:
    """A disk whose faults are planned without pytest's monkeypatch, for property tests."""

    def __enter__(self):
        self._patch = pytest.MonkeyPatch()
        return Disk(self._patch)

    def __exit__(self, *_):
        self._patch.undo()


def drain_again_and_again(file):
    """Drain as the worker does, until it works; return how often it did not."""
    for failures in range(1000):
        try:
            file.drain()
        except OSError:
            continue
        return failures
    raise AssertionError("never drained")


def test_drain_goes_on_where_it_stopped(make, tmp_path, monkeypatch):
    file = make()
    disk = Disk(monkeypatch)
    disk.plan("pwrite", 10, NO_SPACE, NO_SPACE)
    file.add([scalar("loss", float(step), step) for step in range(100)], coalesce=True)
    assert drain_again_and_again(file) == 2
    assert scalars(tmp_path) == [(step, float(step)) for step in range(100)]
    assert statuses(tmp_path) == ["clean"]


def test_what_waits_is_counted_until_it_is_stored(make, monkeypatch):
    file = make()
    disk = Disk(monkeypatch)
    disk.plan("pwrite", NO_SPACE)
    file.add([scalar("a", 1.0, 1), histogram("h", [1.0, 2.0])], coalesce=True)
    with pytest.raises(OSError, match="No space left"):
        file.drain()
    assert (file.waiting, file.written, file.buffered > 0) == (2, 0, True)
    file.drain()
    assert (file.waiting, file.written, file.buffered) == (0, 2, 0)


def test_a_lost_segment_is_followed_by_a_file_with_metadata_and_nothing_twice(make, tmp_path, monkeypatch, caplog):
    file = make()
    store(file, text("t", "one", 1))
    disk = Disk(monkeypatch)
    disk.plan("pwrite", IO_ERROR, IO_ERROR, IO_ERROR)
    file.add([text("t", "two", 2), text("t", "three", 3)], coalesce=True)
    drain_again_and_again(file)
    assert described(tmp_path) == [[("t", True)], [("t", True), ("t", False)]]
    assert [step for _, step, _ in values(tmp_path)] == [1, 2, 3]
    assert "going on in a new file" in caplog.text


def test_whole_records_that_a_lost_segment_took_are_not_stored_again(make, tmp_path, monkeypatch):
    file = make()
    disk = Disk(monkeypatch)
    disk.plan("pwrite", 100, IO_ERROR, IO_ERROR, IO_ERROR)
    file.add([scalar("loss", float(step), step) for step in range(50)], coalesce=True)
    drain_again_and_again(file)
    first, second = event_files(tmp_path)
    assert statuses(tmp_path) == ["clean", "clean"]
    assert len(read_file(first)[0]) == 2 + 2  # header, START, and two records of about 44 bytes
    assert scalars(tmp_path) == [(step, float(step)) for step in range(50)]
    assert file.bytes == first.stat().st_size + second.stat().st_size
    assert (file.written, file.waiting, file.buffered) == (50, 0, 0)


def test_a_deleted_directory_is_made_again_and_nothing_later_is_lost(make, tmp_path):
    file = make()
    store(file, scalar("loss", 1.0, 1))
    shutil.rmtree(tmp_path)
    store(file, scalar("loss", 2.0, 2), text("t", "words"))
    assert scalars(tmp_path) == [(2, 2.0)]
    assert described(tmp_path) == [[("loss", False), ("t", True)]]


def test_a_sink_that_wants_a_new_segment_gets_one_with_metadata(tmp_path):
    """Object stores end a segment by their own rules."""

    class Rolling(FaultySink):
        def roll_due(self):
            return self.calls.get("append", 0) > self.calls.get("roll", 0)

    url = through(tmp_path, lambda sink, header: Rolling(sink, Faults(), header=header))
    file = EventFile(place(url), purge_step=None, clock=lambda: NOW)
    for number in range(3):
        store(file, text("t", str(number), number))
    file.close(0)
    assert described(tmp_path / "run") == [[("t", True)]] * 3


def test_what_is_discarded_is_counted_and_does_not_come_back(make, tmp_path):
    faults = Faults()
    file = EventFile(place(faulty(tmp_path, faults)), purge_step=None, clock=lambda: NOW)
    faults.error = NO_SPACE
    file.add([scalar("a", 1.0, 1), text("t", "words")], coalesce=True)
    with pytest.raises(OSError, match="No space left"):
        file.drain()
    file.discard()
    faults.error = None
    store(file, scalar("a", 2.0, 2))
    assert (file.dropped, file.written, file.waiting, file.buffered) == (2, 1, 0, 0)
    assert scalars(tmp_path / "run") == [(2, 2.0)]
    file.close(0)


TAGS = st.sampled_from(["a", "b", "loss", "训练"])
SCALARS = st.builds(scalar, TAGS, st.floats(-100, 100, width=32), st.integers(0, 3))
TEXTS = st.builds(text, st.sampled_from(["t", "u"]), st.text("xy", max_size=200), st.integers(0, 3))
HISTOGRAMS = st.builds(
    histogram, st.just("h"), st.lists(st.floats(-8, 8, width=32) | st.just(float("nan")), max_size=3), st.integers(0, 3)
)
SERIES = st.integers(1, 30).map(
    lambda n: Series("s", np.arange(n, dtype=np.float32), np.arange(n) * 50, np.full(n, NOW))
)
METRICS = st.builds(
    lambda x, step: Scalars(("m", "n"), pack_floats((x, -x)), step, NOW), st.floats(-9, 9, width=32), st.integers(0, 3)
)
BATCHES = st.lists(st.lists(SCALARS | TEXTS | HISTOGRAMS | SERIES | METRICS, max_size=12), max_size=5)
STEPS = st.none() | st.integers(0, 400) | st.sampled_from([NO_SPACE, IO_ERROR, STALE])


def written(directory, batches, plan, limit):
    """Store batches on a disk that fails by `plan`; return what was stored, after a check of every file."""
    directory.mkdir()
    file = EventFile(place(directory, max_file_bytes=limit), purge_step=None, clock=lambda: NOW)
    with Plain() as disk:
        # 0 bytes written is no answer of a file system.
        disk.plan("pwrite", *(step or None if isinstance(step, int) else step for step in plan))
        for batch in batches:
            file.add(batch, coalesce=True)
            drain_again_and_again(file)
        file.close(0)
    assert (file.waiting, file.buffered, file.dropped) == (0, 0, 0)
    assert set(statuses(directory)) == {"clean"}
    for flags in described(directory):
        for tag in ("t", "u", "h"):
            own = [flag for name, flag in flags if name == tag]
            assert own == [True] * len(own[:1]) + [False] * len(own[1:])
    return [
        (tag, step, value.scalar(), value.tensor and (value.tensor.numbers, value.tensor.strings))
        for tag, step, value in values(directory)
    ]


@given(batches=BATCHES, plan=st.lists(STEPS, max_size=40), limit=st.none() | st.integers(200, 3000))
def test_no_schedule_of_disk_faults_loses_repeats_or_reorders_anything(tmp_path_factory, batches, plan, limit):
    base = tmp_path_factory.mktemp("faults")
    want = written(base / "good", batches, [], None)
    assert written(base / "bad", batches, plan, limit) == want
    shutil.rmtree(base)


ADDS = st.lists(st.tuples(st.sampled_from(["a", "b", "h", "t"]), st.integers(0, 3)), max_size=25)
ERRORS = st.none() | st.sampled_from([NO_SPACE, IO_ERROR, SegmentLostError("gone")])


def added(directory, adds, schedule):
    """Add through a SummaryWriter without a thread, whose storage fails by `schedule`; return what is stored."""

    def fault(call, number):
        return schedule.pop(0) if call in {"append", "roll"} and schedule else None

    with SummaryWriter(faulty(directory, fault), asynchronous=False) as writer:
        for number, (tag, step) in enumerate(adds):
            if tag == "h":
                writer.add_histogram(tag, [float(number)], step)
            elif tag == "t":
                writer.add_text(tag, str(number), step)
            else:
                writer.add_scalar(tag, float(number), step)
        for _ in range(100):
            if writer.flush():
                break
        stats = writer.stats()
    assert (stats.queued, stats.written, stats.dropped) == (0, len(adds), 0)
    run = directory / "run"
    assert set(statuses(run)) == {"clean"}
    for flags in described(run):
        for tag in ("t/text_summary", "h"):
            own = [flag for name, flag in flags if name == tag]
            assert own == [True] * len(own[:1]) + [False] * len(own[1:])
    return [
        (tag, step, value.scalar(), value.tensor and (value.tensor.numbers, value.tensor.strings))
        for tag, step, value in values(run)
    ]


@given(adds=ADDS, schedule=st.lists(ERRORS, max_size=30))
def test_no_schedule_of_storage_errors_changes_what_a_writer_stores(tmp_path_factory, adds, schedule):
    base = tmp_path_factory.mktemp("errors")
    want = added(base / "good", adds, [])
    assert added(base / "bad", adds, list(schedule)) == want
    shutil.rmtree(base)


def test_a_long_series_is_encoded_while_it_is_stored_and_not_before(make, tmp_path):
    """Its records would take 48 MB."""
    count = 1_000_000
    steps = np.arange(count)
    series = Series("loss", steps.astype(np.float32), steps, np.full(count, NOW))
    file = make()
    tracemalloc.start()
    try:
        store(file, series)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    assert (file.buffered, file.waiting, file.written) == (0, 0, count)
    (path,) = event_files(tmp_path)
    assert path.stat().st_size == file.bytes > 40_000_000


def test_a_series_that_a_failing_disk_stores_in_part_is_counted_to_the_byte(make, tmp_path, monkeypatch):
    file = make()
    disk = Disk(monkeypatch)
    disk.plan("pwrite", 100_000, IO_ERROR, IO_ERROR, IO_ERROR)
    file.add([Series("loss", np.zeros(9000, np.float32), np.arange(9000), np.full(9000, NOW))], coalesce=True)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            file.drain()
    file.drain()
    assert (file.buffered, file.waiting, file.written) == (0, 0, 9000)
    assert [step for step, _ in scalars(tmp_path)] == [*range(9000)]
    assert len(event_files(tmp_path)) == 2


# ---- sub-runs


@pytest.fixture
def runs(tmp_path):
    runs = Runs(place(tmp_path), purge_step=None, clock=lambda: NOW, coalesce=True)
    yield runs
    runs.close(0)


def test_a_sub_run_has_a_directory_and_a_session_of_its_own(runs, tmp_path):
    runs.add([SubRun("loss_train", scalar("loss", 1.0, 1)), SubRun("loss_val", scalar("loss", 2.0, 1))])
    runs.drain()
    assert scalars(tmp_path / "loss_train") == [(1, 1.0)]
    assert scalars(tmp_path / "loss_val") == [(1, 2.0)]
    assert [sessions(path) for path in event_files(tmp_path, recursive=True)] == [[(1, 0)]] * 3


def test_a_key_with_a_slash_is_a_directory_deeper(runs, tmp_path):
    runs.add([SubRun("loss_a/b", scalar("loss", 1.0, 1))])
    runs.drain()
    assert scalars(tmp_path / "loss_a" / "b") == [(1, 1.0)]


def test_a_sub_run_goes_on_in_its_file(runs, tmp_path):
    for step in range(3):
        runs.add([SubRun("x", scalar("loss", float(step), step))])
        runs.flush(1)
    assert len(event_files(tmp_path / "x")) == 1
    assert scalars(tmp_path / "x") == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_the_counters_are_those_of_all_files(runs, tmp_path):
    runs.add([scalar("a", 1.0, 1), SubRun("x", scalar("a", 2.0, 1)), SubRun("y", scalar("a", 3.0, 1))])
    assert (runs.waiting, runs.written) == (3, 0)
    runs.drain()
    assert (runs.waiting, runs.written) == (0, 3)
    assert runs.bytes == sum(path.stat().st_size for path in event_files(tmp_path, recursive=True))


def test_a_sub_run_whose_file_cannot_be_created_now_waits_and_goes_on_when_it_can(runs, tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    disk.plan("open", NO_SPACE)
    runs.add([scalar("a", 1.0, 1), SubRun("x", scalar("a", 2.0, 1))])
    with pytest.raises(OSError, match="No space left"):
        runs.drain()
    assert (scalars(tmp_path), runs.waiting) == ([(1, 1.0)], 1)
    runs.drain()
    assert (scalars(tmp_path / "x"), runs.waiting) == ([(1, 2.0)], 0)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc")
def test_many_sub_runs_hold_few_handles(runs, tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for step in range(2):
        runs.add([SubRun(f"x{number}", scalar("a", float(step), step)) for number in range(60)])
        runs.flush(1)
    assert len(os.listdir("/proc/self/fd")) - before <= 16
    assert all(scalars(tmp_path / f"x{number}") == [(0, 0.0), (1, 1.0)] for number in range(60))


def test_names_hold_no_colon_and_only_what_every_file_system_takes(tmp_path):
    SummaryWriter(tmp_path).close()
    (path,) = event_files(tmp_path)
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\.[A-Za-z0-9.-]+\.\d+\.000000", path.name)
