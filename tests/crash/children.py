"""Programs that run as child processes, to be killed, forked or starved."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

import tbwriter

_HERE = Path(__file__).resolve().parent
# Importing takes 0.5 s on an idle core; other programs may keep the cores busy.
START_SECS = 60
_PRELUDE = """\
import os, signal, sys, threading, time
from tbwriter import SummaryWriter
def say(text):
    sys.stdout.write(text + "\\n"); sys.stdout.flush()
def wait_for_parent():
    sys.stdin.readline()
logdir = sys.argv[1] if len(sys.argv) > 1 else None
"""


def environment():
    """Return an environment in which a child finds the same tbwriter as its parent, and our helpers."""
    paths = [str(Path(tbwriter.__file__).parent.parent), str(_HERE.parent), str(_HERE)]
    known = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, known] if known else paths),
        "OPENBLAS_NUM_THREADS": "1",  # threads of NumPy's would be counted as ours
    }


@dataclass
class Ended:
    """How a child ended."""

    returncode: int
    out: str
    err: str


class Child:
    """A running program; killed, with all it has started, at the end of the `with` block."""

    def __init__(self, code, *arguments, prefix=(), cwd=None, env=None):
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-c", _PRELUDE + textwrap.dedent(code), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**environment(), **(env or {})},
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def hears(self, line="ready"):
        """Wait for a line of the child's; a child that ends instead fails the test."""
        got = self._process.stdout.readline()
        if got.rstrip("\n") != line:
            _, err = self._process.communicate(timeout=START_SECS)
            pytest.fail(f"the child said {got!r}, not {line!r}; {err}")

    def go_on(self):
        """Let the child's wait_for_parent() return."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def send(self, number):
        """Send a signal."""
        self._process.send_signal(number)

    def has_ended(self):
        """Say whether the child itself, not what it has started, is gone."""
        return self._process.poll() is not None

    def end(self, within=START_SECS):
        """Wait for the end and return how it was."""
        try:
            out, err = self._process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            out, err = self._process.communicate()
            pytest.fail(f"the child does not end within {within} s; it said {out!r}, {err!r}")
        return Ended(self._process.returncode, out, err)


def run(code, *arguments, within=START_SECS, **options):
    """Run a program to its end."""
    with Child(code, *arguments, **options) as child:
        return child.end(within)


def run_well(code, *arguments, **options):
    """Run a program that must end with status 0, and no thread of it by an exception; return what it printed."""
    ended = run(code, *arguments, **options)
    assert ended.returncode == 0, ended.err
    assert "Traceback" not in ended.err, ended.err
    return ended.out
