"""Object stores: records go to a spool on this machine, threads of the process ship them as a rolling tail of objects.

An object cannot grow, so the current segment is stored anew, whole and at once, whenever it is shipped; `SegmentPolicy`
says when, and when a segment ends so that what is sent stays in proportion to what was written.

Over 300 lines: the sink, and the register by URL through which a process finds its open ones.
"""

from __future__ import annotations

import errno
import math
import os
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tbwriter import _clock as time
from tbwriter._logger import get_logger
from tbwriter.errors import RecordTooLargeError, SegmentLostError
from tbwriter.sinks import _thinning
from tbwriter.sinks._base import Durability, SinkStatus
from tbwriter.sinks._credentials import without_user
from tbwriter.sinks._policy import SegmentPolicy
from tbwriter.sinks._shipping import Shipping
from tbwriter.sinks._spool import DiskSpool, MemorySpool, Spool
from tbwriter.sinks._spool_dirs import spooled_names, usable_root
from tbwriter.sinks._store import Store, at_most, call_within, is_refusal
from tbwriter.sinks._strays import Strays

_log = get_logger(__name__)

# A construction waits so long for the store's first answers, in all 10 s with the list of names.
LIST_SECS = 4.0
_EXISTS_SECS = 2.0
_FIRST_PUT_SECS = 3.5
# For a store that has just failed.
_DOWN_SECS = 0.5
# What a put that is cancelled may take until its thread is back.
_CANCEL_SECS = 0.5
# Of a file system whose objects cannot be replaced.
_SEALED_POLICY = SegmentPolicy(max_bytes=64 << 20, max_puts=1, min_interval=300.0, max_interval=300.0)
# Where files grow: what is sent is what was written, however often.
_APPENDING_POLICY = SegmentPolicy(max_bytes=16 << 20, max_puts=1 << 30, max_interval=10.0)

# The spool's disk takes no more.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_told_memory = threading.Event()


