"""An object store as fsspec's drivers reach it: which driver, with which options, and what its errors mean.

Objects are stored by one atomic `pipe_file` each. Nothing here is ever renamed, copied or deleted, and no file of
fsspec is ever opened for writing: its flush() shows nothing and its "ab" overwrites or sends everything again.

Over 300 lines: half of it is a table of drivers, options and refusals, which differ from store to store.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import math
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from tbwriter import _clock as time
from tbwriter._logger import get_logger
from tbwriter.sinks._credentials import HIDDEN, check_options, hide, safe_options, without_user
from tbwriter.sinks._io_loop import IO_THREAD, io_loop
from tbwriter.sinks._options import (
    CONNECT_SECS,
    READ_SECS,
    endpoint_of,
    found_elsewhere,
    identity,
    of_fsspec,
    with_defaults,
)
from tbwriter.sinks._uploader import Uploader

_log = get_logger(__name__)
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
# The extras of this distribution that bring a driver.
_EXTRAS = {"s3fs": "s3", "gcsfs": "gcs", "adlfs": "azure", "paramiko": "sftp", "smbprotocol": "smb"}
# Their URLs begin with a bucket, and one driver serves all of them; others have a host there.
_BUCKETS = frozenset({"s3", "gs", "abfs", "oss"})
_SERVERS = frozenset({"sftp", "smb", "hdfs", "webhdfs", "ftp"})
# Files can grow there.
APPENDING = frozenset({"sftp", "smb", "ssh"})
# The least time between two puts of one object: Google allows one a second.
_MIN_GAP_SECS = {"gs": 1.0}
# No object is replaced while it is read there, so each is stored once.
_ONLY_SEALED = frozenset({"hdfs", "webhdfs"})
DRIVER_SECS = 8.0
# What is asked last gets at least so long.
_LEAST_SECS = 0.5
# A call gives up after so long, and this much more for each byte.
CALL_SECS = 30.0
SECS_PER_BYTE = 1 / 50_000
READ_BLOCK_BYTES = 4 << 20
# Where drivers print warnings and stacks of their own, each time that a store does not answer as it should.
_TALKATIVE = {"gs": "gcsfs", "abfs": "azure.storage.blob._shared.response_handlers"}
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR})
# An outage is said at most so often: of a store that fails now and then, not each time.
_SAY_SECS = 60.0
_MOST_WORDS = 500
_REFUSED_STATUS = frozenset({400, 401, 403, 404})
_REFUSING = (FileNotFoundError, NotImplementedError, PermissionError)  # NotImplementedError: it cannot be written
# Errors of the drivers' own kinds that waiting does not mend.
_REFUSALS = frozenset(
    {
        *("AuthenticationException", "BadHostKeyException", "PasswordRequiredException"),  # sftp
        *("AccessDenied", "BadNetworkName", "LogonFailure"),  # smb
        *("AzureSigningError", "ClientAuthenticationError", "DefaultCredentialsError", "InvalidRegionError"),
        "NoCredentialsError",
        *("ParamValidationError", "PartialCredentialsError", "ProfileNotFound", "RefreshError", "TokenRetrievalError"),
    }
)
# Of S3, where s3fs makes an OSError like any other of them.
_REFUSED_CODES = frozenset(
    {
        *("AuthorizationHeaderMalformed", "CredentialsNotSupported", "InvalidBucketName", "InvalidToken"),
        *("KeyTooLongError", "PermanentRedirect", "TokenRefreshRequired", "301"),
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
    most_calls = 4
    """Where it cannot: how many may be under way, or hang, at a time."""

    def __init__(
        self, scheme: str, options: Mapping[str, Any], netloc: str = "", *, within: float = DRIVER_SECS
    ) -> None:
        """Load the driver.

        Args:
            scheme: of its URLs.
            options: the user's, which go before what `netloc` says.
            netloc: of its URLs, where that names a server or an account.
            within: so many seconds, at most, may pass until it is ready, once it is imported.

        Raises:
            ImportError: it is not installed. ValueError: no driver, or it refuses the options.
        """
        self.scheme = scheme
        self.protocol, self._package = _DRIVERS.get(scheme, (scheme, ""))
        self._type = load(scheme)
        self.only_sealed = self.protocol in _ONLY_SEALED
        self.min_gap_secs = _MIN_GAP_SECS.get(self.protocol, 0.0)
        self._netloc = netloc
        self.options = {**self._told_by_url(), **options}
        self.uploader = Uploader()
        self.searched: set[Path] = set()
        """Spools in which what others have left for this store is being looked for."""
        self._lock = threading.Lock()
        self._calls = threading.Semaphore(self.most_calls)
        self._outage_since: float | None = None
        self._said = False  # of this outage
        self._said_at = -math.inf
        self._outdated = False  # the driver: its credentials were refused
        self._fs = self._driver(self._package, within)

    def _driver(self, package: str, within: float) -> Any:
        kind = self._type
        options = with_defaults(self.scheme, self.protocol, self.options)
        if getattr(kind, "async_impl", False):
            options.update(loop=io_loop(), asynchronous=False)
        try:
            # Some look for credentials in the network as soon as they are made.
            fs = call_within(within, lambda: kind(**options, use_listings_cache=False, skip_instance_cache=True))
        except ImportError as exc:
            raise _missing(self.scheme, package, exc) from exc
        except TimeoutError:
            hint = "it may look for credentials in vain; give storage_options"
            message = f"{self.scheme}://: its driver is not ready after {within:.3g} s: {hint}"
            raise OSError(errno.ETIMEDOUT, message) from None
        except OSError as exc:  # not as it is: some name what they were given
            message = f"{self.scheme}://: its driver cannot begin: {self.words(exc)}"
            raise OSError(exc.errno or errno.EIO, message) from None
        except Exception as exc:  # each driver has its own
            names = sorted(self.options)
            raise ValueError(f"{self.scheme}://: storage_options {names} are refused: {self.words(exc)}") from None
        self.can_cancel = hasattr(fs, "_pipe_file")
        if self.protocol == "webhdfs":  # without, it waits for an answer for ever
            fs.session.request = functools.partial(fs.session.request, timeout=(CONNECT_SECS, READ_SECS))
        if self.protocol in _TALKATIVE:
            logging.getLogger(_TALKATIVE[self.protocol]).addFilter(_not_of_our_loop)
        # Repeating is the uploader's, which can be waited for, counted and cancelled.
        if self.protocol == "s3":
            fs.retries = 1
        if self.protocol == "abfs":  # which would pause for 15 s after each error
            policy = getattr(getattr(fs.service_client, "_config", None), "retry_policy", None)
            if policy is not None:
                policy.total_retries = 0
        return fs

    def look_again(self, within: float = DRIVER_SECS) -> None:
        """Where credentials were refused, load the driver anew: it reads those in files and in the environment once.

        Raises:
            OSError, ValueError: as `Store`.
        """
        with self._lock:
            outdated, self._outdated = self._outdated, False
        if outdated:
            self._fs = self._driver(self._package, within)

    def _told_by_url(self) -> dict[str, Any]:
        """Return the options that the URL itself gives: host, port, user, account."""
        return dict(self._type._get_kwargs_from_urls(f"{self.protocol}://{self._netloc}/")) if self._netloc else {}

    @property
    def lasting_options(self) -> dict[str, Any]:
        """What another process needs to find this store again, without credentials."""
        return safe_options({**self.options, **found_elsewhere(self.protocol, self.options)})

    def is_of(self, options: Mapping[str, Any]) -> bool:
        """Say whether the `lasting_options` of a store are those of this one: the same endpoint, the same account."""
        return identity(options) == identity(self.lasting_options)

    def words(self, exc: BaseException) -> str:
        """Return an error in one line without credentials."""
        text = " ".join(f"{type(exc).__name__}: {exc}".split())
        user = self._netloc.rpartition("@")[0]
        if user and self.protocol != "abfs":  # whose containers stand there
            text = text.replace(f"{user}@", f"{HIDDEN}@")
        return hide(text[:_MOST_WORDS], {**of_fsspec(self.protocol), **self.options})

    def note(self, exc: BaseException) -> int:
        """Take note of what it has raised to somebody who reads; return the number of the OSError that it is."""
        self._outdated = self._outdated or self._outdates(exc)
        return getattr(exc, "errno", None) or (errno.EACCES if is_refusal(exc) else errno.EIO)

    def path(self, url: str) -> str:
        """Return the driver's path of a URL, in which every character stands for itself.

        Raises:
            OSError: the driver would take it for another one, as Azure's does with "?a#b" and S3's with versions.
        """
        rest = url.split("://", 1)[1]
        bucket, slash, key = rest.partition("/")
        if self.protocol in _SERVERS:
            path = "/" + key.rstrip("/")
        elif self.protocol in _BUCKETS:  # Azure's may be <container>@<account>
            path = (bucket.split("@")[0] if self.protocol == "abfs" else bucket) + slash + key
        else:
            path = self._type._strip_protocol(f"{self.protocol}://{rest}")
        if self._type._strip_protocol(path).strip("/") != path.strip("/") or "?versionid=" in path.lower():
            raise OSError(errno.EINVAL, "its driver takes this URL for another one; want names without '?'", url)
        return path

    def put(self, url: str, data: bytes, started: Callable[[Future[Any]], object] = lambda _: None) -> int:
        """Store an object, whole and at once; what was there is replaced. Return how many bytes were sent.

        Args:
            url: where.
            data: all of it.
            started: is given the running call, where the driver has one that can be cancelled.
        """
        self.look_again()
        path = self.path(url)
        secs = CALL_SECS + len(data) * SECS_PER_BYTE
        if self.can_cancel:
            self._wait(self._fs._pipe_file(path, data), secs, started)
        else:
            self._ask(secs, lambda: self._pipe(path, data))
        return len(data)

    def _pipe(self, path: str, data: bytes) -> None:
        if self.only_sealed:
            self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        self._fs.pipe_file(path, data)

    def _ask(self, secs: float, call: Callable[[], _T]) -> _T:
        """Return what `call` does, of a driver whose calls cannot be cancelled; what hangs stays behind, in a thread.

        Raises:
            TimeoutError: it has not come back within `secs`, or so many others have not that no more are begun.
        """
        if not self._calls.acquire(timeout=secs):
            raise TimeoutError(errno.ETIMEDOUT, "the calls before this one still hang")

        def work() -> _T:
            try:
                return call()
            finally:
                self._calls.release()

        return call_within(secs, work)

    def _wait(
        self, call: Coroutine[Any, Any, _T], secs: float, started: Callable[[Future[Any]], object] = lambda _: None
    ) -> _T:
        future = asyncio.run_coroutine_threadsafe(_ended(call, secs), io_loop())
        started(future)
        task = future.result()
        if task is None:
            raise TimeoutError(f"no answer within {secs:g} s")
        return task.result()

    def names(self, url: str) -> list[str]:
        """Return the names of the files directly below a URL; [] for none."""
        try:
            return [name for name, about in self.entries(url) if about["type"] == "file"]
        except FileNotFoundError:
            return []

    def entries(self, url: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the names of all that is directly below a URL, with what the driver tells of each.

        Raises:
            OSError: there is nothing, or it cannot be listed.
        """
        path = self.path(url)
        found = self._fs.ls(path, detail=True)
        below = [(about["name"].rstrip("/"), about) for about in found]
        own = path.strip("/")  # some list the mark of a directory in itself
        return [(name.rsplit("/", 1)[-1], about) for name, about in below if name.strip("/") != own]

    def info(self, url: str) -> Mapping[str, Any]:
        """Return what the driver tells of a file.

        Raises:
            OSError: there is none.
        """
        return cast("Mapping[str, Any]", self._fs.info(self.path(url)))

    def is_directory(self, url: str) -> bool:
        """Say whether a URL names a directory."""
        return bool(self._fs.isdir(self.path(url)))

    def upload(self, local: str, url: str) -> None:
        """Store a local file of any size."""
        path = self.path(url)
        self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        self._fs.put_file(local, path)

    def exists(self, url: str) -> bool:
        """Say whether there is an object."""
        return bool(self._fs.exists(self.path(url)))

    def is_file(self, url: str) -> bool:
        """Say whether a URL names an object."""
        try:
            return bool(self._fs.info(self.path(url))["type"] == "file")  # fsspec's isfile says no to any error
        except OSError as exc:
            if isinstance(exc, FileNotFoundError) or exc.errno in _NOT_THERE:
                return False
            raise

    def open(self, url: str) -> BinaryIO:
        """Open an object for reading, by ranges."""
        return cast("BinaryIO", self._fs.open(self.path(url), "rb", block_size=READ_BLOCK_BYTES))

    def read(self, url: str) -> bytes:
        """Return all of a small object."""
        return bytes(self._fs.cat_file(self.path(url)))

    # -- outages, said once for all sinks of the store

    def failed(self, exc: BaseException, url: str, where: str) -> None:
        """Note a failed call."""
        now = time.monotonic()
        with self._lock:
            if self._outage_since is None:
                self._outage_since = now
            self._outdated = self._outdated or self._outdates(exc)
            say = not self._said and now >= self._said_at + _SAY_SECS
            if say:
                self._said, self._said_at = True, now
        if say:
            _log.warning("%s: the store fails, the data waits in %s: %s", without_user(url), where, self.words(exc))

    def worked(self, url: str) -> None:
        """Note a successful one."""
        if self._outage_since is None:
            return
        with self._lock:
            since, self._outage_since = self._outage_since, None
            said, self._said = self._said, False
        if since is not None and said:
            _log.warning("%s: the store works again after %.1f s", without_user(url), time.monotonic() - since)

    def _outdates(self, exc: BaseException) -> bool:
        # One that appends connects anew by itself.
        return not self.appends and is_refusal(exc) and not isinstance(exc, FileNotFoundError)

    @property
    def is_down(self) -> bool:
        """Whether the last call failed."""
        return self._outage_since is not None


