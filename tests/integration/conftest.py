"""Fixtures around TensorBoard's two readers: one program for each, shared by all tests of a session."""

import importlib.util
import itertools
import os

import pytest
from tensorboard_http import LOAD_FAST, TensorBoard

_number = itertools.count()


@pytest.fixture(scope="session")
def tensorboards(tmp_path_factory):
    """Return a function that gives the one running TensorBoard of a reader."""
    running = {}

    def of(reader):
        if reader not in running:
            running[reader] = TensorBoard(reader, tmp_path_factory.mktemp(f"logdir-{reader}"))
        return running[reader]

    yield of
    for tensorboard in running.values():
        tensorboard.stop()


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.readers) for name in LOAD_FAST])
def tensorboard(request, tensorboards):
    """A running TensorBoard, once with each reader."""
    for package in ("tensorboard", "tensorboard_data_server"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return tensorboards(request.param)


class Run:
    """A directory that TensorBoard shows as a run, and how the sessions in it come to be seen."""

    def __init__(self, tensorboard, name, *, seen_live, staging):
        self.name = name
        self.tensorboard = tensorboard
        self.final_path = tensorboard.logdir / name
        self.path = self.final_path if seen_live else staging / name
        self.path.mkdir(parents=True)
        self._seen_live = seen_live

    def sub(self, path):
        """Return the name of the run in the directory `path` below this one."""
        return f"{self.name}/{path}"

    def shows_after_session(self, want):
        """Wait until TensorBoard shows `want`, if it looks on while the sessions go."""
        if self._seen_live:
            self.tensorboard.shows_curves(self.name, want)

    def shows_at_end(self, want):
        """Wait until TensorBoard shows `want`; if it has not looked so far, it sees all files at once now."""
        if not self._seen_live:
            os.rename(self.path, self.final_path)
        self.tensorboard.shows_curves(self.name, want)


@pytest.fixture
def run(tensorboard, tmp_path):
    """A new run that TensorBoard follows from its first byte."""
    return Run(tensorboard, f"run{next(_number)}", seen_live=True, staging=tmp_path)


@pytest.fixture(params=["followed", "opened-later"])
def resumed_run(request, tensorboard, tmp_path):
    """A new run, once followed session by session, once opened by TensorBoard when all sessions are over."""
    name = f"run{next(_number)}"
    return Run(tensorboard, name, seen_live=request.param == "followed", staging=tmp_path)
