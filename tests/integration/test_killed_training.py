"""kill -9 in the middle of `Model.train`: both readers show every step that was there before the kill."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from event_files import event_files, scalars
from waiting import wait_until

pytest.importorskip("mindspore")

pytestmark = [pytest.mark.mindspore, pytest.mark.slow]

TAGS = ["train/loss", "train/grad_norm", "train/learning_rate", "train/epoch"]
HERE = Path(__file__).parent
PROGRAM = """
import sys
import mindspore as ms
ms.set_context(mode=getattr(ms, sys.argv[2]), device_target="CPU")
from small import model, train
from msbridge import Epoch, GradNorm, LearningRate, Loss, TensorBoardCallback
collectors = [Loss(), GradNorm(), LearningRate(), Epoch()]
train(model(), 12, TensorBoardCallback(sys.argv[1], 1, flush_secs=0.2, collectors=collectors), epochs=1_000_000)
"""


@pytest.fixture(scope="module", params=["GRAPH_MODE", "PYNATIVE_MODE"])
def killed(request, tmp_path_factory):
    """The directory of a training that was killed while it ran, and {tag: points} that were seen before."""
    directory = tmp_path_factory.mktemp("killed")
    path = os.pathsep.join([str(HERE.parent / "msbridge"), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    program = [sys.executable, "-c", PROGRAM, str(directory / "run"), request.param]
    with (
        (directory / "said").open("w+") as said,
        subprocess.Popen(
            program, env={**os.environ, "PYTHONPATH": path, "GLOG_v": "3"}, cwd=directory, stdout=said, stderr=said
        ) as child,
    ):
        try:
            place = directory / "run" / "rank_0"
            wait_until(
                lambda: child.poll() is not None or (event_files(place) and len(scalars(place, "train/loss")) >= 30),
                within=100, what="30 steps",
            )  # fmt: skip
            before = {tag: scalars(place, tag) for tag in TAGS}
        finally:
            child.kill()
        child.wait()
        said.seek(0)
        assert child.returncode == -signal.SIGKILL, said.read()[-2000:]
    return place, before


def test_both_readers_show_what_a_killed_training_had_flushed(run, killed):
    place, before = killed
    found = {tag: scalars(place, tag) for tag in TAGS}
    for tag in TAGS:
        assert len(before[tag]) >= 20, tag  # one transfer brings all tags, whose records a kill may part
        assert found[tag][: len(before[tag])] == before[tag], tag
        assert [step for step, _ in found[tag]] == list(range(1, len(found[tag]) + 1)), tag
    shutil.copytree(place, run.path / "rank_0")
    run.tensorboard.shows_curves(run.sub("rank_0"), found)
