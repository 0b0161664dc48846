"""SummaryWriter and EventFileWriter as their callers see them: arguments, refusals, copies, directories."""

import copy
import inspect
import math
import os
import pickle
import re
import socket
import struct
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import fsspec
import numpy as np
import pytest
from event_files import event_files, events, read_bytes, read_file, scalars, values
from storage import PATIENCE_SECS, through

import tbwriter
from tbwriter import EventFileWriter, SinkError, SummaryWriter, WriterClosedError, open_sink, read_events, verify
from tbwriter._methods import _scalars
from tbwriter._pb import tfevents_pb2 as pb


@pytest.fixture
def writer(writer_at, tmp_path):
    return writer_at(tmp_path / "run")


@pytest.fixture
def stored(writer, tmp_path):
    """Return [(tag, step)] of all that was added."""

    def stored():
        assert writer.flush(PATIENCE_SECS)
        return [(tag, step) for tag, step, _ in values(tmp_path / "run")]

    return stored


# ---- the same signatures as torch and tensorboardX


def positional(function):
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and name != "self"
    ]


def test_the_arguments_of_the_constructor_are_torchs_in_order():
    """As of torch 2.x: log_dir, comment, purge_step, max_queue, flush_secs, filename_suffix; tensorboardX adds one."""
    assert positional(SummaryWriter) == [
        "log_dir",
        "comment",
        "purge_step",
        "max_queue",
        "flush_secs",
        "filename_suffix",
        "write_to_disk",
    ]


def test_calls_by_position_mean_what_they_mean_in_torch(writer, tmp_path):
    writer.add_scalar("loss", 0.5, 7, 1234.5)
    writer.add_scalars("acc", {"train": 1.0}, 8, 1234.5)
    writer.add_histogram("w", [1.0], 9, "tensorflow", 1234.5)
    writer.add_text("t", "words", 10, 1234.5)
    assert writer.flush()
    found = [event for event in events(tmp_path / "run") if event.values]
    assert [(event.values[0].tag, event.step, event.wall_time) for event in found] == [
        ("loss", 7, 1234.5),
        ("w", 9, 1234.5),
        ("t/text_summary", 10, 1234.5),
    ]
    assert scalars(tmp_path / "run" / "acc_train", "acc") == [(8, 1.0)]


# ---- directories


@pytest.mark.parametrize("place", [None, ""])
def test_the_default_directory_is_named_by_date_and_host(tmp_path, monkeypatch, writer_at, place):
    monkeypatch.chdir(tmp_path)
    writer = writer_at(place, comment="_lr0.1")
    (path,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(rf"[A-Z][a-z]{{2}}\d\d_\d\d-\d\d-\d\d_{re.escape(socket.gethostname())}_lr0\.1", path.name)
    assert writer.log_dir == str(path)
    assert len(event_files(path)) == 1


def test_logdir_is_another_name_of_log_dir(tmp_path, writer_at):
    writer = writer_at(None, logdir=tmp_path / "x")
    assert writer.get_logdir() == writer.log_dir == str(tmp_path / "x")


def test_two_names_of_the_directory_at_once_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"log_dir='a' and logdir='b' are two names of one argument; give one"):
        SummaryWriter("a", logdir="b")


def test_a_comment_beside_a_directory_is_refused(tmp_path):
    """Which torch ignores, and the runs of two comments mix in one directory."""
    with pytest.raises(ValueError, match="comment='_x' names the default directory and means nothing beside log_dir="):
        SummaryWriter(tmp_path / "run", "_x")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("place", ["run", Path("run"), b"run", "./run", "run/", "file://{}/run"])
def test_a_directory_is_a_path_of_any_kind(tmp_path, monkeypatch, writer_at, place):
    monkeypatch.chdir(tmp_path)
    writer = writer_at(place.format(tmp_path) if isinstance(place, str) else place)
    assert writer.log_dir == str(tmp_path / "run")
    assert len(event_files(tmp_path / "run")) == 1


def test_a_tilde_is_the_home_directory(tmp_path, monkeypatch, writer_at):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert writer_at("~/run").log_dir == str(tmp_path / "run")


def test_a_relative_path_is_fixed_at_construction(tmp_path, monkeypatch, writer_at):
    monkeypatch.chdir(tmp_path)
    writer = writer_at("run", max_file_size=150)
    monkeypatch.chdir("/")
    for step in range(5):
        writer.add_scalar("loss", float(step), step)
    writer.close()
    assert len(scalars(tmp_path / "run")) == 5


def test_a_rank_has_a_directory_of_its_own(tmp_path, writer_at):
    assert writer_at(tmp_path, rank=0).log_dir == str(tmp_path / "rank_0")
    assert writer_at(tmp_path, rank=np.int64(12)).log_dir == str(tmp_path / "rank_12")
    assert writer_at("memory://test-writer-rank", rank=3).log_dir == "memory://test-writer-rank/rank_3"


@pytest.mark.parametrize("rank", [-1, 1.0, "0", [0]])
def test_a_rank_that_is_none_is_refused(tmp_path, rank):
    with pytest.raises((TypeError, ValueError), match=r"rank must be an integer from 0 to 2\*\*31 - 1, got"):
        SummaryWriter(tmp_path, rank=rank)


