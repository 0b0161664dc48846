from pathlib import Path

import pytest

from benchmarks import report
from benchmarks._measure import alternate, ratio_of_medians, spread
from benchmarks._results import Result, Target
from benchmarks._syscalls import _parse


def test_writers_take_turns_in_going_first():
    order = []
    assert alternate("AB", 2, lambda name: order.append(name) or len(order)) == {"A": [1, 4], "B": [2, 3]}
    assert order == ["A", "B", "B", "A"]


def test_few_rounds_show_their_smallest_and_largest():
    found = spread([3.0, 1.0, 2.0])
    assert (found.median, found.low, found.high, found.interval) == (2.0, 1.0, 3.0, "min to max")


def test_many_rounds_show_an_interval_of_the_median():
    found = spread([10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 1000.0])
    assert found.interval == "bootstrap 95 %"
    assert found.low <= found.median == 14.0 <= found.high < 1000.0


def test_a_ratio_to_what_may_be_nothing_is_left_out():
    assert ratio_of_medians([5.0, 6.0, 7.0], [1.0, -1.0, 2.0]) is None


@pytest.mark.parametrize(
    ("samples", "verdict"),
    [
        ([1.0, 2.0, 3.0], "met"),
        ([1.0, 2.0, 5.0], "unclear, met"),
        ([1.0, 5.0, 6.0], "unclear, missed"),
        ([5.0, 6.0, 7.0], "missed"),
    ],
)
def test_a_target_is_judged_by_the_whole_interval(samples, verdict):
    assert Target.judge("us", "at most", 4, spread(samples)).verdict == verdict


def test_a_result_with_a_field_missing_is_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"schema": 1}')
    with pytest.raises(ValueError, match=r"x\.json: got \['schema'\], want the fields"):
        Result.load(tmp_path / "x.json")


def test_tables_go_between_their_markers_and_nowhere_else():
    text = "before\n<!-- results: write -->\nold\n<!-- end of results -->\nafter\n"
    assert report.insert(text, "write", "new") == (
        "before\n<!-- results: write -->\n\nnew\n\n<!-- end of results -->\nafter\n"
    )
    with pytest.raises(ValueError, match="want one <!-- results: encode -->"):
        report.insert(text, "encode", "new")


def test_only_calls_on_event_files_between_the_marks_count(tmp_path):
    trace = tmp_path / "trace"
    trace.write_text(
        '10 openat(AT_FDCWD, "/d/run/tfevents.0", O_WRONLY|O_CREAT, 0666) = 3</d/run/tfevents.0>\n'
        '10 stat("/benchmark-begins", 0x7ffd) = -1 ENOENT (No such file or directory)\n'
        '10 openat(AT_FDCWD, "/d/run/tfevents.1", O_WRONLY|O_CREAT, 0666) = 3</d/run/tfevents.1>\n'
        '10 openat(AT_FDCWD, "/d/run/tfevents.1", O_RDONLY) = 4</d/run/tfevents.1>\n'
        '10 pwrite64(3</d/run/tfevents.1>, "x"..., 58, 0 <unfinished ...>\n'
        "11 futex(0x5589, FUTEX_WAKE_PRIVATE, 1) = 0\n"
        "10 <... pwrite64 resumed>) = 58\n"
        '11 pwrite64(3</d/run/tfevents.1>, "y"..., 9, 58) = 9\n'
        '11 write(7</d/elsewhere>, "z", 1) = 1\n'
        "11 fdatasync(3</d/run/tfevents.1>) = 0\n"
        '10 stat("/benchmark-ends", 0x7ffd) = -1 ENOENT (No such file or directory)\n'
        '10 write(3</d/run/tfevents.1>, "z", 1) = 1\n'
    )
    counts = _parse(trace, Path("/d/run"))
    assert (counts.opens, counts.writes, counts.caller_writes) == (1, 2, 1)
    assert (counts.syncs, counts.caller_syncs, counts.total) == (1, 0, 7)
