"""The collectors of a callback that is given none: scalars of the step."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from mindspore import Parameter, Tensor, nn, ops

from msbridge._checks import checked_bool, checked_number
from msbridge._device import Array, first_line, is_tensor, mean
from msbridge._learning_rate import harmless, rates, step_count
from msbridge._outputs import Outputs
from msbridge._schedule import CollectFreq
from msbridge._tape import Series
from msbridge.collectors._base import (
    Collected,
    Collector,
    Context,
    History,
    Late,
    NotGivenError,
    NotHereError,
    Training,
    Value,
    check_pattern,
)
from msbridge.collectors._evaluation import EvalMetrics
from msbridge.collectors._every_step import EveryStep

_MOST_MICRO_BATCHES = 64
_Curve = tuple[npt.NDArray[np.int64], npt.NDArray[Any]]  # steps and values


class Loss(Collector):
    """`train/loss` of every step: the step's loss; the mean where it has several elements or micro-batches.

    A step that returns none is left out. The losses stay on the device until the transfer. In data-sink mode MindSpore
    shows the host one loss a sink, that of its last step; the others are noted inside the graph, in graph mode and not
    under automatic parallelism.

    Args:
        micro_batches: `train/loss/micro_0` and so on besides, at collected steps, where the step returns a list of
            losses or a vector of at most 64.
    """

    uses_losses = True

    def __init__(self, *, micro_batches: bool = False) -> None:
        super().__init__()
        self.asked = checked_bool("Loss: micro_batches", micro_batches)

    def begin(self, _training: Training) -> None:
        """Forget what an earlier training left."""
        self._losses = EveryStep()

    def note(self, step: int, outputs: Outputs) -> None:
        """Keep the loss."""
        if outputs.loss is None:
            raise NotHereError("the train step returns no loss")
        self._losses.add(step, outputs.loss)

    def current(self, context: Context) -> Mapping[str, Value]:
        """Give the loss of this step."""
        return {} if context.outputs.loss is None else {"train/loss": mean(context.outputs.loss)}

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the losses of micro-batches."""
        loss = context.outputs.loss
        if isinstance(loss, list | tuple):
            return {f"train/loss/micro_{index}": mean(part) for index, part in enumerate(loss[:_MOST_MICRO_BATCHES])}
        if is_tensor(loss) and loss.ndim == 1 and 1 < loss.size <= _MOST_MICRO_BATCHES:
            read = context.fetch(loss)
            return {f"train/loss/micro_{index}": partial(_item, read, index) for index in range(loss.size)}
        return {}

    def series(self, history: History) -> Mapping[str, Late]:
        """Give the losses since the last transfer."""
        shown, noted = self._losses.stage(history), history.losses
        return {"train/loss": lambda: shown() if noted is None or not noted.ran else noted.firsts()}


