"""TensorBoard event files from any training loop.

from tbwriter import SummaryWriter

with SummaryWriter("runs/first") as writer:
writer.add_scalar("train/loss", 0.5, global_step=1)
"""

from tbwriter._repair import Repaired, repair
from tbwriter._stats import WriterStats
from tbwriter.errors import (
    CorruptRecordError,
    QueueFullError,
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
    "open_sink",
    "read_events",
    "read_records",
    "register_sink",
    "repair",
    "ship",
    "verify",
]
