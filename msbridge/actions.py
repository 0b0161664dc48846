"""What may be done in a training when a rule of `tbwriter.watch` speaks. These change the training, on demand.

    from msbridge import StopTraining, TensorBoardCallback
    from tbwriter.watch import NonFinite

    TensorBoardCallback("runs/first", alerts=[NonFinite("train/loss", then=StopTraining())])

A rule sees every step's loss, learning rate and gradient norm, once they have come to the host: at the latest half of
`flush_secs` and a collection after the step.
"""

from dataclasses import dataclass
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, ops

from msbridge._checks import checked_count, checked_number
from msbridge._learning_rate import rates
from msbridge._schedule import CollectFreq, Schedule
from tbwriter._logger import get_logger
from tbwriter.watch import Alert

_log = get_logger(__name__)


@dataclass
class Bound:
    """The training that an action is to act upon."""

    run_context: Any
    optimizer: Any
    callback: Any
    """The TensorBoardCallback."""
    ranks: int
    step: int = 0
    is_over: bool = False
    """The last step has run; the values of the steps before it come to the host after that."""


class TrainingAction:
    """An action that needs the training; the callback binds it when the training begins."""

    bound: Bound | None = None
    _is_excused: bool = False

    def __call__(self, alert: Alert) -> None:
        """Act on the training, if there is one."""
        if self.bound is not None:
            self.act(alert, self.bound)

    def act(self, alert: Alert, bound: Bound) -> None:
        """Do it."""
        raise NotImplementedError

    def after_step(self, step: int) -> None:
        """Look at the steps that go by."""

    def excuse(self, why: str) -> None:
        """Say, once, why it does not act."""
        if not self._is_excused:
            self._is_excused = True
            _log.warning("%s %s", type(self).__name__, why)

    def is_alone(self, bound: Bound) -> bool:
        """Tell whether no other rank is parted from this one by what it does; else say so."""
        if bound.ranks > 1:
            self.excuse(f"does nothing: this is one of {bound.ranks} ranks")
        return bound.ranks == 1


class StopTraining(TrainingAction):
    """End the training after the step that runs, as `request_stop` does; the file is closed as at its end.

    A training that is over before the values have come to the host is not stopped any more, and the log says so.
    Does nothing but say so in a training of several ranks: the others would wait for this one without end.
    """

    def act(self, alert: Alert, bound: Bound) -> None:
        """Ask MindSpore to stop."""
        if bound.is_over:
            self.excuse(f"came too late, the training was over: {alert.message}")
        elif self.is_alone(bound) and not bound.run_context.get_stop_requested():
            _log.warning("the training is stopped: %s", alert.message)
            bound.run_context.request_stop()


class ScaleLearningRate(TrainingAction):
    """Multiply the constant learning rates of the optimizer; schedules and lists are left alone, and it says so.

    Does nothing but say so in a training of several ranks, which would then train with different rates.

    Args:
        factor: above 0, such as 0.5.
        least: no rate is set below it.
    """

    def __init__(self, factor: float = 0.5, least: float = 0.0) -> None:
        self._factor = checked_number("ScaleLearningRate: factor", factor, above=0)
        self._least = checked_number("ScaleLearningRate: least", least, least=0)

    def act(self, alert: Alert, bound: Bound) -> None:
        """Assign the new rates."""
        if not self.is_alone(bound):
            return
        constant = [rate for rate in rates(bound.optimizer).values() if isinstance(rate, Parameter) and rate.size == 1]
        for rate in constant:
            scaled = ops.Mul()(rate, Tensor(self._factor, ms.float32))
            ops.assign(rate, ops.Maximum()(scaled, Tensor(self._least, ms.float32)))
        if constant:
            _log.warning("the learning rate is multiplied by %g: %s", self._factor, alert.message)
        else:
            self.excuse(f"leaves a schedule alone: {alert.message}")


class RaiseCollectFreq(TrainingAction):
    """Collect more often for a while, on top of the callback's own steps.

    Loss, learning rate and gradient norm of every step are there anyway.
    Does nothing but say so with `reduce`, where all ranks must have one schedule.

    Args:
        steps: for how many steps from the alert on.
        collect_freq: how often meanwhile.
    """

    def __init__(self, steps: int = 200, collect_freq: CollectFreq = 1) -> None:
        Schedule(collect_freq, "RaiseCollectFreq: collect_freq")
        self._steps = checked_count("RaiseCollectFreq: steps", steps, least=1)
        self._collect_freq = collect_freq
        self._until = 0
        self._raised: Any = None  # the callback whose frequency is raised

    def act(self, alert: Alert, bound: Bound) -> None:
        """Set the frequency, or keep it up for longer."""
        callback = bound.callback
        if callback.reduces:
            self.excuse("leaves the schedule alone: `reduce` needs one for all ranks")
            return
        if self._raised is None:
            self._raised = callback
            callback.raise_collect_freq(self, self._collect_freq)
        self._until = bound.step + self._steps

    def after_step(self, step: int) -> None:
        """Set it back in time."""
        if self._raised is not None and step >= self._until:
            callback, self._raised = self._raised, None
            callback.raise_collect_freq(self, None)
