"""A program that uses the public API with all its types; `test_typing.py` has mypy look at it. Never run."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tbwriter
from tbwriter import (
    CorruptRecordError,
    Durability,
    Event,
    EventFileWriter,
    FileWriter,
    QueueFullError,
    RecordTooLargeError,
    Report,
    SegmentLostError,
    Sink,
    SinkError,
    SinkStatus,
    SummaryWriter,
    TBWriterError,
    TruncatedRecordError,
    Value,
    WriterClosedError,
    WriterStats,
    open_sink,
    read_events,
    register_sink,
    verify,
)
from tbwriter.testing import FaultySink, SinkTests, SlowSink


def log(place: str | os.PathLike[str]) -> WriterStats:
    with SummaryWriter(
        place,
        purge_step=5,
        max_queue=1000,
        flush_secs=2,
        filename_suffix=".x",
        storage_options={"key": "value"},
        max_file_size=1 << 30,
        max_file_age=3600,
        rotate_on_flush=True,
        max_queue_bytes=1 << 20,
        on_full="drop",
        block_secs=1.0,
        strict=True,
        asynchronous=False,
        coalesce=False,
        rank=0,
        max_outputs=4,
        max_tag_bytes=1 << 20,
    ) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_scalar("loss", np.float32(0.5), np.int64(1), 1234.5, display_name="Loss", summary_description="")
        writer.add_metrics({"a": 1, "b": np.zeros(1)}, step=1)
        writer.add_scalar_series("loss", np.zeros(10), range(10), wall_times=None)
        writer.add_scalars("loss", {"train": 1.0, "val": 2}, global_step=1)
        writer.add_histogram("w", np.zeros((2, 3)), 1, bins=30, max_bins=10, copy=False)
        writer.add_text("t", ["a", "b"], 1)
        writer.add_image("i", np.zeros((3, 2, 2)), 1, dataformats="CHW")
        writer.add_images("i", np.zeros((1, 3, 2, 2)), 1)
        add_other_kinds(writer)
        done: bool = writer.flush(timeout=1.0) and writer.sync()
        directory: str = writer.log_dir if done else writer.get_logdir()
        assert directory
        return writer.stats()


def add_other_kinds(writer: SummaryWriter) -> None:
    zeros = np.zeros((1, 4, 3))
    writer.add_histogram_raw("h", 0, np.float32(1), 2, 1.5, 2, [1.0], np.array([2]), 1, 1234.5)
    writer.add_tensor("t", zeros, 1, 1234.5, copy=False)
    writer.add_image_with_boxes("b", zeros, [[0, 0, 1, 1]], 1, rescale=2, dataformats="HWC", labels=["cat"])
    writer.add_figure("f", [object()], 1, close=False, walltime=1234.5)
    writer.add_video("v", np.zeros((1, 2, 3, 4, 4)), 1, 30, dataformats="NTCHW", copy=False)
    writer.add_audio("a", [0.0, 0.5], 1, 16000, 1234.5, copy=False)
    writer.add_pr_curve("p", [True], [0.5], 1, 201, weights=None, walltime=1234.5, copy=False)
    writer.add_pr_curve_raw("q", [1], [1], [1], [1], [1.0], [1.0], 1, num_thresholds=127, weights=None)
    writer.add_mesh(
        "m", zeros, colors=zeros, faces=None, config_dict={"camera": {"fov": 75}}, global_step=1, copy=False
    )
    writer.add_hparams({"lr": 0.1, "opt": "adam"}, {"acc": 1}, hparam_domain_discrete={"lr": [0.1]}, run_name="one")
    writer.add_hparams({"lr": 0.1}, {"acc": 1.0}, name="two", global_step=1)
    writer.add_custom_scalars({"c": {"t": ["Multiline", ["loss"]]}})
    writer.add_custom_scalars_multilinechart(["loss"], "c", title="t")
    writer.add_custom_scalars_marginchart(["v", "lo", "hi"], category="c")
    writer.add_graph(b"", input_to_model=None, verbose=False, use_strict_trace=True)
    writer.add_onnx_graph("net.onnx")
    writer.add_onnx_graph(onnx_model_file=Path("net.onnx"))
    writer.add_embedding(zeros[0], ["a"], None, 1, "default", metadata_header=["name"], copy=False)
    with writer.use_metadata(global_step=1, walltime=1234.5) as same:
        same.add_scalar("loss", 1.0)
    file_writer: FileWriter | None = writer.file_writer
    assert file_writer is not None
    file_writer.add_summary(b"", 1, 1234.5)
    directories: list[str] = [one.get_logdir() for one in (writer.all_writers or {}).values()]
    assert directories


def tell(stats: WriterStats) -> tuple[int, int, int, int, int, str | None, float]:
    return (
        stats.queued,
        stats.written,
        stats.dropped,
        stats.retries,
        stats.bytes,
        stats.last_error,
        stats.flush_latency_secs,
    )


def copy_events(source: Path, target: str) -> int:
    events: Iterator[Event] = read_events(source, storage_options=None, strict=True)
    with EventFileWriter(target, 1000, 1.0, "", strict=False) as writer:
        writer.add_event(b"")
        writer.add_summary(b"", global_step=1, walltime=1.0)
        writer.flush()
    total = 0
    for event in events:
        values: tuple[Value, ...] = event.values
        total += sum(1 for value in values if value.scalar() is not None)
        place: tuple[float, int] = (event.wall_time, event.step)
        marks: list[str | None] = [event.file_version, event.session_log, event.writer]
        assert place[1] or any(marks)
    return total


def faults(place: str) -> list[tuple[int, str, bool]]:
    report: Report = verify(place)
    if report.ok:
        return []
    return [
        (fault.offset, fault.what, fault.torn_tail) for file in report.files if not file.ok for fault in file.faults
    ]


def catch(act: Callable[[], None]) -> int | None:
    try:
        act()
    except TruncatedRecordError as exc:
        return exc.offset
    except CorruptRecordError as exc:
        return exc.offset
    except (SegmentLostError, RecordTooLargeError) as exc:
        return exc.accepted
    except SinkError as exc:
        return exc.errno
    except (WriterClosedError, QueueFullError, TBWriterError):
        return None
    return 0


class MySink:
    """A sink of one's own needs no base class."""

    max_durability = Durability.OS
    visible_at = Durability.OS

    def __init__(self, name: str) -> None:
        self.name = name

    def append(self, records: bytes) -> None: ...

    def roll(self, name: str, header: bytes) -> None: ...

    def roll_due(self) -> bool:
        return False

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        return min(level, self.max_durability)

    def release(self) -> None: ...

    def status(self) -> SinkStatus:
        return SinkStatus(path=self.name, bytes_os=1)

    def close(self, timeout: float = 10.0) -> SinkStatus:
        return self.status()


def open_mine(url: str, name: str, header: bytes, options: Mapping[str, Any]) -> Sink:
    return SlowSink(FaultySink(MySink(name), lambda call, number: None, header=header), 0.1)


def list_mine(url: str, options: Mapping[str, Any]) -> list[str]:
    return []


register_sink("mine", open_mine, list_mine)
sink: Sink = open_sink("mine://run", name="events.out.tfevents.1.h.1.000000", header=b"", storage_options=None)
level: Durability = sink.flush(Durability.SYNC, timeout=1.0)
version: str = tbwriter.__version__


class TestMySink(SinkTests):
    def open(self, name: str, header: bytes) -> Sink:
        return MySink(name)

    def stored(self, name: str) -> bytes | None:
        return None
