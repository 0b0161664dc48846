import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks._measure import alternate, ratio_of_medians, spread
from benchmarks._results import Result, Target
from benchmarks._syscalls import _parse
from tbwriter import SummaryWriter

ROOT = Path(__file__).resolve().parents[2]


def run(output, *arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments, "--quick", "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    output = tmp_path_factory.mktemp("write") / "write.json"
    table = run(output, "write", "--dir", str(output.parent))
    # Loading refuses missing and unknown fields, other types, and numbers that are not finite.
    return Result.load(output), table


def figure(result, name):
    return next(found for found in result.figures if found.name == name)


def ours(result, name):
    return figure(result, name).values["tbwriter"].median


def test_encode_gives_a_complete_result_and_a_table(tmp_path):
    table = run(tmp_path / "encode.json", "encode")
    result = Result.load(tmp_path / "encode.json")
    assert result.complete
    assert [found.name for found in result.figures] == ["encode_cpu", "encode_bytes"]
    assert "| template, ten to an Event |" in table


@pytest.mark.slow
def test_summaries_measures_every_method_of_ours(tmp_path):
    run(tmp_path / "summaries.json", "summaries")
    result = Result.load(tmp_path / "summaries.json")
    assert result.complete
    measured = {name.split(",")[0] for name in figure(result, "caller_of_tbwriter").values}
    methods = {name for name in dir(SummaryWriter) if name.startswith("add_")}
    # Measured by write, or the same work as another: an ONNX or torch graph is converted by their own programs.
    elsewhere = {"add_metrics", "add_scalar_series", "add_graph", "add_onnx_graph", "add_hparams", "add_tensor"}
    elsewhere |= {"add_histogram_raw", "add_pr_curve_raw", "add_event", "add_summary"}
    elsewhere |= {name for name in methods if name.startswith("add_custom_scalars_")}
    assert measured == methods - elsewhere


@pytest.mark.slow
def test_write_gives_a_complete_result_and_a_table(written):
    result, table = written
    assert result.complete
    assert {"cpu_per_scalar", "caller_p99.9", "loop_gil", "memory"} <= {found.name for found in result.figures}
    assert all(found.values for found in result.figures)
    assert "| tbwriter |" in table


@pytest.mark.slow
def test_a_scalar_takes_at_most_27_bytes_at_ten_tags_a_step(written):
    assert 0 < ours(written[0], "bytes_per_scalar") <= 27


@pytest.mark.slow
def test_a_thousand_scalars_open_one_file_and_write_at_most_five_times(written):
    assert ours(written[0], "syscalls_open") == 1
    assert 1 <= ours(written[0], "syscalls_write") <= 5


@pytest.mark.slow
def test_the_caller_syncs_nothing(written):
    assert ours(written[0], "syscalls_sync") == 0


@pytest.mark.slow
def test_a_histogram_of_a_million_values_takes_at_most_32_mib(written):
    assert 0 < ours(written[0], "histogram_memory") <= 32


@pytest.mark.slow
def test_what_is_not_measured_is_named(written):
    result = written[0]
    measured = set(figure(result, "cpu_per_scalar").values)
    assert set(result.left_out) | measured == {"tbwriter", "tensorboardX", "torch", "EventFileWriter", "list"}
    assert not set(result.left_out) & measured


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
