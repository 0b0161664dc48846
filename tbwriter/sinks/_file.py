"""Event files on a local or shared file system.

Every append is one write of whole records at the end of what was written before. Nothing is ever preallocated,
sought, renamed or rewritten: a reader that once sees zeros where a record will be never recovers (tensorboard#5588),
and a file that shrinks below what a reader has read loses it as much. Only the torn part of a last record is cut off.

On a shared file system every append is also synced, in chunks that a client sends to its server whole: only then do
other machines see the records, and see them without holes. What a failed sync left is cut off and written again: the
system forgets what it could not write back, and the next sync would succeed without it.

Over 300 lines: one file's state through writes, syncs and faults, which is only understood together.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from dataclasses import replace
from types import ModuleType

from tbwriter._logger import get_logger
from tbwriter.errors import RecordTooLargeError, SegmentLostError
from tbwriter.sinks._base import Durability, SinkStatus, whole_records
from tbwriter.sinks._handles import open_apart
from tbwriter.sinks._local_names import local
from tbwriter.sinks._mounts import file_system, is_object_store, is_shared

_log = get_logger(__name__)

# The handle names a file that the server no longer has, or the disk refuses the place for good.
_LOST = frozenset({errno.ESTALE, errno.ENOENT, errno.ENOTDIR, errno.EBADF})
_MAX_REPEATED_EIO = 3
# What mounts of object stores say to a write at the end of a file that was synced or closed: Mountpoint for S3, goofys,
# Databricks' DBFS, rclone.
_NO_GROWTH = frozenset({errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ESPIPE})
# A single one may be a hiccup.
_ENOUGH_REFUSALS = 2
# What a file system says that cannot sync, or not a directory.
_CANNOT_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS})
# One request of a usual client of NFS or FUSE.
_SHARED_CHUNK_BYTES = 1 << 16
# Windows has no O_CLOEXEC and translates line ends without O_BINARY.
_OPEN_FLAGS = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def make_directory(path: str) -> None:
    """Make a directory, and those above it, where they are not there yet.

    Raises:
        OSError: it cannot be made; FileExistsError is left to files, whose name another writer took first.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError as exc:
        way = exc.filename or path
        if os.path.islink(way) and not os.path.exists(way):
            there = f"a link to {os.readlink(way)}, which is not there"
            raise FileNotFoundError(errno.ENOENT, there, way) from exc
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), way) from exc


