"""Watch scalars: rules over (tag, step, value), and alerts that are logged, written, and acted upon.

    from tbwriter import SummaryWriter
    from tbwriter.watch import NonFinite, Spike, Watch

    writer = SummaryWriter("runs/first")
    watch = Watch([NonFinite(), Spike("train/loss", factor=3)], writer=writer)
    watch.observe("train/loss", step, loss)

Every rule speaks once when its condition begins to hold, and again only after it has ceased to. Nothing here knows a
framework, a thread or a clock.

Over 300 lines: nine rules, each small, and what gives them their points.
"""

from __future__ import annotations

import bisect
import fnmatch
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tbwriter._logger import get_logger

if TYPE_CHECKING:
    from tbwriter.writer import SummaryWriter

__all__ = [
    "Above", "Alert", "Below", "Falling", "Missing", "NonFinite", "Oscillation", "Plateau", "Rising", "Rule", "Spike",
    "Watch",
]  # fmt: skip

_MOST_ALERTS = 1000
_log = get_logger(__name__)


@dataclass(frozen=True)
class Alert:
    """What a rule found."""

    tag: str
    step: int
    value: float
    """The value that set it off; NaN where the alert is that there is none."""
    rule: str
    """The rule's name."""
    message: str


Action = Callable[[Alert], object]


class Rule:
    """One condition on the scalars whose tag matches; the base of all rules.

    A subclass has `judge`, which is given one tag's points in order and keeps what it needs in `state`.

    Args:
        tag: of the scalars, with `*`, `?` and `[]` as in file names.
        then: called with each Alert.
    """

    def __init__(self, tag: str = "*", *, then: Action | Sequence[Action] = ()) -> None:
        if not isinstance(tag, str):
            raise TypeError(f"{type(self).__name__}: tag must be a text, got {tag!r}")
        self.tag = tag
        self.then: list[Action] = [then] if callable(then) else list(then)
        for action in self.then:
            if not callable(action):
                raise TypeError(f"{type(self).__name__}: then must be callables, got {action!r}")

    def judge(self, state: dict[str, Any], step: int, value: float) -> str | None:
        """Say what is wrong at this point, or None. `state` is empty at a tag's first point."""
        raise NotImplementedError


class NonFinite(Rule):
    """The value is NaN or infinite."""

    def judge(self, _state: dict[str, Any], _step: int, value: float) -> str | None:
        """See Rule."""
        return None if math.isfinite(value) else f"is {value}"


class Above(Rule):
    """The value is above `limit`."""

    def __init__(self, tag: str, limit: float, *, then: Action | Sequence[Action] = ()) -> None:
        super().__init__(tag, then=then)
        self.limit = _number(self, "limit", limit)

    def judge(self, _state: dict[str, Any], _step: int, value: float) -> str | None:
        """See Rule."""
        return f"is {value:.6g}, above {self.limit:.6g}" if value > self.limit else None


class Below(Rule):
    """The value is below `limit`."""

    def __init__(self, tag: str, limit: float, *, then: Action | Sequence[Action] = ()) -> None:
        super().__init__(tag, then=then)
        self.limit = _number(self, "limit", limit)

    def judge(self, _state: dict[str, Any], _step: int, value: float) -> str | None:
        """See Rule."""
        return f"is {value:.6g}, below {self.limit:.6g}" if value < self.limit else None


class Rising(Rule):
    """The value has risen `points` times in a row."""

    sign, word = 1, "risen"

    def __init__(self, tag: str, points: int, *, then: Action | Sequence[Action] = ()) -> None:
        super().__init__(tag, then=then)
        self.points = _count(self, "points", points, 1)

    def judge(self, state: dict[str, Any], _step: int, value: float) -> str | None:
        """See Rule."""
        before = state.get("before", math.nan)
        state["run"] = state.get("run", 0) + 1 if self.sign * (value - before) > 0 else 0
        state["before"] = value
        return f"has {self.word} {state['run']} times in a row, to {value:.6g}" if state["run"] >= self.points else None


class Falling(Rising):
    """The value has fallen `points` times in a row."""

    sign, word = -1, "fallen"


