"""Servers on which a file can grow: sftp and smb.

What of an event file is not there yet is written behind what is, at its place, so that a repetition after an unknown
outcome is harmless; nothing is sent twice but by a server that refuses this.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, BinaryIO, TypeVar, cast

from tbwriter._logger import get_logger
from tbwriter.sinks._credentials import without_user
from tbwriter.sinks._store import CALL_SECS, READ_BLOCK_BYTES, SECS_PER_BYTE, Store

_log = get_logger(__name__)
_T = TypeVar("_T")

_CONNECT_SECS = 5
_ANSWER_SECS = 15
_SMB_PORT = 445
# Repeating is the uploader's.
_LIMITS: dict[str, dict[str, Any]] = {
    "sftp": {"timeout": _CONNECT_SECS, "banner_timeout": _ANSWER_SECS, "auth_timeout": _ANSWER_SECS},
    "smb": {"timeout": _CONNECT_SECS, "register_session_retries": 0, "share_access": "r"},  # readers may look meanwhile
}
# What the servers' drivers raise for a request that they do not know.
_NOT_SUPPORTED = frozenset({None, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ESPIPE})


class AppendingStore(Store):
    """One server under one set of options, over one connection, which is made at the first call and after errors.

    What is open for reading has another one, which no failed put ends.
    """

    appends = True
    can_cancel = False
    most_calls = 1  # which the drivers take

    def __init__(self, scheme: str, options: Mapping[str, Any], netloc: str = "", *, within: float = 0.0) -> None:
        """Load the driver. Arguments and errors as for `Store`; nothing is waited for."""
        self._refuses = False
        super().__init__(scheme, options, netloc, within=within)
        self._reading = _Connection(self._type, self.protocol, self.options)

    def _driver(self, package: str, within: float) -> Any:
        del package, within
        return _Connection(self._type, self.protocol, self.options)

    def put(self, url: str, data: bytes, started: Callable[[Future[Any]], object] = lambda _: None) -> int:
        """Store a file; of an event file, which only grows, what is not there yet. Return how many bytes were sent."""
        del started
        path = self.path(url)
        return self._ask(CALL_SECS + len(data) * SECS_PER_BYTE, lambda: self._put(path, data))

    def _put(self, path: str, data: bytes) -> int:
        try:
            there = self._size(path) if "tfevents" in path.rsplit("/", 1)[-1] else None
            if there is None or self._refuses or not self._grow(path, there, data):
                there = 0
                self._make_directory(path.rsplit("/", 1)[0])
                with self._fs.open(path, "wb") as file:
                    file.write(data)
            self._check(path, len(data))
        except Exception:
            self._fs.disconnect()
            raise
        return max(0, len(data) - there)

    def _ask(self, secs: float, call: Callable[[], _T]) -> _T:
        """As `Store._ask`; the end of the connection is also that of a call that hangs, and the next one connects."""
        try:
            return super()._ask(secs, call)
        except TimeoutError:
            self._fs.break_off()
            raise

    def _make_directory(self, path: str) -> None:
        share = "/".join(path.split("/")[:2])
        # smb's driver would look for the parent of a share that is not there, and never end.
        if self.protocol == "smb" and self._size(share) is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such share", share)
        self._fs.makedirs(path, exist_ok=True)

    def _size(self, path: str) -> int | None:
        try:
            return int(self._fs.info(path)["size"])
        except OSError as exc:  # smb's is no FileNotFoundError
            if exc.errno != errno.ENOENT:
                raise
            return None

    def _grow(self, path: str, there: int, data: bytes) -> bool:
        """Write what is missing; return whether the server takes it so."""
        if there >= len(data):
            return True
        try:
            with self._fs.open(path, "r+b") as file:
                file.seek(there)
                file.write(data[there:])
        except OSError as exc:
            if exc.errno not in _NOT_SUPPORTED or isinstance(exc, (ConnectionError, TimeoutError)):
                raise
            self._refuses = True
            _log.warning(
                "%s: the server does not let files grow (%s): each is sent whole again whenever it has grown; a small "
                "max_file_size makes that less",
                without_user(f"{self.scheme}://{self._netloc}"),
                self.words(exc),
            )
            return False
        return True

    def _check(self, path: str, size: int) -> None:
        found = self._size(path)
        if found is None or found < size:
            raise OSError(errno.EIO, f"the server has {found} bytes of {size}", path)

    def names(self, url: str) -> list[str]:
        """Return the names of the files directly below a URL; [] for none."""
        try:
            return super().names(url)
        except OSError as exc:
            if exc.errno != errno.ENOENT:
                raise
            return []

    def entries(self, url: str) -> list[tuple[str, Mapping[str, Any]]]:
        """As `Store.entries`."""
        return self._ask(CALL_SECS, lambda: super(AppendingStore, self).entries(url))

    def info(self, url: str) -> Mapping[str, Any]:
        """As `Store.info`."""
        return self._ask(CALL_SECS, lambda: super(AppendingStore, self).info(url))

    def is_directory(self, url: str) -> bool:
        """Say whether a URL names a directory."""
        return self._ask(CALL_SECS, lambda: super(AppendingStore, self).is_directory(url))

    def is_file(self, url: str) -> bool:
        """Say whether a URL names a file."""
        return self._ask(CALL_SECS, lambda: super(AppendingStore, self).is_file(url))

    def upload(self, local: str, url: str) -> None:
        """Store a local file of any size."""
        self._ask(
            CALL_SECS + os.path.getsize(local) * SECS_PER_BYTE, lambda: super(AppendingStore, self).upload(local, url)
        )

    def open(self, url: str) -> BinaryIO:
        """As `Store.open`."""
        return cast("BinaryIO", self._reading.open(self.path(url), "rb", block_size=READ_BLOCK_BYTES))

    def note(self, exc: BaseException) -> int:
        """As `Store.note`; what no answer of the server's was ends the connection that files are read over."""
        if not isinstance(exc, OSError) or isinstance(exc, (ConnectionError, TimeoutError)):
            self._reading.disconnect()
        return super().note(exc)

    def read(self, url: str) -> bytes:
        """Return all of a small file."""
        return self._ask(CALL_SECS, lambda: super(AppendingStore, self).read(url))

    def exists(self, url: str) -> bool:
        """Say whether there is a file."""
        return self._ask(CALL_SECS, lambda: super(AppendingStore, self).exists(url))


