"""The line with which the demo ends starts TensorBoard where it was installed."""

import importlib
import os
import shlex
import sys
from pathlib import Path

import pytest

for package in ("mindspore", "plotext", "rich", "sklearn", "tensorboard"):
    pytest.importorskip(package)

DEMO = Path(__file__).parents[2] / "demo"


@pytest.fixture
def digits(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMO))
    return importlib.import_module("digits")


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment below the working directory, whose programs are not on the PATH."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "tensorboard"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", os.defpath)
    return programs


def test_a_tensorboard_that_is_not_on_the_path_is_named_by_its_place(digits, environment):
    assert shlex.split(digits.command("runs/my run")) == [".venv/bin/tensorboard", "--logdir", "runs/my run"]


def test_another_tensorboard_on_the_path_is_not_taken_for_it(digits, environment, tmp_path, monkeypatch):
    other = tmp_path / "other" / "tensorboard"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert digits.command("runs/a") == ".venv/bin/tensorboard --logdir runs/a"


def test_a_tensorboard_on_the_path_is_named_shortly(digits, environment, monkeypatch):
    monkeypatch.setenv("PATH", str(environment))
    assert digits.command("runs/a") == "tensorboard --logdir runs/a"
