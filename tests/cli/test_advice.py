"""The command lines that `tbwriter doctor` gives: each runs as it is printed, and mends what it was given for."""

import itertools
import os
import shlex
import subprocess

import fsspec
import pytest
from damaged import BEGIN, CASES, put

from tbwriter import SummaryWriter
from tbwriter.cli import _common

LOOKED_AT = ("tensorboard ", "tbwriter serve ")
"""Commands that show what is there, and change nothing."""


def findings(tbwriter_command, place):
    """What is found; but not that a copy, made just now, may still be written."""
    found = tbwriter_command("doctor", place, "--json").json["findings"]
    return [finding for finding in found if finding["code"] != "still-growing"]


def carry_out(tbwriter_command, line):
    """Do what a shell would do with a command line; return the words of its commands."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands = [list(words) for joint, words in itertools.groupby(lexer, lambda word: word == "&&") if not joint]
    for words in commands:
        assert not any(set(word) <= set("();<>|&") for word in words), f"a shell takes {line!r} otherwise"
        if words[0] == "tbwriter":
            answer = tbwriter_command(*words[1:])
            assert answer.code in {0, 1}, answer.err
        else:
            subprocess.run(words, check=True)
    return commands


def mended(commands, place):
    """Where what the commands made lies: in the directory of -o, or where it was."""
    outputs = [words[words.index("-o") + 1].partition("/")[0] for words in commands if "-o" in words]
    return outputs[0] if outputs else place


GIVEN = [
    "torn-tail", "bad-data", "zero-hole", "zero-tail", "no-event", "empty", "double", "no-metadata", "late-metadata",
    "scalars-then-histograms", "nan-time", "clock-back", "two-writers-one-tag", "two-writers", "names", "back",
    "second-session", "mark-too-late", "two-writers-marked", "copies-unmarked", "names-marked", "texts", "plain",
    "gzip", "stale", "many", "name", "mindspore-renamed",
]  # fmt: skip


@pytest.mark.parametrize("case", GIVEN)
def test_a_command_that_is_given_mends_what_it_is_given_for(tbwriter_command, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    place = put(tmp_path / "runs" / "it's a run", case)
    found = findings(tbwriter_command, tmp_path / "runs")
    given = [finding for finding in found if finding["command"]]
    assert given
    for finding in given:
        if finding["command"].startswith(LOOKED_AT):
            words = shlex.split(finding["command"])
            logdir = words[words.index("--logdir") + 1] if "--logdir" in words else words[2]
            assert tbwriter_command("inspect", logdir).code == 0
        else:
            commands = carry_out(tbwriter_command, finding["command"])
            left = findings(tbwriter_command, mended(commands, place))
            assert finding["code"] not in {other["code"] for other in left}


def test_no_other_case_has_a_command_that_nobody_tried(tbwriter_command, tmp_path):
    """MindSpore's are tried where it writes them: tests/msbridge."""
    given = {
        case
        for case in CASES
        if any(finding["command"] for finding in findings(tbwriter_command, put(tmp_path / case, case)))
    }
    alike = {"torn-in-header", "torn-and-more", "bad-length", "bad-data-then-file", "int64", "rank-1", "double-later"}
    alike |= {"half", "plugin-version", "scalars-then-text", "histograms-then-scalars", "infinite-time"}
    alike |= {"back-no-version", "first-mark-in-second", "mark-that-voids-nothing", "copies", "empty-then-good"}
    assert given - alike == {*GIVEN, "mindspore", "mindspore-beside"}


def test_runs_that_are_mended_one_after_the_other_stay_apart(tbwriter_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "deep/b"):
        put(tmp_path / "runs" / name, "bad-data")
    for finding in findings(tbwriter_command, tmp_path / "runs"):
        carry_out(tbwriter_command, finding["command"])
    runs = tbwriter_command("inspect", "REPAIRED", "--json").json["runs"]
    assert [run["run"] for run in runs] == ["a", "deep/b"]
    assert findings(tbwriter_command, "REPAIRED") == []


@pytest.mark.parametrize("below", [".", "a"])
def test_a_command_runs_where_the_runs_are_too(tbwriter_command, tmp_path, monkeypatch, below):
    """A copy among what is read would be refused."""
    monkeypatch.chdir(put(tmp_path / "runs" / "a", "bad-data").parent / below)
    (finding,) = findings(tbwriter_command, tmp_path / "runs")
    carry_out(tbwriter_command, finding["command"])
    assert findings(tbwriter_command, tmp_path / "REPAIRED") == []


def test_ranks_in_one_directory_are_moved_apart(tbwriter_command, tmp_path):
    writers = [SummaryWriter(tmp_path / "run") for _ in range(3)]
    for step in range(20):
        for number, writer in enumerate(writers):
            writer.add_scalar("loss", float(number), step, BEGIN + step)
    for writer in writers:
        writer.close()
    (finding,) = findings(tbwriter_command, tmp_path)
    carry_out(tbwriter_command, finding["command"])
    assert findings(tbwriter_command, tmp_path) == []
    assert len(tbwriter_command("inspect", tmp_path, "--json").json["runs"]) == 3


def test_a_metric_of_several_names_gets_the_one_that_most_runs_have(tbwriter_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, tag in enumerate(["loss", "train/loss", "train/loss", "train_loss"]):
        with SummaryWriter(tmp_path / "runs" / f"run{number}") as writer:
            writer.add_scalar(tag, 1.0, 1)
    (finding,) = findings(tbwriter_command, tmp_path / "runs")
    carry_out(tbwriter_command, finding["command"])
    runs = tbwriter_command("inspect", "RENAMED", "--json").json["runs"]
    assert {run["run"]: run["tags"][0]["tag"] for run in runs} == {"run0": "train/loss", "run3": "train/loss"}


@pytest.mark.parametrize("case", ["gzip", "plain", "empty", "copies-unmarked", "two-writers-one-tag"])
def test_no_command_of_the_shell_is_given_for_a_url(tbwriter_command, tmp_path, case):
    system = fsspec.filesystem("memory")
    for path in put(tmp_path / "run", case).iterdir():
        system.pipe(f"/{tmp_path.name}/{path.name}", path.read_bytes())
    found = findings(tbwriter_command, f"memory://{tmp_path.name}")
    assert found
    assert {finding["command"].partition(" ")[0] for finding in found} <= {"", "tbwriter"}


def test_a_command_stays_in_one_piece_in_a_narrow_terminal(tbwriter_command, tmp_path, monkeypatch):
    """What is copied from a terminal has line breaks where the program put them, and none where the terminal did."""
    place = put(tmp_path / "runs" / ("a long name of a run " * 4), "bad-data")
    (finding,) = findings(tbwriter_command, place)
    monkeypatch.setattr(_common, "console", lambda: _common._Console(highlight=False, width=60))
    lines = tbwriter_command("doctor", place).out.splitlines()
    assert f"  do           {finding['command']}" in lines
    words = [line for line in lines if finding["command"] not in line]
    assert max(map(len, words)) <= 60
    assert any(line.startswith(" " * 15) for line in words)


def test_the_same_command_is_printed_once(tbwriter_command, tmp_path):
    place = put(tmp_path / "run", "bad-data")
    (path,) = place.iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    os.utime(path, (BEGIN, BEGIN))
    answer = tbwriter_command("doctor", place)
    assert answer.out.count("tbwriter repair") == 1
    assert "the same as above" in answer.out
