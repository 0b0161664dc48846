"""Servers on which a file can grow: sftp and smb.

What of an event file is not there yet is written behind what is, at its place, so that a repetition after an unknown
outcome is harmless; nothing is sent twice but by a server that refuses this.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from tbwriter.sinks._credentials import without_user
from tbwriter.sinks._store import Store

_log = logging.getLogger(__name__)

_CONNECT_SECS = 5
_ANSWER_SECS = 15
# Repeating is the uploader's.
_LIMITS: dict[str, dict[str, Any]] = {
    "sftp": {"timeout": _CONNECT_SECS, "banner_timeout": _ANSWER_SECS, "auth_timeout": _ANSWER_SECS},
    "smb": {"timeout": _CONNECT_SECS, "register_session_retries": 0, "share_access": "r"},  # readers may look meanwhile
}
# What the servers' drivers raise for a request that they do not know.
_NOT_SUPPORTED = frozenset({None, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ESPIPE})


class AppendingStore(Store):
    """One server under one set of options, over one connection, which is made at the first call and after errors."""

    appends = True
    can_cancel = False

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        """Load the driver; `url` tells host and user. Raises as `Store`."""
        self._url = url
        self._io = threading.Lock()  # the drivers take one call at a time
        self._refuses = False
        super().__init__(url.split("://", 1)[0], options)

    def _driver(self, package: str) -> Any:
        kind = self._kind(package)
        self.options = {**kind._get_kwargs_from_urls(self._url), **self.options}
        return _Connection(kind, self.protocol, self.options)

    def path(self, url: str) -> str:
        """Return the driver's path of a URL."""
        return str(self._fs.kind._strip_protocol(url))

    def put(self, url: str, data: bytes, started: Callable[[Future[Any]], object] = lambda _: None) -> int:
        """Store a file; of an event file, which only grows, what is not there yet. Return how many bytes were sent."""
        del started
        path = self.path(url)
        with self._io:
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
                without_user(self._url),
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
        with self._io:
            try:
                return super().names(url)
            except OSError as exc:
                if exc.errno != errno.ENOENT:
                    raise
                return []

    def read(self, url: str) -> bytes:
        """Return all of a small file."""
        with self._io:
            return super().read(url)

    def exists(self, url: str) -> bool:
        """Say whether there is a file."""
        with self._io:
            return super().exists(url)


class _Connection:
    """A driver that connects when it is used."""

    def __init__(self, kind: Any, protocol: str, options: Mapping[str, Any]) -> None:
        self.kind = kind
        self._protocol = protocol
        self._options = options
        self._fs: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._fs is None:
            self._fs = self._connected()
        return getattr(self._fs, name)

    def _connected(self) -> Any:
        fs = self.kind(**{**_LIMITS[self._protocol], **self._options}, skip_instance_cache=True)
        if self._protocol == "sftp":
            fs.ftp.get_channel().settimeout(_ANSWER_SECS)
        return fs

    def disconnect(self) -> None:
        """Begin anew with the next call."""
        fs, self._fs = self._fs, None
        client = getattr(fs, "client", None)
        if client is not None:
            client.close()
