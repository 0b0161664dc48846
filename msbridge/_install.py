"""Put the gradient tap into a train cell where that is sound, and take it out again."""

import os
import re
import weakref
from collections.abc import Sequence
from types import CodeType
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn
from mindspore.ops import Primitive

from msbridge._device import first_line
from msbridge._learning_rate import Constant, harmless, rates, step_count
from msbridge._tap import GradTap, LossTap
from tbwriter._logger import get_logger

_RING_STEPS = 1024  # 4 KiB; the ring of a sink longer than this is as long as the sink, up to _MAX_RING_STEPS
_MAX_RING_STEPS = 1 << 18
_SPARSE = frozenset({"SparseGatherV2", "EmbeddingLookup"})  # operators

# The taps that were ever put into a cell: a graph that was compiled with a tap runs it for as long as it lives.
_taps: "weakref.WeakKeyDictionary[Any, list[GradTap]]" = weakref.WeakKeyDictionary()

_log = get_logger(__name__)


class NoTapError(Exception):
    """The tap cannot be put in; the message says why."""


def install(
    network: Any, optimizer: Any, sink_size: int, normed: Sequence[str] = (), kept: Sequence[str] = ()
) -> GradTap:
    """Put a tap in the place of `network.grad_reducer`, before the graph is compiled.

    Args:
        network: the train cell.
        optimizer: the optimizer in it, or None.
        sink_size: steps from one call of the callback to the next, 1 without data sink.
        normed: patterns (`re.match`) of parameters whose gradients get a norm of their own.
        kept: patterns of parameters whose gradients are kept whole.

    Raises:
        NoTapError: the gradients that pass there are not the true ones, or cannot be reached.
    """
    unscale = _unscale(network)
    if mode := _sharding():
        raise NoTapError(f"gradients are sharded under {mode}")
    if sparse := _sparse_part(network):
        raise NoTapError(f"{sparse} gives sparse gradients")
    graph_mode = ms.get_context("mode") == ms.GRAPH_MODE
    if graph_mode and _compile_cache_is_on():
        raise NoTapError("with MindSpore's compile cache a graph from the disk may run, without the tap")
    tap = next((tap for tap in _taps.get(network, ()) if not tap.busy), None)
    if tap is None:
        if graph_mode and network.compile_cache:
            raise NoTapError(
                "the train network was compiled before (by Model.build, or by a training without this callback)"
            )
        size = _ring_steps(sink_size)
        found = _rehearsed(network, optimizer)
        parameters = list(_trained(network, optimizer))
        tap = GradTap(
            _reducer(network), found, step_count(optimizer), unscale, size,
            normed={parameter.name: place for place, parameter in enumerate(parameters) if _any(normed, parameter)},
            kept={p.name: (place, p) for place, p in enumerate(parameters) if _any(kept, p)},
        )  # fmt: skip
        _taps.setdefault(network, []).append(tap)
    tap.restart(_reducer(network))
    # Not by setattr: a train cell with auto_prefix would rename the parameters below it, and so its checkpoints.
    network._cells["grad_reducer"] = tap
    return tap


class SinkLosses:
    """Note every step's loss inside the graph that data-sink mode puts around a train cell.

    MindSpore shows the host the outputs of a sink's last step alone. It makes the graph after the training began, and
    with dataset shapes that change several of them.
    """

    def __init__(self, network: Any, sink_size: int) -> None:
        self.tap = LossTap(network, _ring_steps(sink_size))
        self._network = network
        self._wrappers: list[Any] = []

    def step_begin(self, wrapper: Any) -> None:
        """Put the tap between a graph that is not compiled yet and its train cell."""
        if any(wrapper is known for known in self._wrappers) or not isinstance(wrapper, nn.Cell):
            return
        if wrapper._cells.get("network") is self._network and not wrapper.compile_cache:
            wrapper._cells["network"] = self.tap
            self._wrappers.append(wrapper)

    def remove(self) -> None:
        """Take it out again; what is compiled keeps it."""
        for wrapper in self._wrappers:
            wrapper._cells["network"] = self._network


def sink_losses(network: Any, sink_size: int) -> SinkLosses | None:
    """Give what notes the losses of a data sink; None where the host sees every step, or where it is not sound."""
    if ms.get_context("mode") != ms.GRAPH_MODE or _sharding() or _compile_cache_is_on():
        return None
    try:
        LossTap(nn.Identity(), 2)(
            Tensor(np.ones(1, np.float32))
        )  # what this device cannot do must not end the training
        _synchronize()
    except Exception as error:
        _log.info("losses inside a data sink are not noted: %s", first_line(error))
        return None
    return SinkLosses(network, sink_size)


def remove(network: Any, tap: GradTap) -> None:
    """Take the tap out again. A graph that is compiled keeps it until it is compiled anew."""
    tap.stop()
    owner, name = network, "grad_reducer"
    while isinstance(cell := owner._cells[name], GradTap):  # taps of several callbacks stand in a row
        if cell is tap:
            owner._cells[name] = tap.reducer
            return
        owner, name = cell, "reducer"


