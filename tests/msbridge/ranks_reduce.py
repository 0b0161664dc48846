"""A program for msrun: data-parallel processes whose curves are reduced to one; the storage of rank 0 may fail."""

import contextlib
import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from small import BATCH, Line, arrays, sgd

from msbridge import Collector, TensorBoardCallback, default_collectors

gathers = [0]


real = ms.ops.AllGather


def counted():
    operator = real()

    def gather(tensor):
        gathers[0] += 1
        return operator(tensor)

    return gather


ms.ops.AllGather = counted


class Named(Collector):
    """A scalar that tells the rank; the last rank's fails after the first step."""

    def collect(self, context):
        if get_rank() == get_group_size() - 1 and context.step > 1:
            raise RuntimeError("this rank has none")
        return {"own": 10.0 * get_rank() + context.step}


def main(directory, mode):
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    if mode == "pynative":  # as in two_ranks.py
        with contextlib.suppress(SystemError):
            _ = ms.Tensor(1.0) * ms.Tensor(1.0)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    x, y = (np.split(array, len(array) // BATCH) for array in arrays(5 * get_group_size()))
    mine = [(batch, label) for batch, label in zip(x, y, strict=True)][get_rank() :: get_group_size()]
    every_curves = [
        TensorBoardCallback(
            directory / name, 2, ranks="first", reduce=("mean", "min", "max", "argmax"),
            reduce_tags=("train/loss", "train/step_time", "own"), collectors=[*default_collectors(), Named()],
        )
        for name in ("run", "file/run")
    ]  # fmt: skip
    for curves in every_curves:
        data = ms.dataset.GeneratorDataset(mine, ["x", "y"], shuffle=False)
        net = Line()
        ms.train.Model(net, nn.MSELoss(), sgd(net)).train(1, data, callbacks=[curves], dataset_sink_mode=False)
        (directory / "file").write_text("")  # in the way of the second, on all ranks: they trained together
    (directory / f"done_{get_rank()}").write_text(str(gathers[0]))


main(pathlib.Path(sys.argv[1]), sys.argv[2])
