"""`tbwriter export`, `plot`, `tail` and `serve`."""

import csv
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

import fsspec
import numpy as np
import pytest
from damaged import NAME, put, scalar, start, version
from hypothesis import example, given
from hypothesis import strategies as st
from waiting import wait_until

from tbwriter import SummaryWriter, _scan, _tree
from tbwriter.cli._environment import environment, logdir_of


@pytest.fixture
def runs(tmp_path):
    for name in ("first", "deep/second"):
        with SummaryWriter(tmp_path / name) as writer:
            for step in range(1, 6):
                writer.add_metrics({"loss": 1 / step, "a,b": math.nan}, step)
            writer.add_histogram("w", np.arange(5.0), 1)
            writer.add_text("t", "words", 1)
    return tmp_path


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


# ---- export


def test_export_writes_a_row_for_each_point(tbwriter_command, runs):
    rows = table(tbwriter_command("export", runs).out)
    assert len(rows) == 20
    loss = [(row["run"], int(row["step"]), float(row["value"])) for row in rows if row["tag"] == "loss"]
    want = [(step, float(np.float32(1 / step))) for step in range(1, 6)]
    assert loss == [*(("deep/second", *point) for point in want), *(("first", *point) for point in want)]
    assert {row["value"] for row in rows if row["tag"] == "a,b"} == {"nan"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_csv_file_is_what_stdout_gets(tbwriter_command, runs, tmp_path, jobs):
    out = tmp_path / "new" / "x.csv"
    assert tbwriter_command("export", runs, "-o", out, "--jobs", jobs).code == 0
    assert out.read_text() == tbwriter_command("export", runs).out
    assert [path.name for path in out.parent.iterdir()] == ["x.csv"]


def test_parquet_has_the_same_rows(tbwriter_command, runs, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert tbwriter_command("export", runs, "-o", tmp_path / "x.parquet", "--tag", "loss").code == 0
    found = parquet.read_table(tmp_path / "x.parquet")
    assert found.schema.names == ["run", "tag", "step", "wall_time", "value"]
    rows = [(row["run"], row["tag"], row["step"], row["value"]) for row in found.to_pylist()]
    want = table(tbwriter_command("export", runs, "--tag", "loss").out)
    assert rows == [(row["run"], row["tag"], int(row["step"]), float(row["value"])) for row in want]


def test_other_kinds_are_exported_as_json(tbwriter_command, runs):
    text = table(tbwriter_command("export", runs / "first", "--kind", "text").out)
    assert [json.loads(row["value"]) for row in text] == ["words"]
    (histogram,) = table(tbwriter_command("export", runs / "first", "--kind", "histograms").out)
    assert sum(count for *_, count in json.loads(histogram["value"])) == 5


def test_export_goes_to_a_url(tbwriter_command, runs):
    assert tbwriter_command("export", runs, "-o", "memory://test-export/x.csv").code == 0
    fs = fsspec.filesystem("memory")
    assert fs.cat("/test-export/x.csv").decode() == tbwriter_command("export", runs).out
    fs.rm("/test-export", recursive=True)


@pytest.mark.parametrize("to", ["stdout", "x.csv", "x.parquet"])
def test_export_of_a_tag_that_is_not_there_is_told(tbwriter_command, runs, tmp_path, to):
    if to == "x.parquet":
        pytest.importorskip("pyarrow")
    words = [] if to == "stdout" else ["-o", tmp_path / "out" / to]
    answer = tbwriter_command("export", runs, "--tag", "nothing", *words)
    assert answer.code == 2
    assert "tbwriter inspect" in answer.err
    assert to == "stdout" or list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["--format", "parquet"], ["--engine", "dask"], ["--scheduler", "x"], ["--format", "xls"]]
)
def test_what_export_is_told_must_make_sense(tbwriter_command, runs, arguments):
    assert tbwriter_command("export", runs, *arguments).code == 2


