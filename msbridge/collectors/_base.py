"""What a collector is, and what it may look at."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msbridge._device import Array, Transfer
from msbridge._outputs import Outputs
from msbridge._schedule import CollectFreq, Schedule
from msbridge._tap import GradTap
from msbridge._tape import Reading, Series
from tbwriter import SummaryWriter

Late = Callable[[], "float | Series | Write | None"]
Value = Any
"""A number, a NumPy scalar, a device tensor with one element, a `Write`, or a callable that gives one of these, a
`Series` or None after the transfer."""


@dataclass(frozen=True)
class Write:
    """What is no scalar: called with writer, tag, step and wall time after the transfer."""

    write: Callable[[SummaryWriter, str, int, float], None]


@dataclass(frozen=True)
class Training:
    """What a collector may look at when a training begins, before the graph is compiled."""

    network: Any
    """The train cell."""
    optimizer: Any
    """The optimizer, or None."""
    params: Any
    """MindSpore's callback parameters, whole."""


@dataclass(slots=True)  # not frozen: that takes three times as long to make, at every collection
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
    transfer: Transfer
    tap: GradTap | None = None
    """The gradient tap, where there is one."""
    no_tap: str = ""
    """Why there is no tap."""

    def fetch(self, tensor: Any) -> Callable[[], Array]:
        """Let a device tensor of any shape, as it is now, join the transfer; the callable gives it as float32 after.

        Raises:
            TypeError: the tensor holds no numbers.
        """
        return self.transfer.copy(tensor)


class Collected(NamedTuple):
    """A step at which the callback's own schedule was due."""

    step: int
    """The global step."""
    steps: int
    """Steps since the collection before."""
    epoch: int
    """MindSpore's epoch number, from 1."""
    seconds: float | None
    """As in Context."""
    samples: int | None
    """As in Context."""


@dataclass(frozen=True)
class History:
    """What a collector may look at before a transfer, to draw the steps since the last one."""

    step: int
    """The newest step."""
    transfer: Transfer
    tap: Reading | None
    """What the gradient tap noted, where there is one; it answers after the transfer."""
    no_tap: str = ""
    """Why there is no tap."""
    losses: Reading | None = None
    """What was noted of the losses inside a data sink."""
    collected: Sequence[Collected] = ()
    """The collections of the callback's schedule since the last transfer."""
    tokens_per_step: int | None = None


class NotGivenError(Exception):
    """A collector has nothing to draw in this training; the message says why. It is said once."""


class NotHereError(Exception):
    """A collector has nothing to draw at this step; the message says why. It is said once, and asked again."""


class Collector:
    """Give scalars by tag; a class with `collect` is all it takes.

        class Bias(Collector):
            def collect(self, context):
                return {"train/bias": context.network.network.head.bias.mean()}

    A device tensor is returned as it is, never read: it joins the collection's one copy to the host. A collector that
    raises is reported once and dropped; the training goes on.

    The other methods are optional: `begin` sees the network before it is compiled, `note` sees every step, `series`
    draws what was noted, `derive` makes curves of curves.

    Args:
        collect_freq: when to ask this collector, in the kinds of the callback's `collect_freq`; None: as the callback.
    """

    asked = True
    """Whether `collect` has something to give. It may change while the training runs."""
    uses_tap = False
    """Whether the gradient tap is to be put into the train cell."""
    uses_losses = False
    """Whether the losses inside a data sink are to be noted."""
    heavy = False
    """Whether the callback's `collect_tensor_freq` holds for it, where it has no steps of its own."""
    normed: str | None = None
    """Pattern of parameters (`re.match`) whose gradients' norms it wants of every step."""
    kept: str | None = None
    """Pattern of parameters whose gradients it wants whole, of the newest step; they cost their memory again."""
    schedule: Schedule | None = None
    """Its own steps, where it has some."""

    def __init__(self, collect_freq: CollectFreq | None = None) -> None:
        self.schedule = None if collect_freq is None else Schedule(collect_freq)

    def begin(self, training: Training) -> None:
        """Prepare for a training."""

    def collect(self, _context: Context) -> Mapping[str, Value]:
        """Give {tag: value} for the step; an empty dict when there is nothing to draw at this step."""
        return {}

    def current(self, _context: Context) -> Mapping[str, Value]:
        """Give {tag: value of this very step} of what `series` draws, for `reduce` of the callback."""
        return {}

    def note(self, step: int, outputs: Outputs) -> None:
        """Note a step that ended, collected or not: device tensors are kept, not read. Costs every step."""

    def series(self, _history: History) -> Mapping[str, Late]:
        """Give {tag: callable that gives a Series after the transfer} for the steps since the last transfer."""
        return {}

    def evaluate(self, _metrics: Mapping[str, Any], _results: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give {tag: number} for an evaluation that has ended, of MindSpore's metrics and `eval_results`."""
        return {}

    def derive(self, _found: Mapping[str, Series]) -> Mapping[str, Series]:
        """Give curves made of the scalars by tag that this transfer brought."""
        return {}

    @property
    def name(self) -> str:
        """How log lines call it."""
        return type(self).__name__


def overrides(collector: Collector, method: str) -> bool:
    """Tell whether a collector has its own `method`."""
    return getattr(type(collector), method) is not getattr(Collector, method)


def check_pattern(pattern: str | None, what: str) -> str | None:
    """Check a pattern of parameter names.

    Raises:
        TypeError, ValueError: it is none.
    """
    if pattern is not None and not isinstance(pattern, str):
        raise TypeError(f"{what} must be a regular expression, got {pattern!r}")
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"{what} must be a regular expression, got {pattern!r}: {error}") from error
    return pattern