@pytest.mark.parametrize(
    ("place", "exception", "message"),
    [
        (7, TypeError, "log_dir must be a path or a URL, got int 7"),
        ("a\0b", ValueError, "NUL"),
        ("s3:/bucket/run", ValueError, r"lost a slash in pathlib or os.path; pass it as a str: s3://bucket/run"),
        (Path("s3://bucket/run"), ValueError, r"pass it as a str: s3://bucket/run"),
        (Path("oci://bucket/run"), ValueError, r"pass it as a str: oci://bucket/run"),
        ("s3:", ValueError, r"pass it as a str: s3://"),
        ("nowhere://bucket/run", ValueError, "no sink serves nowhere://"),
        ("no_where://bucket/run", ValueError, "no sink serves no_where://"),
        ("simplecache::s3://bucket/run", ValueError, "is a chain of file systems; want the URL of the last one alone"),
        (Path("simplecache::s3://bucket/run"), ValueError, "is a chain of file systems"),
        (Path("file:///run"), ValueError, r"lost a slash in pathlib or os.path; pass '/run', or the URL as a str"),
        (
            Path("hdfs:///run"),
            ValueError,
            r"pass it as a str, with every slash that it had: hdfs:///run, or hdfs://run",
        ),
        ("file://host/run", ValueError, r"is a file of the machine 'host'; want file:// and an absolute path"),
        ("file://run", ValueError, r"is a file of the machine 'run'; .* as in file:///run"),
        ("file://", ValueError, "names no file or directory; want file:// and an absolute path"),
        ("file:run", ValueError, "is no URL of a file; want a path, or file:/// and an absolute one"),
        ("s3://", ValueError, r"names no bucket or host; want s3://<bucket>/<directory>"),
        ("s3:///", ValueError, r"names no bucket or host; want s3://<bucket>/<directory>"),
        ("gs:///run", ValueError, r"names no bucket or host; want gs://<bucket>/<directory>"),
        ("az://@/run", ValueError, r"names no bucket or host"),
        ("sftp://@/run", ValueError, r"names no bucket or host; want sftp://<host>/<directory>"),
        ("sftp://user:secret@/run", ValueError, r"'sftp://\*\*\*@/run' names no bucket or host"),
        ("sftp://host:ssh/run", ValueError, r"has no host and port as URLs have them"),
        ("sftp://host:0/run", ValueError, r"has no host and port as URLs have them; want <host> or <host>:<port>"),
        ("sftp://[::1/run", ValueError, r"has no host and port as URLs have them: Invalid IPv6 URL"),
        ("sftp://my host/run", ValueError, r"has no host and port as URLs have them"),
        ("sftp://host/a?b", ValueError, r"has a '\?', behind which nothing is part of the path"),
        ("ftp:///run", ValueError, r"has no host and port as URLs have them"),
        ("smb://host/", ValueError, r"names no share; want smb://<server>/<share>/<directory>"),
        ("s3://buc\nket/run", ValueError, r"'s3://buc\\nket/run' holds a control character"),
        ("s3://bucket/a\\b", ValueError, r"holds a backslash, which many stores take for a slash; want a '/'"),
        ("s3://bucket/\ud800", ValueError, r"'s3://bucket/\\ud800' cannot be stored as UTF-8"),
        ("s3://bucket/a/../b", ValueError, r"has the part '\.\.', which stores do not follow"),
        ("memory://", ValueError, r"names no directory; want memory://<directory>"),
        ("hdfs:///", ValueError, r"names no directory; want hdfs://<directory>"),
        ("://run", ValueError, r"holds a URL and does not begin with its scheme"),
        (" s3://bucket/run", ValueError, r"holds a URL and does not begin with its scheme"),
        ("dir:///run", ValueError, "no sink serves dir://"),
        ("a\ud800b", ValueError, r"'a\\ud800b' has no form in bytes: surrogates not allowed"),
        ("x" * 300, SinkError, r"log_dir '.*/xxx.*': cannot create an event file: .*; want shorter names"),
    ],
)
def test_a_place_that_cannot_be_one_is_refused_at_construction(place, exception, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(exception, match=message) as refused:
        SummaryWriter(place)
    assert "log_dir" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_place_is_called_as_its_argument_is(tmp_path):
    place = "file://host/run"
    calls = {
        "logdir": [lambda: SummaryWriter(logdir=place), lambda: EventFileWriter(place)],
        "path": [lambda: verify(place), lambda: [*read_events(place)]],
        "url": [lambda: open_sink(place, name="tfevents")],
    }
    for name, refused in calls.items():
        for call in refused:
            with pytest.raises(ValueError, match=f"^{name} 'file://host/run' is a file of the machine 'host'"):
                call()


def test_a_directory_may_hold_colons_that_are_no_url(tmp_path, monkeypatch, writer_at):
    monkeypatch.chdir(tmp_path)
    assert writer_at("run:/12:30:00").log_dir == str(tmp_path / "run:" / "12:30:00")
    assert writer_at("run::1").log_dir == str(tmp_path / "run::1")


@pytest.mark.parametrize("begin", ["file://localhost", "file://LOCALHOST", "file:", "file:///", "FILE://", "local://"])
def test_a_file_url_is_a_path_of_this_machine(tmp_path, writer_at, begin):
    """RFC 8089; but nothing in it is decoded, as TensorBoard decodes nothing."""
    assert writer_at(f"{begin}{tmp_path}/a%20b").log_dir == str(tmp_path / "a%20b")


@pytest.mark.parametrize(
    ("url", "same"),
    [("//a///b//", "//a/b"), ("/a/b/", "/a/b"), ("a/b", "a/b"), ("a//b c?d#e%20", "a/b c?d#e%20"), ("é:x@y", "é:x@y")],
)
def test_a_url_is_used_without_empty_parts(writer_at, url, same):
    writer = writer_at(f"memory:/{url}" if url.startswith("/") else f"MEMORY://{url}")
    assert writer.log_dir == (f"memory:/{same}" if same.startswith("/") else f"memory://{same}")


def test_a_writer_in_memory_is_read_back(writer_at):
    writer = writer_at("memory://test-writer/run")
    writer.add_scalar("loss", 0.5, 1)
    assert writer.flush()
    memory = fsspec.filesystem("memory")
    (path,) = memory.ls("/test-writer/run", detail=False)
    found, status = read_bytes(memory.cat_file(path))
    assert (found[-1].values[0].scalar(), status) == (0.5, "clean")


def test_the_suffix_ends_the_names_of_all_files(tmp_path, writer_at):
    writer = writer_at(tmp_path, filename_suffix=".v2", max_file_size=150)
    for step in range(5):
        writer.add_scalar("loss", float(step), step)
    writer.close()
    assert len(event_files(tmp_path)) > 1
    assert all(path.name.endswith(".v2") for path in event_files(tmp_path))


def test_storage_options_beside_a_local_path_are_refused_without_their_values(tmp_path):
    with pytest.raises(ValueError, match=r"storage_options \['secret'\] mean nothing") as raised:
        SummaryWriter(tmp_path / "run", storage_options={"secret": "hunter2"})
    assert "hunter2" not in str(raised.value)


def test_no_file_grows_beyond_max_file_size(tmp_path, writer_at):
    writer = writer_at(tmp_path, max_file_size=5000)
    for step in range(300):
        writer.add_scalar("loss", float(step), step)
        writer.add_histogram("w", [float(step), 1.0], step)
    writer.close()
    assert max(path.stat().st_size for path in event_files(tmp_path)) <= 5000
    assert scalars(tmp_path, "loss") == [(step, float(step)) for step in range(300)]
    for path in event_files(tmp_path):
        flags = [value.has_metadata for event in read_file(path)[0] for value in event.values if value.tag == "w"]
        assert flags == [True] * len(flags[:1]) + [False] * len(flags[1:])


# ---- what every add refuses: at the call, by name, and nothing is stored

KINDS = {
    "add_scalar": lambda writer, tag="x", step=1, walltime=None: writer.add_scalar(tag, 1.0, step, walltime),
    "add_metrics": lambda writer, tag="x", step=1, walltime=None: writer.add_metrics({tag: 1.0}, step, walltime),
    "add_scalars": lambda writer, tag="x", step=1, walltime=None: writer.add_scalars(tag, {"k": 1.0}, step, walltime),
    "add_histogram": lambda writer, tag="x", step=1, walltime=None: writer.add_histogram(
        tag, [1.0], step, walltime=walltime
    ),
    "add_text": lambda writer, tag="x", step=1, walltime=None: writer.add_text(tag, "words", step, walltime),
    "add_image": lambda writer, tag="x", step=1, walltime=None: writer.add_image(
        tag, np.zeros((3, 2, 2)), step, walltime
    ),
    "add_images": lambda writer, tag="x", step=1, walltime=None: writer.add_images(
        tag, np.zeros((1, 3, 2, 2)), step, walltime
    ),
}
every_add = pytest.mark.parametrize("add", KINDS.values(), ids=KINDS.keys())


@every_add
@pytest.mark.parametrize(
    ("tag", "exception", "message"),
    [
        ("", ValueError, "tag is empty; want a name such as 'train/loss'"),
        (None, TypeError, "tag must be a str, got NoneType None"),
        (7, TypeError, "tag must be a str, got int 7"),
        (b"loss", TypeError, "tag must be a str, got bytes b'loss'"),
        ("a\ud800b", ValueError, "cannot be stored as UTF-8"),
    ],
)
def test_a_tag_that_is_none_is_refused(writer, stored, add, tag, exception, message):
    with pytest.raises(exception, match=message):
        add(writer, tag=tag)
    assert stored() == []


@every_add
@pytest.mark.parametrize(
    ("step", "exception", "message"),
    [
        ("7", TypeError, "tag 'x.*': step must be an integer, got str '7'"),
        (7.9, ValueError, "tag 'x.*': step must be a whole number, got 7.9"),
        (float("nan"), ValueError, "tag 'x.*': step must be a whole number, got nan"),
        (2**63, ValueError, "tag 'x.*': step must lie within int64, got int 9223372036854775808"),
        (-(2**63) - 1, ValueError, "tag 'x.*': step must lie within int64, got int -9223372036854775809"),
        ([1, 2], ValueError, "tag 'x.*': step must be one integer"),
    ],
)
def test_a_step_that_is_none_is_refused_by_tag(writer, stored, add, step, exception, message):
    with pytest.raises(exception, match=message):
        add(writer, step=step)
    assert stored() == []


@every_add
@pytest.mark.parametrize(
    ("walltime", "exception", "message"),
    [
        (float("nan"), ValueError, "tag 'x.*': walltime must be finite seconds since 1970, got float nan"),
        (float("inf"), ValueError, "tag 'x.*': walltime must be finite seconds since 1970, got float inf"),
        ("12:30", TypeError, "tag 'x.*': walltime must be a number, got str '12:30'"),
    ],
)
def test_a_wall_time_that_is_none_is_refused_by_tag(writer, stored, add, walltime, exception, message):
    with pytest.raises(exception, match=message):
        add(writer, walltime=walltime)
    assert stored() == []


@every_add
@pytest.mark.parametrize("wrong", [{"step": "7"}, {"walltime": float("nan")}])
def test_a_refused_first_use_of_a_tag_does_not_decide_its_kind(writer, stored, add, wrong):
    with pytest.raises((TypeError, ValueError)):
        add(writer, **wrong)
    writer.add_text("x", "words", 1)
    writer.add_histogram("x", [1.0], 1) if add is not KINDS["add_histogram"] else writer.add_scalar("x", 1.0, 1)
    assert stored() == [("x/text_summary", 1), ("x", 1)]


@every_add
def test_the_writer_goes_on_after_a_refusal(writer, stored, add):
    with pytest.raises(TypeError):
        add(writer, step="7")
    writer.add_scalar("after", 1.0, 2)
    assert stored() == [("after", 2)]


@every_add
@pytest.mark.parametrize(
    "step", [None, 0, 7, -5, 7.0, np.int32(7), np.array(7), np.array([7]), True, 2**63 - 1, -(2**63)]
)
def test_an_integer_like_step_is_taken_by_every_add(writer, add, step, tmp_path):
    add(writer, step=step)
    assert writer.flush()
    run = tmp_path / "run" / "x_k" if add is KINDS["add_scalars"] else tmp_path / "run"
    want = 0 if step is None else int(np.asarray(step).reshape(-1)[0]) if isinstance(step, np.ndarray) else int(step)
    assert [found for _, found, _ in values(run)] == [want]


@pytest.mark.parametrize(
    ("value", "exception", "message"),
    [
        (None, TypeError, "tag 'loss': got NoneType None, want a real number"),
        ("0.5", TypeError, "tag 'loss': got str '0.5', want a real number"),
        (1 + 2j, TypeError, r"tag 'loss': got complex \(1\+2j\), want a real number"),
        ({"a": 1}, TypeError, "tag 'loss': got dict"),
        ([1.0, 2.0], ValueError, r"tag 'loss': got list \[1.0, 2.0\], want a single number"),
        (np.zeros((2, 3)), ValueError, r"tag 'loss': got ndarray of shape \(2, 3\) and dtype float64, want a single"),
        (np.zeros(0), ValueError, "want a single number"),
        (object(), TypeError, "tag 'loss': got object"),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_a_value_that_is_no_scalar_is_refused(writer, stored, value, exception, message, known):
    if known:
        writer.add_scalar("loss", 1.0, 1)
    with pytest.raises(exception, match=message):
        writer.add_scalar("loss", value, 2)
    with pytest.raises(exception, match=message):
        writer.add_metrics({"loss": value}, 2)
    assert stored() == [("loss", 1)] * known


def test_a_value_is_any_real_number(writer, tmp_path):
    numbers = [1, True, np.float16(1), np.int8(1), np.array(1.0), np.array([[1]]), [1.0], Fraction(1), np.bool_(True)]
    for step, number in enumerate(numbers):
        writer.add_scalar("x", number, step)
    assert writer.flush()
    assert scalars(tmp_path / "run") == [(step, 1.0) for step in range(len(numbers))]


@pytest.mark.parametrize("metrics", [None, 5, "loss", [("a", 1.0)]])
def test_metrics_that_are_no_mapping_are_refused(writer, stored, metrics):
    with pytest.raises(TypeError, match=r"metrics.*mapping"):
        writer.add_metrics(metrics, 1)
    assert stored() == []


@pytest.mark.parametrize("curves", [None, 5, [("a", 1.0)]])
def test_curves_that_are_no_mapping_are_refused_by_tag(writer, stored, curves):
    with pytest.raises(TypeError, match=r"tag 'x'.*mapping"):
        writer.add_scalars("x", curves, 1)
    assert stored() == []


# ---- one kind under one tag


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            "add_scalar",
            "add_histogram",
            "tag 'x' holds scalars already and cannot hold histograms too; use another tag",
        ),
        ("add_scalar", "add_image", "tag 'x' holds scalars already and cannot hold images too"),
        ("add_histogram", "add_scalar", "tag 'x' holds histograms already and cannot hold scalars too"),
        ("add_histogram", "add_metrics", "tag 'x' holds histograms already and cannot hold scalars too"),
        ("add_image", "add_histogram", "tag 'x' holds images already and cannot hold histograms too"),
        ("add_metrics", "add_images", "tag 'x' holds scalars already and cannot hold images too"),
    ],
)
def test_a_second_kind_under_one_tag_is_refused(writer, stored, first, second, message):
    KINDS[first](writer)
    message = message.replace("hold a image", "hold an? image")
    with pytest.raises(ValueError, match=message):
        KINDS[second](writer)
    KINDS[first](writer, step=2)
    assert stored() == [("x", 1), ("x", 2)]


