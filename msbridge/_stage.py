"""Ask the collectors, and write what they answer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msbridge._clock import Clock
from msbridge._device import is_tensor, past_numpy
from msbridge._found import Found
from msbridge._outputs import Outputs
from msbridge._reduce import Reducer
from msbridge._schedule import Schedule
from msbridge._tape import Series
from msbridge.collectors._base import (
    Collector,
    Context,
    History,
    NotGivenError,
    NotHereError,
    Training,
    Value,
    Write,
    overrides,
)
from tbwriter import SummaryWriter, TBWriterError
from tbwriter._logger import get_logger

_log = get_logger(__name__)


@dataclass
class _Answer:
    collector: Collector
    values: dict[str, Any]  # numbers, Writes, or callables that answer after the transfer


@dataclass
class Collection:
    """What the collectors answered at one step; it waits for the transfer."""

    step: int
    wall_time: float
    answers: list[_Answer]


class _Recorded(Collector):
    """What a user handed to `record()`."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__()
        self._values = values

    def collect(self, _context: Context) -> Mapping[str, Value]:
        return self._values

    @property
    def name(self) -> str:
        return "record()"


class _Reduced(Collector):
    """What all ranks gave together."""

    @property
    def name(self) -> str:
        return "reduce"


class Stage:
    """The collectors of one training. One that fails is told of once and asked no more.

    Args:
        collectors: what to ask.
        heavy_schedule: when to ask collectors that are heavy; None: as the others.
        observe: given all scalars that a transfer brought, by tag, in the order of their steps.
    """

    def __init__(
        self,
        collectors: Iterable[Collector],
        observe: Callable[[Mapping[str, Series]], None] | None = None,
        heavy_schedule: Schedule | None = None,
    ) -> None:
        self._collectors = list(collectors)
        self._heavy_schedule = heavy_schedule
        self._observe = observe
        self._owners: dict[str, object] = {}  # tag -> who draws it
        self._clashes: set[tuple[str, object]] = set()  # tags that others give too
        self._excused: set[Collector] = set()  # that had nothing at some step
        self._find()

    def light(self) -> "Stage":
        """Give a stage without what costs much and what needs the tap: for a rank that draws nothing."""
        return Stage(c for c in self._collectors if not c.heavy and (not c.uses_tap or overrides(c, "current")))

    def begin(self, training: Training) -> None:
        """Let the collectors prepare."""
        for collector in list(self._collectors):
            self._guard(collector, 0, collector.begin, training)

    def note(self, step: int, outputs: Outputs) -> None:
        """Show every step to the collectors that want to see it."""
        for collector in self._noting:
            try:
                collector.note(step, outputs)
            except Exception as error:  # noqa: PERF203 - it costs less than a call for each collector
                self._give_up(collector, step, error)

    def due(self, first: int, last: int) -> list[Collector]:
        """Give the collectors with steps of their own of which one is from `first` to `last`."""
        if not self._own:
            return []
        return [c for c, schedule in list(self._own) if self._guard(c, last, schedule.due, first, last)]

    def on_schedule(self) -> list[Collector]:
        """Give the collectors that are asked when the callback collects."""
        try:
            return [c for c in self._on_schedule if c.asked]
        except Exception:  # one of them has it computed
            return [c for c in list(self._on_schedule) if self._guard(c, 0, getattr, c, "asked")]

    def ask(
        self,
        collectors: Iterable[Collector],
        context: Context,
        recorded: Mapping[str, Value],
        wall_time: float,
        reducer: Reducer | None = None,
    ) -> Collection:
        """Collect {tag: value}; device tensors are noted in the context's transfer."""
        asked = [*collectors, *([_Recorded(recorded)] if recorded else [])]
        raw: dict[str, Value] = {}
        answers = [_Answer(collector, self._ask(collector, context, raw)) for collector in asked]
        if reducer is not None:
            for collector in list(self._collectors):
                raw |= self._guard(collector, context.step, collector.current, context) or {}
            gathered = reducer.gather(raw)
            if reducer.draws:
                answers.append(_Answer(_Reduced(), dict(reducer.read(gathered, context.transfer))))
        return Collection(context.step, wall_time, [answer for answer in answers if answer.values])

    def series(self, history: History) -> list[_Answer]:
        """Ask for the curves of all steps since the last transfer; their tensors are noted in the transfer."""
        return [
            _Answer(collector, self._guard(collector, history.step, _asked, collector.series, history) or {})
            for collector in list(self._drawing)
        ]

    def evaluate(
        self, step: int, metrics: Mapping[str, Any], results: Mapping[str, Any], writer: SummaryWriter
    ) -> None:
        """Draw the scalars of an evaluation, and what is made of them."""
        found = Found(wanted=self._observe is not None or bool(self._deriving))

        def draw(collector: Collector) -> None:
            if values := collector.evaluate(metrics, results):
                writer.add_metrics(values, step)
                found.add_all(values, step)

        def derive(collector: Collector) -> None:
            for tag, series in (collector.derive(found.series()) or {}).items():
                writer.add_scalar_series(tag, series.values, series.steps)
                found.extend(tag, series)

        for collector in list(self._collectors):
            if overrides(collector, "evaluate"):
                self._guard(collector, step, draw, collector)
        for collector in list(self._deriving):
            self._guard(collector, step, derive, collector)
        if self._observe is not None:
            self._observe(found.series())

    def write(
        self, collections: Sequence[Collection], series: Iterable[_Answer], clock: Clock, writer: SummaryWriter
    ) -> None:
        """Write after the transfer: one Event for each collected step, and every step's curves."""
        found = Found(wanted=self._observe is not None or bool(self._deriving))
        for answer in series:
            for tag, value in self._read(answer, collections[-1].step if collections else 0).items():
                self._write_series(answer.collector, tag, value, clock, writer, found)
        for collection in collections:
            self._write_collection(collection, clock, writer, found)
        for collector in list(self._deriving):
            derived = self._guard(collector, clock.last_step(), _asked, collector.derive, found.series()) or {}
            for tag, value in derived.items():
                self._write_series(collector, tag, value, clock, writer, found)
        if self._observe is not None:
            self._observe(found.series())

    def _write_collection(self, collection: Collection, clock: Clock, writer: SummaryWriter, found: Found) -> None:
        step, wall_time = collection.step, collection.wall_time
        scalars: list[tuple[Collector, dict[str, Any]]] = []
        metrics: dict[str, Any] = {}
        for answer in collection.answers:
            plain: dict[str, Any] = {}
            for tag, value in self._read(answer, step).items():
                if isinstance(value, Series):
                    self._write_series(answer.collector, tag, value, clock, writer, found)
                elif value is None or not self._may_draw(answer.collector, tag, step):
                    continue
                elif isinstance(value, Write):
                    self._guard(answer.collector, step, value.write, writer, tag, step, wall_time)
                else:
                    plain[tag] = value
            scalars.append((answer.collector, plain))
            metrics |= plain
        if not metrics:
            return
        try:
            writer.add_metrics(metrics, step, wall_time)
        except TBWriterError:
            raise
        except Exception:
            for collector, plain in scalars:  # which of them is it?
                if plain and self._guard(collector, step, _add, writer, plain, step, wall_time):
                    found.add_all(plain, step)
            return
        found.add_all(metrics, step)

    def _write_series(
        self, collector: Collector, tag: str, value: Any, clock: Clock, writer: SummaryWriter, found: Found
    ) -> None:
        def draw() -> None:
            if not isinstance(value, Series):
                raise TypeError(f"tag {tag!r}: want a Series, got {type(value).__name__} {value!r}")
            if len(value.steps) and self._may_draw(collector, tag, int(value.steps[-1])):
                writer.add_scalar_series(tag, value.values, value.steps, clock.wall_times(value.steps))
                found.extend(tag, value)

        if value is not None:
            self._guard(collector, clock.last_step(), draw)

    def _may_draw(self, collector: Collector, tag: str, step: int) -> bool:
        """Tell whether a tag is this collector's: it is the first one's that drew it. Others are told of, once.

        Two of one class are not told of: the second is there for its other tags.
        """
        who = type(collector) if isinstance(collector, _Recorded | _Reduced) else collector
        owner = self._owners.setdefault(tag, who)
        if owner is who:
            return True
        if type(owner) is not type(who) and (tag, who) not in self._clashes:
            self._clashes.add((tag, who))
            _log.warning("step %d: %s is drawn already, that of %s is left out", step, tag, collector.name)
        return False

    def _ask(self, collector: Collector, context: Context, raw: dict[str, Value]) -> dict[str, Any]:
        """Ask one collector, and leave in `raw` what it answered."""

        def collect() -> dict[str, Any]:
            values = past_numpy(collector.collect, context)
            raw.update(values)
            return {tag: context.transfer.scalar(v) if is_tensor(v) else v for tag, v in values.items()}

        return self._guard(collector, context.step, collect) or {}

    def _read(self, answer: _Answer, step: int) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            return {tag: given() if callable(given) else given for tag, given in answer.values.items()}

        return self._guard(answer.collector, step, read) or {}

    def _guard(self, collector: Collector, step: int, act: Callable[..., Any], *args: Any) -> Any:
        """Give what `act` gives. When it raises, tell of the collector, drop it, and give None."""
        try:
            return act(*args)
        except Exception as error:
            self._give_up(collector, step, error)
        return None

    def _give_up(self, collector: Collector, step: int, error: Exception) -> None:
        if isinstance(error, NotHereError):
            if collector not in self._excused:
                self._excused.add(collector)
                _log.warning("step %d: %s", step, error)
        elif isinstance(error, NotGivenError):
            self._drop(collector, f"step {step}: {error}")
        elif isinstance(error, TBWriterError):
            raise error
        else:
            self._drop(
                collector, f"step {step}: {collector.name} failed and is dropped: {type(error).__name__}: {error}"
            )

    def _drop(self, collector: Collector, why: str) -> None:
        if isinstance(collector, _Recorded | _Reduced):
            _log.warning("%s", why)
        elif collector in self._collectors:
            self._collectors.remove(collector)
            self._find()
            _log.warning("%s", why)

    def _find(self) -> None:
        """Sort the collectors by what they do."""
        self._noting = [collector for collector in self._collectors if overrides(collector, "note")]
        schedules = [
            (collector, collector.schedule or (self._heavy_schedule if collector.heavy else None))
            for collector in self._collectors
        ]
        self._own = [(collector, schedule) for collector, schedule in schedules if schedule is not None]
        self._on_schedule = [
            collector for collector, schedule in schedules if schedule is None and overrides(collector, "collect")
        ]
        self._drawing = [collector for collector in self._collectors if overrides(collector, "series")]
        self._deriving = [collector for collector in self._collectors if overrides(collector, "derive")]


def _add(writer: SummaryWriter, scalars: Mapping[str, Any], step: int, wall_time: float) -> bool:
    writer.add_metrics(scalars, step, wall_time)
    return True


def _asked(method: Callable[[Any], Mapping[str, Any] | None], subject: Any) -> dict[str, Any]:
    return dict(method(subject) or {})
