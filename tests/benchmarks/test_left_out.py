"""What is not measured: Ctrl-C leaves a valid, incomplete result, and what is missing here is named."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import wait_until

from benchmarks import __main__ as main
from benchmarks import _run, soak
from benchmarks._measure import exact
from benchmarks._progress import silent
from benchmarks._results import Figure, Result
from benchmarks._setting import Setting

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path, [], silent())


def test_figures_that_mean_something_when_cut_short_are_kept(setting, tmp_path):
    whole, cut = (Figure(name, name, "us", "counted", {"tbwriter": exact(1.0)}) for name in ("whole", "cut"))

    def stopped(_):
        raise _run.StoppedError([cut])

    makers = {"whole": lambda _: [whole], "cut": stopped, "never": lambda _: pytest.fail("it went on")}
    result = _run.run("write", makers, setting, {}, tmp_path / "out.json")
    assert names(result) == ["whole", "cut"]
    assert not result.complete
    assert Result.load(tmp_path / "out.json") == result


def test_figures_that_cannot_be_measured_here_are_named_and_the_others_measured(setting):
    found = Figure("here", "here", "us", "counted", {"tbwriter": exact(1.0)})

    def missing(_):
        raise _run.LeftOutError("torch not installed")

    result = _run.run("write", {"torch": missing, "here": lambda _: [found]}, setting, {}, None)
    assert result.complete
    assert names(result) == ["here"]
    assert result.left_out == {"the figures of torch": "torch not installed"}


def test_full_runs_every_command_but_the_tour_and_ends_with_the_one_that_is_interrupted(monkeypatch, capsys):
    found = Figure("one", "One thing", "us", "counted", {"tbwriter": exact(1.0)})
    begun = []

    def maker(name, *, stops=False):
        def make(_):
            begun.append(name)
            if stops:
                raise KeyboardInterrupt
            return [found]

        return name, {"one": make}

    makers = [("tour", False), ("encode", False), ("sinks", False), ("ranks", True), ("soak", False)]
    monkeypatch.setattr(main, "_COMMANDS", {name: maker(name, stops=stops) for name, stops in makers})
    assert main.main(["--full", "--quick"]) == 130
    assert begun == ["encode", "sinks", "ranks"]
    assert capsys.readouterr().out.count("One thing") == 2
    assert main.main(["--quick"]) == 0
    assert begun[3:] == ["tour"]


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
