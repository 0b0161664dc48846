"""TensorBoard event files from any training loop.

from tbwriter import SummaryWriter

with SummaryWriter("runs/first") as writer:
writer.add_scalar("train/loss", 0.5, global_step=1)
"""

from typing import TYPE_CHECKING, Any

from tbwriter._sigterm import flush_on_sigterm
from tbwriter._stats import WriterStats
from tbwriter.errors import (
    CorruptRecordError,
    QueueFullError,
    RecordTooLargeError,
    SegmentLostError,
    SinkError,
    TBWriterError,
    TruncatedRecordError,
    WriterClosedError,
)
from tbwriter.event_file_writer import EventFileWriter
from tbwriter.reader import Event, Fault, FileReport, Record, Report, Value, read_events, read_records, verify
from tbwriter.sinks import Durability, SegmentPolicy, Shipped, Sink, SinkStatus, open_sink, register_sink, ship
from tbwriter.writer import FileWriter, SummaryWriter

if TYPE_CHECKING:
    from tbwriter._repair import Repaired, repair

__version__ = "0.1.0"

__all__ = [
    "CorruptRecordError",
    "Durability",
    "Event",
    "EventFileWriter",
    "Fault",
    "FileReport",
    "FileWriter",
    "QueueFullError",
    "Record",
    "RecordTooLargeError",
    "Repaired",
    "Report",
    "SegmentLostError",
    "SegmentPolicy",
    "Shipped",
    "Sink",
    "SinkError",
    "SinkStatus",
    "SummaryWriter",
    "TBWriterError",
    "TruncatedRecordError",
    "Value",
    "WriterClosedError",
    "WriterStats",
    "flush_on_sigterm",
    "open_sink",
    "read_events",
    "read_records",
    "register_sink",
    "repair",
    "ship",
    "verify",
]


def __getattr__(name: str) -> Any:
    # A training mends no files: what that needs is loaded when it is asked for.
    if name not in ("Repaired", "repair"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tbwriter import _repair

    value = globals()[name] = getattr(_repair, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