class SpooledObjectSink:
    """One directory of an object store, behind a spool.

    `append` and `roll` write to the spool and never wait for the store. `flush` to `OS` asks for a spool on disk
    alone; to `REMOTE` it ships at once. `close` leaves in the spool what could not be shipped in time.
    """

    visible_at = Durability.REMOTE
    max_durability = Durability.REMOTE

    def __init__(
        self,
        url: str,
        *,
        name: str,
        header: bytes = b"",
        store: Store,
        spool_dir: str | None = None,
        policy: SegmentPolicy | None = None,
        probe: bool = True,
        shipper: str = "thread",
        until: float = math.inf,
    ) -> None:
        """Begin the segment `name`.

        Args:
            url: the directory.
            name: as in `open_sink`.
            header: as in `open_sink`.
            store: which serves `url`.
            spool_dir: as in `open_sink`.
            policy: as in `open_sink`.
            probe: as in `open_sink`.
            shipper: as in `open_sink`.
            until: as in `open_sink`.

        Raises:
            FileExistsError: there is such a segment. OSError: the store refuses: bucket, key or permission; or its
                driver takes the URL for another one.
        """
        store.path(url)  # at the call, what nobody could read back
        self._url = url.rstrip("/")
        self._store = store
        self._name = name
        self._header_bytes = len(header)
        self._thinning = _thinning.Thinning()
        self._choice: _thinning.Choice | None = None  # of an append that failed
        self._left_out: tuple[int, ...] = ()  # of the last append
        self._dropped = 0  # records left out, of all appends
        self._thinned = False  # since the last roll: a segment may lack metadata
        root = _root(spool_dir)
        self._names = set(spooled_names(root, self._url)) if root else set()
        if name in self._names or (probe and self._is_stored(name, until)):
            raise FileExistsError(f"{self._path} exists")
        self._names.add(name)
        self._usage = _thinning.disk if root else _thinning.memory
        self._spool = _spool(root, self._url, store.lasting_options, name, header)
        self._shipping = Shipping(
            store,
            self._url,
            self._spool,
            policy or _policy_for(store),
            name=name,
            root=root,
            usage=self._usage,
        )
        store.uploader.add(self._shipping)
        if root is not None and root not in store.searched:
            store.searched.add(root)
            store.uploader.add(Strays(store, root, self._url))
        if probe and not store.only_sealed:
            self._shipping.wait_for_first_put(at_most(_DOWN_SECS if store.is_down else _FIRST_PUT_SECS, until))
            self._raise_refusal()
        _live[self._url] = self
        if shipper == "process" and self._spool.directory:
            from tbwriter.sinks._shipper import watch

            watch(self._spool.directory, store.options)

    @property
    def name(self) -> str:
        """The file name of the current segment."""
        return self._name

    @property
    def _path(self) -> str:
        return f"{without_user(self._url)}/{self._name}"

    def _is_stored(self, name: str, until: float) -> bool:
        if self._store.is_down:
            return False
        try:
            return call_within(at_most(_EXISTS_SECS, until), lambda: self._store.exists(f"{self._url}/{name}"))
        except Exception:  # the first put tells what is wrong, also to those who may not read
            return False

    def _raise_refusal(self) -> None:
        refusal = self._shipping.refusal
        if refusal is not None:
            self._spool.remove(self._name)
            self._abandon()
            number = errno.ENOENT if isinstance(refusal, FileNotFoundError) else errno.EACCES
            message = f"the store refuses: {self._store.words(refusal)}"
            raise OSError(number, message, without_user(self._url)) from None

    def append(self, records: bytes) -> None:
        """Write to the spool; when that is nearly full, only some of `records`."""
        self._left_out = ()
        # What failed is repeated, and the spool goes on within the same bytes.
        choice = self._choice = self._choice or self._thinning.choose(records, self._usage)
        try:
            if choice.kept:
                self._spool.append(choice.kept)
        except (SegmentLostError, RecordTooLargeError) as lost:
            accepted, left_out = choice.up_to(records, lost.accepted)
            self._leave_out(left_out)
            raise type(lost)(str(lost), accepted) from lost
        except OSError as exc:
            taken = self._end_early(records, choice) if exc.errno in _FULL else None
            if taken is None:
                raise
            raise SegmentLostError(f"{self._spool.directory}: {exc.strerror}", taken) from exc
        self._leave_out(choice.left_out)
        if choice.kept and self._shipping.grown():
            self._store.uploader.wake(self._shipping)

    def _end_early(self, records: bytes, choice: _thinning.Choice) -> int | None:
        """End the segment, so that its room on a full disk is free when the store has it.

        Returns:
            how much of `records` it took; None where it is not ended, since it holds nothing yet.
        """
        before = self._spool.size
        self._spool.seal()
        if self._spool.size <= self._header_bytes:
            return None
        accepted, left_out = choice.up_to(records, self._spool.size - before)
        self._leave_out(left_out)
        self._shipping.sealed()
        self._store.uploader.wake(self._shipping)
        return accepted

    def _leave_out(self, numbers: tuple[int, ...]) -> None:
        self._choice = None
        self._left_out = numbers
        self._dropped += len(numbers)
        self._thinned = self._thinned or bool(numbers)

    def roll(self, name: str, header: bytes) -> None:
        """Begin a segment in the spool."""
        if name in self._names:
            raise FileExistsError(f"{without_user(self._url)}/{name} exists")
        self._choice = None
        final = self._spool.roll(name, header)
        self._name = name
        self._names.add(name)
        self._header_bytes = len(header)
        self._thinned = False
        self._shipping.rolled(name, final)
        self._store.uploader.wake(self._shipping)

    def roll_due(self) -> bool:
        """Say whether the current segment has had its puts or its size, or lost records that readers need in it."""
        return self._shipping.roll_due() or (self._thinned and self._usage.free() >= _thinning.ROOMY)

    def put_side(self, name: str, data: bytes) -> None:
        """Store another file below the URL, before what is appended later.

        Raises:
            OSError: the spool does not take it.
        """
        self._shipping.put_side(name, data)
        self._store.uploader.wake(self._shipping)

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        """Ship what was appended where `level` is above what the spool gives, and wait; without a timeout for good."""
        local = Durability.OS if self._spool.directory else Durability.BUFFER
        if level <= local:
            return local
        mark = self._shipping.taken
        self._shipping.want(mark)
        self._store.uploader.wake(self._shipping)
        secs = threading.TIMEOUT_MAX if timeout is None else timeout
        self._store.uploader.work_here(lambda: self._shipping.shipped >= mark, secs)
        shipped = self._shipping.wait(mark, secs)
        return Durability.REMOTE if shipped else local

    def release(self) -> None:
        """Give back the handle of the spool's file."""
        self._spool.release()

    def status(self) -> SinkStatus:
        """Return counters; from any thread."""
        counts = self._shipping.counts
        return SinkStatus(
            path=self._path,
            segment=self._shipping.segment,
            bytes_buffered=0 if self._spool.directory else self._shipping.left(),
            bytes_os=self._shipping.taken,
            bytes_remote=self._shipping.shipped,
            puts=counts.puts,
            bytes_uploaded=counts.uploaded,
            retries=counts.retries,
            dropped_records=self._dropped,
            left_out=self._left_out,
            last_error=counts.last_error,
            spool=None if self._shipping.ended.is_set() and not self._shipping.left() else self._spool.directory,
        )

    def close(self, timeout: float = 10.0) -> SinkStatus:
        """Ship what is left; say what could not be, which stays in the spool for the next process or `ship`."""
        if _live.get(self._url) is self:
            del _live[self._url]
        if not self._shipping.ended.is_set():
            begin = time.monotonic()
            self._spool.seal()
            self._shipping.close()
            self._store.uploader.wake(self._shipping)
            self._store.uploader.work_here(self._shipping.ended.is_set, timeout)
            if not self._shipping.ended.wait(max(0.0, timeout - (time.monotonic() - begin))):
                self._abandon()
                self._tell_left()
        return self.status()

    def _abandon(self) -> None:
        idle = self._store.uploader.withdraw(self._shipping)
        self._shipping.abandon(idle=idle)
        if not idle:
            self._store.uploader.wake(self._shipping)
            if self._store.can_cancel:
                self._shipping.ended.wait(_CANCEL_SECS)

    def _tell_left(self) -> None:
        left, error = self._shipping.left(), self._shipping.counts.last_error
        if not left:  # there was no time to end in
            return
        where = without_user(self._url)
        if self._spool.directory is None:
            _log.error("%s: closed with %d bytes not stored, which are lost: %s", where, left, error)
        else:
            _log.error(
                "%s: closed with %d bytes not stored; they are in %s, and the next run with this URL or "
                "`tbwriter ship` sends them%s",
                where,
                left,
                self._spool.directory,
                f": {error}" if error else "",
            )


