"""`tbwriter repair`, `rewind`, `merge` and `thin`, and `tbwriter.repair`: what they keep, what they leave alone."""

import contextlib
import math
import os
import struct

import fsspec
import numpy as np
import pytest
from calling import command
from damaged import BEGIN, CASES, GOOD, NAME, SCALARS, event, field, put, record, scalar, start, value, version
from event_files import event_files, read_file, records
from hypothesis import given
from hypothesis import strategies as st

import tbwriter
from tbwriter import SummaryWriter, read_events, repair, verify


def points(place, tag=None):
    return [
        (found.tag, event.step, found.scalar())
        for event in read_events(place)
        for found in event.values
        if tag in {None, found.tag}
    ]


def contents(place):
    return {path.name: path.read_bytes() for path in sorted(place.iterdir())}


def curve(steps):
    return [("loss", step, float(step)) for step in steps]


# ---- repair

LEFT = {  # steps of "loss" that are good, where some are not
    "torn-tail": range(5),
    "torn-in-header": range(5),
    "torn-and-more": [0, 1, 2, 3, 4, 6, 7, 8, 9],
    "bad-data": [0, 1, 2, 3, 4, 6, 7, 8, 9],
    "bad-length": [0, 1, 2, 3, 4, 6, 7, 8, 9],
    "bad-data-then-file": [0, 1, 2, 3, 4, 6, 7, 8, 9],
    "zero-hole": range(10),
    "zero-tail": range(5),
    "no-event": range(10),
    "double": range(10),
    "int64": range(10),
    "rank-1": range(10),
    "double-later": range(10),
    "no-metadata": range(10),
    "late-metadata": range(10),
    "plugin-version": range(10),
    "nan-time": range(10),
    "infinite-time": range(10),
}


@pytest.mark.parametrize("case", list(LEFT))
@pytest.mark.parametrize("in_place", [False, True])
def test_a_fault_is_mended_and_every_good_point_kept(tbwriter_command, tmp_path, case, in_place):
    place = put(tmp_path / "run", case)
    before = contents(place)
    to = ["--in-place"] if in_place else ["-o", tmp_path / "out"]
    assert tbwriter_command("repair", place, *to).code == 0
    mended = place if in_place else tmp_path / "out"
    assert verify(mended).ok
    assert points(mended) == curve(LEFT[case])
    assert list(contents(mended)) == list(before)
    findings = tbwriter_command("doctor", mended, "--json").json["findings"]
    assert [finding["code"] for finding in findings if finding["level"] != "note"] == []
    if not in_place:
        assert contents(place) == before


@pytest.mark.parametrize("case", ["good", "no-version", "marked", "second-session", "two-writers", "repeated"])
def test_files_without_damage_stay_byte_for_byte(tmp_path, case):
    place = put(tmp_path / "run", case)
    reports = repair(place, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(place)
    assert not any(report.changed for report in reports)


def test_values_of_a_second_kind_get_a_tag_of_their_own(tmp_path):
    kinds = {}
    for case in ("scalars-then-histograms", "scalars-then-text", "histograms-then-scalars"):
        repair(put(tmp_path / case, case), tmp_path / "out" / case)
        found = [(v.tag, v.plugin) for e in read_events(tmp_path / "out" / case) for v in e.values]
        kinds[case] = sorted({(tag, plugin, found.count((tag, plugin))) for tag, plugin in found})
    assert kinds == {
        "scalars-then-histograms": [("loss", "scalars", 5), ("loss (histograms)", "histograms", 5)],
        "scalars-then-text": [("loss", "scalars", 5), ("loss (text)", "text", 5)],
        "histograms-then-scalars": [("loss", "histograms", 5), ("loss (scalars)", "scalars", 5)],
    }


def test_a_clock_is_kept_from_going_back_when_that_is_asked_for(tmp_path):
    place = put(tmp_path / "run", "clock-back")
    (plain,), (asked,) = repair(place, tmp_path / "plain"), repair(place, tmp_path / "asked", clock=True)
    assert not plain.changed
    assert asked.changes == {"wall time kept from going back": 5}
    times = [event.wall_time for event in read_events(tmp_path / "asked")]
    assert times == sorted(times)


def test_the_report_says_what_was_done(tmp_path):
    place = put(tmp_path / "run", "bad-length")
    (report,) = repair(place, tmp_path / "out")
    name = next(place.iterdir()).name
    assert report == tbwriter.Repaired(str(place / name), str(tmp_path / "out" / name), 10, 42, 0, {})
    assert report.changed


def test_a_whole_tree_is_repaired_into_the_same_tree(tmp_path):
    put(tmp_path / "runs" / "a" / "rank_0", "torn-tail")
    put(tmp_path / "runs" / "b", "good")
    repair(tmp_path / "runs", tmp_path / "out")
    assert points(tmp_path / "out" / "a" / "rank_0") == curve(range(5))
    assert points(tmp_path / "out" / "b") == curve(range(10))


def test_a_float_too_large_for_float32_is_left_as_it_is(tmp_path):
    huge = value(1, "loss", field(8, field(1, 2) + field(2, b"") + field(4, struct.pack("<d", 1e300))) + SCALARS)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / NAME.format(second=1, pid=1)).write_bytes(version() + huge)
    repair(tmp_path / "run", tmp_path / "out")
    assert contents(tmp_path / "out") == {NAME.format(second=1, pid=1): version() + huge}