def test_a_series_and_a_histogram_are_two_kinds(writer):
    writer.add_scalar_series("x", [1.0], [1])
    with pytest.raises(ValueError, match="tag 'x' holds scalars already"):
        writer.add_histogram("x", [1.0], 1)


def test_image_and_images_are_one_kind(writer, stored):
    KINDS["add_image"](writer)
    KINDS["add_images"](writer, step=2)
    assert stored() == [("x", 1), ("x", 2)]


def test_a_text_is_stored_under_a_tag_of_its_own(writer, stored):
    writer.add_text("x", "words", 1)
    writer.add_scalar("x", 1.0, 1)
    assert stored() == [("x/text_summary", 1), ("x", 1)]


def test_the_kind_of_a_stored_tag_counts(writer):
    writer.add_text("x", "words", 1)
    with pytest.raises(ValueError, match="tag 'x/text_summary' holds texts already and cannot hold scalars too"):
        writer.add_scalar("x/text_summary", 1.0, 1)


# ---- metrics


def test_metrics_are_one_event(writer, tmp_path):
    writer.add_metrics({"a": 1.0, "b": 2, "c": np.float32(3)}, 5, walltime=77.5)
    assert writer.flush()
    (event,) = [event for event in events(tmp_path / "run") if event.values]
    assert (event.step, event.wall_time) == (5, 77.5)
    assert [(value.tag, value.scalar()) for value in event.values] == [("a", 1.0), ("b", 2.0), ("c", 3.0)]


