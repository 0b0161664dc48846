"""Event files on a local or shared file system.

Every append is one write of whole records at the end of what was written before. Nothing is ever preallocated,
sought, renamed or rewritten: a reader that once sees zeros where a record will be never recovers (tensorboard#5588),
and a file that shrinks below what a reader has read loses it as much. Only the torn part of a last record is cut off.
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace

from tbwriter.errors import SegmentLostError
from tbwriter.sinks._base import Durability, SinkStatus, whole_records

# The handle names a file that the server no longer has, or the disk refuses the place for good.
_LOST = frozenset({errno.ESTALE, errno.ENOENT, errno.ENOTDIR, errno.EBADF})
_MAX_REPEATED_EIO = 3
# Windows has no O_CLOEXEC and translates line ends without O_BINARY.
_OPEN_FLAGS = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class FileSink:
    """One directory on a file system; each segment is a file in it, created exclusively.

    Files get 0666 and directories 0777, less the umask. Errors of a write keep what was written; the same records,
    given again, are continued where the write stopped.
    """

    max_durability = Durability.SYNC
    visible_at = Durability.OS

    def __init__(self, directory: str, *, name: str, header: bytes = b"") -> None:
        """Create `directory` where it is missing, and the segment `name` in it.

        Raises:
            OSError: it cannot be created or written.
        """
        self._directory = os.path.abspath(directory)
        self._name = name
        self._lock = threading.Lock()  # of _status, the one attribute that other threads read
        self._fd = -1
        self._offset = 0  # the end of the last whole append
        self._header_bytes = 0
        self._done = 0  # bytes of a failed append that are in the file, behind _offset
        self._failed = b""  # the records of that append
        self._eio = 0  # EIO in a row
        self._synced_directory = True
        self._status = SinkStatus(path=self._path, segment=-1)
        self.roll(name, header)

    @property
    def name(self) -> str:
        """The file name of the current segment."""
        return self._name

    @property
    def _path(self) -> str:
        return os.path.join(self._directory, self._name)

    def append(self, records: bytes) -> None:
        """Write `records` at the end, by one write(2) where the system takes it whole."""
        try:
            if self._fd < 0:
                self._reopen()
            view = memoryview(records)
            cut = os.fstat(self._fd).st_size < self._offset
            while not cut and self._done < len(view):
                self._done += _write_at(self._fd, view[self._done :], self._offset + self._done)
            # Deleted under our hands: what was just written is gone with it and belongs into the next segment.
            unlinked = os.fstat(self._fd).st_nlink == 0
        except OSError as exc:
            self._fail(exc, records)
            raise
        if unlinked or cut:
            # A write behind the new end would leave a hole of zeros, which no reader gets over.
            self._failed = b""
            raise SegmentLostError(f"{self._path} was {'deleted' if unlinked else 'cut short'}")
        self._eio = 0
        self._offset += self._done
        self._done = 0
        self._failed = b""
        self._count(len(records))

    def _reopen(self) -> None:
        self._fd = os.open(self._path, _OPEN_FLAGS)

    def _fail(self, exc: OSError, records: bytes) -> None:
        """Count the error; raise SegmentLostError where trying again is no use."""
        self._note(exc)
        self._failed = records
        self._eio = self._eio + 1 if exc.errno == errno.EIO else 0
        # The largest file that the system allows: a new one takes more, unless this one is new itself.
        full = exc.errno == errno.EFBIG and self._offset > self._header_bytes
        if exc.errno in _LOST or self._eio >= _MAX_REPEATED_EIO or full:
            self._eio = 0
            if exc.errno in _LOST:
                self._failed = b""  # nobody can read what went there: all of it comes again
            kept = self._keep_whole_records()
            raise SegmentLostError(f"{self._path}: {exc.strerror}", kept) from exc

    def _keep_whole_records(self) -> int:
        """Count what a failed append wrote as stored, up to the last whole record; return how many bytes that is."""
        kept = whole_records(self._failed, min(self._done, len(self._failed)))
        self._failed = self._failed[kept:]
        self._offset += kept
        self._done -= kept
        self._count(kept)
        return kept

    def _count(self, size: int) -> None:
        with self._lock:
            self._status = replace(self._status, bytes_os=self._status.bytes_os + size)

    def _note(self, exc: OSError) -> None:
        with self._lock:
            self._status = replace(self._status, retries=self._status.retries + 1, last_error=str(exc))

    def roll(self, name: str, header: bytes) -> None:
        """Seal the current file and create `name`."""
        self._seal(Durability.OS)
        os.makedirs(self._directory, exist_ok=True)
        path = os.path.join(self._directory, name)
        fd = os.open(path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            written = 0
            while written < len(header):
                written += _write_at(fd, memoryview(header)[written:], written)
        except BaseException:
            # Never leave a file without a whole first record.
            os.close(fd)
            os.unlink(path)
            raise
        self._fd, self._name, self._offset, self._done, self._eio = fd, name, len(header), 0, 0
        self._header_bytes = len(header)
        self._synced_directory = False
        with self._lock:
            status = self._status
            self._status = replace(
                status, path=path, segment=status.segment + 1, bytes_os=status.bytes_os + len(header)
            )

    def roll_due(self) -> bool:
        """Never: only the event file's own limit ends a file."""
        return False

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        """Sync the data, and the directory once for each file; what was appended is with the system already."""
        del timeout  # a system call cannot be given one; the writer's thread waits instead of the caller
        if self._done:
            return Durability.BUFFER
        if level < Durability.SYNC:
            return Durability.OS
        try:
            if self._fd < 0:
                self._reopen()
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
            self._sync_directory()
        except OSError as exc:
            self._note(exc)
            return Durability.OS
        return Durability.SYNC

    def _sync_directory(self) -> None:
        if self._synced_directory or os.name == "nt":
            return
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        self._synced_directory = True

    def release(self) -> None:
        """Close the handle; the next append opens the file again."""
        if self._fd >= 0 and not self._done:
            os.close(self._fd)
            self._fd = -1

    def status(self) -> SinkStatus:
        """Return counters; from any thread, and in a forked child whose parent held the lock."""
        return self._status

    def close(self, timeout: float = 10.0) -> SinkStatus:
        """Sync and close the file."""
        del timeout  # as in flush
        self._seal(Durability.SYNC)
        return self.status()

    def _seal(self, level: Durability) -> None:
        """Cut a torn last record and close the handle. Errors are noted: a sealed file is not touched again."""
        if self._fd < 0:
            return
        try:
            if self._done:
                self._keep_whole_records()
                os.ftruncate(self._fd, self._offset)
                self._done = 0
            self.flush(level)
        except OSError as exc:
            self._note(exc)
        try:
            os.close(self._fd)
        except OSError as exc:  # NFS reports a failed write here
            self._note(exc)
        self._fd = -1


def _write_at(fd: int, data: memoryview, offset: int) -> int:
    """Write at `offset`, which makes a repetition after an unknown outcome harmless; return how much was taken."""
    if hasattr(os, "pwrite"):
        return os.pwrite(fd, data, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, data)