class LearningRate(Collector):
    """`train/learning_rate`, or `train/learning_rate/group_0` ...: the one this step was made with, not the next.

    Of every step, from the tap, which asks before the optimizer counts on; without a tap from the step's outputs.
    Without either, at collected steps: the schedule at the optimizer's step count less 1, or the constant as it is at
    the step's end.
    """

    uses_tap = True

    def begin(self, training: Training) -> None:
        """Forget what an earlier training left."""
        self._returned = EveryStep()
        self._askable: dict[Any, Any] = {}  # schedules; a new copy would be compiled anew at each collection
        # Numbers the tap cannot ask. In groups a user may put one there at any time.
        self._has_numbers = hasattr(training.optimizer, "param_groups") or any(
            isinstance(rate, int | float) for rate in rates(training.optimizer).values()
        )
        self.asked = True

    def note(self, step: int, outputs: Outputs) -> None:
        """Keep the rate that the step returned."""
        if outputs.learning_rate is not None:
            self._returned.add(step, outputs.learning_rate)

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the learning rates that `series` does not."""
        found: dict[str, Value] = {
            name: rate for name, rate in rates(context.optimizer).items() if isinstance(rate, int | float)
        }
        if context.tap is None or not context.tap.names:
            if context.outputs.learning_rate is not None:
                return {}
            found |= self._ask(context)
            if not found:
                raise NotHereError("no learning rate: neither the optimizer nor the step tells one")
        return {f"train/learning_rate{name}": rate for name, rate in found.items()}

    def series(self, history: History) -> Mapping[str, Late]:
        """Give the learning rates of the steps since the last transfer."""
        returned = self._returned.stage(history)
        self.asked = self._has_numbers or history.tap is None or not history.tap.names
        if (tap := history.tap) is None or not tap.names:
            return {"train/learning_rate": returned}
        return {f"train/learning_rate{name}": partial(tap.rates, index) for index, name in enumerate(tap.names)}

    def _ask(self, context: Context) -> dict[str, Value]:
        found: dict[str, Value] = {}
        count = step_count(context.optimizer)
        for name, rate in rates(context.optimizer).items():
            if isinstance(rate, Parameter):
                found[name] = rate
            elif isinstance(rate, nn.Cell) and count is not None:
                if rate not in self._askable:
                    self._askable[rate] = harmless(rate)
                found[name] = mean(self._askable[rate](ops.Sub()(count, Tensor([1], count.dtype))))
        return found


class GradNorm(Collector):
    """`train/grad_norm`: the global L2 norm of the unscaled gradients before any clipping, in float32, of every step.

    From the tap; without one from the step's outputs.

    Args:
        parameters: a pattern (`re.match`) of parameter names: `grad_norm/<parameter>`, of every step too, for each of
            them.
    """

    uses_tap = True

    def __init__(self, parameters: str | None = None) -> None:
        super().__init__()
        self.normed = check_pattern(parameters, "GradNorm: parameters")

    def begin(self, _training: Training) -> None:
        """Forget what an earlier training left."""
        self._returned = EveryStep()
        self._has_stepped = False

    def note(self, step: int, outputs: Outputs) -> None:
        """Keep the norm that the step returned."""
        self._has_stepped = True
        if isinstance(outputs.global_norm, Exception):
            raise NotGivenError(f"grad_norm is not available: {first_line(outputs.global_norm)}")
        if outputs.global_norm is not None:
            self._returned.add(step, outputs.global_norm)

    def series(self, history: History) -> Mapping[str, Late]:
        """Give the norms of the steps since the last transfer."""
        has_stepped, self._has_stepped = self._has_stepped, False
        if history.tap is None and has_stepped and not self._returned:
            raise NotHereError(f"grad_norm is not available: {history.no_tap or 'no gradient tap'}")
        returned = self._returned.stage(history)
        if (tap := history.tap) is None:
            return {"train/grad_norm": returned}
        wanted = [name for name in tap.normed if self.normed is not None and re.match(self.normed, name)]
        own = {f"grad_norm/{name}": partial(tap.norm_of, name) for name in wanted}
        return {"train/grad_norm": tap.norms, **own}


class LossScale(Collector):
    """`train/loss_scale` and `train/overflow` (1 or 0) of every step, where the train step returns them."""

    def __init__(self) -> None:
        super().__init__()

    def begin(self, _training: Training) -> None:
        """Forget what an earlier training left."""
        self._scales, self._overflows = EveryStep(), EveryStep()

    def note(self, step: int, outputs: Outputs) -> None:
        """Keep what there is."""
        if outputs.loss_scale is not None:
            self._scales.add(step, outputs.loss_scale)
        if outputs.overflow is not None:
            self._overflows.add(step, outputs.overflow)

    def current(self, context: Context) -> Mapping[str, Value]:
        """Give those of this step."""
        given = {"train/loss_scale": context.outputs.loss_scale, "train/overflow": context.outputs.overflow}
        return {tag: mean(value) for tag, value in given.items() if value is not None}

    def series(self, history: History) -> Mapping[str, Late]:
        """Give those since the last transfer."""
        kept = {"train/loss_scale": self._scales, "train/overflow": self._overflows}
        return {tag: values.stage(history) for tag, values in kept.items() if values}


class Throughput(Collector):
    """`train/step_time` in seconds, `train/samples_per_sec`, and `train/tokens_per_sec` with `tokens_per_step`.

    With `flops_per_step` also `train/tflops_per_sec` and, with `peak_flops`, `train/model_flops_utilization`: the share
    of the device's peak that the model's own work is.

    Averages over the steps since the last collection, from step end to step end on the host's monotonic clock;
    validation inside `Model.fit` does not count. The first step holds the compilation and is not drawn. Samples and
    tokens are those of this process.

    Args:
        flops_per_step: floating point operations that the model needs for one step of this process, forward and
            backward: about 6 x parameters x tokens for a transformer.
        peak_flops: operations a second that this process's device can do.
    """

    def __init__(self, flops_per_step: float | None = None, peak_flops: float | None = None) -> None:
        super().__init__()
        for name, value in (("flops_per_step", flops_per_step), ("peak_flops", peak_flops)):
            if value is not None:
                checked_number(f"Throughput: {name}", value, above=0)
        if peak_flops is not None and flops_per_step is None:
            raise ValueError("Throughput: peak_flops means nothing without flops_per_step")
        self._flops, self._peak = flops_per_step, peak_flops

    def current(self, context: Context) -> Mapping[str, Value]:
        """Give the rates since the last collection."""
        if not context.seconds:
            return {}
        here = Collected(context.step, context.steps, context.epoch, context.seconds, context.samples)
        return {tag: values[0] for tag, (_, values) in self._rates([here], context.tokens_per_step).items()}

    def series(self, history: History) -> Mapping[str, Late]:
        """Give the rates at the collections since the last transfer."""
        timed = [here for here in history.collected if here.seconds]
        rates = self._rates(timed, history.tokens_per_step) if timed else {}
        return {tag: partial(Series, *curve) for tag, curve in rates.items()}

    def _rates(self, timed: Sequence[Collected], tokens_per_step: int | None) -> dict[str, _Curve]:
        numbers = np.array([here.step for here in timed], np.int64)
        seconds = np.array([here.seconds for here in timed])
        steps = np.array([here.steps for here in timed])
        samples = np.array([np.nan if here.samples is None else here.samples for here in timed])
        known = ~np.isnan(samples)
        found: dict[str, _Curve] = {"train/step_time": (numbers, seconds / steps)}
        if known.any():
            found["train/samples_per_sec"] = (numbers[known], (samples / seconds)[known])
        if tokens_per_step is not None:
            found["train/tokens_per_sec"] = (numbers, tokens_per_step * steps / seconds)
        if self._flops is not None:
            rate = self._flops * steps / seconds
            found["train/tflops_per_sec"] = (numbers, rate / 1e12)
            if self._peak is not None:
                found["train/model_flops_utilization"] = (numbers, rate / self._peak)
        return found


class Epoch(Collector):
    """`train/epoch`: MindSpore's epoch number, from 1.

    Args:
        collect_freq: as in Collector.
    """

    def __init__(self, collect_freq: CollectFreq | None = None) -> None:
        super().__init__(collect_freq)
        self.asked = self.schedule is not None  # else it is drawn with the callback's collections

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the epoch."""
        return {"train/epoch": context.epoch}

    def current(self, context: Context) -> Mapping[str, Value]:
        """Give the epoch."""
        return {"train/epoch": context.epoch}

    def series(self, history: History) -> Mapping[str, Late]:
        """Give the epoch at the collections since the last transfer."""
        if self.asked or not history.collected:
            return {}
        steps = np.array([here.step for here in history.collected], np.int64)
        epochs = np.array([here.epoch for here in history.collected], np.float32)
        return {"train/epoch": partial(Series, steps, epochs)}


def default_collectors() -> list[Collector]:
    """Make the collectors of a callback that is given none."""
    return [Loss(), LearningRate(), GradNorm(), LossScale(), Throughput(), Epoch(), EvalMetrics()]


def _item(read: Callable[[], Array], index: int) -> float:
    return float(read()[index])