class _Connection:
    """A driver that connects when it is used."""

    def __init__(self, kind: Any, protocol: str, options: Mapping[str, Any]) -> None:
        self._kind = kind
        self._protocol = protocol
        self._options = options
        self._fs: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._fs is None or not self._is_connected():
            self._fs = self._connected()
        return getattr(self._fs, name)

    def _is_connected(self) -> bool:
        if self._protocol == "smb":  # whose driver would connect anew by itself, as nobody
            return _is_connected(self._server)
        return not self._fs.ftp.get_channel().closed

    @property
    def _server(self) -> str:
        return f"{self._options['host'].lower()}:{self._options.get('port') or _SMB_PORT}"

    def _connected(self) -> Any:
        if self._protocol == "smb":
            _leave_sessions_at_exit()
        fs = self._kind(**{**_LIMITS[self._protocol], **self._options}, skip_instance_cache=True)
        if self._protocol == "sftp":
            fs.ftp.get_channel().settimeout(_ANSWER_SECS)
        return fs

    def disconnect(self) -> None:
        """Begin anew with the next call."""
        fs, self._fs = self._fs, None
        client = getattr(fs, "client", None)
        if client is not None:
            client.close()

    def break_off(self) -> None:
        """Close the connection under a call that hangs: smb's driver waits for an answer for ever."""
        if self._protocol == "smb":
            _shut_down(self._server)
        self.disconnect()


def _is_connected(server: str) -> bool:
    from smbclient import _pool

    connection = _pool._SMB_CONNECTIONS.get(server)
    return connection is not None and bool(connection.transport.connected)


def _shut_down(server: str) -> None:
    from smbclient import _pool

    connection = _pool._SMB_CONNECTIONS.pop(server, None)
    # The connection's own ways to close wait for whoever hangs in it.
    sock = getattr(getattr(connection, "transport", None), "_sock", None)
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _leave_sessions_at_exit() -> None:
    """Keep smb's driver from ending its sessions at exit: before our last words, and for ever where a server hangs."""
    import smbclient

    atexit.unregister(smbclient.reset_connection_cache)
