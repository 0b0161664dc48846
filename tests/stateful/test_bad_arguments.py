"""Every argument of every method with values that nobody means: refused at the call, in words, or stored.

A refusal is a TypeError or ValueError that names the tag or the argument and what it got. What is accepted must not
fail later, in the worker, where nobody sees who passed it.
"""

import inspect
import logging

import pytest
from event_files import statuses
from every_method import GOOD, TAG, arguments
from hostile import HOSTILE
from storage import PATIENCE_SECS

from tbwriter import SummaryWriter, read_events

pytest.importorskip("PIL.Image")

# Yes or no in the way of Python, where any object will do; and what goes to torch as it is.
UNCHECKED = {"copy", "close", "new_style", "double_precision", "verbose", "use_strict_trace", "input_to_model"}
# In weights of raw curves there is nothing to store.
UNUSED = {("add_pr_curve_raw", "weights")}
CALLED = {"global_step": "step", "layout": "chart", "onnx_model_file": "prototxt"}

LONG = "long/" * 1000

EVENT_ARGUMENTS = {"event": ("event", "step", "walltime"), "summary": ("summary", "global_step", "walltime")}

CASES = [
    (method, argument)
    for method in GOOD
    for argument in inspect.signature(getattr(SummaryWriter, method)).parameters
    if argument not in {"self", *UNCHECKED} and (method, argument) not in UNUSED
]


def faults(argument, label, value, exc):
    """Return what is wrong with a refusal."""
    if type(exc) not in {TypeError, ValueError}:
        yield f"{label}: {type(exc).__name__}, want TypeError or ValueError"
        return
    text = str(exc)
    names = {repr(TAG), f"tag '{TAG}/", argument, CALLED.get(argument, argument)}
    if "tag" in argument and isinstance(value, str):
        names.add(f"tag {str.__str__(value)!r}")
    if isinstance(value, dict):  # what is wrong is one of its keys or values
        names |= {f"tag {key!r}" for key in value} | {"tag must be"}
    if not any(name in text for name in names):
        yield f"{label}: names neither tag nor argument: {text[:200]}"
    got = {"got", type(value).__name__, "empty"}
    if isinstance(value, str):
        got.add(repr(str.__str__(value)))
    if isinstance(value, dict):
        got |= {f"is {type(one).__name__}" for one in value.values()} | {type(one).__name__ for one in value.values()}
        got |= {type(one).__name__ for inner in value.values() if isinstance(inner, dict) for one in inner.values()}
    if not any(word in text for word in got):
        yield f"{label}: does not say what it got: {text[:200]}"
    if len(text) > 1000:
        yield f"{label}: {len(text)} characters"


def test_every_method_is_called_here():
    assert GOOD.keys() == {name for name in dir(SummaryWriter) if name.startswith("add_")}


