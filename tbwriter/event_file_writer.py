"""Write Events that were built elsewhere, with the queue, the thread and the sinks of SummaryWriter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tbwriter import sinks
from tbwriter._entries import Raw, RawSummary, size_of
from tbwriter._methods import EventMethods
from tbwriter._settings import CLOSE_SECS, Settings, as_timeout
from tbwriter._stats import WriterStats
from tbwriter.errors import WriterClosedError


class EventFileWriter(EventMethods):
    """Write raw Events; the interface of torch's and TensorBoard's EventFileWriter.

    Events and Summaries are taken as serialised bytes or as messages of any package (TensorBoard's, tensorboardX's,
    TensorFlow's). What they hold is not checked, and nothing is added but the
    file_version with which a file begins: no metadata, and no SessionLog START.

    Args:
        logdir: as `log_dir` of SummaryWriter.
        max_queue_size: as `max_queue` of SummaryWriter.
        flush_secs: as in SummaryWriter.
        filename_suffix: as in SummaryWriter.
        storage_options: as in SummaryWriter.
        max_file_size: as in SummaryWriter.
        max_file_age: as in SummaryWriter.
        strict: as in SummaryWriter.
        spool_dir: as in SummaryWriter.

    Raises:
        SinkError: the directory or the first file cannot be created.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        max_queue_size: int | None = None,
        flush_secs: float | None = None,
        filename_suffix: str = "",
        *,
        storage_options: Mapping[str, Any] | None = None,
        max_file_size: int | None = None,
        max_file_age: float | None = None,
        strict: bool = False,
        spool_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        settings = Settings.checked(
            url=sinks.normalise(logdir, "logdir"),
            purge_step=None,
            max_queue=max_queue_size,
            flush_secs=flush_secs,
            filename_suffix=filename_suffix,
            write_to_disk=True,
            storage_options=storage_options,
            max_file_size=max_file_size,
            max_file_age=max_file_age,
            max_queue_bytes=64 << 20,
            on_full="block",
            block_secs=5.0,
            strict=strict,
            asynchronous=True,
            coalesce=True,
            spool_dir=spool_dir,
            shipper="thread",
            marks_sessions=False,
        )
        self._url = settings.url
        self._settings = settings
        self._closed = False
        self._worker = settings.open(owner=self)

    def get_logdir(self) -> str:
        """Return the directory, as an absolute path or a URL."""
        return self._url

    def _put_raw(self, raw: Raw | RawSummary) -> None:
        try:
            self._worker.put(raw, size_of(raw))
        except WriterClosedError:
            if self._closed or not self._settings.can_open:
                raise
            # As with SummaryWriter: the exit of the process closed it, or the collector, before its last values came.
            self._worker.finish_closing(CLOSE_SECS)
            self._worker = self._settings.open(owner=self)
            self._worker.put(raw, size_of(raw))

    def flush(self, timeout: float | None = None) -> bool:
        """As `SummaryWriter.flush`."""
        return self._worker.flush(None, as_timeout(timeout))

    def close(self, timeout: float = CLOSE_SECS) -> None:
        """As `SummaryWriter.close`."""
        seconds = as_timeout(timeout)
        self._closed = True
        self._worker.close(CLOSE_SECS if seconds is None else seconds)

    def stats(self) -> WriterStats:
        """As `SummaryWriter.stats`."""
        return self._worker.stats()

    def __enter__(self) -> EventFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
