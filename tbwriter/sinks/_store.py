"""An object store as fsspec's drivers reach it: which driver, with which options, and what its errors mean.

Objects are stored by one atomic `pipe_file` each. Nothing here is ever renamed, copied or deleted, and no file of
fsspec is ever opened for writing: its flush() shows nothing and its "ab" overwrites or sends everything again.

Over 300 lines: half of it is a table of drivers, options and refusals, which differ from store to store.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import urlsplit

from tbwriter.sinks._credentials import hide, without_user
from tbwriter.sinks._io_loop import io_loop
from tbwriter.sinks._uploader import Uploader

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

# scheme -> (fsspec's protocol, what to install)
_DRIVERS = {
    "s3": ("s3", "s3fs"),
    "s3a": ("s3", "s3fs"),
    "obs": ("s3", "s3fs"),  # Huawei's own driver only knows its own SDK; its store speaks S3
    "gs": ("gs", "gcsfs"),
    "gcs": ("gs", "gcsfs"),
    "az": ("abfs", "adlfs"),
    "abfs": ("abfs", "adlfs"),
    "abfss": ("abfs", "adlfs"),
    "oss": ("oss", "ossfs"),
    "sftp": ("sftp", "paramiko"),
    "ssh": ("sftp", "paramiko"),
    "smb": ("smb", "smbprotocol"),
    "hdfs": ("hdfs", "pyarrow"),
    "webhdfs": ("webhdfs", "requests"),
}
SCHEMES = frozenset(_DRIVERS)
# Files can grow there.
APPENDING = frozenset({"sftp", "smb", "ssh"})
# The least time between two puts of one object: Google allows one a second.
_MIN_GAP_SECS = {"gs": 1.0}
# No object is replaced while it is read there, so each is stored once.
_ONLY_SEALED = frozenset({"hdfs", "webhdfs"})
_CONNECT_SECS = 5
_DRIVER_SECS = 8.0
_READ_SECS = 15
# A call gives up after so long, and this much more for each byte.
_CALL_SECS = 30.0
_SECS_PER_BYTE = 1 / 50_000
_READ_BLOCK_BYTES = 4 << 20
_REFUSED_STATUS = frozenset({400, 401, 403, 404})
_REFUSING = (FileNotFoundError, NotImplementedError, PermissionError)  # NotImplementedError: it cannot be written
# Errors of the drivers' own kinds that waiting does not mend.
_REFUSALS = frozenset(
    {
        *("AuthenticationException", "BadHostKeyException", "PasswordRequiredException"),  # sftp
        *("AccessDenied", "BadNetworkName", "LogonFailure"),  # smb
        *("ClientAuthenticationError", "DefaultCredentialsError", "InvalidRegionError", "NoCredentialsError"),
        *("ParamValidationError", "PartialCredentialsError", "ProfileNotFound", "RefreshError", "TokenRetrievalError"),
    }
)


class Store:
    """One store under one set of options; shared by all sinks of a process that use it.

    Methods may be called from any thread and block until the store has answered.
    """

    appends = False
    """Whether a put sends only what is new."""
    can_cancel = True
    """Whether a put that has begun can be broken off."""

    def __init__(self, scheme: str, options: Mapping[str, Any]) -> None:
        """Load the driver.

        Raises:
            ImportError: it is not installed. ValueError: no driver, or it refuses the options.
        """
        self.scheme = scheme
        self.protocol, package = _DRIVERS.get(scheme, (scheme, ""))
        self.only_sealed = self.protocol in _ONLY_SEALED
        self.min_gap_secs = _MIN_GAP_SECS.get(self.protocol, 0.0)
        self.options = dict(options)
        self.uploader = Uploader()
        self.searched: set[Path] = set()
        """Spools in which what others have left for this store is being looked for."""
        self._lock = threading.Lock()
        self._outage_since: float | None = None
        self._fs = self._driver(package)

    def _kind(self, package: str) -> Any:
        import fsspec  # only when a URL asks for it

        try:
            return fsspec.get_filesystem_class(self.protocol)
        except ImportError as exc:
            name = package or "its driver"
            raise ImportError(f"{self.scheme}:// needs {name}: pip install {package or '<package>'} ({exc})") from exc

    def _driver(self, package: str) -> Any:
        kind = self._kind(package)
        options = _with_defaults(self.scheme, self.protocol, self.options)
        if getattr(kind, "async_impl", False):
            options.update(loop=io_loop(), asynchronous=False)
        try:
            # Some look for credentials in the network as soon as they are made.
            fs = call_within(_DRIVER_SECS, lambda: kind(**options, use_listings_cache=False, skip_instance_cache=True))
        except ImportError as exc:
            raise ImportError(f"{self.scheme}:// needs {package}: pip install {package} ({exc})") from exc
        except TimeoutError:
            hint = "it may look for credentials in vain; give storage_options"
            message = f"{self.scheme}://: its driver is not ready after {_DRIVER_SECS:g} s: {hint}"
            raise OSError(errno.ETIMEDOUT, message) from None
        except OSError:
            raise
        except Exception as exc:  # each driver has its own
            names = sorted(self.options)
            raise ValueError(f"{self.scheme}://: storage_options {names} are refused: {self.words(exc)}") from None
        self.can_cancel = hasattr(fs, "_pipe_file")
        if self.protocol == "s3":
            fs.retries = 1  # repeating is the uploader's, which can be waited for, counted and cancelled
        return fs

    def words(self, exc: BaseException) -> str:
        """Return an error in one line without credentials."""
        text = " ".join(f"{type(exc).__name__}: {exc}".split())
        return hide(text[:500], self.options)

    def path(self, url: str) -> str:
        """Return the driver's path of a URL."""
        rest = url.split("://", 1)[1]
        return cast("str", self._fs._strip_protocol(f"{self.protocol}://{rest}"))

    def put(self, url: str, data: bytes, started: Callable[[Future[Any]], object] = lambda _: None) -> int:
        """Store an object, whole and at once; what was there is replaced. Return how many bytes were sent.

        Args:
            url: where.
            data: all of it.
            started: is given the running call, where the driver has one that can be cancelled.
        """
        path = self.path(url)
        if not self.can_cancel:
            if self.only_sealed:
                self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            self._fs.pipe_file(path, data)
        else:
            self._wait(self._fs._pipe_file(path, data), _CALL_SECS + len(data) * _SECS_PER_BYTE, started)
        return len(data)

    def _wait(
        self, call: Coroutine[Any, Any, _T], secs: float, started: Callable[[Future[Any]], object] = lambda _: None
    ) -> _T:
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(call, secs), io_loop())
        started(future)
        return future.result()

    def names(self, url: str) -> list[str]:
        """Return the names of the files directly below a URL; [] for none."""
        path = self.path(url)
        try:
            found = self._fs.ls(path, detail=True)
        except FileNotFoundError:
            return []
        own = path.rstrip("/")
        paths = [entry["name"].rstrip("/") for entry in found if entry.get("type") == "file"]
        return [name.rsplit("/", 1)[-1] for name in paths if name != own]

    def exists(self, url: str) -> bool:
        """Say whether there is an object."""
        return bool(self._fs.exists(self.path(url)))

    def is_file(self, url: str) -> bool:
        """Say whether a URL names an object."""
        return bool(self._fs.isfile(self.path(url)))

    def open(self, url: str) -> BinaryIO:
        """Open an object for reading, by ranges."""
        return cast("BinaryIO", self._fs.open(self.path(url), "rb", block_size=_READ_BLOCK_BYTES))

    def read(self, url: str) -> bytes:
        """Return all of a small object."""
        return bytes(self._fs.cat_file(self.path(url)))

    # -- outages, said once for all sinks of the store

    def failed(self, exc: BaseException, url: str, where: str) -> None:
        """Note a failed call."""
        with self._lock:
            first = self._outage_since is None
            if first:
                self._outage_since = time.monotonic()
        if first:
            _log.warning("%s: the store fails, the data waits in %s: %s", without_user(url), where, self.words(exc))

    def worked(self, url: str) -> None:
        """Note a successful one."""
        if self._outage_since is None:
            return
        with self._lock:
            since, self._outage_since = self._outage_since, None
        if since is not None:
            _log.warning("%s: the store works again after %.1f s", without_user(url), time.monotonic() - since)

    @property
    def is_down(self) -> bool:
        """Whether the last call failed."""
        return self._outage_since is not None