def test_dask_workers_export_the_same(tbwriter_command, runs, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        options = ["--engine", "dask", "--scheduler", cluster.scheduler_address]
        assert tbwriter_command("export", runs, "-o", tmp_path / "x.csv", *options).code == 0
    assert (tmp_path / "x.csv").read_text() == tbwriter_command("export", runs).out


# ---- plot


def lines(svg):
    """Lines of a picture by their colour: [(points, opacity)]."""
    root = ET.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}"
    groups = [group for group in root.iter(f"{name}g") if (group.get("id") or "").startswith("line2d")]
    paths = [path for group in groups for path in group.findall(f"{name}path")]
    return [path.get("style") for path in paths if "#1f77b4" in (path.get("style") or "")]


def test_a_picture_has_a_panel_for_each_tag_and_both_curves(tbwriter_command, runs, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "x.svg"
    assert tbwriter_command("plot", runs / "first", "-o", out, "--tag", "loss").code == 0
    assert len(lines(out.read_text())) == 2  # as it is, and smoothed
    assert tbwriter_command("plot", runs / "first", "-o", out, "--tag", "loss", "--smoothing", 0, "--log").code == 0
    assert len(lines(out.read_text())) == 1
    assert [path.name for path in tmp_path.glob("x*")] == ["x.svg"]


@pytest.mark.parametrize("axis", ["step", "relative", "wall"])
def test_a_picture_is_a_png_where_its_name_says_so(tbwriter_command, runs, tmp_path, axis):
    pytest.importorskip("matplotlib")
    assert tbwriter_command("plot", runs, "-o", tmp_path / "x.png", "--x", axis).code == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_goes_to_a_url(tbwriter_command, runs):
    pytest.importorskip("matplotlib")
    assert tbwriter_command("plot", runs, "-o", "memory://test-plot/x.png").code == 0
    fs = fsspec.filesystem("memory")
    assert fs.cat("/test-plot/x.png").startswith(b"\x89PNG")
    fs.rm("/test-plot", recursive=True)


def test_runs_of_several_places_share_a_picture_and_keep_their_names_apart(tbwriter_command, runs, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "x.svg"
    with SummaryWriter(tmp_path / "elsewhere" / "first") as writer:
        writer.add_scalar("loss", 1.0, 1)
        writer.add_scalar("loss", 2.0, 2)
    places = [runs / "first", tmp_path / "elsewhere"]
    assert tbwriter_command("plot", *places, "-o", out, "--tag", "loss").code == 0
    labels = [comment for comment in out.read_text().split("<!-- ") if comment.startswith("/")]
    assert [label.split(" -->")[0] for label in labels] == [f"{places[0]}", f"{places[1]}/first"]
    answer = tbwriter_command("plot", *places, "-o", out, "--tag", "loss", "--run", "elsewhere/first$")
    assert answer.code == 0
    assert f"{places[0]} -->" not in out.read_text()


def test_a_tag_that_is_not_there_is_told(tbwriter_command, runs, tmp_path):
    answer = tbwriter_command("plot", runs, "-o", tmp_path / "x.png", "--tag", "nothing")
    assert answer.code == 2
    assert "tbwriter inspect" in answer.err


def curve(svg):
    """Heights of the vertices of the last curve of a picture."""
    path = next(iter(reversed(drawn(svg))))
    return [float(y) for y in re.findall(r"[ML] \S+ (\S+)", path)]


def drawn(svg):
    name = "{http://www.w3.org/2000/svg}"
    groups = [g for g in ET.fromstring(svg).iter(f"{name}g") if (g.get("id") or "").startswith("line2d")]
    return [p.get("d") for g in groups for p in g.findall(f"{name}path") if "#1f77b4" in (p.get("style") or "")]


def test_one_point_is_drawn_too(tbwriter_command, tmp_path):
    pytest.importorskip("matplotlib")
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_scalar("loss", 1.0, 1)
    out = tmp_path / "x.svg"
    assert tbwriter_command("plot", tmp_path / "run", "-o", out).code == 0
    markers = re.findall(r"<use [^>]*#1f77b4", out.read_text())
    assert len(markers) == 1


def test_a_legend_names_some_runs_and_says_how_many_there_are(tbwriter_command, tmp_path):
    pytest.importorskip("matplotlib")
    for number in range(25):
        with SummaryWriter(tmp_path / "runs" / f"_run{number:02}") as writer:
            writer.add_scalar("loss", 1.0, 1)
            writer.add_scalar("loss", 2.0, 2)
    out = tmp_path / "x.svg"
    assert tbwriter_command("plot", tmp_path / "runs", "-o", out).code == 0
    named = re.findall(r"<!-- \W*(_run\d\d) -->", out.read_text())
    assert named == [f"_run{number:02}" for number in range(20)]
    assert "and 5 more runs" in out.read_text()


def test_names_in_any_script_give_no_warnings_but_a_line_where_no_font_has_them(tbwriter_command, tmp_path, recwarn):
    pytest.importorskip("matplotlib")
    from tbwriter.cli import _fonts

    for name in ("\u8bad\u7ec3", "\U0010fffd private"):  # the second no font has
        with SummaryWriter(tmp_path / "runs" / name) as writer:
            writer.add_scalar("loss", 1.0, 1)
    _fonts._told.clear()
    answer = tbwriter_command("plot", tmp_path / "runs", "-o", tmp_path / "x.png")
    assert answer.code == 0
    assert answer.err.count("no installed font") == 1
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


@pytest.mark.parametrize("command", ["plot -o x.svg", "tail --once"])
@pytest.mark.parametrize(("case", "places"), [("bad-length", 1), ("torn-tail", 1), ("good", 0)])
def test_damage_is_told_and_ends_with_1(tbwriter_command, tmp_path, monkeypatch, command, case, places):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    name, *more = command.split()
    answer = tbwriter_command(name, put(tmp_path / "run", case), *more)
    assert answer.code == (1 if places else 0)
    assert ("1 damaged place, " in answer.err) == bool(places)


@pytest.mark.parametrize("axis", ["step", "relative"])
@pytest.mark.parametrize("case", ["marked", "begun-early", "two-trainings", "back-no-version"])
def test_plot_and_tail_leave_out_what_a_restart_voids(tbwriter_command, tmp_path, case, axis):
    """As the Python reader: tests/integration holds that against TensorBoard."""
    pytest.importorskip("matplotlib")
    out = tmp_path / "x.svg"
    place = put(tmp_path / "run", case)
    assert tbwriter_command("plot", place, "-o", out, "--smoothing", 0, "--x", axis).code == 0
    (run,) = tbwriter_command("inspect", place, "--json").json["runs"]
    left = {"marked": 8, "begun-early": 6, "two-trainings": 3, "back-no-version": 8}[case]
    heights = curve(out.read_text())
    assert len(heights) == left
    assert heights == sorted(heights, reverse=True)  # the values grow with the steps
    if case != "back-no-version":
        assert run["tags"][0]["python_reader"].startswith(f"{left} of them")
        (line,) = tbwriter_command("tail", place, "--once").out.splitlines()[1:]
        assert line.split()[-3] == str(left)


def test_points_are_voided_as_the_python_readers_rule_says(tmp_path):
    rows = [("mark", 0), 0, 1, 2, 3, ("mark", 2), 2, 3, 4, 9, ("mark", 8), ("mark", 4), 4, 5]
    parts, want, marks = [version()], [], 0
    for row in rows:
        if isinstance(row, int):
            parts.append(scalar(row, 1.0))
            want.append((row, False))
        else:
            parts.append(start(row[1], 1.0))
            want = [(step, gone or (marks > 0 and step >= row[1])) for step, gone in want]
            marks += 1
    (tmp_path / NAME.format(second=1, pid=1)).write_bytes(b"".join(parts))
    (run,) = [directory for directory in _tree.walk(str(tmp_path)) if directory.event_files]
    from tbwriter.cli import _order

    found = []

    def read(observe):
        return _scan.scan(run.path, run.run, run.event_files, observe=observe)

    known = read(lambda _tag, _bulk: None)
    read(lambda tag, bulk: found.extend(zip(bulk.steps, _order.voided(known, tag, bulk), strict=True)))
    assert found == want
    assert _order.voids(known)


def test_smoothing_is_tensorboards():
    """The code of vz_line_chart2/line-chart.ts, resmoothDataset, in Python."""
    from tbwriter.cli._curves import Smoothing

    data = [1.0, 5.0, math.nan, 2.0, -3.0, math.inf, 8.0]
    for weight in (0.0, 0.3, 0.6, 0.99):
        last, count, want = 0.0, 0, []
        for value in data:
            if not math.isfinite(value):
                want.append(value)
                continue
            last = last * weight + (1 - weight) * value
            count += 1
            debias = 1.0 - weight**count if weight != 1 else 1
            want.append(last / debias)
        smoothing = Smoothing(weight)
        np.testing.assert_allclose([smoothing(value) for value in data], want)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.integers(20_000, 60_000))
def test_a_long_curve_keeps_its_extremes_and_stays_short(spikes, count):
    from tbwriter.cli._curves import Curve

    curve = Curve()
    for x in range(count):
        curve.add(float(x), spikes[x % len(spikes)] if x % 997 == 0 else 0.0)
    seen = [spikes[x % len(spikes)] if x % 997 == 0 else 0.0 for x in range(count)]
    assert (max(curve.ys), min(curve.ys)) == (max(seen), min(seen))
    assert len(curve.xs) < 40_000
    assert curve.xs == sorted(curve.xs)


# ---- tail


def test_tail_shows_the_newest_values(tbwriter_command, runs):
    answer = tbwriter_command("tail", runs, "--once")
    assert answer.code == 0
    (line,) = [line for line in answer.out.splitlines() if "first" in line and "loss" in line]
    assert "0.2" in line
    assert "█" in line


def test_tail_follows_a_live_run(tmp_path):
    (tmp_path / "out").touch()
    with SummaryWriter(tmp_path / "run") as writer, (tmp_path / "out").open("w") as out:
        command = [sys.executable, "-m", "tbwriter", "tail", str(tmp_path), "--json", "--interval", "0.05"]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env=unbuffered())
        for step in range(3):
            writer.add_scalar("loss", step / 2, step)
            writer.flush()
            wait_until(
                lambda step=step: (tmp_path / "out").read_text().count("\n") == step + 1, within=60, what="a line"
            )
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [(row["run"], row["tag"], row["step"], row["value"]) for row in found] == [
        ("run", "loss", step, step / 2) for step in range(3)
    ]