@pytest.mark.parametrize("options", [{}, {"output": "out", "in_place": True}])
def test_where_the_new_files_go_must_be_said(tmp_path, options):
    with pytest.raises(ValueError, match="either output"):
        repair(put(tmp_path, "good"), **options)


def test_a_file_in_the_way_is_not_replaced(tbwriter_command, tmp_path):
    place = put(tmp_path / "run", "torn-tail")
    put(tmp_path / "out", "good")
    before = contents(tmp_path / "out")
    assert tbwriter_command("repair", place, "-o", tmp_path / "out").code == 3
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("command", [["repair"], ["rewind", "--step", "1"], ["thin", "--every", "2"]])
def test_a_live_file_is_not_replaced_unless_forced(tbwriter_command, tmp_path, command):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 1.0, 0)
        writer.flush()
        answer = tbwriter_command(*command, tmp_path, "--in-place")
        assert answer.code == 2
        assert "still being written" in answer.err
    assert tbwriter_command(*command, tmp_path, "--in-place", "--force").code == 0


def test_a_directory_that_cannot_be_written_leaves_all_as_it_was(tbwriter_command, tmp_path):
    place = put(tmp_path / "run", "torn-tail")
    (tmp_path / "out").write_text("a file, where a directory should be")
    before = contents(place)
    assert tbwriter_command("repair", place, "-o", tmp_path / "out").code == 3
    assert contents(place) == before


def test_files_at_urls_are_repaired_to_urls():
    fs = fsspec.filesystem("memory")
    for name, data in CASES["torn-tail"].items():
        fs.pipe(f"/test-mend/run/{name}", data)
    repair("memory://test-mend/run", "memory://test-mend/out")
    assert points("memory://test-mend/out") == curve(range(5))
    repair("memory://test-mend/run", in_place=True)
    assert verify("memory://test-mend/run").ok
    fs.rm("/test-mend", recursive=True)


def test_rights_of_a_replaced_file_stay(tmp_path):
    place = put(tmp_path, "torn-tail")
    (path,) = place.iterdir()
    path.chmod(0o640)
    repair(place, in_place=True)
    assert path.stat().st_mode & 0o777 == 0o640


PIECES = st.lists(
    st.one_of(
        st.sampled_from(GOOD),
        st.binary(min_size=1, max_size=40),
        st.integers(1, 200).map(bytes),
        st.tuples(st.sampled_from(GOOD), st.integers(1, 40)).map(lambda cut: cut[0][: cut[1]]),
        st.binary(max_size=30).map(record),
    ),
    max_size=30,
)


