"""The writer that a training loop calls: how it begins and ends. Its `add_*` stand in `_methods`, by kind.

Every `add_*` checks and converts its arguments in the caller, raises what is wrong with them, and puts one entry into
a queue. It never does I/O, never encodes, and never raises because of storage (unless `strict`).

Over 300 lines: a third of them say what the constructor's arguments mean.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from tbwriter import _summary, sinks
from tbwriter._entries import Raw, RawSummary, size_of
from tbwriter._logger import get_logger
from tbwriter._methods import (
    ArrayMethods,
    ChartMethods,
    EventMethods,
    GraphMethods,
    MediaMethods,
    NothingKnown,
)
from tbwriter._queue import OnFull
from tbwriter._settings import CLOSE_SECS, Settings, as_timeout, directory
from tbwriter.errors import WriterClosedError
from tbwriter.reader import points_of

_log = get_logger(__name__)


class SummaryWriter(ArrayMethods, MediaMethods, ChartMethods, GraphMethods):
    """Write TensorBoard event files, with the names and arguments of torch's and tensorboardX's SummaryWriter.

    Costs: `add_scalar` of a float about half a microsecond; a background thread encodes and stores, at the latest
    after `flush_secs`. One event file at a time per writer; every process and every rank needs a directory of its own.
    Methods may be called from any thread. In a process that multiprocessing begins by running the script again (spawn,
    fork server), a writer that the script makes there opens its file when something is first added, as a copy does.

    Args:
        log_dir: a directory: a path, `~`, `os.PathLike`, or a URL such as `memory://run`. None, or "",
            makes `runs/<date>_<host><comment>`.
        comment: ends the directory's name when `log_dir` is None.
        purge_step: this session resumes an earlier one at this step: what that wrote from there on is void.
        max_queue: the most entries that wait for storage. With `on_full="block"` less than 1000 means 1000: waiting
            for the disk after ten values, torch's default, would slow the training.
        flush_secs: the longest time until what was added is visible to others, also when the loop is idle. None is
            1 s, and 5 s on a file system that other machines see (NFS, Lustre, FUSE, ...), where it takes a sync.
            For an object store, the longest time until it is in the spool, from where it goes on every 7 s to
            300 s, by the run's age.
        filename_suffix: ends the names of the event files.
        write_to_disk: False checks every argument and stores nothing.
        logdir: another name of `log_dir`.
        storage_options: for the file system behind a URL.
        max_file_size: in bytes; a new event file is begun before one grows beyond it. None is 1 GiB, and 256 MiB on
            a file system that other machines see.
        max_file_age: in seconds; a new event file is begun when one is older and there is something to write. A
            reader that once saw a file wrongly, as caches of network file systems let it, recovers with the next
            file. None never does: a reader keeps every file open.
        rotate_on_flush: each `flush` and `sync` ends the event file, and what is added next begins another: for file
            systems that show a file to others only once it is closed, as mounts of object stores do. The timer of
            `flush_secs` ends none, and an object store's own URL needs none.
        max_queue_bytes: the most memory that waiting entries hold, at least 1920; one that is larger alone is taken
            too, and scalars beside large entries, up to a quarter more.
        on_full: what an `add_*` does when the queue is full: "block" waits for room, at most `block_secs` in one
            outage, then drops the new value and counts it; "drop" never waits; "raise" raises QueueFullError.
        block_secs: see `on_full`; time in which the worker encodes something large is not counted.
        strict: the next `add_*` after a storage error raises SinkError; the data is kept and tried again all the
            same. `flush` and `sync` tell by what they return. With a URL that goes through a spool these are errors of
            the spool: of the store itself `flush` tells, since what waits for it is safe.
        asynchronous: False stores in every call, without a thread: for debugging.
        coalesce: neighbouring scalars of one step whose wall times lie within 0.1 s share an Event.
        rank: adds `rank_<rank>` to the directory.
        max_outputs: the most images that one `add_images` or `add_figure` stores: the first ones.
        max_tag_bytes: the most bytes that the images, sounds, histograms, texts, ... of one tag take in this session;
            what comes after that is left out, counted as dropped and said once a tag. Scalars have no such limit.
        spool_dir: where data waits on this machine until an object store has it; None takes `TBWRITER_SPOOL_DIR`, or
            `~/.local/state/tbwriter/spool`. Local storage does not use it.
        shipper: "process" starts a small process that ships what is left in the spool when this one was killed; without
            it the next run with this URL does, or `tbwriter ship`.

    Attributes:
        log_dir: the directory, as an absolute path or a URL; `logdir` is tensorboardX's name of it.
        purge_step: as it was given, like `max_queue`, `flush_secs` and `filename_suffix`; None is the default.

    Raises:
        SinkError: the directory or the first file cannot be created; an object store's bucket or key is wrong. A store
            that is only down is no error.
        ImportError: the driver of an object store is missing; the message has the line for pip.
        TypeError, ValueError: an argument is wrong, or given twice, or means nothing beside the others.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int | None = None,
        flush_secs: float | None = None,
        filename_suffix: str = "",
        write_to_disk: bool = True,
        *,
        logdir: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        max_file_size: int | None = None,
        max_file_age: float | None = None,
        rotate_on_flush: bool = False,
        max_queue_bytes: int = 64 << 20,
        on_full: OnFull = "block",
        block_secs: float = 5.0,
        strict: bool = False,
        asynchronous: bool = True,
        coalesce: bool = True,
        rank: int | None = None,
        max_outputs: int | None = None,
        max_tag_bytes: int | None = None,
        spool_dir: str | os.PathLike[str] | None = None,
        shipper: sinks.Shipper = "thread",
    ) -> None:
        self._tb_settings = Settings.checked(
            url=directory(log_dir, logdir, comment, rank),
            purge_step=None if purge_step is None else _summary.as_step(purge_step, "purge_step"),
            max_queue=max_queue,
            flush_secs=flush_secs,
            filename_suffix=filename_suffix,
            write_to_disk=write_to_disk,
            storage_options=storage_options,
            max_file_size=max_file_size,
            max_file_age=max_file_age,
            rotate_on_flush=rotate_on_flush,
            max_queue_bytes=max_queue_bytes,
            on_full=on_full,
            block_secs=block_secs,
            strict=strict,
            asynchronous=asynchronous,
            coalesce=coalesce,
            max_outputs=max_outputs,
            max_tag_bytes=max_tag_bytes,
            spool_dir=spool_dir,
            shipper=shipper,
        )
        self._tb_open_unless_run_again()

    # -- the writer itself

    def _tb_begin_anew(self) -> None:
        super()._tb_begin_anew()
        # Plain attributes, as torch's: a subclass may set them.
        settings = self._tb_settings
        self.log_dir = self.logdir = settings.url
        self.purge_step = settings.purge_step
        self.max_queue = settings.max_queue
        self.flush_secs = settings.flush_secs
        self.filename_suffix = settings.filename_suffix

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was added before is visible to other processes; for an object store, in the store.

        Args:
            timeout: in seconds; None waits as long as storage gets on and gives up when it has not for 10 s.

        Returns:
            Whether it is. False says that storage fails or is slow; the data is kept and tried again.
        """
        return self._tb_flush_at(None, timeout)

    def sync(self, timeout: float | None = None) -> bool:
        """Wait until all that was added before survives a failure of the machine; see `flush`."""
        return self._tb_flush_at(sinks.Durability.REMOTE, timeout)

    def close(self, timeout: float = CLOSE_SECS) -> None:
        """Store what is left and close the file; idempotent. Later `add_*` raise WriterClosedError.

        Args:
            timeout: in seconds; when storage needs longer, what is left is dropped, counted and logged; for an object
                store it stays in the spool, and the log says where.
        """
        seconds = as_timeout(timeout)
        self._tb_end_trial()
        self._tb_close_within(seconds)

    def export_scalars_to_json(self, path: str | os.PathLike[str]) -> None:
        """Write what `add_scalars` stored into a JSON file, as tensorboardX does; read back, not kept in memory.

        The file holds `{"<directory>/<main_tag>/<key>": [[wall time, step, value], ...]}`, with the points of earlier
        sessions in this directory; NaN and infinities are texts. What storage has not taken yet is left out, and said.

        Args:
            path: of the file; one that is there is replaced.

        Raises:
            OSError: the file cannot be written, or stored points cannot be read.
        """
        if not self.flush():
            _log.warning("%s: what is not stored yet is not in the export", sinks.without_user(self._tb_settings.url))
        curves = {
            f"{self._tb_settings.url}/{main_tag}/{key}": points_of(
                sinks.join(self._tb_settings.url, *name.split("/")), main_tag, self._tb_settings.storage_options
            )
            for (name, main_tag), key in list(self._tb_compared.items())
            if self._tb_settings.write_to_disk
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(curves, file, allow_nan=False)

    def get_logdir(self) -> str:
        """Return the directory, as an absolute path or a URL."""
        return self._tb_settings.url

    @property
    def file_writer(self) -> FileWriter | None:
        """A face of this writer that takes Events and Summaries that were built elsewhere; None after `close`."""
        return None if self._tb_closed else FileWriter(self)

    @property
    def all_writers(self) -> dict[str, FileWriter] | None:
        """The file writers by directory: one, as sub-runs have no writers of their own; None after `close`."""
        return None if self._tb_closed else {self._tb_settings.url: FileWriter(self)}

    def _get_file_writer(self) -> FileWriter:
        """As torch's and tensorboardX's: Lightning's loggers, and others, add Summaries of their own through it.

        Raises:
            WriterClosedError: after `close`.
        """
        if self._tb_closed:
            raise WriterClosedError
        return FileWriter(self)

    @contextlib.contextmanager
    def use_metadata(self, *, global_step: Any = None, walltime: float | None = None) -> Iterator[SummaryWriter]:
        """Give what is added within the block a step and a wall time, where a call names none itself.

        Args:
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            ValueError: neither is given. TypeError: no step or no wall time.
        """
        if global_step is None and walltime is None:
            raise ValueError("use_metadata needs a global_step or a walltime")
        step = None if global_step is None else _summary.as_step(global_step, "use_metadata")
        seconds = None if walltime is None else _summary.as_wall_time(walltime, "use_metadata")
        before = self._tb_default_step, self._tb_default_walltime, self._tb_plain, self._tb_groups
        self._tb_default_step = before[0] if step is None else step
        self._tb_default_walltime = before[1] if seconds is None else seconds
        self._tb_plain, self._tb_groups = NothingKnown(), {}
        try:
            yield self
        finally:
            self._tb_default_step, self._tb_default_walltime, self._tb_plain, self._tb_groups = before
            for tag in self._tb_described.keys() & self._tb_plain.keys():
                del self._tb_plain[tag]
                self._tb_groups.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tb_failed = kind is not None
        self.close()

    def __getstate__(self) -> tuple[Settings, dict[str, Any]]:
        return self._tb_state(SummaryWriter)

    def __repr__(self) -> str:
        return f"SummaryWriter({sinks.without_user(self._tb_settings.url)!r})"


class FileWriter(EventMethods):
    """What `SummaryWriter.file_writer` is: torch's and tensorboardX's FileWriter, over the same thread and files.

    Args:
        writer: to which everything is handed on.
    """

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def _tb_put_raw(self, raw: Raw | RawSummary) -> None:
        self._writer._tb_put(raw, size_of(raw))

    def _tb_defaults(self) -> tuple[int | None, float | None]:
        return self._writer._tb_default_step, self._writer._tb_default_walltime

    @property
    def event_writer(self) -> FileWriter:
        """What torch's FileWriter keeps below itself: this one, as it takes raw Events too."""
        return self

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Add a graph as torch's converter returns it: a GraphDef and what is known of its run, which is left out."""
        graph = graph_profile[0] if isinstance(graph_profile, (tuple, list)) and graph_profile else graph_profile
        self._writer._tb_add_graph_def(graph, "graph_profile must be a GraphDef, or a pair with one", walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Add a GraphDef."""
        self._writer._tb_add_graph_def(graph, "graph must be a GraphDef, serialised or not", walltime)

    def get_logdir(self) -> str:
        """Return the directory, as an absolute path or a URL."""
        return SummaryWriter.get_logdir(self._writer)

    # Not what a subclass made of them, which may come back here.

    def flush(self, timeout: float | None = None) -> bool:
        """As `SummaryWriter.flush`."""
        return SummaryWriter.flush(self._writer, timeout)

    def close(self, timeout: float = CLOSE_SECS) -> None:
        """As `SummaryWriter.close`."""
        SummaryWriter.close(self._writer, timeout)