@pytest.mark.parametrize("command", ["tail", "plot"])
def test_storage_that_fails_on_the_way_is_told_and_asked_again(tmp_path, command):
    if command == "plot":
        pytest.importorskip("matplotlib")
    place, away = tmp_path / "runs", tmp_path / "away"
    out, err = tmp_path / "out.svg", tmp_path / "err"
    words = ["--json", "--interval", "0.05"] if command == "tail" else ["-o", str(out), "--every", "0.05"]
    put(place / "first", "good")
    with (out if command == "tail" else tmp_path / "stdout").open("w") as to, err.open("w") as told:
        line = [sys.executable, "-m", "tbwriter", command, str(place), *words]
        process = subprocess.Popen(line, stdout=to, stderr=told, env=unbuffered())

        def shows(name):
            return out.exists() and name in out.read_text()

        wait_until(lambda: shows("first") if command == "tail" else err.read_text(), within=60, what="a first look")
        place.rename(away)
        wait_until(lambda: "trying again" in err.read_text(), within=60, what="what fails")
        put(away / "second", "good")
        away.rename(place)
        wait_until(lambda: shows("second"), within=60, what="the run that came meanwhile")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert "Traceback" not in err.read_text()


def unbuffered():
    import os

    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def test_a_record_that_comes_in_two_pieces_is_read_once_whole(tmp_path):
    from damaged import GOOD, NAME, version

    from tbwriter.cli._tail import Follower

    path = tmp_path / NAME.format(second=1, pid=1)
    follower = Follower(str(tmp_path), None)
    path.write_bytes(version() + GOOD[0] + GOOD[1][:20])
    assert [step for _, _, step, _, _ in follower.new_values()] == [0]
    with path.open("ab") as file:
        file.write(GOOD[1][20:] + GOOD[2])
    assert [step for _, _, step, _, _ in follower.new_values()] == [1, 2]
    assert list(follower.new_values()) == []


