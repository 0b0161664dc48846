"""Ask the collectors, and write what they answer."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msbridge._clock import Clock
from msbridge._device import Transfer, is_tensor
from msbridge._tape import Series
from msbridge.collectors import Collector, Context, NotGivenError, Value
from tbwriter import SummaryWriter, TBWriterError

_log = logging.getLogger(__name__)


@dataclass
class _Answer:
    collector: Collector
    values: dict[str, Any]  # numbers, or callables that answer after the transfer


class _Recorded(Collector):
    """What a user handed to `record()`."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def collect(self, _context: Context) -> Mapping[str, Value]:
        return self._values

    @property
    def name(self) -> str:
        return "record()"


class Stage:
    """The collectors of one training. One that fails is told of once and asked no more."""

    def __init__(self, collectors: Iterable[Collector]) -> None:
        self._collectors = list(collectors)

    def only(self, kind: type[Collector]) -> "Stage":
        """Give a stage with the collectors of one class."""
        return Stage(collector for collector in self._collectors if isinstance(collector, kind))

    def ask(self, context: Context, recorded: Mapping[str, Value], transfer: Transfer) -> list[_Answer]:
        """Collect {tag: value}; device tensors are noted in `transfer`."""
        collectors = [*self._collectors, *([_Recorded(recorded)] if recorded else [])]
        answers = [self._ask(collector, context, transfer) for collector in collectors]
        return [answer for answer in answers if answer is not None]

    def write(self, answers: list[_Answer], step: int, clock: Clock, writer: SummaryWriter) -> None:
        """Write the answers after the transfer: one Event for the step, and what became known of the steps before."""
        read = [(answer.collector, self._read(answer, step, clock, writer)) for answer in answers]
        metrics: dict[str, Any] = {}
        for _, scalars in read:
            metrics |= scalars
        if not metrics:
            return
        try:
            writer.add_metrics(metrics, step, clock.last_wall_time())
        except (TypeError, ValueError):
            for collector, scalars in read:  # which of them is it?
                self._add(collector, scalars, step, clock, writer)

    def _ask(self, collector: Collector, context: Context, transfer: Transfer) -> _Answer | None:
        try:
            found = collector.collect(context).items()
            return _Answer(collector, {tag: transfer.scalar(v) if is_tensor(v) else v for tag, v in found})
        except NotGivenError as error:
            self._drop(collector, f"step {context.step}: {error}")
        except Exception as error:
            self._fail(collector, context.step, error)
        return None

    def _add(
        self, collector: Collector, scalars: dict[str, Any], step: int, clock: Clock, writer: SummaryWriter
    ) -> None:
        try:
            if scalars:
                writer.add_metrics(scalars, step, clock.last_wall_time())
        except (TypeError, ValueError) as error:
            self._fail(collector, step, error)

    def _read(self, answer: _Answer, step: int, clock: Clock, writer: SummaryWriter) -> dict[str, Any]:
        try:
            return self._scalars(answer, step, clock, writer)
        except TBWriterError:
            raise
        except Exception as error:
            self._fail(answer.collector, step, error)
            return {}

    def _scalars(self, answer: _Answer, step: int, clock: Clock, writer: SummaryWriter) -> dict[str, Any]:
        scalars = {}
        for tag, given in answer.values.items():
            value = given() if callable(given) else given
            if isinstance(value, Series):
                before = value.steps < step
                if before.any():
                    steps = value.steps[before]
                    writer.add_scalar_series(tag, value.values[before], steps, clock.wall_times(steps))
                value = value.values[-1].item() if len(value.values) and not before[-1] else None
            if value is not None:
                scalars[tag] = value
        return scalars

    def _fail(self, collector: Collector, step: int, error: Exception) -> None:
        self._drop(collector, f"step {step}: {collector.name} failed and is dropped: {type(error).__name__}: {error}")

    def _drop(self, collector: Collector, why: str) -> None:
        if collector in self._collectors:
            self._collectors.remove(collector)
        _log.warning("%s", why)
