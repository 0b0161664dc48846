"""A clock and a pause that a test of the user's replaced, for the whole process: the writer keeps the real ones."""

import pytest
from children import Child
from event_files import event_files, scalars, statuses
from waiting import wait_until

from tbwriter import SummaryWriter, read_events

STOPPED = "mock.patch('time.monotonic', return_value=1e6)"
BACK = "mock.patch('time.monotonic', side_effect=itertools.count(1e6, -1))"
BROKEN = "mock.patch('time.sleep', side_effect=RuntimeError('no pauses'))"
FROZEN = "freezegun.freeze_time('2012-01-14 00:00:00')"
MANY = 20_000  # more than the worker encodes without a pause
WRITE = f"""
import itertools
from unittest import mock
{{imports}}
with {{replaced}}:
    writer = SummaryWriter(logdir, flush_secs=0.2)
    writer.add_scalar("loss", 0.5, 0)
    wait_for_parent()
    for step in range(1, {MANY}):
        writer.add_scalar("loss", 0.5, step)
    say(str(writer.flush()))
    writer.close()
"""


@pytest.mark.parametrize("replaced", [STOPPED, BACK, BROKEN, FROZEN])
def test_all_is_stored_on_time(tmp_path, replaced):
    if replaced is FROZEN:
        pytest.importorskip("freezegun")
    code = WRITE.format(replaced=replaced, imports="import freezegun" if replaced is FROZEN else "")
    with Child(code, tmp_path) as child:
        wait_until(lambda: event_files(tmp_path) and scalars(tmp_path, "loss"), within=60, what="the timer's flush")
        child.go_on()
        child.hears("True")
        ended = child.end()
    assert (ended.returncode, ended.err) == (0, "")
    assert len(scalars(tmp_path, "loss")) == MANY
    assert statuses(tmp_path) == ["clean"]


def test_a_frozen_day_is_that_of_the_wall_times(tmp_path):
    freezegun = pytest.importorskip("freezegun")
    with freezegun.freeze_time("2012-01-14 00:00:00"), SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 0)
        writer.add_scalar("loss", 0.5, 1)
        writer.add_metrics({"a": 1, "b": 2}, 1)
    assert {event.wall_time for event in read_events(tmp_path)} == {1326499200.0}