def _policy_for(store: Store) -> SegmentPolicy:
    if store.only_sealed:
        return _SEALED_POLICY
    return _APPENDING_POLICY if store.appends else SegmentPolicy()


def _root(spool_dir: str | None) -> Path | None:
    """Return where spools are; None, said once, where none can be."""
    try:
        return usable_root(spool_dir)
    except OSError as exc:
        if spool_dir is not None:
            raise OSError(exc.errno, f"spool_dir {spool_dir!r} cannot be used: {exc}") from exc
        if not _told_memory.is_set():
            _told_memory.set()
            _log.warning(
                "no directory for a spool can be written (%s): up to %d MiB wait in memory until the store has them, "
                "and are lost with the process. Set TBWRITER_SPOOL_DIR to a directory on a local disk",
                exc,
                _thinning.MEMORY_BYTES >> 20,
            )
        return None


def _spool(root: Path | None, url: str, options: Mapping[str, Any], name: str, header: bytes) -> Spool:
    if root is None:
        return MemorySpool(name=name, header=header)
    return DiskSpool(root, url, options, name=name, header=header)


# -- the sinks of this process by URL, for `put_file`; not those of a parent

_live: weakref.WeakValueDictionary[str, SpooledObjectSink] = weakref.WeakValueDictionary()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_live.clear)


def live_sink(url: str) -> SpooledObjectSink | None:
    """Return the open sink of a URL, if this process has one."""
    return _live.get(url.rstrip("/"))


def waiting_names(url: str, spool_dir: str | None) -> list[str]:
    """Return the names of the event files that wait in the spool for a URL."""
    try:
        return spooled_names(usable_root(spool_dir), url)
    except OSError:
        return []


def list_remote(store: Store, url: str, until: float) -> list[str] | None:
    """Return the names at a URL; None where the store does not tell in time, `until` on the monotonic clock at most.

    Raises:
        OSError: it refuses.
    """
    try:
        return call_within(at_most(LIST_SECS, until - _DOWN_SECS), lambda: store.names(url))
    except Exception as exc:
        if not is_refusal(exc):
            store.failed(exc, url, "the spool")
        elif store.only_sealed:  # else the first put tells, also to those who may write and not list
            raise OSError(errno.EACCES, f"the store refuses: {store.words(exc)}", without_user(url)) from None
        return None
