"""Handlers and filters of the user's that raise: the writer goes on, in the loop and in its thread."""

import logging
import shutil

import numpy as np
import pytest
from event_files import scalars, values

from tbwriter._logger import get_logger


@pytest.fixture(params=["handler", "filter"])
def fails_to_log(request):
    """Have every line of tbwriter's raise; give the messages that came."""
    came = []

    class Failing(logging.Handler):
        def emit(self, entry):
            came.append(entry.getMessage())
            raise RuntimeError("a handler of the user's")

        filter = emit if request.param == "filter" else logging.Handler.filter

    logger, failing = logging.getLogger("tbwriter"), Failing()
    logger.addHandler(failing)
    yield came
    logger.removeHandler(failing)


def test_what_the_loop_and_the_thread_say_costs_nothing_when_a_handler_raises(tmp_path, writer_at, fails_to_log):
    writer = writer_at(tmp_path / "run")
    writer.add_scalar("before", 1.0, 1)
    writer.add_scalar("count", 2**24 + 1, 1)  # said in the caller
    writer.add_histogram("nan", np.full(3, np.nan), 1)  # said in the writer's thread
    writer.add_scalar("after", 2.0, 1)
    assert writer.flush()
    assert {tag for tag, _, _ in values(tmp_path / "run")} >= {"before", "count", "nan/nan_count", "after"}
    shutil.rmtree(tmp_path / "run")
    writer.add_scalar("after", 3.0, 2)  # the thread says that its file is gone
    assert writer.flush()
    writer.close()
    assert scalars(tmp_path / "run", "after") == [(2, 3.0)]
    assert len(fails_to_log) >= 3
    assert writer.stats().dropped == 0


def test_a_handler_that_raises_is_told_on_stderr_as_logging_does(capsys, fails_to_log):
    get_logger("tbwriter.told").warning("%d values", 3)
    assert fails_to_log == ["3 values"]
    assert "RuntimeError: a handler of the user's" in capsys.readouterr().err


def test_a_line_names_the_place_that_says_it(caplog):
    get_logger("tbwriter.told").warning("here")
    assert caplog.records[0].filename == "test_failing_log.py" or not hasattr(logging, "_is_internal_frame")
