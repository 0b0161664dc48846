"""What a run has once: its graph and its hyper-parameters."""

import json
import os
from collections.abc import Mapping
from typing import Any

from mindspore import Parameter

from msbridge._device import is_tensor
from msbridge._graph_def import graph_def
from msbridge._learning_rate import rates
from msbridge.collectors._base import Collector, Context, NotGivenError, Training, Value, Write
from tbwriter._logger import get_logger

_HYPER_CONFIG = "MINDINSIGHT_HYPER_CONFIG"  # MindInsight's tuner passes hyper-parameters in it, as JSON
_log = get_logger(__name__)


class _OnceATraining(Collector):
    """What is the same at every step."""

    def begin(self, _training: Training) -> None:
        """Draw it once a training."""
        self._drawn = False

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give it at the first collected step."""
        if self._drawn:
            return {}
        self._drawn = True
        return self._collect_once(context)

    def _collect_once(self, context: Context) -> Mapping[str, Value]:
        raise NotImplementedError


class Graph(_OnceATraining):
    """The compiled graph of the train step, on the Graphs dashboard. GRAPH mode only: PyNative mode has none."""

    def _collect_once(self, context: Context) -> Mapping[str, Value]:
        try:
            from mindspore.graph.api import _cell_graph_executor
        except ImportError:  # MindSpore 2.7
            from mindspore.common.api import _cell_graph_executor
        serialised = _cell_graph_executor.get_optimize_graph_proto(context.network)
        if not serialised:
            raise NotGivenError(
                "MindSpore gives no graph: there is none in PyNative mode, nor where the cell is not compiled whole"
            )
        graph = graph_def(serialised)
        return {"graph": Write(lambda writer, *_: writer.add_graph(graph))}


class HyperParameters(_OnceATraining):
    """A row of the HParams dashboard: what SummaryCollector stores as lineage, and the user's own.

    Network, loss function, optimizer, first learning rate, epochs, batch size, steps an epoch, devices and parallel
    mode, as far as MindSpore tells.

    Args:
        values: more of them, or other values for these.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if values is not None and not (isinstance(values, Mapping) and all(isinstance(name, str) for name in values)):
            raise TypeError(f"HyperParameters: values must be a dict with names as keys, got {values!r}")
        self._values = dict(values or {})

    def _collect_once(self, context: Context) -> Mapping[str, Value]:
        found = _lineage(context) | _from_environment() | self._values
        rate = next(iter(rates(context.optimizer).values()), None)
        read_rate = context.fetch(rate) if isinstance(rate, Parameter) and rate.size == 1 else None

        def read() -> Write:
            known = {} if read_rate is None else {"learning_rate": float(read_rate().reshape(()))}
            return Write(lambda writer, _tag, step, _wall: writer.add_hparams(known | found, {}, global_step=step))

        return {"hyper_parameters": read}


def _lineage(context: Context) -> dict[str, Any]:
    params = context.params
    element = params.get("train_dataset_element")
    first: Any = element[0] if isinstance(element, list | tuple) and element else None
    named = {
        "network": params.get("network"), "loss_function": params.get("loss_fn"), "optimizer": context.optimizer,
    }  # fmt: skip
    numbers = {
        "epochs": params.get("epoch_num"), "steps_per_epoch": params.get("batch_num"),
        "devices": params.get("device_number"), "parallel_mode": params.get("parallel_mode"),
        "batch_size": first.shape[0] if is_tensor(first) and first.ndim else None,
    }  # fmt: skip
    found = {name: type(value).__name__ for name, value in named.items() if value is not None}
    return found | {name: value for name, value in numbers.items() if isinstance(value, int | float | str)}


def _from_environment() -> dict[str, Any]:
    text = os.environ.get(_HYPER_CONFIG)
    if not text:
        return {}
    try:
        custom = json.loads(text).get("custom_lineage_data") or {}
        return {str(name): value for name, value in custom.items()}
    except (ValueError, AttributeError) as error:
        _log.warning("%s holds no hyper-parameters: %s", _HYPER_CONFIG, error)
        return {}
