"""The writer that a training loop calls.

Every `add_*` checks and converts its arguments here, in the caller, raises what is wrong with them, and puts one
entry into a queue. It never does I/O, never encodes, and never raises because of storage (unless `strict`).

Over 300 lines: one class, whose docstrings are the reference that users read.
"""

from __future__ import annotations

import datetime
import os
import threading
import time
import weakref
from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from tbwriter import _summary, sinks
from tbwriter._async import Worker
from tbwriter._entries import COALESCE_SECS, Item, Pending, Scalar, Scalars, Series, SubRun, size_of
from tbwriter._naming import host_name
from tbwriter._queue import EntryQueue, OnFull
from tbwriter._settings import Settings
from tbwriter._stats import WriterStats
from tbwriter.errors import QueueFullError, SinkError, WriterClosedError

_CLOSE_SECS = 10.0
_now = time.time
_FEW_POINTS = 100


class SummaryWriter:
    """Write TensorBoard event files, with the names and arguments of torch's and tensorboardX's SummaryWriter.

    Costs: `add_scalar` of a float about half a microsecond; a background thread encodes and stores, at the latest
    after `flush_secs`. One event file at a time per writer; every process and every rank needs a directory of its own.
    Methods may be called from any thread.

    Args:
        log_dir: a directory: a path, `~`, `os.PathLike`, or a URL such as `memory://run`. None makes
            `runs/<date>_<host><comment>`.
        comment: ends the directory's name when `log_dir` is None.
        purge_step: this session resumes an earlier one at this step: what that wrote from there on is void.
        max_queue: the most entries that wait for storage. With `on_full="block"` less than 1000 means 1000: waiting
            for the disk after ten values, torch's default, would slow the training.
        flush_secs: the longest time until what was added is visible to other processes, also when the loop is idle; for
            an object store until it is in the spool, from where it goes on every 10 s to 300 s, by the run's age.
        filename_suffix: ends the names of the event files.
        write_to_disk: False checks every argument and stores nothing.
        logdir: another name of `log_dir`.
        storage_options: for the file system behind a URL.
        max_file_size: in bytes; a new event file is begun before one grows beyond it.
        max_queue_bytes: the most memory that waiting entries hold.
        on_full: what an `add_*` does when the queue is full: "block" waits for room, at most `block_secs` in one
            outage, then drops the new value and counts it; "drop" never waits; "raise" raises QueueFullError.
        block_secs: see `on_full`.
        strict: the next `add_*` after a storage error raises SinkError; the data is kept and tried again all the
            same. `flush` and `sync` tell by what they return.
        asynchronous: False stores in every call, without a thread: for debugging.
        coalesce: neighbouring scalars of one step whose wall times lie within 0.1 s share an Event.
        rank: adds `rank_<rank>` to the directory.
        spool_dir: where data waits on this machine until an object store has it; None takes `TBWRITER_SPOOL_DIR`, or
            `~/.local/state/tbwriter/spool`. Local storage does not use it.
        shipper: "process" starts a small process that ships what is left in the spool when this one was killed; without
            it the next run with this URL does, or `tbwriter ship`.

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
        flush_secs: float = 1.0,
        filename_suffix: str = "",
        write_to_disk: bool = True,
        *,
        logdir: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        max_file_size: int | None = None,
        max_queue_bytes: int = 64 << 20,
        on_full: OnFull = "block",
        block_secs: float = 5.0,
        strict: bool = False,
        asynchronous: bool = True,
        coalesce: bool = True,
        rank: int | None = None,
        spool_dir: str | os.PathLike[str] | None = None,
        shipper: sinks.Shipper = "thread",
    ) -> None:
        self._settings = Settings.checked(
            url=_directory(log_dir, logdir, comment, rank),
            purge_step=None if purge_step is None else _summary.as_step(purge_step, "purge_step"),
            max_queue=max_queue,
            flush_secs=flush_secs,
            filename_suffix=filename_suffix,
            write_to_disk=write_to_disk,
            storage_options=storage_options,
            max_file_size=max_file_size,
            max_queue_bytes=max_queue_bytes,
            on_full=on_full,
            block_secs=block_secs,
            strict=strict,
            asynchronous=asynchronous,
            coalesce=coalesce,
            spool_dir=spool_dir,
            shipper=shipper,
        )
        self._reset()
        if write_to_disk:
            self._open()

    def _reset(self) -> None:
        self._kinds: dict[str, str] = {}  # stored tag -> kind
        self._plain: dict[str, None] = {}  # tags of scalars that need no second look
        self._described: dict[str, tuple[str, str]] = {}  # tag -> display name, description
        self._told: set[str] = set()  # tags about whose rounding something was said
        self._closed = False
        self._opening = threading.Lock()
        self._worker: Worker | None = None
        self._queue = _UNOPENED

    def _open(self) -> Worker:
        worker = self._settings.open()
        self._worker = worker
        self._queue = worker.queue
        # A writer that is forgotten instead of closed still stores all of its data and ends its thread.
        weakref.finalize(self, worker.start_closing, _CLOSE_SECS).atexit = False
        return worker

    # -- scalars

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        *,
        new_style: bool = False,
        double_precision: bool = False,
        display_name: str = "",
        summary_description: str = "",
    ) -> None:
        """Add a scalar.

        Args:
            tag: any non-empty text; stored byte for byte.
            scalar_value: any real number, or an array or tensor of size 1 on any device. Stored as the nearest
                float32, the one type that both TensorBoard readers draw; NaN and infinities are drawn too.
            global_step: any integer-like value within int64; None is 0.
            walltime: seconds since 1970; None is now.
            new_style: accepted for torch's sake: the stored form is the one that both readers draw either way.
            double_precision: accepted for torch's sake: the default reader draws no float64.
            display_name: the title of the card, instead of the tag.
            summary_description: a text for the card, in Markdown.

        Raises:
            TypeError, ValueError: naming the tag, what was given and what is wanted.
            WriterClosedError: after `close`.
        """
        # The common case, as few steps as possible: a Python float and int under a known tag.
        if (
            type(scalar_value) is float
            and type(global_step) is int
            and -16777216.0 <= scalar_value <= 16777216.0
            and -0x8000000000000000 <= global_step <= 0x7FFFFFFFFFFFFFFF
            and walltime is None
            and type(tag) is str
            and tag in self._plain
            and not (display_name or summary_description)
        ):
            queue = self._queue
            entries = queue.entries
            if len(entries) < queue.threshold:
                entries.append((tag, scalar_value, global_step, _now(), COALESCE_SECS))
                return
        del new_style, double_precision
        self._add_scalar(tag, scalar_value, global_step, walltime, display_name, summary_description)

    def _add_scalar(self, tag: Any, value: Any, step: Any, walltime: Any, display_name: str, description: str) -> None:
        known = type(tag) is str and tag in self._plain
        tag = tag if known else _summary.check_tag(tag)
        number = _summary.as_scalar(value, tag, self._told)
        step = _summary.as_step(step, tag)
        wall_time, slack = self._wall_time(walltime, tag)
        if not known:
            self._claim(tag, "scalar")
        if display_name or description:
            self._described.setdefault(tag, (str(display_name), str(description)))
            self._plain.pop(tag, None)
        if tag in self._described:
            scalar = _summary.DescribedScalar(tag, number, *self._described[tag])
            self._put(Pending(scalar, step, wall_time))
            return
        self._plain[tag] = None
        self._put_scalar((tag, number, step, wall_time, slack))

    def add_metrics(self, metrics: Mapping[str, Any], step: Any = None, walltime: float | None = None) -> None:
        """Add several scalars of one step, as one Event: cheaper and smaller than as many `add_scalar`.

        Args:
            metrics: tag -> value, as in `add_scalar`; empty adds nothing.
            step: as `global_step` of `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            TypeError, ValueError, WriterClosedError: as `add_scalar`; then none of `metrics` is added.
        """
        ordinary = type(metrics) is dict and metrics.keys() <= self._plain.keys() and _are_ordinary(metrics.values())
        if not ordinary:
            metrics = self._checked_metrics(metrics)
        if type(step) is not int or not -0x8000000000000000 <= step <= 0x7FFFFFFFFFFFFFFF:
            step = _summary.as_step(step, next(iter(metrics), ""))
        wall_time = time.time() if walltime is None else _summary.as_wall_time(walltime, next(iter(metrics), ""))
        if not ordinary:
            self._claim_all(metrics)
        if metrics:
            count = len(metrics)
            entry = Scalars(tuple(metrics), [*metrics.values()], step, wall_time)
            queue = self._queue
            # The size as size_of() gives it.
            (self._put if queue.threshold < 0 else queue.put)(entry, 200 + 40 * count, count)

    def _checked_metrics(self, metrics: Mapping[str, Any]) -> dict[str, float]:
        if not isinstance(metrics, Mapping):
            raise TypeError(f"metrics must be a mapping of tag to value, got {_summary.describe(metrics)}")
        return {_summary.check_tag(tag): _summary.as_scalar(value, tag, self._told) for tag, value in metrics.items()}

    def _claim_all(self, tags: Iterable[str]) -> None:
        for tag in tags:
            self._check_kind(tag, "scalar")
        for tag in tags:
            self._claim(tag, "scalar")
            if tag not in self._described:
                self._plain[tag] = None

    def add_scalar_series(self, tag: str, values: Any, steps: Any, wall_times: Any = None) -> None:
        """Add many points of one scalar at once; encoding them costs a fifth of a microsecond each.

        Args:
            tag: as in `add_scalar`.
            values: an array-like of shape (n,).
            steps: integers of shape (n,).
            wall_times: seconds since 1970 of shape (n,); None is now for all.

        Raises:
            TypeError, ValueError: shapes differ, steps are no integers within int64, or a wall time is not finite.
            WriterClosedError: after `close`.
        """
        series = _summary.as_series(
            _summary.check_tag(tag), values, steps, wall_times, now=time.time(), told=self._told
        )
        self._claim(tag, "scalar")
        if len(series.values) < _FEW_POINTS:
            # Few points are cheaper as scalars than as matrices of bytes.
            for value, step, wall_time in zip(*(column.tolist() for column in series), strict=True):
                self._put_scalar((tag, value, step, wall_time, 0.0))
        else:
            entry = Series(tag, *series)
            self._put(entry, size_of(entry), len(series.values))

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add scalars that TensorBoard draws into one chart: each goes to a sub-run of its own.

        The layout is torch's: run `<main_tag>_<key>` below this one, tag `main_tag`. All sub-runs share this
        writer's thread and a bounded number of open files.

        Args:
            main_tag: the tag of all of them.
            tag_scalar_dict: key -> value, as in `add_scalar`. A "/" in a key makes a directory.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            TypeError, ValueError, WriterClosedError: as `add_scalar`; then none is added.
        """
        main_tag = _summary.check_tag(main_tag)
        step = _summary.as_step(global_step, main_tag)
        wall_time, slack = self._wall_time(walltime, main_tag)
        if not isinstance(tag_scalar_dict, Mapping):
            got = _summary.describe(tag_scalar_dict)
            raise TypeError(f"tag {main_tag!r}: tag_scalar_dict must be a mapping of key to value, got {got}")
        items = []
        for key, value in tag_scalar_dict.items():
            key = _summary.check_tag(key)  # noqa: PLW2901 (a str Enum is its text from here on)
            name = f"{main_tag.replace('/', '_')}_{key}"
            if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name or "\\" in name:
                raise ValueError(f"tag {main_tag!r}: key {key!r} makes no directory name")
            number = _summary.as_scalar(value, f"{main_tag}/{key}", self._told)
            items.append(SubRun(name, (main_tag, number, step, wall_time, slack)))
        # All go in before a failure of strict, or a full queue, is raised.
        errors = []
        for item in items:
            try:
                self._put(item, size_of(item))
            except (SinkError, QueueFullError) as exc:  # noqa: PERF203 (the others go in all the same)
                errors.append(exc)
        if errors:
            raise errors[0]

    # -- other kinds

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
        *,
        copy: bool = True,
    ) -> None:
        """Add a histogram of all finite values of an array; counting happens in the worker.

        NaN and infinite values are left out, said once a tag, and where there are any, their numbers are added as
        the scalars `<tag>/nan_count` and `<tag>/inf_count`. With nothing finite to count no histogram is added.

        Args:
            tag: as in `add_scalar`.
            values: an array or tensor of any shape, of bool, integers or floats, bfloat16 included.
            global_step: as in `add_scalar`.
            bins: the default makes at most 64 buckets between the data's own minimum and maximum; or their number,
                their edges, or a rule of `numpy.histogram_bin_edges`.
            walltime: as in `add_scalar`.
            max_bins: merges neighbours until at most so many are left.
            copy: False saves a copy; then the array must not be changed until it is flushed.

        Raises:
            TypeError: complex numbers or objects. ValueError: edges that do not rise; a tag used for another kind.
            WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        histogram = _summary.Histogram.of(tag, values, bins=bins, max_bins=max_bins, copy=copy, told=self._told)
        self._add(histogram, "histogram", global_step, walltime)

    def add_text(self, tag: str, text_string: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a text in Markdown, or a table of texts from a list.

        Args:
            tag: as in `add_scalar`; stored as `<tag>/text_summary`, as torch and tensorboardX do.
            text_string: a str, or str in a list or array of rank 1 or 2.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            TypeError, ValueError: no text. WriterClosedError: after `close`.
        """
        text = _summary.Text.of(_summary.check_tag(tag) + "/text_summary", text_string)
        self._add(text, "text", global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
        *,
        copy: bool = True,
    ) -> None:
        """Add an image, encoded as PNG in the worker.

        Args:
            tag: as in `add_scalar`.
            img_tensor: an array or tensor with 1, 3 or 4 channels. uint8 as it is; floats from 0 to 1, clipped, NaN
                black; other integers clipped to 0 to 255; bool black and white.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.
            dataformats: which dimension is which: an order of C, H and W, or of H and W.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shape or dtype do not fit. ImportError: Pillow is missing.
            WriterClosedError: after `close`.
        """
        image = _summary.Images.of(_summary.check_tag(tag), img_tensor, dataformats, batched=False, copy=copy)
        self._add(image, "image", global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
        *,
        copy: bool = True,
    ) -> None:
        """Add a batch of images that show side by side; see `add_image`.

        `dataformats` is an order of N, C, H and W, or of N, H and W. Other arguments and errors as `add_image`.
        """
        images = _summary.Images.of(_summary.check_tag(tag), img_tensor, dataformats, batched=True, copy=copy)
        self._add(images, "image", global_step, walltime)

    # -- the writer itself

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all that was added before is visible to other processes; for an object store, in the store.

        Args:
            timeout: in seconds; None waits as long as storage gets on and gives up when it has not for 10 s.

        Returns:
            Whether it is. False says that storage fails or is slow; the data is kept and tried again.
        """
        return self._flush(None, timeout)

    def sync(self, timeout: float | None = None) -> bool:
        """Wait until all that was added before survives a failure of the machine; see `flush`."""
        return self._flush(sinks.Durability.REMOTE, timeout)

    def _flush(self, level: sinks.Durability | None, timeout: float | None) -> bool:
        return True if self._worker is None else self._worker.flush(level, timeout)

    def close(self, timeout: float = _CLOSE_SECS) -> None:
        """Store what is left and close the file; idempotent. Later `add_*` raise WriterClosedError.

        Args:
            timeout: in seconds; when storage needs longer, what is left is dropped, counted and logged; for an object
                store it stays in the spool, and the log says where.
        """
        self._closed = True
        if self._worker is not None:
            self._worker.close(timeout)

    def stats(self) -> WriterStats:
        """Return the writer's counters."""
        if self._worker is None:
            return WriterStats(0, 0, 0, 0, 0, None, 0.0)
        return self._worker.stats()

    @property
    def log_dir(self) -> str:
        """The directory, as an absolute path or a URL."""
        return self._settings.url

    def get_logdir(self) -> str:
        """Return `log_dir`."""
        return self._settings.url

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SummaryWriter({self._settings.url!r})"

    def __getstate__(self) -> Settings:
        """Keep the settings alone: a copy opens a file of its own when something is first added to it.

        That first call is then its construction, and raises SinkError where the constructor would.
        """
        return self._settings.for_copy()

    def __setstate__(self, settings: Settings) -> None:
        self._settings = settings
        self._reset()

    # -- shared by the add methods

    def _wall_time(self, walltime: float | None, tag: str) -> tuple[float, float]:
        """Return the wall time and by how much coalescing may move it."""
        if walltime is None:
            return time.time(), COALESCE_SECS
        return _summary.as_wall_time(walltime, tag), 0.0

    def _claim(self, tag: str, kind: str) -> None:
        """Keep every tag to one kind: TensorBoard's readers hide the second, and one of them then fails.

        Raises:
            ValueError: `tag` is used for another kind.
        """
        self._kinds.setdefault(tag, kind)  # atomic: two threads cannot both be the first
        self._check_kind(tag, kind)

    def _check_kind(self, tag: str, kind: str) -> None:
        first = self._kinds.get(tag, kind)
        if first != kind:
            raise ValueError(f"tag {tag!r} holds {first}s already and cannot hold a {kind}; use another tag")

    def _add(self, summary: _summary.Summary, kind: str, step: Any, walltime: float | None) -> None:
        tag = summary.tag
        pending = Pending(summary, _summary.as_step(step, tag), self._wall_time(walltime, tag)[0])
        self._claim(tag, kind)
        self._put(pending, size_of(pending))

    def _put_scalar(self, scalar: Scalar) -> None:
        queue = self._queue
        if len(queue.entries) < queue.threshold:
            queue.entries.append(scalar)
        else:
            self._put(scalar)

    def _put(self, item: Item, size: int = 0, values: int = 1) -> None:
        if self._worker is None:
            if self._closed:
                raise WriterClosedError
            if not self._settings.write_to_disk:
                return
            with self._opening:
                if self._worker is None:
                    self._open()
        assert self._worker is not None
        self._worker.put(item, size, values)


_FLOATS = {float}


def _are_ordinary(values: Collection[Any]) -> bool:
    """Say whether all values are Python floats that float32 holds well: what needs no second look."""
    return {*map(type, values)} == _FLOATS and max(values) <= 16777216.0 and min(values) >= -16777216.0


def _directory(
    log_dir: str | os.PathLike[str] | None, logdir: str | os.PathLike[str] | None, comment: str, rank: int | None
) -> str:
    if log_dir is not None and logdir is not None:
        raise ValueError(f"log_dir={log_dir!r} and logdir={logdir!r} are two names of one argument; give one")
    where = log_dir if log_dir is not None else logdir
    if where is None:
        stamp = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
        where = os.path.join("runs", f"{stamp}_{host_name()}{comment}")
    elif comment:
        raise ValueError(f"comment={comment!r} names the default directory and means nothing beside log_dir={where!r}")
    url = sinks.normalise(where)
    if rank is None:
        return url
    if not isinstance(rank, (int, np.integer)) or rank < 0:
        raise ValueError(f"rank must be an integer from 0 on, got {rank!r}")
    return sinks.join(url, f"rank_{int(rank)}")


def _unopened() -> EntryQueue:
    """Return the queue of a writer without a worker: everything goes through `_put`."""
    queue = EntryQueue(
        max_entries=1, max_bytes=1, on_full="drop", block_secs=0.0, wake=lambda: None, gate=lambda: False
    )
    queue.watch()
    return queue


_UNOPENED = _unopened()