def test_metrics_are_added_all_or_none(writer, stored):
    with pytest.raises(TypeError, match="tag 'b': got str 'bad', want a real number"):
        writer.add_metrics({"a": 1.0, "b": "bad", "c": 2.0}, 1)
    assert stored() == []


def test_refused_metrics_decide_no_kind(writer, stored):
    writer.add_histogram("h", [1.0], 1)
    with pytest.raises(ValueError, match="tag 'h' holds histograms already"):
        writer.add_metrics({"a": 1.0, "h": 2.0}, 1)
    writer.add_histogram("a", [1.0], 1)
    assert stored() == [("h", 1), ("a", 1)]


def test_no_metrics_are_nothing(writer, stored):
    writer.add_metrics({}, 1)
    assert stored() == []


def test_metrics_are_copied(writer, tmp_path):
    metrics = {"a": 1.0}
    writer.add_metrics(metrics, 1)
    metrics["a"] = 2.0
    assert writer.flush()
    assert scalars(tmp_path / "run") == [(1, 1.0)]


def test_metrics_beyond_float32_are_infinite_and_counters_rounded(writer, tmp_path):
    writer.add_metrics({"a": 1e39, "b": 2**24 + 1}, 1)
    writer.add_metrics({"a": 1e39, "b": 2**24 + 1}, 2)
    assert writer.flush()
    assert scalars(tmp_path / "run") == [
        (1, float("inf")),
        (1, 16777216.0),
        (2, float("inf")),
        (2, 16777216.0),
    ]


UNUSUAL = [
    0.1,
    -2.5,
    7,
    2**24 + 1.0,
    -3e38,
    1e39,
    math.nan,
    -math.inf,
    True,
    np.float32(0.1),
    np.float64(0.1),
    np.int8(3),
]
UNUSUAL += [np.array(2.5), np.array([2.5]), Fraction(1, 3), 10**400, 1 + 2j, "1.0", None, [1.0], np.zeros(2)]


def outcome(add, directory):
    """Return what a call stores or what it raises."""
    try:
        add()
    except (TypeError, ValueError) as exc:
        return type(exc), str(exc)
    return repr([(tag, step, value.scalar()) for tag, step, value in values(directory)][-1:])


