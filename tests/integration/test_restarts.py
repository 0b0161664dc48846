"""What both readers show of a directory in which one session followed another."""

import pytest
from event_files import event_files, steps

from tbwriter import SummaryWriter


def session(run, tags, first, end, value, **options):
    with SummaryWriter(run.path, **options) as writer:
        for step in range(first, end):
            for tag in tags:
                writer.add_scalar(tag, value, step)


def curve(*parts):
    """Return [(step, value)] of (first step, end, value) parts."""
    return [(step, value) for first, end, value in parts for step in range(first, end)]


def test_with_purge_step_each_step_shows_once(resumed_run):
    session(resumed_run, ["loss"], 0, 100, 1.0)
    resumed_run.shows_after_session({"loss": curve((0, 100, 1.0))})
    session(resumed_run, ["loss"], 50, 150, 2.0, purge_step=50)
    resumed_run.shows_at_end({"loss": curve((0, 50, 1.0), (50, 150, 2.0))})


def test_with_purge_step_each_step_shows_once_over_three_sessions(resumed_run):
    session(resumed_run, ["loss", "lr"], 0, 60, 1.0)
    first = curve((0, 60, 1.0))
    resumed_run.shows_after_session({"loss": first, "lr": first})
    session(resumed_run, ["loss", "lr"], 40, 80, 2.0, purge_step=40)
    second = curve((0, 40, 1.0), (40, 80, 2.0))
    resumed_run.shows_after_session({"loss": second, "lr": second})
    session(resumed_run, ["loss", "lr"], 70, 100, 3.0, purge_step=70)
    third = curve((0, 40, 1.0), (40, 70, 2.0), (70, 100, 3.0))
    resumed_run.shows_at_end({"loss": third, "lr": third})


def test_resuming_at_step_0_replaces_the_whole_curve(resumed_run):
    session(resumed_run, ["loss"], 0, 30, 1.0)
    resumed_run.shows_after_session({"loss": curve((0, 30, 1.0))})
    session(resumed_run, ["loss"], 0, 20, 2.0, purge_step=0)
    resumed_run.shows_at_end({"loss": curve((0, 20, 2.0))})


def test_a_session_that_follows_on_adds_to_the_curve(resumed_run):
    session(resumed_run, ["loss"], 0, 50, 1.0)
    resumed_run.shows_after_session({"loss": curve((0, 50, 1.0))})
    session(resumed_run, ["loss"], 50, 100, 2.0)
    resumed_run.shows_at_end({"loss": curve((0, 50, 1.0), (50, 100, 2.0))})


def test_without_purge_step_a_session_with_another_tag_voids_nothing(resumed_run):
    session(resumed_run, ["train"], 0, 100, 1.0)
    resumed_run.shows_after_session({"train": curve((0, 100, 1.0))})
    session(resumed_run, ["eval"], 0, 10, 2.0)
    resumed_run.shows_at_end({"train": curve((0, 100, 1.0)), "eval": curve((0, 10, 2.0))})


def test_without_purge_step_every_step_still_shows(tensorboard, run):
    session(run, ["loss"], 0, 100, 1.0)
    run.shows_after_session({"loss": curve((0, 100, 1.0))})
    session(run, ["loss"], 50, 150, 2.0)
    # The data server drops the old points by itself; the Python reader keeps both, the newer one behind.
    want = dict(curve((0, 50, 1.0), (50, 150, 2.0)))
    tensorboard.shows(lambda: dict(tensorboard.scalars(run.name, "loss")), want)


def test_two_writers_in_one_directory_at_a_time_lose_nothing_when_opened_later(tensorboard, run, tmp_path):
    """Followed live it cannot work: the Python reader never goes back to the older of two files."""
    place = tmp_path / "both"
    with SummaryWriter(place) as train, SummaryWriter(place) as evaluation:
        for step in range(100):
            train.add_scalar("train", 1.0, step)
            if step % 10 == 0:
                evaluation.add_scalar("eval", 2.0, step)
    place.rename(run.path / "both")
    want = {"train": curve((0, 100, 1.0)), "eval": [(step, 2.0) for step in range(0, 100, 10)]}
    tensorboard.shows_curves(run.sub("both"), want)


def test_twelve_sessions_within_a_second_show_in_order(resumed_run):
    for number in range(12):
        session(resumed_run, ["loss"], number, number + 1, float(number))
    resumed_run.shows_at_end({"loss": [(number, float(number)) for number in range(12)]})


