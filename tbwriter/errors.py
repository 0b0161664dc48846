"""What tbwriter raises, all in one place so that no layer imports another for it."""

from __future__ import annotations


class TBWriterError(Exception):
    """Base of the errors below; never raised itself."""


class WriterClosedError(TBWriterError, RuntimeError):
    """Something was added to a writer after `close()`."""

    def __init__(
        self, message: str = "the writer is closed: make a new SummaryWriter, or close this one later"
    ) -> None:
        super().__init__(message)


class SinkError(TBWriterError, OSError):
    """Storage failed. Raised at construction, and later only with `strict=True`; `__cause__` is the first error."""


class QueueFullError(TBWriterError, RuntimeError):
    """The queue has no room and the writer was made with `on_full="raise"`."""


class CorruptRecordError(TBWriterError, ValueError):
    """A record fails its length or checksum test; the bytes after it may still be good.

    Attributes:
        offset: where the damaged record begins, in bytes from the start of the file.
    """

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class TruncatedRecordError(CorruptRecordError):
    """The file ends inside a record: a writer is at work, or was killed."""


class SegmentLostError(TBWriterError, OSError):
    """The segment under the sink cannot be written any more: begin the next one with `Sink.roll`.

    Attributes:
        accepted: how many bytes of the failed `append`, a whole number of records, are safe in the old segment.
    """

    def __init__(self, message: str, accepted: int = 0) -> None:
        super().__init__(message)
        self.accepted = accepted


class RecordTooLargeError(TBWriterError, OSError):
    """A record is larger than any segment of the sink may be: leave it out, and go on with what follows.

    Attributes:
        accepted: as of `SegmentLostError`; the record is the one behind these.
    """

    def __init__(self, message: str, accepted: int = 0) -> None:
        super().__init__(message)
        self.accepted = accepted