def _not_of_our_loop(record: logging.LogRecord) -> bool:
    """Leave out what a driver prints of each attempt: the errors reach us, and are told once an outage."""
    return record.threadName != IO_THREAD


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
        answer = getattr(exc, "response", None)  # botocore's
        if isinstance(answer, Mapping) and answer.get("Error", {}).get("Code") in _REFUSED_CODES:
            return True
        exc = exc.__cause__
    return False


# -- the stores of this process

_stores: dict[tuple[str, str], Store] = {}
_of_parents: list[Store] = []


def store_for(url: str, options: Mapping[str, Any] | None, *, within: float = DRIVER_SECS) -> Store:
    """Return the store of a URL.

    Args:
        url: any in it.
        options: the user's.
        within: as for `Store`.

    Raises:
        ImportError, ValueError: as `Store`. TypeError: these are no options.
    """
    check_options(options)
    scheme, rest = url.split("://", 1)
    protocol = _DRIVERS.get(scheme, (scheme,))[0]
    netloc = rest.split("/", 1)[0]
    if protocol in _BUCKETS and "@" not in netloc:
        netloc = ""
    environment = endpoint_of({}) if protocol == "s3" else ""
    key = (f"{scheme}://{netloc}", repr(sorted((options or {}).items(), key=lambda item: item[0])) + environment)
    # Without a lock: a driver may ask the network for credentials, and others must not wait for that.
    store = _stores.get(key)
    if store is not None:
        store.look_again(within)
    return store or _stores.setdefault(key, _kind_of(scheme)(scheme, options or {}, netloc, within=within))


