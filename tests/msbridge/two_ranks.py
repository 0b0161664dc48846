"""A program for msrun: two data-parallel processes, each with half of the data and its own directory."""

import contextlib
import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from small import BATCH, Line, arrays, sgd

from msbridge import TensorBoardCallback


def main(directory, mode):
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    if (
        mode == "pynative"
    ):  # where MindSpore itself touches NumPy, see conftest.py, and msrun fails when that is after init
        with contextlib.suppress(SystemError):
            _ = ms.Tensor(1.0) * ms.Tensor(1.0)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    x, y = (np.split(array, len(array) // BATCH) for array in arrays(8))
    mine = [(batch, label) for batch, label in zip(x, y, strict=True)][get_rank() :: get_group_size()]
    data = ms.dataset.GeneratorDataset(mine, ["x", "y"], shuffle=False)
    net = Line()
    trained = ms.train.Model(net, nn.MSELoss(), sgd(net))
    first = TensorBoardCallback(directory / "first", 1, ranks="first")
    last = TensorBoardCallback(directory / "last", 1, ranks="last")
    trained.train(1, data, callbacks=[TensorBoardCallback(directory / "all", 3), first, last], dataset_sink_mode=False)


main(pathlib.Path(sys.argv[1]), sys.argv[2])
