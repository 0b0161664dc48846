"""The settings of a writer: checked here, and turned into a running worker."""

from __future__ import annotations

import datetime
import errno
import math
import os
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tbwriter import _live, sinks
from tbwriter._async import Worker
from tbwriter._event_file import Place
from tbwriter._logger import get_logger
from tbwriter._naming import host_name
from tbwriter._queue import MIN_BYTES, OnFull
from tbwriter._runs import Runs
from tbwriter._summary import as_number, check_text, describe
from tbwriter.errors import SinkError
from tbwriter.sinks import Shipper

_log = get_logger(__name__)

_DEFAULT_QUEUE = 250_000
_MAX_RANK = 2**31 - 1
# torch and tensorboardX take 10, after which their add_* waits for the disk. Ours must not.
_MIN_BLOCKING_QUEUE = 1000
_MIN_FLUSH_SECS = 0.01
_MIN_FILE_AGE_SECS = 1
CLOSE_SECS = 10.0
"""The longest that closing a writer waits for storage unless it is told otherwise."""


@dataclass(frozen=True)
class Settings:
    """What `SummaryWriter` was asked for; everything that a pickled writer keeps.

    What may hold credentials is in no repr, and so in no log and no traceback.
    """

    url: str = field(repr=False)
    purge_step: int | None
    max_queue: int | None
    flush_secs: float | None
    filename_suffix: str
    write_to_disk: bool
    storage_options: Mapping[str, Any] | None = field(repr=False)
    max_file_size: int | None
    max_file_age: float | None
    max_queue_bytes: int
    on_full: OnFull
    block_secs: float
    strict: bool
    asynchronous: bool
    coalesce: bool
    spool_dir: str | None
    shipper: Shipper
    max_outputs: int | None = None
    max_tag_bytes: int | None = None
    marks_sessions: bool = True
    rotate_on_flush: bool = False

    @classmethod
    def checked(cls, **values: Any) -> Settings:
        """Return the settings.

        Raises:
            TypeError, ValueError: one of them is wrong.
        """
        for name in ("max_queue", "max_file_size", "max_queue_bytes", "max_outputs", "max_tag_bytes"):
            value = values.get(name)
            if value is None and name != "max_queue_bytes":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be an integer, got {describe(value)}")
            least = MIN_BYTES if name == "max_queue_bytes" else 1
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {describe(value)}")
            values[name] = int(value)
        for name in ("flush_secs", "block_secs", "max_file_age"):
            value = values[name]
            if value is None and name != "block_secs":
                continue
            values[name] = _seconds(name, value)
        suffix = values["filename_suffix"] = check_text(values["filename_suffix"], "filename_suffix")
        if "/" in suffix or "\\" in suffix or "\0" in suffix or suffix.endswith(".profile-empty"):
            raise ValueError(
                f"filename_suffix must hold no path separator and not end in .profile-empty, got {suffix!r}"
            )
        if values["spool_dir"] is not None:
            values["spool_dir"] = _path("spool_dir", values["spool_dir"])
        values["shipper"] = _one_of("shipper", values["shipper"], ("thread", "process"))
        values["on_full"] = _one_of("on_full", values["on_full"], ("block", "drop", "raise"))
        if values["flush_secs"] is not None:
            values["flush_secs"] = max(values["flush_secs"], _MIN_FLUSH_SECS)
        age = values["max_file_age"]
        if age is not None and age < _MIN_FILE_AGE_SECS:
            raise ValueError(f"max_file_age must be at least {_MIN_FILE_AGE_SECS} second, got {age!r}")
        return cls(**values)

    @property
    def max_entries(self) -> int:
        """The most entries that wait in the queue."""
        if self.max_queue is None:
            return _DEFAULT_QUEUE
        return max(self.max_queue, _MIN_BLOCKING_QUEUE) if self.on_full == "block" else self.max_queue

    def open(self, owner: object) -> Worker:
        """Create the first event file and start the worker.

        An owner that is forgotten instead of closed still has all of its data stored, and its thread ended.

        Raises:
            SinkError: storage refuses.
        """
        defaults = sinks.defaults(self.url)
        place = Place(
            url=self.url,
            storage_options=self.storage_options,
            suffix=self.filename_suffix,
            max_file_bytes=self.max_file_size or defaults.max_file_bytes,
            max_file_age_secs=self.max_file_age,
            rotates_on_flush=self.rotate_on_flush,
            pid=os.getpid(),
            host=host_name(),
            spool_dir=self.spool_dir,
            shipper=self.shipper,
            marks_sessions=self.marks_sessions,
        )
        try:
            runs = Runs(place, purge_step=self.purge_step, clock=time.time, coalesce=self.coalesce)
        except OSError as exc:
            where = sinks.without_user(self.url)
            hint = "; want shorter names" if exc.errno == errno.ENAMETOOLONG else ""
            message = f"log_dir {where!r}: cannot create an event file: {' '.join(str(exc).splitlines())}{hint}"
            raise SinkError(*([message] if exc.errno is None else [exc.errno, message])) from exc
        if _live.has_open(self.url):
            _log.warning(
                "%s: another writer of this process is open there. TensorBoard's Python reader then leaves the older "
                "file for good, unless it runs with --reload_multifile=true; share a writer, or give each a directory",
                sinks.without_user(self.url),
            )
        worker = Worker(
            runs,
            flush_secs=self.flush_secs or defaults.flush_secs,
            max_entries=self.max_entries,
            max_bytes=self.max_queue_bytes,
            on_full=self.on_full,
            block_secs=self.block_secs,
            strict=self.strict,
            asynchronous=self.asynchronous,
            clock=time.time,
        )
        weakref.finalize(owner, worker.start_closing, CLOSE_SECS).atexit = False
        return worker

    @property
    def can_open(self) -> bool:
        """Whether another file can be begun: at its very end the interpreter loads no driver, and wakes no thread."""
        return not (sys.is_finalizing() and "://" in self.url) and not _live.others_stand_still()

    def for_copy(self) -> Settings:
        """Return the settings of a copy, which must not void what the original wrote."""
        return replace(self, purge_step=None)


