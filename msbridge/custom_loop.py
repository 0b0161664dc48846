"""The same curves for a loop of one's own, around `ms.value_and_grad` or whatever else.

with msbridge.monitor("runs/first", collect_freq=10, optimizer=optimizer) as curves:
for inputs, labels in dataset:
loss, grads = value_and_grad(inputs, labels)
optimizer(grads)
curves.step(loss=loss, grads=grads, inputs=inputs)
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.train.callback import RunContext
from mindspore.train.callback._callback import InternalCallbackParam

from msbridge._device import is_tensor
from msbridge._outputs import Outputs
from msbridge._schedule import CollectFreq
from msbridge._tap import half_square_sum
from msbridge.callback import TensorBoardCallback
from msbridge.collectors import Value


class Monitor:
    """A training that the user's loop drives; made by `monitor`. Owned by the thread of that loop."""

    def __init__(self, curves: TensorBoardCallback, network: Any, optimizer: Any) -> None:
        self._curves = curves
        self._params = InternalCallbackParam(
            cur_step_num=0, cur_epoch_num=1, batch_num=0, train_network=network, optimizer=optimizer,
            dataset_sink_mode=False, train_dataset_element=None, net_outputs=None,
            no_tap="a loop of your own has no gradient tap, `grads` of `step` give the norm alone",
        )  # fmt: skip
        self._context = RunContext(self._params)
        self._norm: Any = ms.jit(_global_norm)
        self._no_norm: Exception | None = None
        curves.on_train_begin(self._context)

    def step(
        self,
        *,
        loss: Value | None = None,
        grads: Any = None,
        lr: Value | None = None,
        overflow: Value | None = None,
        loss_scale: Value | None = None,
        inputs: Any = None,
        epoch: int | None = None,
    ) -> None:
        """Tell that a step has ended. Device tensors are read later, with the transfer; nothing here raises.

        Args:
            loss: a number or tensor, or a list of those of micro-batches.
            grads: a tuple, list or dict of gradients, or one, as tensors or arrays; their global L2 norm is drawn. None
                among them is a parameter without one.
            lr: the learning rate; where it is left out, the optimizer is asked at collected steps.
            overflow: a flag.
            loss_scale: a number or tensor.
            inputs: of this step, a tensor or array, or a tuple or dict of them: for images and for samples a second.
            epoch: from 1; where it is left out, the last one goes on.
        """
        params = self._params
        params.cur_step_num += 1
        if epoch is not None:
            params.cur_epoch_num = epoch
        params.train_dataset_element = list(inputs.values()) if isinstance(inputs, Mapping) else inputs
        params.net_outputs = Outputs(loss, overflow, loss_scale, lr, self._norm_of(grads))
        self._curves.on_train_step_end(self._context)

    def record(self, values: Mapping[str, Value]) -> None:
        """Add {tag: value} to the next collection, as TensorBoardCallback.record."""
        self._curves.record(values)

    def evaluated(self, metrics: Mapping[str, Any]) -> None:
        """Draw metrics of an evaluation as `val/<metric>` at the newest step."""
        self._params.metrics = dict(metrics)
        self._curves.on_eval_begin(self._context)
        self._curves.on_eval_end(self._context)

    @property
    def stop_requested(self) -> bool:
        """Whether an alert asks the loop to end."""
        return bool(self._context.get_stop_requested())

    def _norm_of(self, grads: Any) -> Any:
        if self._no_norm is not None:
            return self._no_norm
        try:
            tensors = _tensors(grads)
            return self._norm(*tensors) if tensors else None
        except Exception as error:
            self._no_norm = error
            return error


@contextlib.contextmanager
def monitor(
    curves: TensorBoardCallback | str | os.PathLike[str],
    collect_freq: CollectFreq = 10,
    *,
    network: Any = None,
    optimizer: Any = None,
    initial_step: int | None = None,
) -> Iterator[Monitor]:
    """Draw the curves of a loop that does not use Model.

    Args:
        curves: a directory or URL; or a TensorBoardCallback, for whatever else it takes.
        collect_freq: as TensorBoardCallback's, with a directory.
        network: what is trained, for collectors that look at it.
        optimizer: for the learning rate, and for collectors of weights and of optimizer state.
        initial_step: the steps trained before, with a directory: the curves go on from there.

    Raises:
        TypeError, ValueError: an argument is wrong.
    """
    if not isinstance(curves, TensorBoardCallback):
        curves = TensorBoardCallback(curves, collect_freq, initial_step=initial_step)
    elif initial_step is not None:
        raise ValueError("initial_step belongs to the TensorBoardCallback where one is given")
    with curves:
        yield Monitor(curves, network, optimizer)


def _tensors(grads: Any) -> Sequence[Any]:
    """Flatten what value_and_grad gives: a tensor, a tuple of them, or a tuple of tuples; or what a user made of it.

    Raises:
        TypeError: there is something else in it.
    """
    if grads is None:
        return []
    if is_tensor(grads):
        return [grads]
    if isinstance(grads, np.ndarray | np.generic):
        return [Tensor(np.asarray(grads, np.float32))]
    if isinstance(grads, Mapping):
        grads = grads.values()
    elif not isinstance(grads, list | tuple):
        raise TypeError(f"grads: want tensors, got {type(grads).__name__}")
    return [tensor for grad in grads for tensor in _tensors(grad)]


def _global_norm(*grads: Any) -> Any:
    halves = ops.HyperMap()(half_square_sum, grads)
    return ops.Sqrt()(ops.Add()(ops.AddN()(halves), ops.AddN()(halves)))
