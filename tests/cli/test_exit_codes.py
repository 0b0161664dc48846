"""How every command ends: its reader gone, SIGTERM, an argument that is empty, a place that may not be read."""

import os
import subprocess
import sys

import pytest
from damaged import put

from tbwriter.cli import _common

COMMANDS = {  # a way to call each that ends by itself
    "inspect": [],
    "doctor": [],
    "verify": [],
    "cat": [],
    "repair": ["-o", "OUT"],
    "rewind": ["-o", "OUT", "--step", "3"],
    "merge": ["-o", "OUT"],
    "thin": ["-o", "OUT", "--every", "2"],
    "export": [],
    "tail": ["--once"],
    "plot": ["-o", "OUT.svg"],
    "serve": ["--print"],
    "convert": ["-o", "OUT"],
}
EVENTS = [name for name in COMMANDS if name != "convert"]


def arguments(name, out):
    return [str(word).replace("OUT", str(out)) for word in COMMANDS[name]]


def start(name, *more, **streams):
    return subprocess.Popen([sys.executable, "-m", "tbwriter", name, *map(str, more)], **streams)


def closed_pipe():
    """The end of a pipe for a writer, whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_a_reader_that_has_gone_is_no_damage(tmp_path):
    pytest.importorskip("matplotlib")
    run = put(tmp_path / "run", "good")
    calls = [(name, *arguments(name, tmp_path / name)) for name in EVENTS]
    calls += [(name, "--json") for name in ("inspect", "doctor", "verify")]
    pipe = closed_pipe()
    started = {call: start(call[0], run, *call[1:], stdout=pipe, stderr=subprocess.PIPE, text=True) for call in calls}
    os.close(pipe)
    ends = {call: (process.communicate(timeout=300)[1], process.returncode) for call, process in started.items()}
    assert {call: end for call, end in ends.items() if end != ("", 0)} == {}


def test_a_reader_of_stderr_that_has_gone_changes_no_exit_code(tmp_path):
    pipe = closed_pipe()
    process = start("thin", put(tmp_path / "run", "bad-data"), "--every", 2, "-o", tmp_path / "out", stderr=pipe)
    os.close(pipe)
    assert process.wait(300) == 1
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize("command", ["repair", "thin", "merge"])
def test_sigterm_leaves_no_part_of_a_file(tmp_path, command):
    code = """
import os, signal
os.fsync = lambda _handle: os.kill(os.getpid(), signal.SIGTERM)  # when all is written, before it has its name
from tbwriter.cli import main
main()
"""
    words = arguments(command, tmp_path / "out")
    run = put(tmp_path / "run", "good")
    ended = subprocess.run([sys.executable, "-c", code, command, run, *words], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (143, b"")
    assert list((tmp_path / "out").iterdir()) == []


# ---- arguments


@pytest.mark.parametrize("command", [*COMMANDS, "ship"])
def test_an_empty_place_is_refused_in_the_same_words(tbwriter_command, tmp_path, monkeypatch, command):
    monkeypatch.chdir(put(tmp_path / "run", "good"))
    answer = tbwriter_command(command, "", *arguments(command, tmp_path / "out") if command in COMMANDS else ())
    assert (answer.code, answer.err, answer.out) == (2, "tbwriter: PATH is empty; want a path or a URL\n", "")


@pytest.mark.parametrize("command", [name for name, words in COMMANDS.items() if "-o" in words] + ["export"])
def test_an_empty_output_is_refused(tbwriter_command, tmp_path, monkeypatch, command):
    run = put(tmp_path / "run", "good")
    monkeypatch.chdir(tmp_path)
    words = [word for word in COMMANDS[command] if not word.startswith(("-o", "OUT"))]
    answer = tbwriter_command(command, run, *words, "-o", "")
    assert (answer.code, answer.err) == (2, "tbwriter: --output is empty; want a path or a URL\n")
    assert list(tmp_path.iterdir()) == [run]


@pytest.mark.parametrize("url", ["http://host/x", "foo://x"])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_url_that_nothing_serves_is_refused_in_the_same_words(tbwriter_command, tmp_path, command, url):
    answer = tbwriter_command(command, url, *arguments(command, tmp_path / "out"))
    assert answer.code == 2
    assert answer.err.startswith(f"tbwriter: PATH '{url}': no sink serves")


@pytest.mark.parametrize("command", ["inspect", "doctor", "merge", "convert"])
def test_a_driver_that_is_missing_is_named_with_its_extra(tmp_path, command):
    code = "import sys; sys.modules['s3fs'] = None; from tbwriter.cli import main; main()"
    words = [command, "s3://no-bucket-of-anybody/runs", *arguments(command, tmp_path / "out")]
    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "pip install 'tbwriter[s3]'" in ended.stderr


# ---- places that may not be read


@pytest.mark.parametrize("mode", [0o000, 0o400])
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "doctor"])
def test_a_directory_that_may_not_be_read_is_told(tbwriter_command, as_nobody, command, mode):
    run = put(as_nobody / "run", "good")
    if command == "convert":
        (run / "events.out.events.summary.1700000000.0.host_MS").write_bytes(b"")
    run.chmod(mode)
    answer = tbwriter_command(command, run, *arguments(command, as_nobody / "out"))
    assert answer.code == 3
    assert f"Permission denied: {run}" in answer.err


@pytest.mark.parametrize("command", ["inspect", "doctor", "merge", "convert"])
def test_a_place_behind_such_a_directory_is_not_said_to_be_missing(tbwriter_command, as_nobody, command):
    put(as_nobody / "run" / "below", "good")
    (as_nobody / "run").chmod(0)
    answer = tbwriter_command(command, as_nobody / "run" / "below", *arguments(command, as_nobody / "out"))
    assert answer.code == 3
    assert "Permission denied" in answer.err + answer.out


def test_what_may_not_be_read_beside_what_may_is_told(tbwriter_command, as_nobody):
    put(as_nobody / "good", "good")
    put(as_nobody / "run", "good").chmod(0)
    answer = tbwriter_command("export", as_nobody)
    assert len(answer.out.splitlines()) == 11
    assert f"Permission denied: {as_nobody / 'run'}; what is in it is left out" in answer.err


@pytest.mark.parametrize("command", ["thin", "export"])
def test_a_directory_that_may_not_be_written_is_named_and_no_other_file(tbwriter_command, as_nobody, command):
    run = put(as_nobody / "run", "good")
    run.chmod(0o500)
    words = ["--every", 2, "--in-place"] if command == "thin" else ["-o", run / "x.csv"]
    answer = tbwriter_command(command, run, *words)
    assert (answer.code, answer.err) == (3, f"tbwriter: Permission denied: {run}\n")


def test_exit_codes_are_those_of_the_page():
    from tools_page import PAGE

    rows = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [row for row in rows if row.isdigit()] == [str(int(code)) for code in _common.Exit]