@example([0.0, 5e-324], 2)
@example([-1.7e308, 1.7e308], 2)
@given(st.lists(st.floats(), max_size=30), st.integers(1, 20))
def test_a_line_of_bars_fits_and_never_fails(values, width):
    from tbwriter.cli._curves import sparkline

    assert len(sparkline(values, width)) == min(len(values), width)


# ---- serve


@pytest.mark.parametrize(
    ("case", "flags"),
    [
        ("good", []),
        ("many", ["--samples_per_plugin", "scalars=4000"]),
        ("two-writers", ["--reload_multifile", "true"]),
        ("double", ["--load_fast", "false"]),
    ],
)
def test_serve_chooses_the_flags_that_suit(tbwriter_command, tmp_path, case, flags):
    place = put(tmp_path, case)
    command = tbwriter_command("serve", place, "--json").json["command"]
    assert command == ["tensorboard", "--logdir", str(place), "--host", "127.0.0.1", "--port", "6006", *flags]
    assert tbwriter_command("serve", place, "--print").out.split()[-len(flags) or 7 :] == (flags or [])


SECRET = {"key": "a-key", "secret": "hunter2"}


@pytest.mark.parametrize(
    ("place", "options", "logdir", "want"),
    [
        ("/runs", {}, "/runs", {}),
        ("s3://bucket/runs", {}, "s3://bucket/runs", {}),
        (
            "obs://bucket/runs",
            {"endpoint_url": "https://obs.example.com", **SECRET},
            "s3://bucket/runs",
            {
                "S3_ENDPOINT": "https://obs.example.com",
                "AWS_ACCESS_KEY_ID": "a-key",
                "AWS_SECRET_ACCESS_KEY": "hunter2",
                "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
                "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
            },
        ),
        (
            "az://box/runs",
            {"account_name": "mine", "account_key": "hunter2"},
            "az://box/runs",
            {"FSSPEC_AZ": {"use_listings_cache": False, "account_name": "mine", "account_key": "hunter2"}},
        ),
        ("gs://box/runs", {}, "gs://box/runs", {"FSSPEC_GS": {"use_listings_cache": False}}),
        (
            "sftp://me@host/runs",
            {"password": "hunter2"},
            "sftp://me@host/runs",
            {"FSSPEC_SFTP": {"password": "hunter2"}},
        ),
    ],
)
def test_serve_hands_tensorboard_what_a_store_needs_and_shows_no_secret(monkeypatch, place, options, logdir, want):
    """Without, its Python reader shows the first listing for ever, or asks Amazon."""
    pytest.importorskip("boto3")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "S3_ENDPOINT", "FSSPEC_S3_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    found = environment(place, options, secrets=True)
    assert {name: json.loads(text) if name.startswith("FSSPEC") else text for name, text in found.items()} == want
    assert logdir_of(place) == logdir
    shown = environment(place, options, secrets=False)
    assert shown.keys() <= found.keys()
    assert "hunter2" not in str(shown)
    for name in found:
        monkeypatch.setenv(name, "the user's")
    assert not [name for name in environment(place, options, secrets=True) if name.startswith("FSSPEC")]


@pytest.mark.readers
def test_serve_starts_tensorboard_and_says_how_to_reach_it(tmp_path):
    pytest.importorskip("tensorboard")
    import http.client
    import socket

    put(tmp_path / "run", "good")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (tmp_path / "err").open("w") as err:
        command = [sys.executable, "-m", "tbwriter", "serve", str(tmp_path), "--port", str(port)]
        process = subprocess.Popen(command, stdout=err, stderr=err, start_new_session=True)
    try:

        def answers():
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("GET", "/data/runs")
                return json.loads(connection.getresponse().read()) == ["run"]
            except (OSError, ValueError):
                assert process.poll() is None, (tmp_path / "err").read_text()
                return False

        wait_until(answers, within=90, what="TensorBoard")
        assert f"ssh -N -L {port}:localhost:{port}" in (tmp_path / "err").read_text()
    finally:
        import os

        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