@pytest.mark.parametrize("method", [method for method in GOOD if method != "add_onnx_graph"])
def test_the_good_arguments_are_good(method, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        getattr(writer, method)(**arguments(method))
        assert writer.flush(PATIENCE_SECS)
        assert writer.stats().dropped == 0


@pytest.mark.parametrize(("method", "argument"), CASES)
def test_a_bad_argument_is_refused_in_words_or_stored(method, argument, tmp_path, caplog):
    found, good = [], arguments(method)
    with SummaryWriter(tmp_path, flush_secs=1000.0) as writer, caplog.at_level(logging.WARNING):
        for label, value in HOSTILE.items():
            try:
                getattr(writer, method)(**{**good, argument: value})
            except FileNotFoundError:  # noqa: PERF203 (each value on its own is the point)
                assert method == "add_onnx_graph"
            except Exception as exc:
                found += faults(argument, label, value, exc)
        assert writer.flush(PATIENCE_SECS)
        assert writer.stats().dropped == 0
    assert found == []
    assert [record.getMessage() for record in caplog.records if "cannot be" in record.getMessage()] == []
    assert {status for path in (tmp_path, *tmp_path.rglob("*/")) for status in statuses(path)} <= {"clean"}
    for _ in read_events(tmp_path):
        pass


def with_long_names(value):
    """Return arguments with every name of the user's, and what goes by a name, much longer than a message may be."""
    if isinstance(value, dict):
        return {
            LONG if key in {TAG, "a", "c", "t", "rate"} else key: with_long_names(one) for key, one in value.items()
        }
    if isinstance(value, list):
        return [with_long_names(one) for one in value]
    return LONG if isinstance(value, str) and value in {TAG, "s", "a", "b", "c"} else value


@pytest.mark.parametrize("method", [method for method in GOOD if method != "add_onnx_graph"])
def test_no_message_shows_all_of_a_long_name(method, tmp_path, caplog):
    """Errors and lines of the log; for what is wrong, and for what is only told."""
    good = {name: with_long_names(value) for name, value in arguments(method).items()}
    told = []
    with SummaryWriter(tmp_path, flush_secs=1000.0, max_tag_bytes=10) as writer, caplog.at_level(logging.WARNING):
        for argument in [argument for name, argument in CASES if name == method]:
            for value in [*HOSTILE.values(), LONG, {LONG: None}, {LONG: [LONG]}, LONG + "\ud800", 2**40, [2**40] * 200]:
                try:
                    getattr(writer, method)(**{**good, argument: value})
                except Exception as exc:  # noqa: PERF203 (each value on its own is the point)
                    told.append(str(exc))
        for other in ("add_scalar", "add_text", "add_image", "add_tensor"):
            try:
                getattr(writer, other)(**{**GOOD[other], "tag": LONG})
            except ValueError as exc:  # noqa: PERF203
                told.append(str(exc))
        assert writer.flush(PATIENCE_SECS)
    told += [record.getMessage() for record in caplog.records]
    assert [f"{text[:150]} ... {text[-150:]}" for text in told if len(text) > 1000] == []


@pytest.mark.parametrize(
    ("message", "argument"),
    [(message, argument) for message in EVENT_ARGUMENTS for argument in EVENT_ARGUMENTS[message]],
)
def test_a_bad_event_is_refused_in_words_or_stored(message, argument, tmp_path):
    from tbwriter._pb import tfevents_pb2 as pb

    found = []
    make = {"event": pb.Event, "summary": pb.Summary}[message]
    classes = {"message class": pb.Event, "other message": pb.SourceMetadata()}
    with SummaryWriter(tmp_path) as writer:
        add = getattr(writer.file_writer, f"add_{message}")
        for label, value in {**HOSTILE, **classes}.items():
            try:
                add(**{message: make(), argument: value})
            except Exception as exc:  # noqa: PERF203
                found += faults(message, label, value, exc)
        assert writer.flush(PATIENCE_SECS)
        assert writer.stats().dropped == 0
    assert found == []


@pytest.mark.parametrize("argument", ["global_step", "walltime"])
def test_a_bad_block_is_refused_in_words(argument, tmp_path):
    found = []
    with SummaryWriter(tmp_path) as writer:
        for label, value in list(HOSTILE.items())[1:]:  # None is no argument
            try:
                with writer.use_metadata(**{argument: value}):
                    writer.add_scalar(TAG, 1.0)
            except Exception as exc:  # noqa: PERF203
                found += faults("use_metadata", label, value, exc)
    assert found == []


# Yes or no in the way of Python; and what goes on to a driver as it is.
SETTINGS = [
    name
    for name in inspect.signature(SummaryWriter).parameters
    if name not in {"strict", "asynchronous", "coalesce", "write_to_disk", "storage_options"}
]
DIRECTORIES = {"log_dir", "logdir"}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_setting_is_refused_in_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    place = {} if name in DIRECTORIES else {"write_to_disk": False} if name == "comment" else {"log_dir": tmp_path}
    for label, value in HOSTILE.items():
        try:
            SummaryWriter(**place, **{name: value}).close()
        except Exception as exc:  # noqa: PERF203
            found += faults(name, label, value, exc)
    assert found == []


@pytest.mark.parametrize("method", ["flush", "sync", "close"])
def test_a_bad_timeout_is_refused_in_words(method, tmp_path):
    found = []
    for label, value in HOSTILE.items():
        with SummaryWriter(tmp_path) as writer:
            try:
                getattr(writer, method)(value)
            except Exception as exc:
                found += faults("timeout", label, value, exc)
    assert found == []


def test_a_figure_that_cannot_be_drawn_is_refused_by_tag(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure()
    figure.text(0, 0, r"$\nothing$")
    huge = Figure(figsize=(1e6, 1e6))
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(TypeError, match=r"^tag 'f': got type .*, want a matplotlib figure"):
            writer.add_figure("f", Figure)
        for one in (figure, huge):
            with pytest.raises(ValueError, match=r"^tag 'f': got Figure .*, which matplotlib cannot draw: "):
                writer.add_figure("f", one)


def test_a_file_that_is_no_onnx_model_is_refused_by_name(tmp_path):
    pytest.importorskip("onnx")
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\xff" * 9)
    with SummaryWriter(tmp_path / "run") as writer:
        with pytest.raises(ValueError, match=r"^prototxt must be the path of an ONNX model, got '.*net\.onnx': "):
            writer.add_onnx_graph(path)
        with pytest.raises(FileNotFoundError):
            writer.add_onnx_graph(tmp_path / "none.onnx")


def test_a_module_that_torch_cannot_trace_is_refused_in_words(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    wanted = r"^model must be one that torch can trace, got Linear and input_to_model "
    with SummaryWriter(tmp_path) as writer, pytest.raises(RuntimeError, match=wanted):
        writer.add_graph(torch.nn.Linear(2, 2), torch.zeros(1, 3))
