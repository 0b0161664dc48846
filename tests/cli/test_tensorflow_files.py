"""All tools on files that TensorFlow itself wrote: tests/golden/write_with_tensorflow.py made them."""

import csv
import io
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tbwriter import read_events, verify

WRITTEN = Path(__file__).parents[1] / "golden" / "of_tensorflow"
RUNS = ["keras/train", "keras/validation", "v1", "v2"]


@pytest.fixture
def place(tmp_path):
    """A copy that was written long ago."""
    shutil.copytree(WRITTEN, tmp_path / "tensorflow")
    for path in (tmp_path / "tensorflow").rglob("*tfevents*"):
        os.utime(path, (1.7e9, 1.7e9))
    return tmp_path / "tensorflow"


def contents(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*tfevents*")}


def points(place):
    return [(value.tag, event.step, value) for event in read_events(place) for value in event.values]


def test_every_record_is_good(tbwriter_command, place):
    assert tbwriter_command("verify", place).code == 0


@pytest.mark.parametrize(
    ("run", "kinds"),
    [
        ("v2", {"scalars": 11, "histograms": 1, "images": 1, "audio": 1, "text": 2, "": 1}),
        ("v1", {"scalars": 10, "histograms": 1, "images": 1, "audio": 1, "text": 1}),
    ],
)
def test_every_kind_is_read(run, kinds):
    found = points(WRITTEN / run)
    assert Counter(value.plugin for _, _, value in found) == kinds
    assert [(step, value.scalar()) for tag, step, value in found if tag == "loss"] == [(n, n / 2) for n in range(10)]
    by_plugin = {value.plugin: value.data for _, _, value in found if value.tag != "table"}
    assert by_plugin["histograms"][:, 2].sum() == 100
    assert by_plugin["images"][0].startswith(b"\x89PNG")
    assert by_plugin["audio"][0].startswith(b"RIFF")
    assert by_plugin["text"] == ("[bold]文字[/bold]" if run == "v2" else "words")
    if run == "v2":
        assert [value.data.tolist() for tag, _, value in found if tag == "table"] == [[["a", "b"], ["c", "d"]]]
        np.testing.assert_array_equal(by_plugin[""], [[1.0, 2.0]])


def test_both_have_their_graph():
    for run in ("v1", "v2"):
        assert sum(event.graph_def is not None for event in read_events(WRITTEN / run)) == 1


def test_doctor_finds_nothing_wrong(tbwriter_command, place):
    answer = tbwriter_command("doctor", place, "--json")
    assert answer.code == 0
    # Written by tf.summary.write, which names no plugin.
    assert [finding["code"] for finding in answer.json["findings"]] == ["no-plugin"]


def test_inspect_shows_all_but_what_names_no_plugin(tbwriter_command, place):
    runs = {run["run"]: run for run in tbwriter_command("inspect", place, "--json").json["runs"]}
    assert sorted(runs) == RUNS
    tags = {
        (name, tag["tag"]): (tag["python_reader"], tag["data_server"]) for name in RUNS for tag in runs[name]["tags"]
    }
    assert {tag for tag, readers in tags.items() if readers != ("all", "all")} == {("v2", "tensor")}
    assert [run["graphs"] for run in runs.values()] == [0, 0, 3, 1]  # of v1: the graph, its MetaGraph, a trace
    assert runs["v1"]["sessions"] == [0]


def test_repair_leaves_them_byte_for_byte(tbwriter_command, place, tmp_path):
    assert tbwriter_command("repair", place, "-o", tmp_path / "out").code == 0
    assert contents(tmp_path / "out") == contents(place)


@pytest.mark.parametrize("run", RUNS)
def test_merge_keeps_every_value(tbwriter_command, place, tmp_path, run):
    assert tbwriter_command("merge", place / run, "-o", tmp_path / "out").code == 0
    assert verify(tmp_path / "out").ok
    assert repr(points(tmp_path / "out")) == repr(points(place / run))


@pytest.mark.parametrize("arguments", [["rewind", "--step", "2"], ["thin", "--every", "3"]])
def test_some_points_go_and_the_rest_says_what_it_said(tbwriter_command, place, tmp_path, arguments):
    assert tbwriter_command(*arguments, place, "-o", tmp_path / "out").code == 0
    before, after = (
        Counter((run, *map(repr, point)) for run in RUNS for point in points(where / run))
        for where in (place, tmp_path / "out")
    )
    assert after < before


def test_export_and_plot_take_all_scalars(tbwriter_command, place, tmp_path):
    rows = list(csv.DictReader(io.StringIO(tbwriter_command("export", place).out)))
    assert len(rows) == 10 + 11 + 6 + 6
    pytest.importorskip("matplotlib")
    assert tbwriter_command("plot", place, "-o", tmp_path / "x.png", "--tag", "loss").code == 0