@pytest.mark.parametrize("value", UNUSUAL, ids=repr)
def test_metrics_that_came_together_before_take_the_values_of_add_scalar(writer_at, tmp_path, value):
    alone = writer_at(tmp_path / "alone", asynchronous=False)
    alone.add_scalar("b", 1.0, 0)
    together = writer_at(tmp_path / "together", asynchronous=False)
    for step in range(2):
        together.add_metrics({"a": 1.0, "b": 1.0}, step)
    want = outcome(lambda: alone.add_scalar("b", value, 2), tmp_path / "alone")
    assert outcome(lambda: together.add_metrics({"a": 1.0, "b": value}, 2), tmp_path / "together") == want


@pytest.mark.parametrize("again", [False, True])
def test_values_beyond_float32_are_told_once_a_tag(writer, again, caplog):
    for step in range(3):
        writer.add_scalar("tokens", 2**24 + 1, step)
        writer.add_scalar("tokens", float(2**24 + 1), step)
        writer.add_metrics({"tokens": 2**24 + 1}, step)
    assert [entry.getMessage().split(":")[0] for entry in caplog.records] == ["tag 'tokens'"]


# ---- series


def test_a_series_is_one_event_a_point(writer, tmp_path):
    writer.add_scalar_series("loss", [1.0, 2.0, 3.0], [10, 20, 30], [1.5, 2.5, 3.5])
    assert writer.flush()
    found = [event for event in events(tmp_path / "run") if event.values]
    assert [(event.step, event.wall_time, event.values[0].scalar()) for event in found] == [
        (10, 1.5, 1.0),
        (20, 2.5, 2.0),
        (30, 3.5, 3.0),
    ]


def test_a_series_equals_as_many_scalars(tmp_path, writer_at):
    """Steps of every varint length."""
    steps = [-(2**63), -1, 0, 1, 5, 127, 128, 16383, 16384, 2**21, 2**35, 2**62]
    one, other = writer_at(tmp_path / "one"), writer_at(tmp_path / "other")
    one.add_scalar_series("训练/loss", np.arange(12) / 8, steps, np.full(12, 1234.5))
    for step, value in zip(steps, np.arange(12) / 8, strict=True):
        other.add_scalar("训练/loss", value, step, 1234.5)
    one.close()
    other.close()
    bodies = [
        [event.raw for event in events(tmp_path / name) if event.values and event.wall_time == 1234.5]
        for name in ("one", "other")
    ]
    assert bodies[0] == bodies[1]
    assert len(bodies[0]) == 12


def test_an_empty_series_is_nothing(writer, stored):
    writer.add_scalar_series("loss", [], [])
    assert stored() == []


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (([1.0, 2.0], [1]), r"tag 'loss': got values of shape \(2,\), steps of shape \(1,\)"),
        (([[1.0]], [[1]]), r"want one length and one dimension"),
        ((1.0, 1), r"want one length and one dimension"),
        (([1.0], [1], [1.0, 2.0]), r"wall_times of shape \(2,\)"),
        (([1.0], [1.5]), "tag 'loss': steps must be whole numbers"),
        (([1.0], [1], [float("nan")]), "tag 'loss': wall_times must be finite"),
        (([1j], [1]), "tag 'loss': got list"),
        ((["a"], [1]), "tag 'loss': got list"),
        (([1.0], ["a"]), "tag 'loss': got list"),
        ((None, [1]), "tag 'loss': got NoneType None"),
    ],
)
def test_a_series_that_does_not_fit_is_refused_and_decides_no_kind(writer, stored, series, message):
    with pytest.raises((TypeError, ValueError), match=message):
        writer.add_scalar_series("loss", *series)
    writer.add_histogram("loss", [1.0], 1)
    assert stored() == [("loss", 1)]


# ---- several curves in one chart


def test_each_curve_is_a_run_below_this_one(writer, tmp_path):
    """In torch's layout: run `<main_tag>_<key>`, slashes of the tag as underscores, tag main_tag."""
    writer.add_scalars("loss/all", {"train": 1.0, "val": 2.0}, 3)
    assert writer.flush()
    run = tmp_path / "run"
    assert scalars(run / "loss_all_train", "loss/all") == [(3, 1.0)]
    assert scalars(run / "loss_all_val", "loss/all") == [(3, 2.0)]
    assert scalars(run) == []


@pytest.mark.parametrize("key", ["", "a/../b", "a//b", "a/..", "/", "a\\b", "a\0b", 7, None])
def test_a_key_that_makes_no_directory_is_refused_and_no_curve_is_added(writer, tmp_path, key):
    with pytest.raises((TypeError, ValueError), match=r"key|tag"):
        writer.add_scalars("loss", {"good": 1.0, key: 2.0}, 1)
    assert writer.flush()
    assert len(event_files(tmp_path, recursive=True)) == 1


def test_a_curve_with_a_bad_value_is_refused_and_no_curve_is_added(writer, tmp_path):
    with pytest.raises(TypeError, match="tag 'loss/val': got str 'x', want a real number"):
        writer.add_scalars("loss", {"train": 1.0, "val": "x"}, 1)
    assert writer.flush()
    assert len(event_files(tmp_path, recursive=True)) == 1


def test_no_curves_are_nothing(writer, tmp_path):
    writer.add_scalars("loss", {}, 1)
    assert writer.flush()
    assert len(event_files(tmp_path, recursive=True)) == 1


# ---- scalars with a title


def test_a_title_and_a_description_go_into_the_metadata(writer, tmp_path):
    for step in range(2):
        writer.add_scalar("loss", 0.5, step, display_name="Loss", summary_description="*lower* is better")
    assert writer.flush()
    first, second = (value for _, _, value in values(tmp_path / "run"))
    assert (first.display_name, first.description, first.plugin, first.data_class) == (
        "Loss",
        "*lower* is better",
        "scalars",
        1,
    )
    assert (first.tensor.dtype, first.tensor.shape, first.tensor.numbers) == (1, [], [0.5])  # DT_FLOAT, rank 0
    assert not second.has_metadata


def test_a_title_given_once_holds_for_all_files(tmp_path, writer_at):
    writer = writer_at(tmp_path, max_file_size=400)
    writer.add_scalar("loss", 0.0, 0, display_name="Loss")
    for step in range(1, 20):
        writer.add_scalar("loss", float(step), step)
    writer.close()
    assert len(event_files(tmp_path)) > 1
    for path in event_files(tmp_path):
        found = [value for event in read_file(path)[0] for value in event.values]
        assert not found or found[0].display_name == "Loss"
    assert scalars(tmp_path) == [(step, float(step)) for step in range(20)]


