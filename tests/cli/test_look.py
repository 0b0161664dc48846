"""`tbwriter inspect`, `verify` and `cat`: what they print, for people and for programs, and their exit codes."""

import json
import math
import os
import re
import subprocess
import sys
import tracemalloc

import fsspec
import numpy as np
import pytest
from damaged import NAME, field, put, tensor, value

import tbwriter
from tbwriter import SummaryWriter


@pytest.fixture
def runs(tmp_path):
    for name, steps in (("first", range(10)), ("deep/second", [0, 10, 20, 60, 70])):
        with SummaryWriter(tmp_path / name) as writer:
            for step in steps:
                writer.add_scalar("loss", math.nan if step == 20 else step / 2, step, 1000.0 + step)
            writer.add_histogram("w", np.arange(5.0), 1)
            writer.add_text("note", "[bold]文字[/bold]", 1)
    return tmp_path


# ---- inspect


def test_inspect_tells_of_each_tag(tbwriter_command, runs):
    answer = tbwriter_command("inspect", runs, "--json")
    assert answer.code == 0
    second, first = answer.json["runs"]
    assert (first["run"], second["run"]) == ("first", "deep/second")
    assert first["sessions"] == [0]
    assert (first["files"][0]["writer"], first["files"][0]["file_version"]) == ("tbwriter", "brain.Event:2")
    loss, w, note = second["tags"]
    assert (loss["tag"], loss["kind"], loss["points"], loss["nan"]) == ("loss", "scalars", 5, 1)
    assert (loss["first_step"], loss["last_step"], loss["stride"], loss["gaps"]) == (0, 70, 10, [[20, 60]])
    assert (loss["first_time"], loss["last_time"]) == (1000.0, 1070.0)
    assert (loss["lowest"], loss["highest"], loss["last"]) == (0.0, 35.0, 35.0)
    assert (loss["python_reader"], loss["data_server"]) == ("all", "all")
    assert (w["kind"], note["kind"]) == ("histograms", "text")


def test_inspect_is_readable(tbwriter_command, runs):
    answer = tbwriter_command("inspect", runs)
    for words in ("deep/second", "loss", "scalars", "0..70", "1 gap, the largest 20..60", "note/text_summary"):
        assert words in answer.out


def test_inspect_of_one_file_says_what_the_readers_columns_are_of(tbwriter_command, tmp_path):
    """Of a file as log directory TensorBoard shows nothing, as `doctor` says."""
    put(tmp_path, "good")
    (file,) = tmp_path.iterdir()
    assert "list nothing with a file as --logdir" in tbwriter_command("inspect", file).out
    assert "as --logdir" not in tbwriter_command("inspect", tmp_path).out
    told = [tbwriter_command("inspect", place, "--json").json["runs"][0]["is_one_file"] for place in (file, tmp_path)]
    assert told == [True, False]


def test_inspect_takes_tags_by_pattern(tbwriter_command, runs):
    first = tbwriter_command("inspect", runs, "--tag", "^lo", "--json").json["runs"][0]
    assert [tag["tag"] for tag in first["tags"]] == ["loss"]


ODD = "odd\x1b[2J\x9b1m\nline\u202e"
LONG = "train/a_module_of_many/layer_{}/attention/query/key/value/loss"


@pytest.fixture
def odd(tmp_path_factory):
    """A run and tags whose names would steer a terminal, or differ in their midst alone; its end is torn."""
    run = tmp_path_factory.mktemp("odd") / ODD
    with SummaryWriter(run) as writer:
        for tag in (ODD, LONG.format(10), LONG.format(11)):
            writer.add_scalar(tag, 0.5, 1, 1000.0)
    with next(run.iterdir()).open("ab") as file:
        file.write(b"\x05\0\0")
    return run.parent


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_names_that_the_encoding_of_the_output_lacks_end_no_command(tmp_path, encoding):
    """As of a file on Windows, or of an old terminal. What programs read means the same all the same."""
    from typer.testing import CliRunner

    from tbwriter.cli._app import app

    run, tag = tmp_path / "runs" / "рун", "потери/训练 \N{GRINNING FACE}"
    with SummaryWriter(run) as writer:
        for value in (0.5, math.inf):
            writer.add_scalar(tag, value, 1)

    def told(*arguments):
        ended = CliRunner(charset=encoding).invoke(app, list(map(str, arguments)))
        assert (ended.exit_code, ended.stderr) == (0, "")
        return ended.stdout_bytes.decode()

    for command in ("inspect", "doctor", "verify", "tail --once", f"merge -o {tmp_path / 'out'}"):
        name, *more = command.split()
        assert r"\u0440\u0443\u043d" in told(name, run.parent, *more)
    (found,) = json.loads(told("inspect", run, "--json"))["runs"]
    assert [one["tag"] for one in found["tags"]] == [tag]
    assert json.loads(told("cat", run).splitlines()[0])["tag"] == tag
    assert tag in told("export", run)


