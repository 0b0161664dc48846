"""TensorBoard event files from any training loop.

from tbwriter import SummaryWriter

with SummaryWriter("runs/first") as writer:
writer.add_scalar("train/loss", 0.5, global_step=1)
"""

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
from tbwriter.sinks import Durability, Sink, SinkStatus, open_sink, register_sink
from tbwriter.writer import SummaryWriter

__version__ = "0.1.0"

__all__ = [
    "CorruptRecordError",
    "Durability",
    "QueueFullError",
    "SegmentLostError",
    "Sink",
    "SinkError",
    "SinkStatus",
    "SummaryWriter",
    "TBWriterError",
    "TruncatedRecordError",
    "WriterClosedError",
    "WriterStats",
    "open_sink",
    "register_sink",
]
