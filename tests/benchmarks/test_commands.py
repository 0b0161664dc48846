"""Every command, in its smallest form: it runs, its result is complete, and counts in it are right."""

import itertools
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from needs import need

from benchmarks import __main__ as main
from benchmarks import callback, read
from benchmarks._results import Result
from tbwriter import SummaryWriter

ROOT = Path(__file__).resolve().parents[2]
PEERS = {"tensorboardX", "EventFileWriter"}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a busy machine takes ten times as long as an idle one


def quick(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments, "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def run(output, *arguments):
    quick(*arguments, "--output", str(output))
    result = Result.load(output)
    assert result.complete
    assert all(figure.values for figure in result.figures)
    return result


def figure(result, name):
    return next(found for found in result.figures if found.name == name)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        ("soak --minutes -1", "--minutes: must be a number above 0, got '-1'", 2),
        ("write --step-ms nan", "--step-ms: must be a number above 0, got 'nan'", 2),
        ("collect_freq --freqs 1,x", "--freqs: must be an integer of at least 1, got 'x'", 2),
        ("collect_freq --quick --only stores --sinks none --logdir {file}/below", "--logdir {file}/below: ", 3),
        ("ranks --quick --sinks local --logdir {file}/below", "--logdir {file}/below: ", 3),
        ("sinks --quick --sinks none --logdir nothing://x", "--logdir nothing://x: ", 3),
        ("sinks --quick --logdir=", "--logdir: must be a path or a URL, got nothing", 2),
        ("encode --scalars 9", "--scalars: must be an integer of at least 10, got '9'", 2),
        ("sinks --memory-scalars 9999", "--memory-scalars: must be an integer of at least 10,000, got '9999'", 2),
        ("encode --dir {file}/below", "--dir: must be a directory that can be written, got '{file}/below'", 2),
        ("encode --output {file}/below", "--output: must be a file that can be written: ", 2),
        ("report --docs {file}/below", "python -m benchmarks: [Errno 20] Not a directory: '{file}/below'", 3),
    ],
)
def test_what_cannot_be_measured_is_one_line(tmp_path, capsys, arguments, words, code):
    file = tmp_path / "file"
    file.write_text("")
    try:
        status = main.main(arguments.format(file=file).split())
    except SystemExit as stop:
        status = stop.code
    assert status == code
    assert words.format(file=file) in capsys.readouterr().err.splitlines()[-1]


def test_every_way_to_encode_is_measured(tmp_path):
    result = run(tmp_path / "x.json", "encode")
    assert [found.name for found in result.figures] == ["encode_cpu", "encode_bytes"]


def test_writers_are_measured_side_by_side_and_who_is_missing_is_named(tmp_path):
    parts = "cpu,series,caller,metrics,loop_waiting,loop_gil,syscalls,memory"
    result = run(tmp_path / "x.json", "write", "--dir", str(tmp_path), "--only", parts)
    assert {"cpu_per_scalar", "caller_p99.9", "loop_gil", "memory"} <= {found.name for found in result.figures}
    measured = set(figure(result, "cpu_per_scalar").values)
    assert set(result.left_out) | measured == {"tbwriter", "tensorboardX", "torch", "EventFileWriter", "list"}
    assert not set(result.left_out) & measured


def test_a_loop_is_measured_on_every_sink_and_at_every_collect_freq(tmp_path):
    arguments = ["--only", "stores", "--sinks", "none,memory,local,fsync,slow5", "--freqs", "1,4"]
    result = run(tmp_path / "x.json", "collect_freq", *arguments, "--logdir", str(tmp_path / "mine"))
    sinks = {"none", "memory", "local", "fsync", "slow5", "logdir"}
    assert set(figure(result, "stores_extra_1").values) == {*sinks, "list"}
    assert set(figure(result, "stores_direct_4").values) == sinks
    assert result.options["freqs"] == "1,4"
    assert list((tmp_path / "mine").rglob("*tfevents*"))
    assert str(tmp_path) not in (tmp_path / "x.json").read_text()


def test_writers_that_wait_for_storage_show_it_and_tbwriter_does_not(tmp_path):
    arguments = ["--only", "slow", "--sinks", "slow5", "--freqs", "1", "--blocks", "3"]
    result = run(tmp_path / "x.json", "collect_freq", *arguments)
    values = figure(result, "slow_direct_1").values
    assert {len(value.samples) for value in values.values()} == {3}  # no fewer than asked for
    assert len(values) == 1 + len(PEERS - set(result.left_out))
    # Ten scalars a step are ten waits of 5 ms for a writer that waits for each; ours are some microseconds.
    assert values["tbwriter, slow5"].median < 5000
    if "EventFileWriter, slow5" in values:
        assert values["EventFileWriter, slow5"].median > 5000


def test_every_load_and_loop_is_measured_beside_the_peers(tmp_path):
    result = run(
        tmp_path / "x.json", "collect_freq", "--only", "writers,many,histograms,images,gil,torch", "--freqs", "1,4"
    )
    here = {"tbwriter", *(PEERS - set(result.left_out))}
    for name in ("writers", "many", "gil"):
        assert set(figure(result, f"{name}_extra_4").values) == here
    for name in ("histograms", "images"):
        assert set(figure(result, f"{name}_direct_1").values) == here - {"EventFileWriter"}