def is_refusal(exc: BaseException | None) -> bool:
    """Say whether waiting does not help against an error: wrong bucket, key, permission or option."""
    while exc is not None:
        # smb's driver calls a server that it does not reach a ValueError.
        wrong = type(exc) in (TypeError, ValueError) and not isinstance(exc.__cause__, OSError)
        if isinstance(exc, _REFUSING) or wrong or type(exc).__name__ in _REFUSALS:
            return True
        for name in ("status_code", "status", "code"):
            code = getattr(exc, name, None)
            if code is not None and str(code).isdigit() and int(code) in _REFUSED_STATUS:
                return True
        if type(exc) is OSError and str(exc).startswith("Forbidden"):  # gcsfs
            return True
        exc = exc.__cause__
    return False


def _with_defaults(scheme: str, protocol: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for the driver; what the user gave goes before ours."""
    full = dict(options)
    if protocol == "gs":
        full.setdefault("requests_timeout", _READ_SECS)
    if protocol != "s3":
        return full
    endpoint = _endpoint(full)
    if scheme == "obs" and not endpoint:
        raise ValueError(
            "obs:// needs the endpoint of its region: "
            "storage_options={'endpoint_url': 'https://obs.<region>.myhuaweicloud.com', 'key': ..., 'secret': ...}"
        )
    config: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECS,
        "read_timeout": _READ_SECS,
        "retries": {"total_max_attempts": 1},
    }
    if endpoint and not _is_aws(endpoint):
        # Compatible stores: many refuse the streamed checksums that boto sends since 2025, and OBS, OSS and COS
        # refuse the bucket in the path.
        if _knows_checksums():
            config["request_checksum_calculation"] = config["response_checksum_validation"] = "when_required"
        config["s3"] = {"addressing_style": "virtual" if _has_domain(endpoint) else "path"}
    given = dict(full.get("config_kwargs") or {})
    if "s3" in config and "s3" in given:
        given["s3"] = {**config["s3"], **given["s3"]}
    full["config_kwargs"] = {**config, **given}
    return full


def _endpoint(options: Mapping[str, Any]) -> str:
    client = options.get("client_kwargs") or {}
    names = ("FSSPEC_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    given = options.get("endpoint_url") or client.get("endpoint_url")
    return str(given or next(filter(None, map(os.environ.get, names)), ""))


def _is_aws(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def _has_domain(endpoint: str) -> bool:
    """Say whether a bucket's name can stand before the host: not before an address or a name without a domain."""
    host = urlsplit(endpoint).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host.strip(".") and not host.endswith(".localhost")
    return False


def _knows_checksums() -> bool:
    from botocore.config import Config  # s3fs brings it

    return "request_checksum_calculation" in Config.OPTION_DEFAULTS


# -- the stores of this process

_stores: dict[tuple[str, str], Store] = {}
_of_parents: list[Store] = []


def store_for(url: str, options: Mapping[str, Any] | None) -> Store:
    """Return the store of a URL.

    Raises:
        ImportError, ValueError: as `Store`.
    """
    scheme, rest = url.split("://", 1)
    if scheme in APPENDING:
        from tbwriter.sinks._appending import AppendingStore

        key = (f"{scheme}://{rest.split('/', 1)[0]}", repr(sorted((options or {}).items(), key=lambda item: item[0])))
        return _stores.get(key) or _stores.setdefault(key, AppendingStore(url, options or {}))
    environment = _endpoint({}) if _DRIVERS.get(scheme, ("",))[0] == "s3" else ""
    key = (scheme, repr(sorted((options or {}).items(), key=lambda item: item[0])) + environment)
    # Without a lock: a driver may ask the network for credentials, and others must not wait for that.
    store = _stores.get(key)
    return store or _stores.setdefault(key, Store(scheme, options or {}))


def needs_host(scheme: str) -> bool:
    """Say whether a URL must name a bucket or a host; Hadoop's have a default."""
    return scheme in SCHEMES and scheme not in _ONLY_SEALED


def knows(scheme: str) -> bool:
    """Say whether there is a driver for a scheme, installed or not."""
    if scheme in _DRIVERS:
        return True
    from fsspec.registry import known_implementations, registry

    return scheme in known_implementations or scheme in registry


def call_within(secs: float, call: Callable[[], _T]) -> _T:
    """Return what `call` does, which may hang; where no thread can be started, as at exit, it is waited for.

    Raises:
        TimeoutError: it has not come back; its thread stays behind.
    """
    future: Future[_T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as exc:  # handed over
            future.set_exception(exc)

    try:
        threading.Thread(target=work, name="tbwriter-ask", daemon=True).start()
    except RuntimeError:
        work()
    if not wait([future], secs).done:
        raise TimeoutError(f"no answer within {secs:g} s")
    return future.result()


def _forget() -> None:
    """In a forked child: the drivers' connections are the parent's, and closing them here would end them there."""
    _of_parents.extend(_stores.values())
    _stores.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