def _kind_of(scheme: str) -> type[Store]:
    if scheme not in APPENDING:
        return Store
    from tbwriter.sinks._appending import AppendingStore

    return AppendingStore


def load(scheme: str) -> Any:
    """Import the driver of a scheme, and return its class.

    Raises:
        ImportError: it is not installed. ValueError: there is none.
    """
    import fsspec  # only when a URL asks for it

    protocol, package = _DRIVERS.get(scheme, (scheme, ""))
    try:
        return fsspec.get_filesystem_class(protocol)
    except ImportError as exc:
        raise _missing(scheme, package, exc) from exc


def _missing(scheme: str, package: str, exc: ImportError) -> ImportError:
    extra = _EXTRAS.get(package)
    wanted = f"'tbwriter[{extra}]'" if extra else package or "<package>"
    return ImportError(f"{scheme}:// needs {package or 'its driver'}: pip install {wanted} ({exc})")


def needs_host(scheme: str) -> bool:
    """Say whether a URL must name a bucket or a host; Hadoop's have a default."""
    return scheme in SCHEMES and scheme not in _ONLY_SEALED


def knows(scheme: str) -> bool:
    """Say whether there is a driver for a scheme, installed or not."""
    if scheme in _DRIVERS:
        return True
    from fsspec.registry import known_implementations, registry

    return scheme in known_implementations or scheme in registry


async def _ended(call: Coroutine[Any, Any, _T], secs: float) -> asyncio.Task[_T] | None:
    """Return the task of `call` when it has ended, None where it does not in time.

    Raises nothing but CancelledError: what a cancelled task raises, as one that is refused at that moment, nobody asks
    for, and asyncio would print it.
    """
    task = asyncio.ensure_future(call)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        done, _ = await asyncio.wait({task}, timeout=secs)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
    return task if done else None


def at_most(secs: float, until: float) -> float:
    """Return `secs`, or what is left of them until a moment of the monotonic clock; a little in any case."""
    return min(secs, max(_LEAST_SECS, until - time.monotonic()))


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
