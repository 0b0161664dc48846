"""Write Events that were built elsewhere, with the queue, the thread and the sinks of SummaryWriter."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tbwriter import _summary, sinks
from tbwriter._entries import Raw, size_of
from tbwriter._settings import Settings
from tbwriter._stats import WriterStats

_CLOSE_SECS = 10.0


class EventFileWriter:
    """Write raw Events; the interface of torch's and TensorBoard's EventFileWriter.

    Events and Summaries are taken as serialised bytes or as messages of any package (TensorBoard's, tensorboardX's,
    TensorFlow's). What they hold is not checked, and no metadata is added where a new file begins.

    Args:
        logdir: as `log_dir` of SummaryWriter.
        max_queue_size: as `max_queue` of SummaryWriter.
        flush_secs: as in SummaryWriter.
        filename_suffix: as in SummaryWriter.
        storage_options: as in SummaryWriter.
        max_file_size: as in SummaryWriter.
        strict: as in SummaryWriter.
        spool_dir: as in SummaryWriter.

    Raises:
        SinkError: the directory or the first file cannot be created.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        max_queue_size: int | None = None,
        flush_secs: float = 1.0,
        filename_suffix: str = "",
        *,
        storage_options: Mapping[str, Any] | None = None,
        max_file_size: int | None = None,
        strict: bool = False,
        spool_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        settings = Settings.checked(
            url=sinks.normalise(logdir),
            purge_step=None,
            max_queue=max_queue_size,
            flush_secs=flush_secs,
            filename_suffix=filename_suffix,
            write_to_disk=True,
            storage_options=storage_options,
            max_file_size=max_file_size,
            max_queue_bytes=64 << 20,
            on_full="block",
            block_secs=5.0,
            strict=strict,
            asynchronous=True,
            coalesce=True,
            spool_dir=spool_dir,
            shipper="thread",
        )
        self._url = settings.url
        self._worker = settings.open()
        weakref.finalize(self, self._worker.start_closing, _CLOSE_SECS).atexit = False

    def get_logdir(self) -> str:
        """Return the directory, as an absolute path or a URL."""
        return self._url

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Add an Event.

        Args:
            event: serialised bytes, or a message with `SerializeToString`.
            step: written into the message when given; bytes cannot take one.
            walltime: likewise; a message without a wall time gets the present one.

        Raises:
            TypeError: neither bytes nor a message. ValueError: bytes and a step or a wall time.
            WriterClosedError: after `close`.
        """
        if isinstance(event, bytes):
            if step is not None or walltime is not None:
                raise ValueError("a serialised event cannot take a step or a walltime; pass the message itself")
            data = event
        else:
            _message(event, "event")
            if step is not None:
                event.step = _summary.as_step(step, "event")
            if walltime is not None:
                event.wall_time = _summary.as_wall_time(walltime, "event")
            elif not event.wall_time:
                event.wall_time = time.time()
            data = event.SerializeToString()
        self._put(data)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add an Event of a Summary, given as serialised bytes or as a message; see `add_event`."""
        data = summary if isinstance(summary, bytes) else _message(summary, "summary").SerializeToString()
        wall_time = time.time() if walltime is None else _summary.as_wall_time(walltime, "summary")
        self._put(_summary.wrap(data, _summary.as_step(global_step, "summary"), wall_time))

    def _put(self, data: Any) -> None:
        if not isinstance(data, bytes):
            raise TypeError(f"SerializeToString must give bytes, got {_summary.describe(data)}")
        raw = Raw(data)
        self._worker.put(raw, size_of(raw))

    def flush(self, timeout: float | None = None) -> bool:
        """As `SummaryWriter.flush`."""
        return self._worker.flush(None, timeout)

    def close(self, timeout: float = _CLOSE_SECS) -> None:
        """As `SummaryWriter.close`."""
        self._worker.close(timeout)

    def stats(self) -> WriterStats:
        """As `SummaryWriter.stats`."""
        return self._worker.stats()

    def __enter__(self) -> EventFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _message(value: Any, name: str) -> Any:
    if not hasattr(value, "SerializeToString"):
        raise TypeError(f"{name} must be serialised bytes or a protobuf message, got {_summary.describe(value)}")
    return value