@given(PIECES)
def test_of_any_bytes_a_repair_keeps_all_that_can_be_read_and_nothing_else(tmp_path_factory, pieces):
    place, out = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("out")
    path = place / NAME.format(second=1, pid=1)
    path.write_bytes(b"".join(pieces))
    readable = points(place)
    events = sum(1 for _ in read_events(place))
    if not events:
        for where in ({"output": out}, {"in_place": True}):
            with contextlib.suppress(ValueError):
                assert repair(place, **where) == ()
        assert (list(out.iterdir()), path.read_bytes()) == ([], b"".join(pieces))
        return
    (report,) = repair(place, out)
    assert verify(out).ok
    assert points(out) == readable
    assert report.records == events
    (again,) = repair(out, tmp_path_factory.mktemp("again"))
    assert not again.changed


# ---- rewind


@pytest.mark.parametrize("step", [0, 1, 5, 10, 11])
def test_rewind_drops_all_points_from_the_step_on(tbwriter_command, tmp_path, step):
    with SummaryWriter(tmp_path / "run") as writer:
        for number in range(10):
            writer.add_metrics({"a": number, "b": -number}, number)
            writer.add_text("t", "words", number)
    assert tbwriter_command("rewind", tmp_path / "run", "--step", step, "-o", tmp_path / "out").code == 0
    want = [point for point in points(tmp_path / "run") if point[1] < step]
    assert points(tmp_path / "out") == want
    assert read_file(event_files(tmp_path / "out")[0])[0][0].file_version == "brain.Event:2"


def test_rewind_counts_what_it_dropped(tbwriter_command, tmp_path):
    place = put(tmp_path / "run", "good")
    (file,) = tbwriter_command("rewind", place, "--step", 7, "--in-place", "--json").json["files"]
    assert (file["values_dropped"], file["records"]) == (3, 8)
    assert points(place) == curve(range(7))


# ---- merge


def merged(tbwriter_command, tmp_path, *arguments):
    answer = tbwriter_command("merge", *arguments, "-o", tmp_path / "merged")
    assert answer.code == 0, answer.err
    return tmp_path / "merged"


NEW = [("loss", step, float(step)) for step in range(5)] + [("loss", step, step + 100.0) for step in (5, 6, 7)]


@pytest.mark.parametrize("case", ["second-session", "first-mark-in-second", "marked", "back", "back-no-version"])
def test_the_later_session_wins(tbwriter_command, tmp_path, case):
    out = merged(tbwriter_command, tmp_path, put(tmp_path / "run", case))
    assert points(out) == NEW
    assert len(event_files(out)) == 1
    assert tbwriter_command("doctor", out, "--json").json["findings"] == []


def test_a_mark_voids_the_tags_that_do_not_come_again(tbwriter_command, tmp_path):
    out = merged(tbwriter_command, tmp_path, put(tmp_path / "run", "stale"))
    assert points(out, "loss") == curve(range(5))
    assert [step for _, step, _ in points(out, "other")] == [5, 6, 7]


def test_files_whose_names_sort_wrong_are_put_in_order(tbwriter_command, tmp_path):
    assert points(merged(tbwriter_command, tmp_path, put(tmp_path / "run", "names"))) == curve(range(10))


def test_sessions_in_several_places_become_one_run(tbwriter_command, tmp_path):
    for number, steps in enumerate([range(10), range(5, 12), range(8, 9)]):
        with SummaryWriter(tmp_path / f"try{number}") as writer:
            for step in steps:
                writer.add_scalar("loss", 100.0 * number + step, step, BEGIN + 100 * number + step)
    out = merged(tbwriter_command, tmp_path, tmp_path / "try2", tmp_path / "try0", tmp_path / "try1")
    assert points(out) == [
        *[("loss", step, float(step)) for step in range(5)],
        *[("loss", step, 100.0 + step) for step in range(5, 8)],
        ("loss", 8, 208.0),
    ]


def test_ranks_get_their_names_before_their_tags(tbwriter_command, tmp_path):
    for rank in range(2):
        with SummaryWriter(tmp_path / "run" / f"rank_{rank}") as writer:
            for step in range(5):
                writer.add_scalar("loss", rank * 10.0 + step, step, BEGIN + step)
    out = merged(tbwriter_command, tmp_path, tmp_path / "run", "--prefix")
    for rank in range(2):
        assert points(out, f"rank_{rank}/loss") == [(f"rank_{rank}/loss", s, rank * 10.0 + s) for s in range(5)]