def test_arguments_of_torch_that_change_nothing_are_taken(writer, tmp_path):
    writer.add_scalar("loss", 0.5, 1, new_style=True, double_precision=True)
    writer.add_scalar("loss", 0.5, 2, None, True, True)  # its positions
    assert writer.flush()
    assert [value.simple_value for _, _, value in values(tmp_path / "run")] == [0.5, 0.5]


def test_texts_in_the_places_of_torchs_switches_are_tensorboardxs_names(writer, tmp_path):
    writer.add_scalar("loss", 0.5, 1, None, "The loss", "of this step")
    writer.add_scalar("rate", 0.5, 1)
    writer.add_scalar("rate", 0.5, 2, None, "The rate")
    assert writer.flush()
    found = [(value.tag, value.display_name, value.description) for _, _, value in values(tmp_path / "run")]
    assert found == [("loss", "The loss", "of this step"), ("rate", "", ""), ("rate", "The rate", "")]


# ---- other kinds


def test_a_tag_is_stored_byte_for_byte(writer, tmp_path):
    tags = ["train/loss (total)", "训练/损失", "a b", " ", "🙂", "..", "a\nb", "x" * 5000, "%s", "a:b"]
    for tag in tags:
        writer.add_scalar(tag, 1.0, 1)
    assert writer.flush()
    assert [tag for tag, _, _ in values(tmp_path / "run")] == tags