@pytest.mark.parametrize("name", ["zz-node-9.1.0", "zz-node-9.999999.000009.v2"])
def test_a_session_after_a_file_of_another_machine_in_the_same_second_shows(tensorboard, run, tmp_path, name):
    session(run, ["loss"], 0, 10, 1.0)
    old = event_files(run.path)[0]
    place = tmp_path / "elsewhere"
    place.mkdir()
    second = old.name.split(".")[3]
    old.rename(place / f"events.out.tfevents.{second}.{name}")
    with SummaryWriter(place) as writer:
        for step in range(10, 20):
            writer.add_scalar("loss", 2.0, step)
    place.rename(run.path / "renamed")
    tensorboard.shows_curves(run.sub("renamed"), {"loss": curve((0, 10, 1.0), (10, 20, 2.0))})


def test_purge_step_works_on_a_first_session_by_tensorboard_itself(resumed_run):
    proto = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    summary = pytest.importorskip("tensorboard.compat.proto.summary_pb2")
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    theirs = EventFileWriter(str(resumed_run.path))
    for step in range(100):
        value = summary.Summary.Value(tag="loss", simple_value=1.0)
        one = summary.Summary(value=[value])
        theirs.add_event(proto.Event(wall_time=1_700_000_000.0 + step, step=step, summary=one))
    theirs.close()
    resumed_run.shows_after_session({"loss": curve((0, 100, 1.0))})
    session(resumed_run, ["loss"], 50, 150, 2.0, purge_step=50)
    resumed_run.shows_at_end({"loss": curve((0, 50, 1.0), (50, 150, 2.0))})


def test_purge_step_works_on_a_first_session_by_tensorboard_x(resumed_run):
    theirs = pytest.importorskip("tensorboardX").SummaryWriter(str(resumed_run.path))
    for step in range(100):
        theirs.add_scalar("loss", 1.0, step)
    theirs.close()
    resumed_run.shows_after_session({"loss": curve((0, 100, 1.0))})
    session(resumed_run, ["loss"], 50, 150, 2.0, purge_step=50)
    resumed_run.shows_at_end({"loss": curve((0, 50, 1.0), (50, 150, 2.0))})


def test_purge_step_works_on_a_first_session_by_tensorboard_x_that_had_one_too(resumed_run):
    theirs = pytest.importorskip("tensorboardX").SummaryWriter(str(resumed_run.path), purge_step=10)
    for step in range(10, 100):
        theirs.add_scalar("loss", 1.0, step)
    theirs.close()
    resumed_run.shows_after_session({"loss": curve((10, 100, 1.0))})
    session(resumed_run, ["loss"], 50, 150, 2.0, purge_step=50)
    resumed_run.shows_at_end({"loss": curve((10, 50, 1.0), (50, 150, 2.0))})


def test_a_session_after_a_torn_tail_shows_and_leaves_the_old_file_alone(resumed_run):
    session(resumed_run, ["loss"], 0, 50, 1.0)
    resumed_run.shows_after_session({"loss": curve((0, 50, 1.0))})
    old = event_files(resumed_run.path)[0]
    torn = old.read_bytes()[:-7]
    old.write_bytes(torn)
    kept = len(steps(resumed_run.path))
    assert kept == 49
    session(resumed_run, ["loss"], kept, 100, 2.0, purge_step=kept)
    assert old.read_bytes() == torn
    resumed_run.shows_at_end({"loss": curve((0, kept, 1.0), (kept, 100, 2.0))})


def test_a_session_after_an_empty_file_and_a_file_of_garbage_shows(resumed_run):
    (resumed_run.path / "events.out.tfevents.1700000000.host.1.0").write_bytes(b"")
    (resumed_run.path / "events.out.tfevents.1700000010.host.1.0").write_bytes(b"\0" * 300)
    session(resumed_run, ["loss"], 0, 50, 1.0)
    resumed_run.shows_at_end({"loss": curve((0, 50, 1.0))})


def test_a_resumed_session_goes_on_in_histograms_and_texts(tensorboard, run):
    for first, end, options in ((0, 20, {}), (10, 30, {"purge_step": 10})):
        with SummaryWriter(run.path, **options) as writer:
            for step in range(first, end):
                writer.add_histogram("weights", [float(step)], step)
                writer.add_text("notes", f"step {step} of {end}", step)
    shown_steps = lambda: [step for step, _ in tensorboard.histograms(run.name, "weights")]  # noqa: E731
    tensorboard.shows(shown_steps, list(range(30)))
    want = [(step, f"<p>step {step} of {20 if step < 10 else 30}</p>") for step in range(30)]
    tensorboard.shows(lambda: tensorboard.texts(run.name, "notes/text_summary"), want)
