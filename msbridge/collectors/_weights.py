"""Weights, gradients and optimizer state: norms and histograms, made on the device."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mindspore import Parameter, mint, ops

from msbridge._device import to_float32
from msbridge._histogram import count
from msbridge._schedule import CollectFreq
from msbridge.collectors._base import Collector, Context, Late, NotGivenError, Value, Write, check_pattern

_square, _sum, _sqrt, _stack = ops.Square(), ops.ReduceSum(), ops.Sqrt(), ops.Stack()
_MOST_HISTOGRAMS = 5  # without a pattern, as SummaryCollector


class WeightNorm(Collector):
    """`train/weight_norm`: the global L2 norm of the trained parameters after the step, in float32.

    Args:
        parameters: a pattern (`re.match`) of parameter names: `weight_norm/<parameter>` for each of them besides.
        collect_freq: as in Collector. It takes two operators for each parameter.
    """

    def __init__(self, parameters: str | None = None, collect_freq: CollectFreq | None = None) -> None:
        super().__init__(collect_freq)
        self._pattern = check_pattern(parameters, "WeightNorm: parameters")

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the norms."""
        parameters = _trained(context)
        norms = _Norms(parameters)
        wanted = [parameter.name for parameter in _matching(parameters, self._pattern)]
        return {"train/weight_norm": norms.whole(), **{f"weight_norm/{name}": norms.of(name) for name in wanted}}


class OptimizerState(Collector):
    r"""`train/optimizer/<state>_norm`: the global L2 norm of each kind of optimizer state, such as `moment1` of Adam.

    Args:
        parameters: a pattern (`re.match`) of state names, such as `moment1\..*weight`: `optimizer_norm/<name>` for
            each of them besides.
        collect_freq: as in Collector. It takes two operators for each parameter and kind.
    """

    def __init__(self, parameters: str | None = None, collect_freq: CollectFreq | None = None) -> None:
        super().__init__(collect_freq)
        self._pattern = check_pattern(parameters, "OptimizerState: parameters")

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the norms."""
        found: dict[str, Value] = {}
        for kind, parameters in _states(context.optimizer).items():
            norms = _Norms(parameters)
            found[f"train/optimizer/{kind}_norm"] = norms.whole()
            for parameter in _matching(parameters, self._pattern):
                found[f"optimizer_norm/{parameter.name}"] = norms.of(parameter.name)
        if not found:
            raise NotGivenError("the optimizer keeps no state of which there is a norm")
        return found


class WeightHistogram(Collector):
    """`weights/<parameter>`: histograms of parameters, counted on the device; half a kilobyte each goes to the host.

    Args:
        parameters: a pattern (`re.match`) of parameter names; None: the first five trained ones, as SummaryCollector.
        collect_freq: as in Collector; None: as the callback's `collect_tensor_freq`. Counting takes some ten passes
            over the parameter.
    """

    heavy = True

    def __init__(self, parameters: str | None = None, collect_freq: CollectFreq | None = None) -> None:
        super().__init__(collect_freq)
        self._pattern = check_pattern(parameters, "WeightHistogram: parameters")

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the histograms."""
        trained = _trained(context)
        parameters = trained[:_MOST_HISTOGRAMS] if self._pattern is None else _matching(trained, self._pattern)
        if not parameters:
            raise NotGivenError(f"no weights are drawn: no trained parameter matches {self._pattern!r}")
        return {f"weights/{parameter.name}": _histogram(context, parameter) for parameter in parameters}


class GradHistogram(Collector):
    """`gradients/<parameter>`: histograms of gradients as they reach the optimizer, with the loss scale taken out.

    The train cell keeps a copy of the gradients that match, every step: their memory a second time.

    Args:
        parameters: a pattern (`re.match`) of parameter names.
        collect_freq: as in Collector; None: as the callback's `collect_tensor_freq`.
    """

    uses_tap = True
    heavy = True

    def __init__(self, parameters: str, collect_freq: CollectFreq | None = None) -> None:
        super().__init__(collect_freq)
        if parameters is None:
            raise TypeError("GradHistogram: parameters must be a regular expression, got None: '.*' is all of them")
        self.kept = check_pattern(parameters, "GradHistogram: parameters")

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the histograms."""
        if context.tap is None:
            raise NotGivenError(f"gradients are not available: {context.no_tap or 'no gradient tap'}")
        assert self.kept is not None
        grads = {name: grad for name, grad in context.tap.kept_by_name.items() if re.match(self.kept, name)}
        if not grads:
            raise NotGivenError(
                f"no gradients are drawn: no trained parameter matches {self.kept!r}, "
                "or the graph was compiled without it"
            )
        return {f"gradients/{name}": _histogram(context, grad, context.tap.unscale) for name, grad in grads.items()}


def _histogram(context: Context, tensor: Any, factor: float = 1.0) -> Late:
    counted = count(tensor, context.transfer)
    return lambda: Write(counted().times(factor).write)


class _Norms:
    """L2 norms of some parameters, alone and together, as device scalars."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        self._square_sums = {parameter.name: _sum(_square(to_float32(parameter))) for parameter in parameters}

    def of(self, name: str) -> Any:
        return _sqrt(self._square_sums[name])

    def whole(self) -> Any:
        return _sqrt(mint.sum(_stack(list(self._square_sums.values()))))


def _trained(context: Context) -> list[Any]:
    parameters = getattr(context.optimizer, "parameters", None) or context.network.trainable_params()
    found = [parameter for parameter in parameters if parameter.size]
    if not found:
        raise NotGivenError("no parameter is trained")
    return found


def _matching(parameters: Iterable[Any], pattern: str | None) -> list[Any]:
    return [] if pattern is None else [parameter for parameter in parameters if re.match(pattern, parameter.name)]


def _states(optimizer: Any) -> dict[str, list[Any]]:
    """Name the tuples of Parameters that an optimizer keeps beside the trained ones, one for each of these."""
    trained = list(getattr(optimizer, "parameters", ()))
    if not trained:
        return {}
    ids = {id(parameter) for parameter in trained}
    found = {}
    for kind, value in vars(optimizer).items():
        if not isinstance(value, list | tuple) or not value or not all(isinstance(item, Parameter) for item in value):
            continue
        if not ids & {id(item) for item in value} and all(item.size for item in value):
            found[kind.strip("_")] = list(value)
    return found