def schedules(optimizer: Any) -> dict[str, nn.Cell]:
    """Name the learning rates of `optimizer` that the tap can ask. Plain numbers are left to the host."""
    cells = {}
    for name, rate in rates(optimizer).items():
        if isinstance(rate, Parameter):
            cells[name] = Constant(rate)
        elif isinstance(rate, nn.Cell) and step_count(optimizer) is not None:
            cells[name] = harmless(rate)
    return cells


def _trained(network: Any, optimizer: Any) -> Sequence[Any]:
    """Give the parameters in the order of their gradients."""
    weights = getattr(network, "weights", None) or getattr(optimizer, "parameters", None)
    return list(weights or network.trainable_params())


def _ring_steps(sink_size: int) -> int:
    return min(max(_RING_STEPS, 1 << (sink_size - 1).bit_length()), _MAX_RING_STEPS)


def _sharding() -> str:
    mode = str(ms.get_auto_parallel_context("parallel_mode"))
    return mode if mode.endswith("auto_parallel") else ""


def _any(patterns: Sequence[str], parameter: Any) -> bool:
    return any(re.match(pattern, parameter.name) for pattern in patterns)


def _reducer(network: Any) -> nn.Cell:
    return network._cells["grad_reducer"]


def _unscale(network: Any) -> float:
    """Give the factor that undoes the loss scale in the gradients that reach the reducer."""
    if not isinstance(network, nn.Cell) or not isinstance(network._cells.get("grad_reducer"), nn.Cell):
        raise NoTapError(f"{type(network).__name__} has no grad_reducer")
    cls = type(network)
    if isinstance(network, nn.TrainOneStepWithLossScaleCell):
        if cls.construct is not nn.TrainOneStepWithLossScaleCell.construct:
            raise NoTapError(
                f"{cls.__name__} has its own construct, which may unscale gradients before or after reducing"
            )
        return 1.0  # unscaled before they are reduced
    if hasattr(network, "scale_sense"):
        raise NoTapError(f"{cls.__name__} scales the loss in its own way")
    sens = network.sens if getattr(network, "sense_flag", False) else 1.0
    if not isinstance(sens, int | float):
        raise NoTapError(f"the loss scale of {cls.__name__} is no number but {type(sens).__name__}")
    return 1.0 / sens


def _compile_cache_is_on() -> bool:
    enabled = ms.get_context("enable_compile_cache")
    return os.environ.get("MS_COMPILER_CACHE_ENABLE") == "1" if enabled is None else bool(enabled)


def _sparse_part(network: nn.Cell) -> str:
    """Name what makes a gradient sparse. A norm of it would not compile, and so end the training.

    MindSpore 2.10 has two operators whose gradient is a RowTensor (ops/_grad_experimental), and MapParameter.
    """
    for parameter in network.get_parameters():
        if type(parameter).__name__ == "MapParameter":
            return f"MapParameter {parameter.name}"
    for name, cell in network.cells_and_names():
        if found := _SPARSE.intersection(_names_in_construct(type(cell))):
            return f"{min(found)} in {type(cell).__name__}.construct"
        operators = {getattr(value, "name", "") for value in vars(cell).values() if isinstance(value, Primitive)}
        # nn.EmbeddingLookup holds both operators, and uses neither when it is neither sparse nor on the host.
        if "SparseGatherV2" in operators or ("EmbeddingLookup" in operators and getattr(cell, "sparse", True)):
            return f"{type(cell).__name__} {name}"
    return ""


def _names_in_construct(cls: type) -> tuple[str, ...]:
    """Name what a cell's own code looks up, operators that it makes on the spot among them."""
    if cls.__module__.startswith("mindspore."):
        return ()
    codes: list[Any] = [getattr(cls.construct, "__code__", None)]  # type: ignore[attr-defined]
    names: list[str] = []
    while codes:
        if isinstance(code := codes.pop(), CodeType):
            names += code.co_names
            codes += code.co_consts  # functions inside the function
    return tuple(names)


def _rehearsed(network: Any, optimizer: Any) -> dict[str, nn.Cell]:
    """Run a tap of the same kind on one-element gradients: what this device cannot do must not end the training.

    Returns:
        The schedules that the tap can ask: all or, when it cannot be compiled with them, none.

    Raises:
        NoTapError: it fails without them too.
    """
    kinds = {str(parameter.dtype): parameter.dtype for parameter in _trained(network, optimizer)}
    grads = tuple(Tensor(np.ones(1, np.float32), kind) for kind in kinds.values())
    found = schedules(optimizer)
    try:
        _try_out(grads, found, optimizer)
    except Exception as error:
        if not found:
            raise NoTapError(first_line(error)) from error
        try:
            _try_out(grads, {}, optimizer)
        except Exception as second:
            raise NoTapError(first_line(second)) from second
        _log.info("the learning rate is read at the step's end: %s", first_line(error))
        return {}
    return found


def _try_out(grads: Any, found: dict[str, nn.Cell], optimizer: Any) -> None:
    tap = GradTap(nn.Identity(), found, step_count(optimizer), 1.0, 2)
    tap.run_note(*grads)
    _synchronize()


def _synchronize() -> None:
    if ms.get_context("device_target") != "CPU":
        ms.runtime.synchronize()  # what fails in a kernel is found out late