def test_without_prefix_runs_stay_apart(tbwriter_command, tmp_path):
    for name in ("a", "deep/b"):
        put(tmp_path / "runs" / name, "second-session")
    out = merged(tbwriter_command, tmp_path, tmp_path / "runs")
    assert points(out / "a") == points(out / "deep" / "b") == NEW


def test_writers_at_one_time_are_refused(tbwriter_command, tmp_path):
    answer = tbwriter_command("merge", put(tmp_path / "run", "two-writers-one-tag"), "-o", tmp_path / "out")
    assert answer.code == 2
    assert "--prefix" in answer.err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_run_that_cannot_be_merged_leaves_all_runs_alone(tbwriter_command, tmp_path):
    put(tmp_path / "runs" / "a", "good")
    put(tmp_path / "runs" / "b", "two-writers-one-tag")
    assert tbwriter_command("merge", tmp_path / "runs", "-o", tmp_path / "out").code == 2
    assert not (tmp_path / "out").exists()


def test_tags_are_renamed(tbwriter_command, tmp_path):
    put(tmp_path / "run", "two-writers")
    out = merged(tbwriter_command, tmp_path, tmp_path / "run", "--rename", "loss=train/loss")
    assert {tag for tag, _, _ in points(out)} == {"train/loss", "val"}


def test_a_tag_is_not_renamed_onto_another_of_its_session(tbwriter_command, tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        for step in range(3):
            writer.add_metrics({"loss": 1.0, "train/loss": 2.0}, step)
        writer.add_histogram("weights", [1.0], 1)
    for old, words in (("loss", "one session wrote both"), ("weights", "one session wrote both")):
        answer = tbwriter_command("merge", tmp_path / "run", "-o", tmp_path / "out", "--rename", f"{old}=train/loss")
        assert answer.code == 2
        assert words in answer.err
        assert not (tmp_path / "out").exists()


def test_a_tag_is_not_renamed_onto_another_kind(tbwriter_command, tmp_path):
    put(tmp_path / "run", "good")
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_histogram("weights", [1.0], 1)
    answer = tbwriter_command("merge", tmp_path / "run", "-o", tmp_path / "out", "--rename", "weights=loss")
    assert answer.code == 2
    assert "of two kinds" in answer.err


def test_sessions_that_call_a_metric_otherwise_become_one_curve(tbwriter_command, tmp_path):
    """The later session wins, also where only the new name says that it is the same tag."""
    for tag, steps, shift in (("loss", range(8), 0.0), ("train_loss", range(5, 10), 100.0)):
        with SummaryWriter(tmp_path / "run") as writer:
            for step in steps:
                writer.add_scalar(tag, step + shift, step, BEGIN + shift + step)
    out = merged(tbwriter_command, tmp_path, tmp_path / "run", "--rename", "train_loss=loss")
    assert points(out) == [("loss", s, float(s)) for s in range(5)] + [("loss", s, s + 100.0) for s in range(5, 10)]


def test_a_name_that_no_tag_has_is_told(tbwriter_command, tmp_path):
    place = put(tmp_path / "run", "good")
    answer = tbwriter_command("merge", place, "-o", tmp_path / "out", "--rename", "lost=loss")
    assert (answer.code, "no such tag" in answer.err) == (0, True)


def test_metadata_and_graphs_survive(tbwriter_command, tmp_path):
    """The first session alone describes its tag, and its first point is void."""
    graph = event(0, field(4, b"graph"))
    first = [version(), graph, value(3, "loss", b"\x15" + struct.pack("<f", 3.0) + _titled("Title"))]
    second = [version(BEGIN + 20), *[scalar(step, float(step), wall_time=BEGIN + 20) for step in range(1, 4)]]
    for number, parts in enumerate([first, second]):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / NAME.format(second=1 + number, pid=1)).write_bytes(b"".join(parts))
    out = merged(tbwriter_command, tmp_path, tmp_path / "run")
    events = list(read_events(out))
    assert [found.graph_def for found in events if found.graph_def] == [b"graph"]
    values = [found for e in events for found in e.values]
    assert [found.display_name for found in values] == ["Title", "", ""]


