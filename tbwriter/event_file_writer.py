"""Write Events that were built elsewhere, with the queue, the thread and the sinks of SummaryWriter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tbwriter import sinks
from tbwriter._entries import Raw, RawSummary, size_of
from tbwriter._methods import EventMethods, Storing
from tbwriter._settings import CLOSE_SECS, Settings, as_timeout


class EventFileWriter(EventMethods, Storing):
    """Write raw Events; the interface of torch's and TensorBoard's EventFileWriter.

    Events and Summaries are taken as serialised bytes or as messages of any package (TensorBoard's, tensorboardX's,
    TensorFlow's). What they hold is not checked, and nothing is added but the file_version with which a file begins: no
    metadata, and no SessionLog START. Processes, copies and scripts that run again: as with SummaryWriter.

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
        self._tb_settings = settings
        self._tb_open_unless_run_again()

    def get_logdir(self) -> str:
        """Return the directory, as an absolute path or a URL."""
        return self._tb_settings.url

    def _tb_put_raw(self, raw: Raw | RawSummary) -> None:
        self._tb_put(raw, size_of(raw))

    def flush(self, timeout: float | None = None) -> bool:
        """As `SummaryWriter.flush`."""
        return self._tb_flush_at(None, timeout)

    def close(self, timeout: float = CLOSE_SECS) -> None:
        """As `SummaryWriter.close`."""
        self._tb_close_within(as_timeout(timeout))

    def __enter__(self) -> EventFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getstate__(self) -> tuple[Settings, dict[str, Any]]:
        return self._tb_state(EventFileWriter)