def directory(
    log_dir: str | os.PathLike[str] | None, logdir: str | os.PathLike[str] | None, comment: str, rank: int | None
) -> str:
    """Return the directory of a writer, as a normalised path or URL; the arguments are SummaryWriter's.

    Raises:
        TypeError, ValueError: one of them is wrong, or two of them do not go together.
    """
    if log_dir is not None and logdir is not None:
        raise ValueError(f"log_dir={log_dir!r} and logdir={logdir!r} are two names of one argument; give one")
    comment = check_text(comment, "comment")
    if "\0" in comment:
        raise ValueError(f"comment must be part of a directory's name, got {comment!r}")
    where = log_dir if log_dir is not None else logdir
    if where is None or (isinstance(where, str) and not where):  # as torch and tensorboardX take ""
        stamp = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
        where = os.path.join("runs", f"{stamp}_{host_name()}{comment}")
    elif comment:
        raise ValueError(f"comment={comment!r} names the default directory and means nothing beside log_dir={where!r}")
    url = sinks.normalise(where, "log_dir" if logdir is None else "logdir")
    if rank is None:
        return url
    if not isinstance(rank, (int, np.integer)) or not 0 <= rank <= _MAX_RANK:
        raise ValueError(f"rank must be an integer from 0 to 2**31 - 1, got {describe(rank)}")
    return sinks.join(url, f"rank_{int(rank)}")


def as_timeout(value: Any) -> float | None:
    """Return a timeout in seconds, None as it is.

    Raises:
        TypeError: no number. ValueError: NaN.
    """
    seconds = None if value is None else _number("timeout", value)
    if seconds is not None and math.isnan(seconds):
        raise ValueError("timeout must be a number of seconds, got NaN")
    return seconds


def _seconds(name: str, value: Any) -> float:
    seconds = _number(name, value)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{name} must be finite and not negative, got {describe(value)}")
    return seconds


def _number(name: str, value: Any) -> float:
    wrong = f"{name} must be a number of seconds, got {describe(value)}"
    if isinstance(value, (bool, list, tuple)):
        raise TypeError(wrong)
    try:
        return as_number(value, name)
    except (TypeError, ValueError) as exc:
        raise TypeError(wrong) from exc


def _path(name: str, value: Any) -> str:
    try:
        path = os.fspath(value)
    except Exception as exc:  # a TypeError, or whatever a foreign __fspath__ raises
        raise TypeError(f"{name} must be a path, got {describe(value)}") from exc
    return sinks.absolute(check_text(path, name), name)


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    text = str.__str__(value) if isinstance(value, str) else None
    if text not in known:
        names = ", ".join(map(repr, known[:-1]))
        raise ValueError(f"{name} must be {names} or {known[-1]!r}, got {describe(value)}")
    return text