def test_an_array_is_copied_unless_it_is_handed_over(tmp_path, writer_at, gate):
    writer = writer_at(tmp_path, flush_secs=3600.0)
    array = np.array([1.0, 1.0])
    writer.add_histogram("kept", array, 1)
    writer.add_histogram("handed over", array, 1, copy=False)
    array[:] = 5.0
    assert writer.flush()
    rows = {tag: value.tensor.numbers for tag, _, value in values(tmp_path)}
    assert rows == {"kept": [0.5, 1.5, 2.0], "handed over": [4.5, 5.5, 2.0]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": "no such rule"}, "tag 'w': "),
        ({"bins": 0}, "tag 'w': bins must be from 1 to 100000, got int 0"),
        ({"bins": [2.0, 1.0]}, "tag 'w': bin edges must be at least two finite, rising numbers"),
        ({"bins": ["a", "b"]}, "tag 'w': "),
        ({"bins": None}, "tag 'w': "),
        ({"max_bins": 0}, "tag 'w': max_bins"),
        ({"max_bins": "many"}, "tag 'w': max_bins"),
    ],
)
def test_bins_that_are_none_are_refused_at_the_call(writer, stored, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        writer.add_histogram("w", [1.0, 2.0], 1, **options)
    writer.add_scalar("w", 1.0, 1)
    assert stored() == [("w", 1)]


@pytest.mark.parametrize("array", [[1j], ["a"], None, [object()], {"a": 1}])
def test_an_array_that_cannot_be_counted_is_refused_by_tag(writer, stored, array):
    with pytest.raises(TypeError, match="tag 'w': got "):
        writer.add_histogram("w", array, 1)
    assert stored() == []


@pytest.mark.parametrize("text", [None, 7, b"words", ["a", 1], {"a": "b"}])
def test_what_is_no_text_is_refused_by_tag(writer, stored, text):
    with pytest.raises(TypeError, match=r"tag 't': got .*, want a str, or a list of str"):
        writer.add_text("t", text, 1)
    assert stored() == []


@pytest.mark.parametrize(
    ("image", "options"),
    [
        (np.zeros((2, 2)), {}),
        (np.zeros((5, 2, 2)), {}),
        (np.zeros((3, 0, 2)), {}),
        (np.zeros((3, 2, 2)), {"dataformats": "XYZ"}),
        (np.zeros((3, 2, 2)), {"dataformats": None}),
        (np.zeros((3, 2, 2)), {"dataformats": "HW"}),
        (np.zeros((1, 3, 2, 2)), {}),
        (np.zeros((3, 2, 2), complex), {}),
        ("picture.png", {}),
    ],
)
def test_an_image_that_does_not_fit_is_refused_by_tag(writer, stored, image, options):
    pytest.importorskip("PIL")
    with pytest.raises((TypeError, ValueError), match="tag 'i': "):
        writer.add_image("i", image, 1, **options)
    assert stored() == []


# ---- coalescing, as a caller sees it


def test_scalars_of_one_step_become_one_event(tmp_path, writer_at, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1700000000.5)
    writer = writer_at(tmp_path, flush_secs=3600.0)
    for tag in "abc":
        writer.add_scalar(tag, 1.0, 1)
    assert writer.flush()
    assert [len(event.values) for event in events(tmp_path) if event.values] == [3]


def test_coalescing_can_be_turned_off(tmp_path, writer_at):
    writer = writer_at(tmp_path, flush_secs=3600.0, coalesce=False)
    for tag in "abc":
        writer.add_scalar(tag, 1.0, 1)
    assert writer.flush()
    assert [len(event.values) for event in events(tmp_path) if event.values] == [1, 1, 1]


def test_explicit_wall_times_are_kept_to_the_bit(tmp_path, writer_at):
    writer = writer_at(tmp_path, flush_secs=3600.0)
    times = [1700000000.001, 1700000000.002, 1700000000.003]
    for tag, walltime in zip("abc", times, strict=True):
        writer.add_scalar(tag, 1.0, 1, walltime)
    assert writer.flush()
    assert [event.wall_time for event in events(tmp_path) if event.values] == times


# ---- without storage


def test_without_a_disk_nothing_is_made_and_arguments_are_checked_all_the_same(tmp_path):
    writer = SummaryWriter(tmp_path / "run", write_to_disk=False)
    writer.add_scalar("loss", 1.0, 1)
    writer.add_histogram("w", [1.0], 1)
    with pytest.raises(TypeError, match="tag 'loss'"):
        writer.add_scalar("loss", "x", 1)
    assert writer.flush()
    assert writer.sync()
    assert writer.stats().written == 0
    writer.close()
    with pytest.raises(WriterClosedError):
        writer.add_scalar("loss", 1.0, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["add_scalar", "add_metrics"])
def test_a_writer_that_stores_nothing_does_no_more_in_a_call_than_one_that_does(tmp_path, method):
    arguments = {"add_scalar": ("loss", 1.0, 1), "add_metrics": ({"loss": 1.0, "rate": 0.5}, 1)}[method]

    def functions_called(writer):
        called = []
        with writer:
            add = getattr(writer, method)
            add(*arguments)  # the first of a tag is checked
            sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
            try:
                add(*arguments)
            finally:
                sys.setprofile(None)
        return called

    stored = functions_called(SummaryWriter(tmp_path / "run", flush_secs=1000.0))
    assert functions_called(SummaryWriter(tmp_path / "none", write_to_disk=False)) == stored == [method]


# ---- with blocks, copies, repr


def test_a_with_block_closes_the_writer(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 1.0, 1)
    assert scalars(tmp_path) == [(1, 1.0)]
    with pytest.raises(WriterClosedError):
        writer.add_scalar("loss", 2.0, 2)


def test_a_with_block_lets_the_users_exception_through_and_keeps_the_data(tmp_path):
    def train():
        with SummaryWriter(tmp_path) as writer:
            writer.add_scalar("loss", 1.0, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert scalars(tmp_path) == [(1, 1.0)]


@pytest.mark.parametrize("clone", [lambda writer: pickle.loads(pickle.dumps(writer)), copy.deepcopy, copy.copy])
def test_a_copy_writes_a_file_of_its_own_from_its_first_value_on(tmp_path, writer_at, clone):
    writer = writer_at(tmp_path, flush_secs=3600.0)
    writer.add_scalar("loss", 1.0, 1)
    twin = clone(writer)
    assert len(event_files(tmp_path)) == 1
    twin.add_scalar("loss", 2.0, 2)
    twin.close()
    writer.close()
    assert scalars(tmp_path) == [(1, 1.0), (2, 2.0)]
    assert len(event_files(tmp_path)) == 2


def test_a_copy_keeps_the_settings_and_voids_nothing(tmp_path, writer_at):
    writer = writer_at(tmp_path, purge_step=100, filename_suffix=".x")
    with pickle.loads(pickle.dumps(writer)) as twin:
        twin.add_scalar("loss", 1.0, 1)
        assert twin.log_dir == writer.log_dir
    path = event_files(tmp_path)[-1]
    assert path.name.endswith(".x")
    assert [event.step for event in read_file(path)[0] if event.session] == [2**63 - 1]


def test_a_copy_of_a_closed_writer_is_open(tmp_path, writer_at):
    writer = writer_at(tmp_path)
    writer.close()
    with copy.deepcopy(writer) as twin:
        twin.add_scalar("loss", 1.0, 1)
    assert scalars(tmp_path) == [(1, 1.0)]


def test_a_copy_that_is_closed_before_it_was_used_makes_no_file(tmp_path, writer_at):
    twin = copy.deepcopy(writer_at(tmp_path))
    twin.close()
    assert len(event_files(tmp_path)) == 1
    with pytest.raises(WriterClosedError):
        twin.add_scalar("loss", 1.0, 1)


def test_a_copy_whose_first_values_come_from_two_threads_opens_one_file(tmp_path):
    opened = []

    def add_from_another_thread_meanwhile(sink, header):
        opened.append(sink)
        if len(opened) == 2:
            other = threading.Thread(target=twin.add_scalar, args=("loss", 2.0, 2), daemon=True)
            other.start()
            other.join(0.5)
            others.append(other)
        return sink

    others = []
    with SummaryWriter(through(tmp_path, add_from_another_thread_meanwhile)) as writer:
        twin = pickle.loads(pickle.dumps(writer))
    twin.add_scalar("loss", 1.0, 1)
    others[0].join(PATIENCE_SECS)
    twin.close()
    assert len(event_files(tmp_path / "run")) == 2
    assert sorted(scalars(tmp_path / "run")) == [(1, 1.0), (2, 2.0)]


def test_no_repr_shows_storage_options(tmp_path, writer_at):
    tbwriter.register_sink(
        "guarded", lambda url, name, header, options: open_sink(tmp_path, name=name, header=header), lambda *_: []
    )
    writer = writer_at("guarded://bucket/run", storage_options={"secret": "hunter2"})
    assert repr(writer) == "SummaryWriter('guarded://bucket/run')"
    assert "hunter2" not in repr(vars(writer))


def test_credentials_do_not_show_in_the_error_of_a_failed_construction():
    def refuse(url, name, header, options):
        raise PermissionError("denied")

    tbwriter.register_sink("refusing", refuse, lambda *_: [])
    with pytest.raises(SinkError, match="log_dir 'refusing://b': cannot create an event file: denied") as raised:
        SummaryWriter("refusing://b", storage_options={"secret": "hunter2"})
    assert "hunter2" not in repr(raised.value)


def test_two_open_writers_of_one_directory_are_told(writer_at, tmp_path, caplog):
    first = writer_at(tmp_path)
    writer_at(tmp_path / "other")
    assert caplog.records == []
    writer_at(tmp_path)
    assert [record.getMessage().split(".")[0] for record in caplog.records] == [
        f"{tmp_path}: another writer of this process is open there"
    ]
    caplog.clear()
    first.close()
    with SummaryWriter(tmp_path / "one after the other"):
        pass
    writer_at(tmp_path / "one after the other")
    assert caplog.records == []


# ---- what torch's writer shows of itself


def test_the_arguments_are_there_to_read(writer_at, tmp_path):
    writer = writer_at(tmp_path, purge_step=3, max_queue=50, flush_secs=5, filename_suffix=".x")
    given = (writer.purge_step, writer.max_queue, writer.flush_secs, writer.filename_suffix, writer.logdir)
    assert given == (3, 50, 5.0, ".x", str(tmp_path))
    writer = writer_at(tmp_path / "other")
    assert (writer.purge_step, writer.max_queue, writer.flush_secs, writer.filename_suffix) == (None, None, None, "")


def test_summaries_of_loggers_go_through_the_file_writer(writer_at, tmp_path):
    writer = writer_at(tmp_path)
    writer._get_file_writer().add_summary(b"\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 0.5), 3)
    writer.close()
    assert scalars(tmp_path) == [(3, 0.5)]
    with pytest.raises(WriterClosedError):
        writer._get_file_writer()


# ---- EventFileWriter


def varint_event(step, tag, number):
    """Event{wall_time: 1.5, step, summary{value{tag, simple_value}}}, by protobuf's encoding."""
    value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", number)
    summary = b"\x0a" + bytes([len(value)]) + value
    return b"\x09" + struct.pack("<d", 1.5) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary


def test_serialised_events_are_stored_as_they_are(tmp_path):
    with EventFileWriter(tmp_path) as writer:
        writer.add_event(varint_event(3, b"loss", 0.5))
        assert writer.flush()
        assert writer.get_logdir() == str(tmp_path)
        assert writer.stats().written == 1
    version, event = events(tmp_path)
    assert version.file_version == "brain.Event:2"
    assert event.raw == varint_event(3, b"loss", 0.5)
    assert scalars(tmp_path) == [(3, 0.5)]


def test_a_serialised_summary_becomes_an_event(tmp_path):
    summary = b"\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 0.5)
    with EventFileWriter(tmp_path) as writer:
        writer.add_summary(summary, 3, 1.5)
    assert events(tmp_path)[-1].raw == varint_event(3, b"loss", 0.5)


def test_a_serialised_event_takes_no_step_and_no_wall_time(tmp_path):
    with EventFileWriter(tmp_path) as writer:
        for more in ({"step": 1}, {"walltime": 1.0}):
            with pytest.raises(ValueError, match="a serialised event cannot take a step or a walltime"):
                writer.add_event(varint_event(3, b"loss", 0.5), **more)


@pytest.mark.parametrize("package", ["tensorboardX.proto", "tensorboard.compat.proto"])
def test_messages_of_other_packages_are_taken(tmp_path, package):
    event_pb2 = pytest.importorskip(f"{package}.event_pb2")
    summary_pb2 = pytest.importorskip(f"{package}.summary_pb2")
    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="loss", simple_value=0.5)])
    with EventFileWriter(tmp_path) as writer:
        writer.add_event(event_pb2.Event(wall_time=1.5, step=3, summary=summary))
        writer.add_event(event_pb2.Event(summary=summary), step=np.int64(4), walltime=2.5)
        writer.add_summary(summary, 5)
    found = [event for event in events(tmp_path) if event.values]
    assert [(event.step, event.values[0].scalar()) for event in found] == [(3, 0.5), (4, 0.5), (5, 0.5)]
    assert [event.wall_time for event in found[:2]] == [1.5, 2.5]
    assert found[2].wall_time > 1e9


