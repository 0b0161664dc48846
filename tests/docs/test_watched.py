"""What docs/curves.md says of the rules on the four trainings of its picture."""

import sys

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

from pathlib import Path

from tbwriter.watch import Plateau, Spike, Watch

sys.path.append(str(Path(__file__).parents[2] / "docs"))

import draw_curves


def test_each_training_sets_off_the_rules_that_the_page_names():
    spoke = []
    for rate, growing in draw_curves.RUNS.values():
        loss_rules = [Plateau("train/loss", points=100, least=0.01), Spike("train/loss", factor=2, window=50)]
        watch = Watch([*loss_rules, Spike("train/grad_norm", factor=4, window=50)])
        watch.observe_many(draw_curves.curves(rate, growing=growing))
        spoke.append({(alert.rule, alert.tag, alert.step) for alert in watch.alerts})
    good, flat, jumping, rising = spoke
    assert not good
    assert flat == {("Plateau", "train/loss", 147)}
    assert min(step for rule, tag, step in jumping if (rule, tag) == ("Spike", "train/loss")) == 31
    assert min(step for rule, tag, step in rising if (rule, tag) == ("Spike", "train/loss")) == 65
