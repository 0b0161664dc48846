import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks import _machine, _stores, report
from benchmarks._block import noise
from benchmarks._measure import alternate, ratio_of_medians, spread
from benchmarks._progress import silent
from benchmarks._results import Result, Target
from benchmarks._setting import Setting
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


def test_a_machine_is_noisy_when_blocks_without_logging_differ_by_more_than_2_percent():
    assert noise([100.0, 101.0, 102.0]) == []
    assert noise([100.0, 101.0, 103.5])[0].endswith("the machine was too noisy to tell small costs.")


def test_a_commit_is_named_in_its_own_repository_alone(tmp_path, monkeypatch):
    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "--allow-empty", "-m", "x")
    monkeypatch.setattr(_machine, "ROOT", tmp_path)
    assert re.fullmatch("[0-9a-f]{12}", _machine.commit())
    (tmp_path / "msbridge").mkdir()
    (tmp_path / "msbridge" / "new.py").write_text("")
    assert _machine.commit().endswith("+")
    monkeypatch.setattr(_machine, "ROOT", tmp_path / "msbridge")  # an archive, unpacked there
    assert _machine.commit() == "unknown"
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(_machine, "ROOT", tmp_path)
    assert _machine.commit() == "unknown"


def test_versions_name_what_was_measured():
    found = _machine.versions()
    assert found["numpy"] == np.__version__
    for package in ("mindspore", "tensorboard-data-server", "s3fs"):
        assert (package in found) == (importlib.util.find_spec(package.replace("-", "_")) is not None)


def test_nfs_is_found_where_it_can_be_written(tmp_path, monkeypatch):
    table = tmp_path / "mounts"
    monkeypatch.setattr(_machine, "_MOUNTS", table)
    mount = tmp_path / "nfs mount"
    mount.mkdir()
    table.write_text(f"/dev/root / ext4 rw 0 0\nserver:/x {tmp_path}/gone nfs4 rw 0 0\n")
    assert _machine.nfs_directory() is None
    shown = str(mount).replace(" ", r"\040")
    table.write_text(table.read_text() + f"server:/y {shown} nfs4 rw,vers=4.2 0 0\n")
    assert _machine.nfs_directory() == mount
    assert _machine.file_system(mount / "run") == "nfs4"
    assert _machine.file_system(tmp_path) == "ext4"
    with _stores.opened(Setting(tmp_path, [], silent(), sinks=["nfs"])) as (there, missing):
        place = Path(there["nfs"].fresh(Setting(tmp_path, [], silent())))
        assert place.is_relative_to(mount)
        assert missing == []
    assert list(mount.iterdir()) == []


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