@pytest.mark.parametrize("event", [None, "event", 7, {"step": 1}])
def test_what_is_no_event_is_refused(tmp_path, event):
    with EventFileWriter(tmp_path) as writer:
        with pytest.raises(TypeError, match="event must be serialised bytes or a protobuf message, got"):
            writer.add_event(event)
        with pytest.raises(TypeError, match="summary must be serialised bytes or a protobuf message, got"):
            writer.add_summary(event)


def test_a_closed_event_file_writer_refuses_events(tmp_path):
    writer = EventFileWriter(tmp_path)
    writer.close()
    writer.close()
    with pytest.raises(WriterClosedError):
        writer.add_event(varint_event(3, b"loss", 0.5))


def test_a_pickled_event_file_writer_opens_a_file_of_its_own_when_an_event_comes(tmp_path):
    with EventFileWriter(tmp_path, filename_suffix=".a") as writer:
        writer.add_event(varint_event(1, b"loss", 0.5))
        copied = pickle.loads(pickle.dumps(writer))
        assert copied.flush()
        assert copied.stats().written == 0
        assert len(event_files(tmp_path)) == 1
        copied.add_event(varint_event(2, b"loss", 1.5))
        copied.close()
        with pytest.raises(WriterClosedError):
            copied.add_event(varint_event(3, b"loss", 0.5))
    assert scalars(tmp_path) == [(1, 0.5), (2, 1.5)]
    assert [path.name.endswith(".a") for path in event_files(tmp_path)] == [True, True]


def test_the_arguments_of_an_event_file_writer_are_torchs_in_order():
    assert positional(EventFileWriter)[:4] == ["logdir", "max_queue_size", "flush_secs", "filename_suffix"]
    assert positional(EventFileWriter.add_event) == ["event", "step", "walltime"]
    assert positional(EventFileWriter.add_summary) == ["summary", "global_step", "walltime"]


def test_the_directory_is_made_with_all_above_it(tmp_path, writer_at):
    writer_at(os.path.join(tmp_path, "a", "b", "c"))
    assert len(event_files(tmp_path / "a" / "b" / "c")) == 1


def test_a_clock_that_is_set_back_moves_no_point_back_whatever_adds_it(tmp_path, monkeypatch):
    now = [1.7e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(_scalars, "_now", time.time)
    writer = SummaryWriter(tmp_path)
    added = [
        lambda step: writer.add_scalar("scalar", 0.5, step),
        lambda step: writer.add_metrics({"a": 0.5, "b": 1.5}, step),
        lambda step: writer.add_scalar_series("series", [1.0, 2.0], [2 * step, 2 * step + 1]),
        lambda step: writer.add_scalar_series("long", np.zeros(200), 200 * step + np.arange(200)),
        lambda step: writer.add_histogram("histogram", [1.0, 2.0], step),
        lambda step: writer.add_text("text", "words", step),
        lambda step: writer.add_scalars("several", {"x": 1.0}, step),
        lambda step: writer.file_writer.add_summary(pb.Summary(), step),
        lambda step: writer.add_hparams({"lr": 0.1}, {"best": 1.0}, global_step=step),
    ]
    for step, add in enumerate(added * 2):  # the second time by the short paths
        add(step)
        now[0] += 10.0 if step % 3 else -5000.0
    writer.add_scalar("scalar", 0.5, 99, walltime=7.0)
    writer.close()
    own, several = ([e.wall_time for e in events(run) if e.values] for run in (tmp_path, tmp_path / "several_x"))
    assert own.count(7.0) == 1
    own.remove(7.0)
    assert own == sorted(own)
    assert 1.7e9 == own[0] < own[-1] < 1.7e9 + 200
    assert several == sorted(several)
    assert len(several) == 2
