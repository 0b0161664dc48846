"""What is drawn at a collected step: one small class for each group of curves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msbridge._device import mean
from msbridge._install import schedules
from msbridge._learning_rate import rates, step_count
from msbridge._outputs import Outputs
from msbridge._tape import Reading, Series


@dataclass(frozen=True)
class Context:
    """What a collector may look at. Everything on the device stays there until all collectors have answered."""

    step: int
    """The global step that has just ended."""
    steps: int
    """Steps since the last collection."""
    epoch: int
    """MindSpore's epoch number, from 1."""
    seconds: float | None
    """Wall time of those steps without validation; None at the first collection, which holds the compilation."""
    samples: int | None
    """Samples this process trained in those steps; None where the batch size cannot be told."""
    tokens_per_step: int | None
    outputs: Outputs
    network: Any
    """The train cell."""
    optimizer: Any
    """The optimizer, or None."""
    params: Any
    """MindSpore's callback parameters, whole."""
    tap: Reading | None = None
    """The gradient tap, where there is one."""
    no_tap: str = ""
    """Why there is no tap."""


Late = Callable[[], "float | Series | None"]
Value = Any
"""A number, a NumPy scalar, a device tensor with one element, or a callable that answers after the transfer."""


class NotGivenError(Exception):
    """A collector has nothing to draw in this training; the message says why. It is said once."""


class Collector:
    """Give scalars by tag; a class with `collect` is all it takes.

        class Bias(Collector):
            def collect(self, context):
                return {"train/bias": context.network.network.head.bias.mean()}

    A device tensor is returned as it is, never read: it joins the collection's one copy to the host. A collector that
    raises is reported once and dropped; the training goes on.
    """

    uses_tap = False
    """Whether the gradient tap is to be put into the train cell."""

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give {tag: value} for the step; an empty dict when there is nothing to draw at this step."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """How log lines call it."""
        return type(self).__name__


class Loss(Collector):
    """`train/loss`: the step's loss; the mean where it has several elements or micro-batches."""

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the loss."""
        if context.outputs.loss is None:
            raise NotGivenError("the train step returns nothing")
        return {"train/loss": mean(context.outputs.loss)}


class LearningRate(Collector):
    """`train/learning_rate`, or `train/learning_rate/group_0` ...: the one this step was made with, not the next.

    From the tap, which asks before the optimizer counts on. Without a tap: from the step's outputs, else the schedule
    at the optimizer's step count less 1, or the constant as it is at the step's end.
    """

    uses_tap = True

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the learning rates."""
        found: dict[str, Value] = {
            name: rate for name, rate in rates(context.optimizer).items() if isinstance(rate, int | float)
        }
        if context.tap is not None and context.tap.names:
            found |= {name: _part(context.tap, index) for index, name in enumerate(context.tap.names)}
        elif context.outputs.learning_rate is not None:
            found = {"": context.outputs.learning_rate}
        else:
            found |= self._ask(context)
        if not found:
            raise NotGivenError("the optimizer tells no learning rate")
        return {f"train/learning_rate{name}": rate for name, rate in found.items()}

    def _ask(self, context: Context) -> dict[str, Value]:
        from mindspore import Tensor, ops

        count = step_count(context.optimizer)
        before = None if count is None else ops.Sub()(count, Tensor([1], count.dtype))
        return {name: mean(schedule(before)) for name, schedule in schedules(context.optimizer).items()}


class GradNorm(Collector):
    """`train/grad_norm`: the global L2 norm of the unscaled gradients before any clipping, in float32, of every step.

    From the tap; without one from the step's outputs, at collected steps.
    """

    uses_tap = True

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the norms of all steps since the last collection."""
        if context.tap is not None:
            return {"train/grad_norm": context.tap.norms}
        if context.outputs.global_norm is not None:
            return {"train/grad_norm": mean(context.outputs.global_norm)}
        raise NotGivenError(f"grad_norm is not available: {context.no_tap or 'no gradient tap'}")


class LossScale(Collector):
    """`train/loss_scale` and `train/overflow` (1 or 0), where the train step returns them."""

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give what there is."""
        given = {"train/loss_scale": context.outputs.loss_scale, "train/overflow": context.outputs.overflow}
        return {tag: mean(value) for tag, value in given.items() if value is not None}


class Throughput(Collector):
    """`train/step_time` in seconds, `train/samples_per_sec`, and `train/tokens_per_sec` with `tokens_per_step`.

    Averages over the steps since the last collection, from step end to step end on the host's monotonic clock;
    validation inside `Model.fit` does not count. The first step holds the compilation and is not drawn. Samples and
    tokens are those of this process.
    """

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the rates since the last collection."""
        if not context.seconds:
            return {}
        found: dict[str, Value] = {"train/step_time": context.seconds / context.steps}
        if context.samples is not None:
            found["train/samples_per_sec"] = context.samples / context.seconds
        if context.tokens_per_step is not None:
            found["train/tokens_per_sec"] = context.tokens_per_step * context.steps / context.seconds
        return found


class Epoch(Collector):
    """`train/epoch`: MindSpore's epoch number, from 1."""

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the epoch."""
        return {"train/epoch": context.epoch}


def default_collectors() -> list[Collector]:
    """Make the collectors of a callback that is given none."""
    return [Loss(), LearningRate(), GradNorm(), LossScale(), Throughput(), Epoch()]


def _part(tap: Reading, index: int) -> Late:
    def read() -> float | None:
        found = tap.rates()
        return float(found[index]) if len(found) > index else None

    return read