def _titled(title):
    return field(9, field(1, field(1, b"scalars")) + field(2, title.encode()) + field(4, 1))


SESSIONS = st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12)), max_size=12), min_size=1, max_size=4)


@given(SESSIONS)
def test_what_a_merge_keeps_is_what_the_data_server_shows(tmp_path_factory, sessions):
    """Steps that go back, or a session that begins where the last one ended, void the points at and after them.

    So rustboard's reservoir takes it, but that repeated steps of one session stay.
    """
    place = tmp_path_factory.mktemp("run")
    rows = []
    for number, session in enumerate(sessions):
        data = b""
        for index, (tag, step) in enumerate(session):
            wall_time = BEGIN + 1000 * number + index
            data += scalar(step, float(len(rows)), tag, wall_time)
            rows.append((number, tag, step, float(len(rows))))
        (place / NAME.format(second=1 + number, pid=1)).write_bytes(data)
    want = []
    for name in "ab":
        kept = []
        before = None
        for session, tag, step, number in rows:
            if tag != name:
                continue
            if before and (step < before[1] or (step == before[1] and session != before[0])):
                kept = [point for point in kept if point[1] < step]
            kept.append((tag, step, number))
            before = (session, step)
        want += kept
    out = tmp_path_factory.mktemp("out")
    assert command("merge", place, "-o", out).code == (0 if all(sessions) else 1)  # a file is empty
    assert sorted(points(out) if rows else [], key=lambda point: point[2]) == sorted(want, key=lambda point: point[2])


# ---- thin


def spiky(place, points=3000):
    with SummaryWriter(place) as writer:
        for step in range(points):
            writer.add_scalar("loss", 100.0 if step == 1234 else -50.0 if step == 777 else 1.0, step)
            if step % 10 == 0:
                writer.add_histogram("w", np.arange(20.0), step)
    return place


def test_thinning_keeps_spikes_ends_and_about_one_in_n(tbwriter_command, tmp_path):
    assert tbwriter_command("thin", spiky(tmp_path / "run"), "-o", tmp_path / "out", "--every", 30).code == 0
    kept = points(tmp_path / "out", "loss")
    assert {("loss", 1234, 100.0), ("loss", 777, -50.0), ("loss", 0, 1.0), ("loss", 2999, 1.0)} <= set(kept)
    assert 60 <= len(kept) <= 105
    assert [step for _, step, _ in kept] == sorted({step for _, step, _ in kept})
    histograms = points(tmp_path / "out", "w")
    assert 10 <= len(histograms) <= 12
    assert next(v.plugin for e in read_events(tmp_path / "out") for v in e.values if v.tag == "w") == "histograms"


@given(st.lists(st.floats(width=32, allow_infinity=False), min_size=1, max_size=200), st.integers(1, 20))
def test_of_any_numbers_thinning_keeps_smallest_and_largest(tmp_path_factory, numbers, every):
    place = tmp_path_factory.mktemp("run")
    data = b"".join(scalar(step, number) for step, number in enumerate(numbers))
    (place / NAME.format(second=1, pid=1)).write_bytes(data)
    out = tmp_path_factory.mktemp("out")
    assert command("thin", place, "-o", out, "--every", every).code == 0
    kept = points(out)
    assert kept[0][1] == 0
    assert kept[-1][1] == len(numbers) - 1
    assert len(kept) <= len(numbers) / every + 5
    finite = [number for number in numbers if not math.isnan(number)]
    if finite:
        left = [number for _, _, number in kept if not math.isnan(number)]
        assert (min(left), max(left)) == (min(finite), max(finite))


def test_kinds_and_tags_are_left_out(tbwriter_command, tmp_path):
    spiky(tmp_path / "run", 50)
    tbwriter_command("thin", tmp_path / "run", "-o", tmp_path / "a", "--drop-kind", "histograms")
    tbwriter_command("thin", tmp_path / "run", "-o", tmp_path / "b", "--drop-tag", "^lo")
    assert points(tmp_path / "a") == points(tmp_path / "run", "loss")
    assert points(tmp_path / "b") == points(tmp_path / "run", "w")


