"""Write summaries as MindSpore users do: a training with SummaryCollector and summary operators, then an evaluation.

python summary_of_mindspore.py DIRECTORY
"""

import contextlib
import sys

import mindspore as ms
import numpy as np
from mindspore import dataset, nn, ops
from mindspore.train import Model, SummaryCollector


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.flat, self.dense = nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Dense(2 * 4 * 4, 3)
        self.scalar, self.tensor = ops.ScalarSummary(), ops.TensorSummary()
        self.image, self.histogram = ops.ImageSummary(), ops.HistogramSummary()

    def construct(self, x):
        self.image("input", x)
        y = self.dense(self.flat(self.conv(x)))
        self.scalar("mean", y.mean())
        self.tensor("logits", y)
        self.histogram("spread", y)
        return y


def main(directory):
    # MindSpore 2.10 with NumPy 2: the first touch of NumPy's C interface in a process fails, and only the first.
    with contextlib.suppress(SystemError):
        _ = ms.Tensor(1.0) * ms.Tensor(1.0)
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    ms.set_seed(1)
    pictures = np.random.default_rng(0).random((16, 1, 4, 4)).astype("f4")

    def rows():
        for index, picture in enumerate(pictures):
            yield picture, np.array(index % 3, "i4")

    data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(4)
    net = Net()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9), metrics={"acc"})
    collector = SummaryCollector(
        directory,
        collect_freq=1,
        keep_default_action=False,
        collect_specified_data={
            "collect_metric": True,
            "collect_graph": True,
            "collect_dataset_graph": True,
            "collect_train_lineage": True,
            "collect_eval_lineage": True,
            "histogram_regular": ".*",
        },
        custom_lineage_data={"note": "words", "layers": 2, "dropout": 0.5},
    )
    model.train(2, data, callbacks=[collector], dataset_sink_mode=False)
    model.eval(data, callbacks=[collector], dataset_sink_mode=False)


if __name__ == "__main__":
    main(sys.argv[1])