class Spike(Rule):
    """The value is more than `factor` times the median of the `window` finite values before it.

    Args:
        tag: as in Rule.
        factor: above 1.
        window: values that the median is taken over; half of them must be there before the rule speaks.
        then: as in Rule.
    """

    def __init__(
        self, tag: str, factor: float = 3.0, window: int = 100, *, then: Action | Sequence[Action] = ()
    ) -> None:
        super().__init__(tag, then=then)
        self.factor = _number(self, "factor", factor)
        if self.factor <= 1:
            raise ValueError(f"Spike: factor must be above 1, got {factor!r}")
        self.window = _count(self, "window", window, 2)

    def judge(self, state: dict[str, Any], _step: int, value: float) -> str | None:
        """See Rule."""
        recent: deque[float] = state.setdefault("recent", deque())
        ordered: list[float] = state.setdefault("ordered", [])
        found = None
        if len(recent) >= self.window // 2:
            median = ordered[len(ordered) // 2]
            if value > self.factor * median > 0:
                found = (
                    f"is {value:.6g}, {value / median:.1f} times the median {median:.6g} of the {len(recent)} before"
                )
        if math.isfinite(value):
            recent.append(value)
            bisect.insort(ordered, value)
            if len(recent) > self.window:
                del ordered[bisect.bisect_left(ordered, recent.popleft())]
        return found


class Plateau(Rule):
    """The smallest value has not fallen by the share `least` of itself for `points` points.

    Args:
        tag: as in Rule.
        points: how many.
        least: the relative fall that counts, such as 0.001.
        then: as in Rule.
    """

    def __init__(self, tag: str, points: int, least: float = 1e-3, *, then: Action | Sequence[Action] = ()) -> None:
        super().__init__(tag, then=then)
        self.points = _count(self, "points", points, 1)
        self.least = _number(self, "least", least)

    def judge(self, state: dict[str, Any], _step: int, value: float) -> str | None:
        """See Rule."""
        best = state.get("best", math.inf)
        if value < best - self.least * abs(best) or not math.isfinite(best):
            state["best"], state["since"] = value, 0
            return None
        state["since"] += 1
        if state["since"] < self.points:
            return None
        return f"has not fallen below {best:.6g} by {self.least:.2%} for {state['since']} points"


class Oscillation(Rule):
    """Over `window` points the value turns twice and every third point, and ranges over `amplitude` of its mean.

    Args:
        tag: as in Rule.
        amplitude: largest less smallest value, over the mean of absolute values.
        window: points that are looked at.
        then: as in Rule.
    """

    def __init__(
        self, tag: str, amplitude: float = 0.5, window: int = 20, *, then: Action | Sequence[Action] = ()
    ) -> None:
        super().__init__(tag, then=then)
        self.amplitude = _number(self, "amplitude", amplitude)
        self.window = _count(self, "window", window, 4)

    def judge(self, state: dict[str, Any], _step: int, value: float) -> str | None:
        """See Rule."""
        recent: deque[float] = state.setdefault("recent", deque(maxlen=self.window))
        recent.append(value)
        points = list(recent)
        if len(points) < self.window or not all(map(math.isfinite, points)):
            return None
        mean = sum(map(abs, points)) / len(points)
        relative = (max(points) - min(points)) / mean if mean else 0.0
        moves = [after - before for before, after in itertools.pairwise(points)]
        turns = sum(before * after < 0 for before, after in itertools.pairwise(moves))
        if relative <= self.amplitude or turns < max(2, (self.window - 2) / 3):
            return None
        return f"oscillates: range {relative:.2f} of its mean, {turns} turns in {self.window} points"


class Missing(Rule):
    """The scalar had no point for `steps` steps, by the steps of whatever else is observed.

    Args:
        tag: one tag, without wildcards: what was never seen cannot be matched.
        steps: how many; counted from the first step that is observed where the tag has not been seen.
        then: as in Rule.
    """

    def __init__(self, tag: str, steps: int, *, then: Action | Sequence[Action] = ()) -> None:
        super().__init__(tag, then=then)
        if any(sign in tag for sign in "*?["):
            raise ValueError(f"Missing: tag must be one tag without wildcards, got {tag!r}")
        self.steps = _count(self, "steps", steps, 1)

    def judge(self, _state: dict[str, Any], _step: int, _value: float) -> str | None:
        """See Rule: a point is never wrong, `Watch` asks `overdue`."""
        return None

    def overdue(self, last: int, now: int) -> str | None:
        """Say that the tag is missing, or None, at step `now` when its last point was at `last`."""
        return f"has no value since step {last}" if now - last >= self.steps else None


class Watch:
    """Give points to rules, and alerts to whom they concern.

    Not safe for several threads at once. Costs some microseconds a point and rule.

    Args:
        rules: what to watch for.
        writer: alerts are written to it as text summaries `alerts/<tag>`.
        actions: called with each Alert, whatever its rule. One that raises is logged and called no more.
    """

    def __init__(
        self, rules: Iterable[Rule], *, writer: SummaryWriter | None = None, actions: Iterable[Action] = ()
    ) -> None:
        self.rules = list(rules)
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise TypeError(f"rules must be Rule objects, got {rule!r}")
        self.writer = writer
        self.alerts: deque[Alert] = deque(maxlen=_MOST_ALERTS)
        """The newest alerts."""
        self._actions = list(actions)
        self._failed: set[int] = set()  # ids of actions that raised
        self._rules_of: dict[str, list[tuple[Rule, dict[str, Any]]]] = {}
        self._holding: set[tuple[int, str]] = set()  # (id of a rule, tag) whose condition holds
        self._last: dict[str, int] = {}  # step of each tag's newest point
        self._first: int | None = None
        self._awaited = [rule for rule in self.rules if isinstance(rule, Missing)]

    def observe(self, tag: str, step: int, value: float) -> None:
        """Look at one point. Points of one tag come in the order of their steps."""
        self.observe_many({tag: ([step], [value])})

    def observe_many(self, points: Mapping[str, tuple[Iterable[int], Iterable[float]]]) -> None:
        """Look at {tag: (steps, values)}."""
        newest = None
        for tag, (steps, values) in points.items():
            judged = self._judged(tag)
            step = None
            for step, value in zip(steps, values, strict=True):
                for rule, state in judged:
                    self._settle(rule, tag, step, value, rule.judge(state, step, value))
            if step is not None:
                self._last[tag] = step
                self._first = step if self._first is None else self._first
                newest = step if newest is None else max(newest, step)
        if newest is not None and self._first is not None:
            for missing in self._awaited:
                found = missing.overdue(self._last.get(missing.tag, self._first), newest)
                self._settle(missing, missing.tag, newest, math.nan, found)

    def _judged(self, tag: str) -> list[tuple[Rule, dict[str, Any]]]:
        if tag not in self._rules_of:
            self._rules_of[tag] = [
                (rule, {})
                for rule in self.rules
                if not isinstance(rule, Missing) and fnmatch.fnmatchcase(tag, rule.tag)
            ]
        return self._rules_of[tag]

    def _settle(self, rule: Rule, tag: str, step: int, value: float, found: str | None) -> None:
        key = (id(rule), tag)
        if found is None:
            self._holding.discard(key)
        elif key not in self._holding:
            self._holding.add(key)
            self._raise_alarm(rule, Alert(tag, step, value, type(rule).__name__, f"{tag} {found}, at step {step}"))

    def _raise_alarm(self, rule: Rule, alert: Alert) -> None:
        self.alerts.append(alert)
        _log.warning("%s: %s", alert.rule, alert.message)
        if self.writer is not None:
            self.writer.add_text(f"alerts/{alert.tag}", f"**{alert.rule}**: {alert.message}", alert.step)
        for action in (*rule.then, *self._actions):
            if id(action) not in self._failed:
                self._act(action, alert)

    def _act(self, action: Action, alert: Alert) -> None:
        try:
            action(alert)
        except Exception as exc:
            self._failed.add(id(action))
            _log.warning("an action failed and is called no more: %s: %s", type(exc).__name__, exc)


def _number(rule: Rule, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{type(rule).__name__}: {name} must be a number, got {value!r}")
    if math.isnan(value):
        raise ValueError(f"{type(rule).__name__}: {name} must be a number, got {value!r}")
    return float(value)


def _count(rule: Rule, name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{type(rule).__name__}: {name} must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"{type(rule).__name__}: {name} must be at least {least}, got {value}")
    return value
