"""Classes of the user's that derive from SummaryWriter: what they add is theirs, what they replace is called."""

import copy
import pickle
from contextlib import suppress

import numpy as np
import pytest
from event_files import event_files, scalars

from tbwriter import EventFileWriter, SummaryWriter, read_events

ATTRIBUTES = ("log_dir", "logdir", "purge_step", "max_queue", "flush_secs", "filename_suffix")


class Counting(SummaryWriter):
    """Counts for itself, as loggers in many repositories do."""

    def __init__(self, logdir, *, first=0):
        self.log_dir = logdir  # before the writer is there
        self.step = first
        super().__init__(logdir)

    def log(self, tag, value):
        self.step += 1
        self.add_scalar(tag, value, self.step)


def test_a_subclass_may_set_every_attribute_that_tells_of_the_directory_and_the_options(tmp_path):
    with Counting(tmp_path) as writer:
        for name in ATTRIBUTES:
            setattr(writer, name, "mine")
        writer.log("a", 1.0)
        assert [getattr(writer, name) for name in ATTRIBUTES] == ["mine"] * len(ATTRIBUTES)
        assert writer.get_logdir() == writer.file_writer.get_logdir() == str(tmp_path)
    assert scalars(tmp_path, "a") == [(1, 1.0)]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_subclass_has_what_the_subclass_added_and_files_of_its_own(tmp_path, again):
    with Counting(tmp_path, first=5) as writer:
        writer.note = ["mine"]  # not in the class at all
        writer.log("a", 1.0)
        with again(writer) as twin:
            assert (twin.step, twin.note, twin.log_dir) == (6, ["mine"], str(tmp_path))
            twin.log("b", 2.0)
    assert scalars(tmp_path, "b") == [(7, 2.0)]
    assert len(event_files(tmp_path)) == 2


def test_pickling_makes_no_second_object_of_the_subclass(tmp_path):
    seen = set()

    class Watched(SummaryWriter):
        def __setattr__(self, name, value):
            seen.add(id(self))
            super().__setattr__(name, value)

    with Watched(tmp_path) as writer:
        writer.note = "mine"
        _, added = writer.__getstate__()
        assert added == {"note": "mine"}
        assert seen == {id(writer)}


def test_a_with_block_ends_in_the_close_of_the_subclass(tmp_path):
    class Last(SummaryWriter):
        def close(self):
            self.add_scalar("last", 1.0, 9)
            super().close()

    with suppress(KeyError), Last(tmp_path) as writer:
        writer.add_hparams({"rate": 0.1}, {})
        raise KeyError("of the training")
    assert scalars(tmp_path, "last") == [(9, 1.0)]
    stored = {value.tag: value.data for event in read_events(tmp_path) for value in event.values}
    assert stored["_hparams_/session_end_info"]["status"] == "STATUS_FAILURE"


def test_a_close_that_goes_through_the_file_writer_ends(tmp_path):
    class Roundabout(SummaryWriter):
        def flush(self):
            return self.file_writer.flush()

        def close(self):
            self.file_writer.close()

    with Roundabout(tmp_path) as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush()
    assert scalars(tmp_path, "a") == [(1, 1.0)]


def test_a_method_of_a_subclass_that_means_something_else_is_not_called_by_others(tmp_path):
    class Prefixed(SummaryWriter):
        def add_metrics(self, prefix, metrics):
            for tag, value in metrics.items():
                self.add_scalar(f"{prefix}/{tag}", value, 1)

    with Prefixed(tmp_path) as writer:
        writer.add_metrics("train", {"loss": 2.0})
        writer.add_hparams({"rate": 0.1}, {"score": 1.0})
    assert scalars(tmp_path, "train/loss") == [(1, 2.0)]
    assert scalars(tmp_path, "score") == [(0, 1.0)]


@pytest.mark.parametrize("name", ["_step", "_open", "_flush", "_reset", "_epoch", "_lock", "_writer", "_tags"])
def test_a_subclass_may_have_usual_private_names(tmp_path, name):
    class Private(SummaryWriter):
        def __init__(self, logdir):
            setattr(self, name, 0)
            super().__init__(logdir)
            setattr(self, name, 1)

    with Private(tmp_path) as writer:
        writer.add_scalar("a", 1.0, getattr(writer, name))
        writer.add_text("t", "text", 1)
        assert writer.flush()
    assert scalars(tmp_path, "a") == [(1, 1.0)]


@pytest.mark.parametrize("kind", [SummaryWriter, EventFileWriter])
def test_a_subclass_may_use_any_name_that_is_not_ours(tmp_path, kind):
    """What is not public begins with _tb_, and is nobody else's: a subclass has its own _queue, _worker, _put, ..."""
    with kind(tmp_path) as writer:
        private = {name for name in [*vars(writer), *dir(kind)] if name.startswith("_") and not name.startswith("__")}
    assert {name for name in private if not name.startswith("_tb_")} <= {"_get_file_writer"}


class Buffering(SummaryWriter):
    """Uses the names that loggers use."""

    def __init__(self, logdir):
        super().__init__(logdir)
        self._queue = self._worker = self._lock = self._closed = self._settings = self._layout = self._step = None

    def _put(self, *args):
        return self._add_scalar(*args)

    def _add_scalar(self, *args):
        self.add_scalar(*args)


def test_a_subclass_has_a_queue_and_a_worker_of_its_own(tmp_path):
    with Buffering(tmp_path) as writer:
        for step in range(3):
            writer._put("a", np.float32(step), step)
        writer.add_hparams({"rate": 0.1}, {"best": 1.0})
        assert writer.flush()
        assert writer._queue is None
    assert scalars(tmp_path, "a") == [(step, float(step)) for step in range(3)]