class FileSink:
    """One directory on a file system; each segment is a file in it, created exclusively.

    Files get 0666 and directories 0777, less the umask. Errors of a write keep what was written; the same records,
    given again, are continued where the write stopped, or on a shared file system after the last sync.
    """

    max_durability = Durability.SYNC

    def __init__(self, directory: str, *, name: str, header: bytes = b"", shared: bool | None = None) -> None:
        """Create `directory` where it is missing, and the segment `name` in it.

        Args:
            directory: a path.
            name: as in `open_sink`.
            header: as in `open_sink`.
            shared: whether other machines see the directory; None looks into the mount table.

        Raises:
            OSError: it cannot be created or written.
        """
        self._directory = os.path.abspath(local(directory))
        self._name = name
        self._lock = threading.Lock()  # of _status, the one attribute that other threads read
        self._fd = -1
        self._offset = 0  # the end of the last whole append
        self._header = b""
        self._done = 0  # bytes of a failed append that are in the file, behind _offset
        self._failed = b""  # the records of that append
        self._synced = 0  # bytes of that append that are synced; of a shared file system only
        self._unsynced = False  # something was written since the last sync
        self._doubtful = False  # the last sync failed: what it should have stored may be gone
        self._untold = False  # as did one of the file before, at its end, which no flush has told yet
        self._eio = 0  # EIO in a row
        self._synced_directory = True
        self._shared = False
        self._can_sync = True
        self._can_grow = True
        self._refusals = 0  # to let a file grow, in a row
        self._status = SinkStatus(path=self._path, segment=-1)
        self.roll(name, header)
        kind = file_system(self._directory)  # now that it exists, and is mounted
        self._shared = is_shared(kind) if shared is None else shared
        if is_object_store(kind):
            _log.warning(
                "%s: a %s mount uploads whole files, at each sync or only at their end, before which nobody else sees "
                "them; give the URL of the store instead, such as s3://",
                self._directory,
                kind,
            )

    @property
    def name(self) -> str:
        """The file name of the current segment."""
        return self._name

    @property
    def visible_at(self) -> Durability:
        """The level at which others see the records: on a shared file system they must be synced."""
        return Durability.SYNC if self._shared and self._can_sync else Durability.OS

    @property
    def _path(self) -> str:
        return os.path.join(self._directory, local(self._name))

    def append(self, records: bytes) -> None:
        """Write `records` at the end, by one write(2) where the system takes it whole; on a shared file system sync."""
        try:
            found = self._have_handle()
            # Of a new file a client that caches may not know the size yet.
            cut = self._offset > len(self._header) and found is not None and found.st_size < self._offset
            if not cut:
                self._write(memoryview(records))
            # Deleted under our hands: what was just written is gone with it and belongs into the next segment.
            unlinked = self._is_unlinked()
        except OSError as exc:
            self._fail(exc, records)
            raise
        self._eio = 0
        if self._offset > len(self._header):
            self._refusals = 0
        if unlinked or cut:
            # A write behind the new end would leave a hole of zeros, which no reader gets over.
            self._failed = b""
            self._done = self._synced = 0
            raise SegmentLostError(f"{self._path} was {'deleted' if unlinked else 'cut short'}")
        self._offset += self._done
        self._done = self._synced = 0
        self._failed = b""
        self._count(len(records))

    def _write(self, records: memoryview) -> None:
        """Write what is not in the file yet, and on a shared file system sync it."""
        while self._done < len(records) or self._synced < self._done:
            end = self._end_of_chunk(records) if self._shared else len(records)
            while self._done < end:
                self._unsynced = True
                self._done += _write_at(self._fd, records[self._done : end], self._offset + self._done)
            if not self._shared:
                return
            self._sync()
            self._synced = self._done

    def _is_unlinked(self) -> bool:
        """Say whether our file has no name any more."""
        found = os.fstat(self._fd)
        if found.st_nlink:
            return False
        # Some FUSE file systems count no links at all.
        with contextlib.suppress(FileNotFoundError):
            return not os.path.samestat(found, os.stat(self._path))
        return True

    def _end_of_chunk(self, records: memoryview) -> int:
        """Return where the next chunk ends: with a record, where one ends within its bytes."""
        limit = min(self._synced + _SHARED_CHUNK_BYTES, len(records))
        whole = whole_records(records, limit)
        return whole if whole > self._synced else limit

    def _have_handle(self) -> os.stat_result | None:
        """Open the file again where there is no handle, or where it is another part of the program's by now.

        Returns:
            As `_forget_foreign`.
        """
        found = self._forget_foreign()
        if self._fd < 0:
            self._fd = open_apart(self._path, _OPEN_FLAGS)
            found = self._opened = os.fstat(self._fd)
        return found

    def _forget_foreign(self) -> os.stat_result | None:
        """Let go of a handle that another part of the program closed, as daemons close all that they find.

        Its number may be another file's by now, a checkpoint's perhaps, which must be neither written nor closed.

        Returns:
            What the system says of the file, where the handle is ours and it says something.
        """
        if self._fd < 0:
            return None
        try:
            found = os.fstat(self._fd)
        except OSError as exc:
            if exc.errno == errno.EBADF:
                self._fd = -1
            return None  # what else is wrong with it, its use will tell
        if os.path.samestat(found, self._opened):
            return found
        with contextlib.suppress(OSError):  # some FUSE file systems number a file anew
            if os.path.samestat(found, os.stat(self._path)):
                return found
        self._fd = -1
        return None

    def _fail(self, exc: OSError, records: bytes) -> None:
        """Count the error; raise SegmentLostError or RecordTooLargeError where trying again is no use."""
        self._note(exc)
        self._forget_foreign()
        self._failed = records
        too_large = exc.errno == errno.EFBIG
        if self._shared:
            if too_large:
                with contextlib.suppress(OSError):  # what went in before will fit no better into the next file
                    self._sync()
                    self._synced = self._done
            self._done = self._synced
            self._cut(self._offset + self._done)
        self._eio = self._eio + 1 if exc.errno == errno.EIO else 0
        taken = self._offset + whole_records(records, min(self._done, len(records)))
        if too_large and taken <= len(self._header):
            self._keep_whole_records()
            raise RecordTooLargeError(f"{self._path}: {exc.strerror}") from exc
        cannot_grow = exc.errno in _NO_GROWTH and self._offset > len(self._header)
        # At the largest size that the system allows, a new file takes more.
        if exc.errno in _LOST or self._eio >= _MAX_REPEATED_EIO or too_large or cannot_grow:
            self._eio = 0
            if cannot_grow:
                self._count_refusal(exc)
            if exc.errno in _LOST and not self._is_in_place():
                self._failed = b""  # nobody can read what went there: all of it comes again
            kept = self._keep_whole_records()
            raise SegmentLostError(f"{self._path}: {exc.strerror}", kept) from exc

    def _count_refusal(self, exc: OSError) -> None:
        self._refusals += 1
        if self._refusals == _ENOUGH_REFUSALS:
            self._can_grow = False
            _log.warning(
                "%s: this mount lets no file grow that was synced or closed (%s): from now on every flush begins a new "
                "file. A larger flush_secs makes fewer; better give the URL of the store, such as s3://",
                self._directory,
                exc.strerror,
            )

    def _is_in_place(self) -> bool:
        """Say whether the file of a lost handle is still there, with all that was written."""
        try:
            return os.stat(self._path).st_size >= self._offset + self._done
        except OSError:
            return False

    def _keep_whole_records(self) -> int:
        """Count what a failed append wrote as stored, up to the last whole record, and cut off the rest.

        Returns:
            how many bytes were stored.
        """
        kept = whole_records(self._failed, min(self._done, len(self._failed)))
        self._offset += kept
        self._failed = b""
        self._done = self._synced = 0
        self._cut(self._offset)
        self._count(kept)
        return kept

    def _cut(self, size: int) -> None:
        """Cut the file back to `size`, as far as that can be done: by its path where its handle is lost."""
        try:
            if os.fstat(self._fd).st_size > size:
                os.ftruncate(self._fd, size)
        except OSError:
            with contextlib.suppress(OSError):
                if os.stat(self._path).st_size > size:
                    os.truncate(self._path, size)

    def _count(self, size: int) -> None:
        with self._lock:
            self._status = replace(self._status, bytes_os=self._status.bytes_os + size)

    def _note(self, exc: OSError) -> None:
        with self._lock:
            self._status = replace(self._status, retries=self._status.retries + 1, last_error=str(exc))

    def roll(self, name: str, header: bytes) -> None:
        """Seal the current file and create `name`."""
        self._seal()
        make_directory(self._directory)
        path = os.path.join(self._directory, local(name))
        fd = open_apart(path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _write_all(fd, header)
            self._opened = os.fstat(fd)
        except BaseException:
            # Never leave a file without a whole first record.
            os.close(fd)
            os.unlink(path)
            raise
        self._fd, self._name, self._offset, self._done, self._eio = fd, name, len(header), 0, 0
        self._header = header
        self._unsynced, self._doubtful, self._synced_directory = True, False, False
        with self._lock:
            status = self._status
            self._status = replace(
                status, path=path, segment=status.segment + 1, bytes_os=status.bytes_os + len(header)
            )

    def roll_due(self) -> bool:
        """After a failed sync, as what it left in doubt cannot be told from what follows; and where no file grows."""
        if not self._can_grow and not self._unsynced:
            return True
        return self._doubtful and not self._shared

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        """Sync the data, and the directory once for each file; what was appended is with the system already.

        On a shared file system every level does so: others do not see less. A sync that fails is told by the level
        of one flush; the next file begins anew.
        """
        del timeout  # a system call cannot be given one; the writer's thread waits instead of the caller
        if self._failed:
            return Durability.BUFFER
        if level < Durability.SYNC and not self._shared:
            return Durability.OS
        reached = self._try_to_sync() and self._can_sync and not (self._doubtful or self._untold)
        self._untold = self._untold and level < Durability.SYNC
        return Durability.SYNC if reached else Durability.OS

    def _try_to_sync(self) -> bool:
        try:
            if self._unsynced:
                self._sync()
            self._sync_directory()
        except OSError as exc:
            self._note(exc)
            return False
        return True

    def _sync(self) -> None:
        """Sync the data; where that fails, what append still has is written once more."""
        self._have_handle()
        try:
            if self._doubtful and self._shared:
                _write_all(self._fd, self._header)
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
        except OSError as exc:
            if exc.errno not in _CANNOT_SYNC:
                self._doubtful = True
                raise
            self._can_sync = False
        self._unsynced = False
        # On a local disk older appends were not written once more, and no later sync tells of them.
        self._doubtful = self._doubtful and not self._shared

    def _sync_directory(self) -> None:
        if self._synced_directory or os.name == "nt":
            return
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as exc:
            if exc.errno not in _CANNOT_SYNC:
                raise
        finally:
            os.close(handle)
        self._synced_directory = True

    def release(self) -> None:
        """Close the handle; the next append opens the file again."""
        self._forget_foreign()
        if self._fd >= 0 and not self._failed:
            os.close(self._fd)
            self._fd = -1

    def status(self) -> SinkStatus:
        """Return counters; from any thread, and in a forked child whose parent held the lock."""
        return self._status

    def close(self, timeout: float = 10.0) -> SinkStatus:
        """Sync and close the file; without any time left only close it."""
        self._seal(sync=timeout > 0)
        return self.status()

    def _seal(self, *, sync: bool = True) -> None:
        """Cut a torn last record, sync and close the handle. Errors are noted: a sealed file is not touched again."""
        self._forget_foreign()
        if self._fd < 0 and not (self._unsynced and sync):
            return
        if self._failed:
            self._keep_whole_records()
        doubtful = self._doubtful
        if sync:
            self._try_to_sync()
        self._untold = self._untold or (self._doubtful and not doubtful)
        try:
            if self._fd >= 0:
                os.close(self._fd)
        except OSError as exc:  # NFS reports a failed write here
            self._note(exc)
        self._fd = -1
        self._unsynced = False


def _write_all(fd: int, header: bytes) -> None:
    written = 0
    while written < len(header):
        written += _write_at(fd, memoryview(header)[written:], written)


def _write_at(fd: int, data: memoryview, offset: int) -> int:
    """Write at `offset`, which makes a repetition after an unknown outcome harmless; return how much was taken."""
    # Not where `os` is a stand-in, as in tests with pyfakefs: its handles are not the system's, and pwrite would be.
    if hasattr(os, "pwrite") and isinstance(os, ModuleType):
        return os.pwrite(fd, data, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, data)