def test_names_are_shown_where_the_locale_is_c_and_python_takes_that_literally(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_scalar("потери", 0.5, 1)
    told = program("inspect", tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii:surrogateescape"})
    assert (told.returncode, told.stderr) == (0, "")
    assert r"\u043f\u043e\u0442" in told.stdout


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_inspect_is_readable_at_any_width(tbwriter_command, runs, odd, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    for place in (runs, odd):
        out = re.sub(r"\x1b\[[\d;]*m", "", tbwriter_command("inspect", place).out)
        rows = [row.strip() for row in out.splitlines()]
        assert max(map(len, rows)) <= columns
        assert "\N{HORIZONTAL ELLIPSIS}" not in out
        whole = "".join(rows)
        for tag in ("loss", "note/text_summary") if place == runs else (LONG.format(10), LONG.format(11)):
            assert tag in whole
        for words in ("scalars", "1..1" if place == odd else "0..70", "reader", "all"):
            assert words in whole


@pytest.mark.parametrize("command", ["inspect", "doctor", "verify", "tail --once", "cat", "inspect --json"])
def test_names_do_not_steer_the_terminal(tbwriter_command, odd, command):
    name, *more = command.split()
    answer = tbwriter_command(name, odd, *more)
    for text in (answer.out, answer.err):
        assert not set(text) & {"\x1b", "\x9b", "\u202e"}
    assert "odd" in answer.out
    if name == "cat":
        assert answer.lines[0]["run"] == ODD
    elif more == ["--json"]:
        assert answer.json["runs"][0]["run"] == ODD
    else:
        assert r"odd\x1b[2J\x9b1m\nline\u202e" in answer.out


LOST = ("repeated", "back", "marked", "bad-data")


def test_inspect_says_which_reader_hides_what(tbwriter_command, tmp_path):
    shown = {}
    for case in ("double", "double-later", "no-metadata", "many", "late-metadata", *LOST):
        (run,) = tbwriter_command("inspect", put(tmp_path / case, case), "--json").json["runs"]
        shown[case] = (run["tags"][0]["python_reader"], run["tags"][0]["data_server"])
    back = "steps go back, and the points at and after them go"
    assert shown == {
        "repeated": ("all", "10 of them: 1 earlier value of a step that comes again"),
        "back": ("all", f"8 of them: {back}"),
        "marked": (
            "8 of them: a restart voids points",
            "8 of them: steps go back, and the points at and after them go",
        ),
        "bad-data": ("not all: nothing behind the damage in a file", "not all: damaged values as if they were good"),
        "double": ("all", "nothing: scalars stored as DT_DOUBLE of rank 0"),
        "double-later": ("all", "5 of them: scalars stored as DT_DOUBLE of rank 0"),
        "no-metadata": ("nothing: no value says which plugin shows it",) * 2,
        "many": ("1000 of them",) * 2,
        "late-metadata": ("all", "nothing: the first value has no metadata"),
    }


def test_inspect_lists_embeddings(tbwriter_command, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(np.zeros((3, 2)), metadata=["a", "b", "c"], tag="words", global_step=7)
    (run,) = tbwriter_command("inspect", tmp_path, "--json").json["runs"]
    assert run["embeddings"] == [{"name": "words:00007", "tensors": "00007/words/tensors.tsv", "error": ""}]
    assert "embedding words:00007" in tbwriter_command("inspect", tmp_path).out
    (tmp_path / "projector_config.pbtxt").write_text("damaged {")
    assert "cannot be read" in tbwriter_command("inspect", tmp_path).out


def test_inspect_of_damage_ends_with_1_and_tells_it(tbwriter_command, tmp_path):
    answer = tbwriter_command("inspect", put(tmp_path, "bad-data"), "--json")
    assert answer.code == 1
    assert answer.json["runs"][0]["files"][0]["damaged_places"] == 1
    assert "1 place," in tbwriter_command("inspect", tmp_path).out


def test_many_runs_are_inspected_by_several_processes(tbwriter_command, runs):
    one, two = (tbwriter_command("inspect", runs, "--json", "--jobs", jobs).json for jobs in (1, 2))
    assert one == two


# ---- verify


def test_verify_ends_with_0_for_good_files(tbwriter_command, runs):
    answer = tbwriter_command("verify", runs, "--json")
    assert (answer.code, answer.json["ok"], len(answer.json["files"])) == (0, True, 2)
    assert tbwriter_command("verify", runs).out.count("good") == 2


def test_verify_ends_with_1_for_damage_and_tells_each_place(tbwriter_command, tmp_path):
    put(tmp_path / "bad", "torn-and-more")
    put(tmp_path / "good", "good")
    answer = tbwriter_command("verify", tmp_path, "--json")
    assert (answer.code, answer.json["ok"]) == (1, False)
    assert [len(file["faults"]) for file in answer.json["files"]] == [1, 0]
    assert "record at byte" in tbwriter_command("verify", tmp_path).out


# ---- cat


def test_cat_prints_every_value_as_a_line(tbwriter_command, runs):
    lines = tbwriter_command("cat", runs / "first").lines
    assert len(lines) == 12
    assert lines[0] == {
        "run": ".",
        "step": 0,
        "wall_time": 1000.0,
        "tag": "loss",
        "kind": "scalars",
        "value": 0.0,
    }
    assert sum(count for *_, count in lines[-2]["value"]) == 5
    assert lines[-1]["value"] == "[bold]文字[/bold]"


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        (["--tag", "^loss$"], [0, 10, 20, 60, 70]),
        (["--kind", "scalars", "--from-step", "10", "--to-step", "60"], [10, 20, 60]),
        (["--kind", "text"], [1]),
        (["--tag", "nothing"], []),
    ],
)
def test_cat_takes_some(tbwriter_command, runs, options, steps):
    assert [line["step"] for line in tbwriter_command("cat", runs / "deep", *options).lines] == steps


def test_json_has_no_bare_nan(tbwriter_command, runs):
    def refuse(word):
        raise AssertionError(word)

    for line in tbwriter_command("cat", runs).out.splitlines():
        json.loads(line, parse_constant=refuse)
    json.loads(tbwriter_command("inspect", runs, "--json").out, parse_constant=refuse)


def test_cat_gives_images_by_size_or_whole(tbwriter_command, tmp_path):
    pytest.importorskip("PIL")
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("i", np.zeros((3, 2, 2)), 1)
    (brief,), (full,) = (tbwriter_command("cat", tmp_path, *more).lines for more in ([], ["--full"]))
    assert brief["value"][0]["bytes"] > 50
    assert full["value"][0]["base64"].startswith("iVBORw0KGgo")


def test_a_few_bytes_that_stand_for_a_huge_array_take_no_memory(tbwriter_command, tmp_path):
    """TensorProto's short form of a constant: 128 Mi complex numbers, 2 GiB, in a file of less than 100 bytes."""
    constant = tensor(18, [1 << 27], field(12, 1.0) + field(12, 2.0))
    (tmp_path / NAME.format(second=1, pid=1)).write_bytes(value(1, "t", constant))
    tracemalloc.start()
    (line,) = tbwriter_command("cat", tmp_path).lines
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert line["value"] == {"shape": [1 << 27], "dtype": "complex128"}
    assert peak < 50e6
    (found,) = [v.data for e in tbwriter.read_events(tmp_path) for v in e.values]
    assert (found.shape, found[-1]) == ((1 << 27,), 1 + 2j)


def test_cat_steps_over_damage(tbwriter_command, tmp_path):
    answer = tbwriter_command("cat", put(tmp_path, "bad-length"))
    assert [line["step"] for line in answer.lines] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert answer.code == 1
    assert "1 damaged place" in answer.err


@pytest.mark.parametrize(("case", "words"), [("plain", "no event file"), ("gzip", "gunzip"), ("bad-data", "repair")])
def test_verify_tells_what_can_be_repaired_from_what_is_no_event_file(tbwriter_command, tmp_path, case, words):
    answer = tbwriter_command("verify", put(tmp_path, case))
    assert answer.code == 1
    assert words in answer.out
    assert ("--in-place" in answer.out) == (case == "bad-data")


@pytest.mark.parametrize("command", ["inspect", "cat", "tail --once"])
@pytest.mark.parametrize(
    ("pattern", "words"), [("(", "no regular expression"), ("nosuch", "no tag in which 'nosuch' is found")]
)
def test_a_pattern_that_is_none_or_finds_nothing_ends_with_2(tbwriter_command, runs, command, pattern, words):
    name, *more = command.split()
    answer = tbwriter_command(name, runs, *more, "--tag", pattern)
    assert answer.code == 2
    assert words in " ".join(answer.err.replace("\u2502", " ").split())


def test_a_kind_of_which_there_is_nothing_is_told(tbwriter_command, runs):
    answer = tbwriter_command("cat", runs, "--kind", "nonsense")
    assert answer.code == 2
    assert "histograms" in answer.err
    assert tbwriter_command("cat", runs, "--from-step", 1000).code == 0


def test_cat_prints_what_the_reader_gives(tbwriter_command, tmp_path):
    """Scalars go by a faster way than through the reader; here many of them, with others between."""
    with SummaryWriter(tmp_path) as writer:
        for step in range(50):
            writer.add_metrics({"a": step / 3, "b": [math.nan, math.inf, -math.inf, 1e-30][step % 4]}, step)
            writer.add_scalar("c", -step, 3 * step, 1e9 + step / 7)
            if step % 20 == 0:
                writer.add_histogram("a/h", np.arange(step + 2.0), step)
                writer.add_text("t", "words", step)
    want = [
        (event.step, event.wall_time, value.tag, value.plugin, repr(value.data))
        for event in tbwriter.read_events(tmp_path)
        for value in event.values
    ]
    words = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    found = []
    for line in tbwriter_command("cat", tmp_path).lines:
        data = line["value"]
        data = np.array(data) if isinstance(data, list) else words.get(data, data) if isinstance(data, str) else data
        found.append((line["step"], line["wall_time"], line["tag"], line["kind"], repr(data)))
    assert found == want


# ---- all of them

COMMANDS = ["inspect", "verify", "cat"]
# What each wants beside the place.
MORE = {
    "repair": ["-o", "out"],
    "rewind": ["-o", "out", "--step", "1"],
    "merge": ["-o", "out"],
    "thin": ["-o", "out", "--every", "2"],
    "convert": ["-o", "out"],
    "plot": ["-o", "out.png"],
    "tail": ["--once"],
    "serve": ["--print"],
}


def all_commands():
    from typer.main import get_command

    from tbwriter.cli._app import app

    return sorted(get_command(app).commands)


@pytest.mark.parametrize("command", all_commands())
def test_a_place_where_nothing_is_ends_with_3_and_a_line_that_names_it(
    tbwriter_command, tmp_path, monkeypatch, command
):
    if command == "plot":
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "nowhere"
    answer = tbwriter_command(command, place, *MORE.get(command, []))
    assert answer.code == 3
    assert str(place) in (answer.err + answer.out).replace("\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_place_without_event_files_ends_with_3_and_a_line(tbwriter_command, tmp_path, command):
    answer = tbwriter_command(command, tmp_path)
    assert answer.code == 3
    assert str(tmp_path) in answer.err.replace("\n", "")


@pytest.mark.parametrize("arguments", [["inspect"], ["inspect", "x", "--unknown"], ["unknown"]])
def test_wrong_usage_ends_with_2(tbwriter_command, arguments):
    assert tbwriter_command(*arguments).code == 2


@pytest.mark.parametrize("given", ["no json", "[1]"])
def test_storage_options_must_be_a_json_object(tbwriter_command, runs, given):
    answer = tbwriter_command("verify", runs, "--storage-options", given)
    assert answer.code == 2
    assert "JSON" in answer.err


@pytest.mark.parametrize("command", [*COMMANDS, "doctor"])
def test_a_url_is_as_good_as_a_path(tbwriter_command, command):
    with SummaryWriter("memory://test-cli/runs/one") as writer:
        writer.add_scalar("loss", 0.5, 1)
    answer = tbwriter_command(command, "memory://test-cli/runs")
    fsspec.filesystem("memory").rm("/test-cli", recursive=True)
    assert answer.code == 0
    assert "one" in answer.out or command == "doctor"


def test_an_event_file_is_as_good_as_a_directory(tbwriter_command, runs):
    (path,) = (runs / "first").iterdir()
    assert tbwriter_command("cat", path).lines == tbwriter_command("cat", runs / "first").lines


def program(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "tbwriter", *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


def test_a_reader_of_the_output_may_end_early(runs):
    ended = subprocess.run(
        f"{sys.executable} -m tbwriter cat {runs} | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert (ended.stderr, ended.stdout.count("\n")) == ("", 1)


def test_the_command_says_its_version():
    assert program("--version").stdout == f"tbwriter {tbwriter.__version__}\n"


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    """As where Typer is not installed: a finder that knows it is not there comes first."""
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("typer", "rich"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Missing())
from tbwriter.cli import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert ended.returncode == 1
    assert "pip install 'tbwriter[cli]'" in ended.stderr
    assert "Traceback" not in ended.stderr