@pytest.mark.parametrize("budget", [4000, 20_000, 60_000, 100_000])
def test_a_budget_is_met_and_used(tbwriter_command, tmp_path, budget):
    spiky(tmp_path / "run")
    assert tbwriter_command("thin", tmp_path / "run", "-o", tmp_path / "out", "--budget", f"{budget}B").code == 0
    (path,) = event_files(tmp_path / "out")
    assert 0.75 * budget < path.stat().st_size <= budget
    assert records(path.read_bytes())[1] == "clean"
    assert ("loss", 1234, 100.0) in points(tmp_path / "out")


@pytest.mark.parametrize("budget", [4000, 20_000, 60_000])
def test_a_budget_is_used_by_curves_that_only_rise_or_fall(tbwriter_command, tmp_path, budget):
    """Of a bucket of theirs two points stay, not three; and both are in one record."""
    with SummaryWriter(tmp_path / "run") as writer:
        for step in range(4000):
            writer.add_scalar("loss", 1 / (step + 1), step)
            writer.add_scalar("tokens", 2.0 * step, step)
    assert tbwriter_command("thin", tmp_path / "run", "-o", tmp_path / "out", "--budget", f"{budget}B").code == 0
    (path,) = event_files(tmp_path / "out")
    assert 0.75 * budget < path.stat().st_size <= budget


def test_a_budget_that_cannot_be_met_is_told(tbwriter_command, tmp_path):
    answer = tbwriter_command("thin", spiky(tmp_path / "run"), "-o", tmp_path / "out", "--budget", "200B")
    assert answer.code == 2
    assert "--drop-kind" in answer.err or "drop kinds or tags" in answer.err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_budget_that_one_run_cannot_meet_leaves_all_runs_alone(tbwriter_command, tmp_path):
    put(tmp_path / "runs" / "a", "good")
    spiky(tmp_path / "runs" / "b")
    before = [contents(tmp_path / "runs" / name) for name in "ab"]
    for to in (["-o", tmp_path / "out"], ["--in-place"]):
        assert tbwriter_command("thin", tmp_path / "runs", *to, "--budget", "600B").code == 2
        assert [contents(tmp_path / "runs" / name) for name in "ab"] == before
        assert not (tmp_path / "out").exists()


def test_a_tag_to_drop_that_is_not_there_is_told(tbwriter_command, tmp_path):
    place = put(tmp_path / "run", "good")
    answer = tbwriter_command("thin", place, "-o", tmp_path / "out", "--drop-tag", "lost")
    assert (answer.code, "no such tag" in answer.err) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--every", 2, "--budget", "1MB"], ["--budget", "much"], ["--every", 0], ["--drop-tag", "("]],
)
def test_what_thin_is_told_must_make_sense(tbwriter_command, tmp_path, arguments):
    place = put(tmp_path / "run", "good")
    assert tbwriter_command("thin", place, "-o", tmp_path / "out", *arguments).code == 2


def test_a_large_run_is_thinned_alike_in_small_looks(tbwriter_command, tmp_path, monkeypatch):
    from tbwriter import _scan

    spiky(tmp_path / "run")
    tbwriter_command("thin", tmp_path / "run", "-o", tmp_path / "one", "--every", 7)
    monkeypatch.setattr(_scan, "_GATHERED", 100)
    tbwriter_command("thin", tmp_path / "run", "-o", tmp_path / "other", "--every", 7)
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_nothing_is_left_behind_when_the_disk_is_full(tbwriter_command, tmp_path, monkeypatch):
    put(tmp_path / "run", "torn-tail")

    def full(_handle):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    assert tbwriter_command("repair", tmp_path / "run", "-o", tmp_path / "out").code == 3
    assert list((tmp_path / "out").iterdir()) == []


def test_marks_that_are_no_restart_void_nothing(tbwriter_command, tmp_path):
    data = [version(), start(0, BEGIN), *GOOD[:5], start(2**63 - 1, BEGIN + 5), *GOOD[5:]]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / NAME.format(second=1, pid=1)).write_bytes(b"".join(data))
    assert points(merged(tbwriter_command, tmp_path, tmp_path / "run")) == curve(range(10))
