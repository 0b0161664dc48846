"""With MindSpore 2.10 and NumPy 2 the first touch of NumPy's C interface fails, and has `msrun` fail after `init()`."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.mindspore

PROGRAM = """
import sys

import mindspore as ms
import numpy as np

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
from small import model, train

import msbridge
from msbridge.collectors import Collector


class Own(Collector):
    def collect(self, context):
        return {"own": context.outputs.loss * 2.0} if "own" in sys.argv else {}


callback = msbridge.TensorBoardCallback(
    sys.argv[1], 3, flush_secs=0, reduce=("mean",), collectors=[
        *msbridge.default_collectors(), msbridge.WeightHistogram(), msbridge.GradHistogram(".*"), msbridge.WeightNorm(),
        msbridge.OptimizerState(), msbridge.HyperParameters(), msbridge.Graph(), Own(),
    ]
)
callback.record({"recorded": ms.Tensor(np.float32(1.5))})
train(model(), 8, callback)
"""


def trained(directory, *words):
    """Return what a training in a process of its own, which nobody prepared, said."""
    here = Path(__file__).parent
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent)!r}]\n{PROGRAM}",
         str(directory), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stderr


def test_no_collector_of_a_compiled_training_touches_numpy(tmp_path):
    from small import curve

    said = trained(tmp_path)
    assert "compiled using NumPy 1.x" not in said
    assert "dropped" not in said
    assert curve(tmp_path, "recorded")[1].tolist() == [1.5]
    assert curve(tmp_path, "train/loss")[0] == list(range(1, 9))


def test_a_collector_that_is_the_first_to_touch_numpy_is_asked_again(tmp_path):
    from small import curve

    said = trained(tmp_path, "own")
    assert "dropped" not in said
    assert curve(tmp_path, "own")[0] == [1, 3, 6]
