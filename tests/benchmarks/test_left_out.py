"""What is not measured: Ctrl-C leaves a valid, incomplete result, and what is missing here is named."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from needs import need
from waiting import wait_until

from benchmarks import __main__ as main
from benchmarks import _child, _run, _stores, soak
from benchmarks._loads import scalars
from benchmarks._measure import exact
from benchmarks._overhead import Case, Loop, measure
from benchmarks._progress import silent
from benchmarks._results import Figure, Result
from benchmarks._setting import Setting
from benchmarks._stores import LOCAL, Store
from benchmarks._writers import TBWRITER
from tbwriter import sinks
from tbwriter.testing import FaultySink

ROOT = Path(__file__).resolve().parents[2]
HERE = Figure("here", "here", "us", "counted", {"tbwriter": exact(1.0)})
# A job in the background starts with SIGINT ignored, and Python then leaves it so.
WITH_HANDLER = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('benchmarks', run_name='__main__', alter_sys=True)"
)


def names(result):
    return [figure.name for figure in result.figures]


def test_ctrl_c_leaves_the_figures_that_were_finished(tmp_path):
    output = tmp_path / "write.json"
    # The second figure would take hours, in a process of its own.
    arguments = ["write", "--only", "series,memory", "--scalars", "1000", "--memory-scalars", "10000000000"]
    with subprocess.Popen(
        [sys.executable, "-c", WITH_HANDLER, *arguments, "--output", str(output), "--dir", str(tmp_path)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            wait_until(output.exists, within=60, what="the result of the first figure")
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the children too
            shown, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert "interrupted" in said
    result = Result.load(output)
    assert not result.complete
    assert names(result) == ["series_per_scalar"]
    assert "The run was interrupted; figures are missing." in shown


def spooled(spool):
    """Bytes that wait for a store; what it has is deleted at any moment."""
    with contextlib.suppress(FileNotFoundError):
        return sum(path.stat().st_size for path in spool.glob("*/*tfevents*"))
    return 0


def test_ctrl_c_leaves_nothing_that_waits_for_a_store(tmp_path):
    need("boto3", "moto", "s3fs")
    spool = tmp_path / "spool"
    arguments = ["collect_freq", "--only", "stores", "--sinks", "s3", "--blocks", "100000", "--dir", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-c", WITH_HANDLER, *arguments, "--output", str(tmp_path / "x.json")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TBWRITER_SPOOL_DIR": str(spool)},
    ) as process:  # fmt: skip
        try:
            # More than the header: the writer is open and its loop runs.
            wait_until(lambda: spooled(spool) > 2000, within=60, what="what waits for the store")
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert list(spool.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["spool"]


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path, [], silent())


def test_figures_that_mean_something_when_cut_short_are_kept(setting, tmp_path):
    whole, cut = (Figure(name, name, "us", "counted", {"tbwriter": exact(1.0)}) for name in ("whole", "cut"))

    def stopped(_):
        raise _run.StoppedError([cut])

    makers = {"whole": lambda _: [whole], "cut": stopped, "never": lambda _: pytest.fail("it went on")}
    result, status = _run.run("write", makers, setting, {}, tmp_path / "out.json")
    assert status == 130
    assert names(result) == ["whole", "cut"]
    assert not result.complete
    assert Result.load(tmp_path / "out.json") == result


def test_figures_that_cannot_be_measured_here_are_named_and_the_others_measured(setting):
    def left_out(_):
        raise _run.LeftOutError("torch not installed")

    def not_there(_):
        raise ImportError("images need Pillow")

    makers = {"torch": left_out, "images": not_there, "here": lambda _: [HERE]}
    result, status = _run.run("write", makers, setting, {}, None)
    assert status == 0
    assert result.complete
    assert names(result) == ["here"]
    assert result.left_out == {
        "the figures of torch": "torch not installed",
        "the figures of images": "images need Pillow",
    }


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device", "/mine/events"), RuntimeError("/mine does not recover")]
)
def test_figures_that_fail_cost_no_other_and_are_named_without_a_path(setting, tmp_path, capsys, error):
    def fails(_):
        raise error

    result, status = _run.run("write", {"disk": fails, "here": lambda _: [HERE]}, setting, {}, tmp_path / "out.json")
    assert status == 1
    assert not result.complete
    assert names(result) == ["here"]
    assert str(error) in capsys.readouterr().err
    assert Result.load(tmp_path / "out.json") == result
    assert "/mine" not in (tmp_path / "out.json").read_text()


def test_a_result_that_cannot_be_saved_ends_nothing_and_leaves_nothing_behind(setting, tmp_path):
    (tmp_path / "out.json").mkdir()
    result, _ = _run.run("write", {"here": lambda _: [HERE]}, setting, {}, tmp_path / "out.json")
    assert names(result) == ["here"]
    with pytest.raises(OSError, match=r"out\.json"):
        result.save(tmp_path / "out.json")
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_process_that_fails_among_many_says_why(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match=r"2 of 2 processes failed; rank 0: .*Not a directory"):
        _child.run("ranks", tmp_path / "file" / "below", "{}", 2, 0.1, 20)


def test_storage_of_the_user_that_takes_nothing_is_not_measured_as_a_fast_one(setting, tmp_path, monkeypatch):
    def opened(url, name, header, options):
        sink = sinks.open_sink(str(tmp_path / "run"), name=name, header=header, storage_options=options)
        return FaultySink(sink, lambda call, number: OSError(5, "never"), header=header)

    sinks.register_sink("never", opened, lambda url, options: [])
    monkeypatch.setattr(_stores, "_TRY_SECS", 0.2)
    monkeypatch.setattr(_stores, "_CLOSE_SECS", 0.0)
    asked = replace(setting, sinks=["none"], logdir="never://mine")
    with pytest.raises(_run.UnusableError, match="--logdir never://mine: does not take"), _stores.opened(asked):
        pass


def test_writers_are_closed_when_one_of_them_cannot_be_opened(setting):
    before = set(threading.enumerate())

    def load(logger):
        raise OSError("no more")

    loop = Loop("loop", "Loop", "", lambda: None, others_delay=False)
    cases = [Case("first", TBWRITER, Store(LOCAL), scalars(1), 1), Case("second", TBWRITER, Store(LOCAL), load, 1)]
    with pytest.raises(OSError, match="no more"):
        measure(replace(setting, block_steps=1), loop, cases)
    assert set(threading.enumerate()) <= before


def test_full_runs_every_command_but_the_tour_and_ends_with_the_one_that_is_interrupted(monkeypatch, capsys):
    found = Figure("one", "One thing", "us", "counted", {"tbwriter": exact(1.0)})
    begun, given = [], []

    def maker(name, *, stops=False):
        def make(setting):
            begun.append(name)
            given.append((setting.rounds, setting.sinks))
            if stops:
                raise KeyboardInterrupt
            return [found]

        return name, {"one": make}

    makers = [("tour", False), ("encode", False), ("sinks", False), ("ranks", True), ("soak", False)]
    monkeypatch.setattr(main, "_COMMANDS", {name: maker(name, stops=stops) for name, stops in makers})
    assert main.main(["--full", "--quick", "--rounds", "4", "--sinks", "memory"]) == 130
    assert begun == ["encode", "sinks", "ranks"]
    # Each has the options that it knows: encode writes to no sink.
    assert [rounds for rounds, _ in given] == [4, 4, 4]
    assert [sinks == ["memory"] for _, sinks in given] == [False, True, True]
    assert capsys.readouterr().out.count("One thing") == 2
    assert main.main(["--quick"]) == 0
    assert begun[3:] == ["tour"]


def test_what_stands_before_a_command_holds_for_it_or_is_refused(monkeypatch, capsys):
    given = []

    def make(setting):
        given.append((setting.quick, setting.rounds))
        return [HERE]

    monkeypatch.setattr(main, "_COMMANDS", {name: (name, {"one": make}) for name in ("tour", "encode")})
    assert main.main(["--quick", "--rounds", "5", "encode"]) == 0  # without --quick it would go to benchmarks/results
    assert given == [(True, 5)]
    for refused in (["--freqs", "1", "encode"], ["--against", "torch", "encode"], ["--full", "encode"]):
        with pytest.raises(SystemExit):
            main.main(refused)
        assert "--full measures" in (said := capsys.readouterr().err) or "encode takes no --" in said


def test_what_waits_for_a_store_lies_with_the_event_files(monkeypatch):
    spools = []

    def make(setting):
        spools.append(os.environ["TBWRITER_SPOOL_DIR"] == str(setting.directory / "spool"))
        return [HERE]

    monkeypatch.delenv("TBWRITER_SPOOL_DIR", raising=False)
    monkeypatch.setattr(main, "_COMMANDS", {"tour": ("tour", {"one": make})})
    assert main.main([]) == 0
    assert spools == [True]
    assert "TBWRITER_SPOOL_DIR" not in os.environ


def test_an_hour_of_soak_is_the_default_but_not_of_full(monkeypatch, tmp_path, capsys):
    minutes = []

    def make(setting):
        minutes.append(setting.minutes)
        return [HERE]

    monkeypatch.setattr(main, "_COMMANDS", {name: (name, {"one": make}) for name in ("tour", "soak")})
    monkeypatch.setattr(main, "_RESULTS", tmp_path)
    assert main.main(["soak"]) == main.main(["--full"]) == main.main(["soak", "--minutes", "5"]) == 0
    assert minutes == [60, 2, 5]


def test_ctrl_c_before_anything_is_measured_is_one_line(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "available", interrupted)
    assert main.main(["write", "--quick"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_soak_that_is_interrupted_tells_what_it_saw(setting):
    class CtrlC:
        def begin(self, figure):
            pass

        def tick(self):
            raise KeyboardInterrupt

    with pytest.raises(_run.StoppedError) as stopped:
        soak.soak(replace(setting, progress=CtrlC(), minutes=60.0))
    counts = {figure.name: figure for figure in stopped.value.figures}["soak_counts"]
    assert counts.values["values added"].median > 0
    assert [target.verdict for target in counts.targets] == ["met"] * len(counts.targets)