def test_callbacks_are_measured_in_a_training_with_mindspore(tmp_path):
    pytest.importorskip("mindspore")
    result = run(tmp_path / "x.json", "collect_freq", "--only", "mindspore", "--freqs", "1")
    values = figure(result, "mindspore_direct_1").values
    assert {callback.OURS, callback.LOSS, callback.DEFAULT} <= set(values)
    assert all(value.median > 0 for value in values.values())


def test_processes_that_share_a_store_do_what_the_model_says(tmp_path):
    result = run(tmp_path / "x.json", "ranks", "--sinks", "local", "--ranks", "4")
    steps = figure(result, "ranks_local_steps")
    assert list(steps.values) == ["1 process", "2 processes", "4 processes"]
    assert [len(value.samples) for value in steps.values.values()] == [1, 2, 4]
    assert steps.targets[0].verdict == "met"  # nothing was dropped
    asked = figure(result, "ranks_local_operations").values
    assert asked["10,000 processes, by the model"].median == 10_000 * asked["1 process"].median


def test_nothing_is_lost_while_storage_fails_and_recovers(tmp_path):
    result = run(tmp_path / "x.json", "soak", "--minutes", "0.01")
    counts = figure(result, "soak_counts").values
    assert counts["values added"].median > 10_000
    assert counts["values not read back"].median == 0
    assert counts["steps out of order"].median == 0


def test_summaries_measures_every_method_of_ours(tmp_path):
    result = run(tmp_path / "x.json", "summaries")
    measured = {name.split(",")[0] for name in figure(result, "caller_of_tbwriter").values}
    methods = {name for name in dir(SummaryWriter) if name.startswith("add_")}
    # Measured by write, or the same work as another: an ONNX or torch graph is converted by their own programs.
    elsewhere = {"add_metrics", "add_scalar_series", "add_graph", "add_onnx_graph", "add_hparams", "add_tensor"}
    elsewhere |= {"add_histogram_raw", "add_pr_curve_raw", "add_event", "add_summary"}
    elsewhere |= {name for name in methods if name.startswith("add_custom_scalars_")}
    assert measured == methods - elsewhere


def test_every_command_has_a_place_in_the_documentation():
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    missing = [name for name in main._COMMANDS if name != "tour" and f"<!-- results: {name} -->" not in text]
    assert not missing


def test_reading_is_measured_beside_tensorboard(tmp_path):
    need("tensorboard", "tensorboard_data_server")
    result = run(tmp_path / "x.json", "read", "--only", "scalars")
    for number, unit in itertools.product("012", ("", "_bytes", "_events")):
        measured = set(figure(result, f"read_{number}{unit}").values)
        assert {read.ACCUMULATOR, read.DATA_SERVER, "inspect", "verify"} <= measured
    # Ten scalars to an Event: the same scalars, a tenth of the Events.
    for number, each in ((0, 1), (2, 10)):
        took = figure(result, f"read_{number}").values["verify"].samples
        speed = figure(result, f"read_{number}_events").values["verify"].samples
        assert speed == pytest.approx([1e6 / us / each for us in took])


def test_every_sink_stores_at_full_rate(tmp_path):
    result = run(tmp_path / "x.json", "sinks")
    assert set(figure(result, "sinks_rate").values) == {"none", "memory", "local", "slow5"}
    assert figure(result, "uploaded_puts").values["after 720 h"].median > 720


def test_a_histogram_counts_every_value_and_normal_data_comes_out_near(tmp_path):
    result = run(tmp_path / "x.json", "histogram")
    assert figure(result, "histogram_lost").values["tbwriter"].median == 0
    assert 0 < figure(result, "histogram_distance_0").values["tbwriter"].median < 1


def test_the_tour_runs_without_a_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for title in ("Every sink", "Every writer", "GIL-bound loop", "System calls", "encode and frame"):
        assert title in done.stdout


def test_a_result_that_cannot_be_read_costs_the_report_no_other(tmp_path, capsys):
    from benchmarks import report

    good = json.loads((ROOT / "benchmarks" / "results" / "encode.json").read_text(encoding="utf-8"))
    results = {"encode": json.dumps(good), "cut": json.dumps(good)[:2000], "list": "[1]", "binary": "\xff"}
    results |= {"older": json.dumps({**good, "schema": 0}), "strange": json.dumps({**good, "command": "strange"})}
    for name, text in results.items():
        (tmp_path / f"{name}.json").write_text(text, encoding="latin-1")
    docs = tmp_path / "performance.md"
    docs.write_text("<!-- results: encode -->\nold\n<!-- end of results -->\n", encoding="utf-8")
    assert report.main(tmp_path, docs) == 1
    said = capsys.readouterr().err
    assert all(f"{name}.json was left out: " in said for name in results if name != "encode")
    assert "older.json: schema: got 0, want 1; measure again" in said
    assert "Measured on" in docs.read_text(encoding="utf-8")


def test_the_report_puts_tables_and_plots_into_the_documentation(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks import report

    results = ROOT / "benchmarks" / "results"
    docs = tmp_path / "performance.md"
    docs.write_text((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), encoding="utf-8")
    assert report.main(results, docs) == 0
    text = docs.read_text(encoding="utf-8")
    drawn = sorted((tmp_path / "plots").iterdir())
    assert drawn
    for path in drawn:
        assert f"](plots/{path.name})" in text
        assert ET.parse(path).getroot().tag.endswith("svg")
        assert path.stat().st_size < 100_000
    before = {path.name: path.read_bytes() for path in drawn}
    assert report.main(results, docs) == 0
    assert docs.read_text(encoding="utf-8") == text
    assert {path.name: path.read_bytes() for path in drawn} == before
