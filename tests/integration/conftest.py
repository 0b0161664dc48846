"""Fixtures around TensorBoard's two readers: one program for each, shared by all tests of a session."""

import importlib.util
import itertools
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from needs import need
from tensorboard_http import LOAD_FAST, TensorBoard

_number = itertools.count()
_DEMO = Path(__file__).resolve().parents[2] / "demo" / "gallery.py"


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
    need("tensorboard", "tensorboard_data_server")
    return tensorboards(request.param)


@pytest.fixture(scope="session")
def gallery_module():
    """demo/gallery.py."""
    need("tensorboard", "tensorboard_data_server", "sklearn", "matplotlib", "PIL")
    spec = importlib.util.spec_from_file_location("gallery", _DEMO)
    module = importlib.util.module_from_spec(spec)
    sys.modules["gallery"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session", params=[None, 20_000], ids=["one-file", "many-files"])
def gallery(request, gallery_module, tmp_path_factory):
    """The run of demo/gallery.py: its module, directory, training, and accuracies of the trials."""
    logdir = tmp_path_factory.mktemp("gallery")
    training, accuracies = gallery_module.write(logdir, max_file_size=request.param)
    return SimpleNamespace(module=gallery_module, logdir=logdir, training=training, accuracies=accuracies)


@pytest.fixture(scope="session", params=[pytest.param(name, marks=pytest.mark.readers) for name in LOAD_FAST])
def shown_gallery(request, gallery):
    """A TensorBoard of its own that has read the whole gallery, once with each reader.

    Of its own because hyper-parameters and custom layouts of all runs of a directory are shown as one.
    """
    tensorboard = TensorBoard(request.param, gallery.logdir)
    try:
        epochs = len(gallery.training.loss)
        # The graph is the last Event of its run.
        tensorboard.shows(lambda: "digits" in tensorboard.get("/data/plugin/graphs/info"), True)
        for run in ("digits/accuracy_train", "digits/accuracy_validation"):
            tensorboard.shows(lambda run=run: len(tensorboard.scalars(run, "accuracy")), epochs)
        for number in range(1, len(gallery.accuracies) + 1):
            tensorboard.shows(lambda number=number: len(tensorboard.scalars(f"trials/{number}", "trial/accuracy")), 1)
        yield tensorboard
    finally:
        tensorboard.stop()


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
