"""Rules over scalars, and what becomes of their alerts."""

import logging
import math

import pytest
from event_files import values
from hypothesis import given
from hypothesis import strategies as st

from tbwriter import SummaryWriter
from tbwriter.watch import Above, Alert, Below, Falling, Missing, NonFinite, Oscillation, Plateau, Rising, Spike, Watch


def alerts(rule, points, tag="a"):
    """Return the steps at which a rule speaks; points count from 1."""
    watch = Watch([rule])
    for step, value in enumerate(points, 1):
        watch.observe(tag, step, value)
    return [alert.step for alert in watch.alerts]


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("rule", "points", "steps"),
    [
        (NonFinite("a"), [1, NAN, NAN, 2, INF, -INF, 3], [2, 5]),
        (Above("a", 2), [1, 3, 4, 2, 2.5, NAN, 9], [2, 5, 7]),
        (Below("a", 0), [1, -1, -2, 0, -1], [2, 5]),
        (Rising("a", 3), [1, 2, 3, 3, 4, 5, 6, 7, 1, 2], [7]),
        (Rising("a", 2), [1, NAN, 2, 3, 4], [5]),
        (Falling("a", 2), [3, 2, 1, 0, 1, 0, -1], [3, 7]),
        (Spike("a", 3, window=4), [9, 1, 1, 1, 4, 1, NAN, 1, 1, 3, 4], [5, 11]),
        (Plateau("a", 3, least=0.1), [10, 8, 7.9, 7.8, 7.7, 7.6, 5, 5, 5, 5], [5, 10]),
        (Plateau("a", 2), [NAN, NAN, 1, 2, 3], [5]),
        (Oscillation("a", 0.5, window=4), [1, 1, 1, 1, 2, 1, 2, 1, 1, 1, 1, 1], [7]),
        (Oscillation("a", 0.5, window=4), [1, 2, 3, 4, 5, 6], []),
        (NonFinite("b*"), [NAN], []),
    ],
)
def test_a_rule_speaks_once_each_time_its_condition_begins(rule, points, steps):
    assert alerts(rule, points) == steps


def test_a_tag_that_is_missing_is_told_of_once_and_again_after_it_came_back():
    watch = Watch([Missing("val/loss", 10)])
    for step in range(1, 31):
        watch.observe("train/loss", step, 1.0)
        if step == 15:
            watch.observe("val/loss", step, 1.0)
    assert [(alert.tag, alert.step) for alert in watch.alerts] == [("val/loss", 11), ("val/loss", 25)]
    assert "has no value since step 15" in watch.alerts[-1].message


def test_tags_are_judged_apart_and_matched_as_file_names_are():
    watch = Watch([Rising("grad_norm/*", 2)])
    watch.observe_many({"grad_norm/a": ([1, 2], [1, 2]), "grad_norm/b": ([1, 2], [2, 1]), "loss": ([1, 2], [1, 2])})
    watch.observe_many({"grad_norm/a": ([3], [3.0]), "grad_norm/b": ([3], [3.0]), "loss": ([3], [3.0])})
    assert [alert.tag for alert in watch.alerts] == ["grad_norm/a"]


def test_an_alert_is_logged_written_and_handed_on(tmp_path, caplog):
    own, common = [], []
    with SummaryWriter(tmp_path) as writer:
        watch = Watch([Above("loss", 1, then=own.append)], writer=writer, actions=[common.append])
        watch.observe("loss", 7, 2.5)
    alert = Alert("loss", 7, 2.5, "Above", "loss is 2.5, above 1, at step 7")
    assert own == common == list(watch.alerts) == [alert]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "Above: loss is 2.5, above 1, at step 7"
    ]
    (tag, step, value) = next(found for found in values(tmp_path) if found[0].startswith("alerts/loss"))
    assert (tag, step) == ("alerts/loss/text_summary", 7)
    assert value.tensor.strings == [b"**Above**: loss is 2.5, above 1, at step 7"]


def test_an_action_that_raises_is_called_no_more_and_the_others_are(caplog):
    called = []

    def bad(alert):
        called.append("bad")
        raise KeyError("no such thing")

    watch = Watch([NonFinite(then=[bad, lambda alert: called.append("good")])])
    for step, value in enumerate([NAN, 1.0, NAN]):
        watch.observe("a", step, value)
    assert called == ["bad", "good", "good"]
    assert "an action failed and is called no more: KeyError" in caplog.text


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=60))
def test_no_rule_fails_on_any_value(points):
    for rule in (Spike("*", 2, window=5), Plateau("*", 3), Oscillation("*", 0.1, window=5), Rising("*", 2)):
        alerts(rule, points)


@given(st.lists(st.floats(0.125, 1e6, width=32), min_size=8, max_size=40))
def test_a_spike_is_against_the_median_of_the_window(points):
    """The running median is that of a sort, whatever came and went."""
    spoke, holding = [], False
    for index, value in enumerate(points):
        window = sorted(points[max(0, index - 5) : index])
        holds = len(window) >= 2 and value > 2 * window[len(window) // 2]
        if holds and not holding:
            spoke.append(index + 1)
        holding = holds
    assert alerts(Spike("a", 2, window=5), points) == spoke


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Above("a", "1"), "Above: limit must be a number, got '1'"),
        (lambda: Rising("a", 0), "Rising: points must be at least 1, got 0"),
        (lambda: Spike("a", 1), "Spike: factor must be above 1, got 1"),
        (lambda: Missing("a*", 3), "Missing: tag must be one tag without wildcards"),
        (lambda: NonFinite(3), "NonFinite: tag must be a text, got 3"),
        (lambda: NonFinite(then=[3]), "NonFinite: then must be callables, got 3"),
        (lambda: Watch(["loss"]), "rules must be Rule objects, got 'loss'"),
    ],
)
def test_a_wrong_argument_raises_where_it_is_given(make, match):
    with pytest.raises((TypeError, ValueError), match=match):
        make()
