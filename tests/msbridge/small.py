"""A linear model on fixed data, small enough that NumPy can say what every step must give."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from event_files import event_files, events, scalars
from mindspore import Tensor, nn

BATCH, FEATURES = 4, 3


def arrays(steps, seed=0):
    """Return the inputs and labels of `steps` batches."""
    random = np.random.default_rng(seed)
    return random.random((BATCH * steps, FEATURES), "f4"), random.random((BATCH * steps, 1), "f4")


def dataset(steps):
    return ds.NumpySlicesDataset(arrays(steps), ["x", "y"], shuffle=False).batch(BATCH)


class Line(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(FEATURES, 1, weight_init="ones", bias_init="zeros")

    def construct(self, x):
        return self.dense(x)


class Cast(nn.Cell):
    """The loss in another dtype or shape."""

    def __init__(self, dtype=ms.float32, shape=()):
        super().__init__()
        self.loss, self.dtype, self.shape = nn.MSELoss(), dtype, shape

    def construct(self, logits, labels):
        return self.loss(logits, labels).astype(self.dtype).reshape(self.shape)


def sgd(net, rate=0.1):
    return nn.SGD(net.trainable_params(), rate)


def model(optimizer=sgd, loss=None, metrics=None, **kwargs):
    net = Line()
    return ms.train.Model(net, loss or nn.MSELoss(), optimizer(net), metrics=metrics, **kwargs)


def train(trained, steps, *callbacks, epochs=1, **kwargs):
    trained.train(epochs, dataset(steps), callbacks=list(callbacks), dataset_sink_mode=False, **kwargs)


def truth(steps, rates=0.1, epochs=1):
    """Return each step's loss and gradient norm for plain SGD, in float64."""
    x, y = (array.astype("f8") for array in arrays(steps))
    weight, bias = np.ones((FEATURES, 1)), 0.0
    losses, norms = [], []
    for step in range(steps * epochs):
        batch = slice(step % steps * BATCH, (step % steps + 1) * BATCH)
        error = x[batch] @ weight + bias - y[batch]
        weight_grad, bias_grad = 2 / BATCH * x[batch].T @ error, 2 * error.mean()
        losses.append((error**2).mean())
        norms.append(np.sqrt((weight_grad**2).sum() + bias_grad**2))
        rate = rates[step] if np.ndim(rates) else rates
        weight, bias = weight - rate * weight_grad, bias - rate * bias_grad
    return np.array(losses), np.array(norms)


def curve(directory, tag, rank=0):
    """Return the steps and values of a tag, as the files hold them."""
    points = scalars(directory / f"rank_{rank}", tag)
    return [step for step, _ in points], np.array([value for _, value in points])


def tags(directory, rank=0):
    return {value.tag for event in events(directory / f"rank_{rank}") for value in event.values}


def starts(directory, rank=0):
    """Return the steps at which sessions of a run begin. The writer's markers beyond all steps are left out."""
    found = [event.step for event in events(directory / f"rank_{rank}") if event.session == 1]
    return [step for step in found if step < 2**63 - 1]


def files(directory):
    return event_files(directory, recursive=True)


def state(cell):
    """Return every parameter of a cell, bit for bit, by name and in order."""
    return [
        (name, parameter.name, Tensor(parameter).asnumpy().tobytes()) for name, parameter in cell.parameters_and_names()
    ]
