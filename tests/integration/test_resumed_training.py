"""A MindSpore training that is killed and resumed: what both readers show of it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from event_files import scalars

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]

TAGS = ["train/loss", "train/grad_norm", "train/learning_rate", "train/epoch"]
HERE = Path(__file__).parent
PROGRAM = """
import os, signal, sys
import mindspore as ms
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
from small import model, train
from msbridge import Epoch, GradNorm, LearningRate, Loss, TensorBoardCallback
directory, resumed = sys.argv[1], sys.argv[2] == "resumed"

class Die(ms.train.Callback):
    def on_train_step_end(self, run_context):
        if not resumed and run_context.original_args().cur_step_num == 30:
            curves._writer.flush()
            os.kill(os.getpid(), signal.SIGKILL)

trained = model()
curves = TensorBoardCallback(directory, 2, flush_secs=0, collectors=[Loss(), GradNorm(), LearningRate(), Epoch()])
train(trained, 12, curves, Die(), epochs=4, initial_epoch=2 if resumed else 0)
"""


def run(program, directory, name):
    path = os.pathsep.join([str(HERE.parent / "msbridge"), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, program, str(directory), name],
        env={**os.environ, "PYTHONPATH": path, "GLOG_v": "3"}, cwd=directory.parent, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip


def points(directory):
    """Return {tag: [(step, value)]} of all files."""
    return {tag: scalars(directory / "rank_0", tag) for tag in TAGS}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Two directories: of a training killed in step 30, and that of it resumed where its second epoch ended."""
    directory = tmp_path_factory.mktemp("resumed")
    program = directory / "program.py"
    program.write_text(PROGRAM)
    killed = run(program, directory / "run", "first")
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    shutil.copytree(directory / "run", directory / "killed")
    again = run(program, directory / "run", "resumed")
    assert again.returncode == 0, again.stderr[-2000:]
    return directory / "killed", directory / "run"


def test_a_killed_and_resumed_training_shows_each_step_once_under_all_tags(resumed_run, sessions):
    killed, resumed = sessions
    first, both = points(killed), points(resumed)
    assert [step for step, _ in first["train/loss"]] == list(range(1, 31))
    want = {tag: [point for point in first[tag] if point[0] <= 24] + both[tag][len(first[tag]) :] for tag in TAGS}
    for tag in ("train/loss", "train/grad_norm", "train/learning_rate"):
        assert [step for step, _ in want[tag]] == list(range(1, 49)), tag

    directory = resumed_run.path / "rank_0"
    shutil.copytree(killed / "rank_0", directory)
    if resumed_run.path == resumed_run.final_path:
        resumed_run.tensorboard.shows_curves(resumed_run.sub("rank_0"), first)
    for path in (resumed / "rank_0").iterdir():
        if not (directory / path.name).exists():
            shutil.copy(path, directory)
    if resumed_run.path != resumed_run.final_path:
        os.rename(resumed_run.path, resumed_run.final_path)
    resumed_run.tensorboard.shows_curves(resumed_run.sub("rank_0"), want)
