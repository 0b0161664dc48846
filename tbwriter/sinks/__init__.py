"""Sinks: where the records of a run are stored, chosen by URL.

`open_sink` takes a path or a URL; `register_sink` adds a scheme. Sinks know nothing of events: they get whole
framed records.

Over 300 lines: for each question about a place (open, list, read, is it a file) the choice by its URL, in one place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, TypeVar, cast

from tbwriter import _clock as time
from tbwriter.sinks import _urls
from tbwriter.sinks._asking import Reading, as_os_error
from tbwriter.sinks._base import Durability, Sink, SinkStatus
from tbwriter.sinks._credentials import check_options, without_user
from tbwriter.sinks._file import FileSink
from tbwriter.sinks._local_names import absolute, local
from tbwriter.sinks._memory import MemorySink
from tbwriter.sinks._mounts import file_system, is_shared
from tbwriter.sinks._policy import SegmentPolicy
from tbwriter.sinks._ship import Shipped, ship, spool_places
from tbwriter.sinks._side import put_file, read_file

if TYPE_CHECKING:
    from tbwriter.sinks._store import Store

__all__ = [
    "Defaults",
    "Durability",
    "FileSink",
    "MemorySink",
    "PathLike",
    "SegmentPolicy",
    "Shipped",
    "Sink",
    "SinkStatus",
    "absolute",
    "defaults",
    "is_directory",
    "is_file",
    "join",
    "list_names",
    "local",
    "names_before",
    "normalise",
    "open_at",
    "open_file",
    "open_sink",
    "patience",
    "put_file",
    "read_file",
    "register_sink",
    "remote_entries",
    "remote_info",
    "ship",
    "spool_places",
    "upload",
    "without_user",
]

_T = TypeVar("_T")

PathLike = os.PathLike[str]
Opener = Callable[[str, str, bytes, Mapping[str, Any]], Sink]
Shipper = Literal["thread", "process"]
Lister = Callable[[str, Mapping[str, Any]], list[str]]


class Defaults(NamedTuple):
    """What a writer does at a place unless its user says otherwise.

    Attributes:
        flush_secs: the longest time until what was added is visible to others.
        max_file_bytes: where a file ends and the next begins; None for no limit, or where the sink decides.
    """

    flush_secs: float
    max_file_bytes: int | None


# A reader keeps every file open, so a local run has few. On a shared file system a reader that once saw a file
# wrongly gets over it with the next one.
_LOCAL = Defaults(1.0, 1 << 30)
_SHARED = Defaults(5.0, 256 << 20)
# To open a place takes 10 s at most, with what is not counted one by one. A driver whose import alone takes long, from
# a slow disk, gets the rest all the same: that is no fault of the store.
_OPEN_SECS = 9.5
_IMPORT_SECS = 3.0
ENTRY_POINTS = "tbwriter.sinks"
"""The group of entry points in which a package names a scheme and where its (opener, lister) is."""
# What fsspec knows and nobody can write to, or only over another file system.
_NOT_WRITTEN = frozenset(
    {
        *("blockcache", "cached", "data", "dir", "filecache", "git", "github", "http", "https", "jupyter"),
        *("libarchive", "reference", "simplecache", "tar", "zip"),
    }
)


class _Backend(NamedTuple):
    open: Opener
    list: Lister


def _open_memory(url: str, name: str, header: bytes, options: Mapping[str, Any]) -> Sink:
    _refuse_options(url, options)
    return MemorySink(url, name=name, header=header)


def _list_memory(url: str, options: Mapping[str, Any]) -> list[str]:
    import fsspec

    del options
    fs = fsspec.filesystem("memory")
    folder = "/" + url.removeprefix("memory://").strip("/")
    return [path.rsplit("/", 1)[-1] for path in fs.ls(folder, detail=False)] if fs.isdir(folder) else []


_backends: dict[str, _Backend] = {"memory": _Backend(_open_memory, _list_memory)}


def register_sink(scheme: str, opener: Opener, lister: Lister) -> None:
    """Make `scheme://...` URLs open with `opener`.

    Args:
        scheme: without "://"; replaces what was registered before.
        opener: called as opener(url, name, header, storage_options); returns a sink whose segment `name` begins with
            `header`. Raises FileExistsError when there is such a segment, OSError when storage fails.
        lister: called as lister(url, storage_options); returns the names of the files at `url`, [] for none.
    """
    if not _urls.URL.fullmatch(scheme + "://") or scheme in _urls.LOCAL:
        raise ValueError(f"scheme must be letters, digits, '+', '.' or '-', and not 'file', got {scheme!r}")
    _backends[scheme] = _Backend(opener, lister)


def normalise(url: str | os.PathLike[str], what: str = "log_dir", *, reading: bool = False) -> str:
    """Return an absolute local path, or a URL without empty parts and trailing slashes.

    `~` is expanded, `file://` taken off; a relative path is fixed to the working directory of this moment.

    Args:
        url: what the user gave.
        what: the name of that argument, for messages.
        reading: nothing is written there: names are taken that no new run may have, and a sub-run may.

    Raises:
        TypeError: neither str nor path-like.
        ValueError: a scheme that no sink serves, a URL that went through pathlib, or one that names no place.
    """
    text = _urls.text_of(url, what)
    match = _urls.URL.match(text)
    if match is None:
        return _urls.path_of(text, what, _is_served, was_path=not isinstance(url, (str, bytes)))
    if match[1].lower() in _urls.LOCAL:
        return _urls.path_of_url(text, what)
    scheme = match[1] if _is_served(match[1]) else match[1].lower()
    from tbwriter.sinks._store import SCHEMES, needs_host

    if not _is_served(scheme):
        raise ValueError(
            f"{what} {_urls.shown(text)}: no sink serves {scheme}://; want a local path, or one of "
            f"{', '.join(f'{known}://' for known in ('file', *sorted({*_backends, *SCHEMES})))}, "
            "or another protocol of fsspec's that can be written"
        )
    if scheme in _backends and scheme != "memory":
        return text  # what that means is its package's
    return _urls.tidied(text, what, needs_host=needs_host(scheme), reading=reading)


def defaults(url: str) -> Defaults:
    """Return what suits a normalised path, which need not exist, or a URL."""
    if _urls.URL.match(url):
        return Defaults(1.0, None)
    return _SHARED if is_shared(file_system(url)) else _LOCAL


def _is_served(scheme: str) -> bool:
    """Say whether there is a sink for a scheme; packages that bring one are asked for it."""
    if scheme in _backends:
        return True
    import importlib.metadata

    from tbwriter.sinks._store import SCHEMES, knows

    if scheme in SCHEMES:
        return True

    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if entry.name == scheme:
            opener, lister = entry.load()
            register_sink(scheme, opener, lister)
            return True
    return scheme not in _NOT_WRITTEN and knows(scheme)


def join(url: str, *parts: str) -> str:
    """Return the place `parts` below `url`, a normalised path or URL."""
    if _urls.URL.match(url):
        return "/".join([url.rstrip("/"), *parts])
    return os.path.join(url, *map(local, parts))


def list_names(url: str, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of the files at a normalised path or URL; [] where there is nothing.

    Raises:
        OSError: it cannot be listed.
    """
    match = _urls.URL.match(url)
    if match:
        backend = _backends.get(match[1])
        if backend:
            return backend.list(url, storage_options or {})
        return _ask(url, storage_options, lambda store: store.names(url))
    try:
        with os.scandir(url) as found:
            return [entry.name for entry in found if entry.is_file()]
    except FileNotFoundError:
        return []


def patience(url: str) -> float:
    """Import what a normalised path or URL needs; return until when, on the monotonic clock, opening it may wait.

    Raises:
        ImportError: the driver is missing.
    """
    begin = time.monotonic()
    if _is_object_store(url):
        from tbwriter.sinks._store import load

        load(url.split("://", 1)[0])
    took = time.monotonic() - begin
    return begin + _OPEN_SECS + max(0.0, took - _IMPORT_SECS)


def names_before(
    url: str,
    storage_options: Mapping[str, Any] | None = None,
    *,
    spool_dir: str | None = None,
    probe: bool = True,
    until: float | None = None,
) -> tuple[list[str], bool]:
    """Return the names after which a new event file must sort, and whether these are all.

    A store that is down is no reason not to begin, and then only the names in the spool are known.

    Args:
        url: a normalised path or URL.
        storage_options: as in `open_sink`.
        spool_dir: as in `open_sink`.
        probe: False asks no object store.
        until: as `patience` returned it; None begins with this call.

    Raises:
        OSError: the directory cannot be listed.
    """
    if not _is_object_store(url):
        return list_names(url, storage_options), True
    from tbwriter.sinks import _object

    until = patience(url) if until is None else until
    found = _object.list_remote(_store_of(url, storage_options, until), url, until) if probe else None
    return [*(found or ()), *_object.waiting_names(url, spool_dir)], found is not None


def _ask(url: str, storage_options: Mapping[str, Any] | None, act: Callable[[Store], _T]) -> _T:
    """Return what `act` does with the store of a URL; what its driver raises is OSError, with the URL."""
    store = _store_of(url, storage_options)
    with as_os_error(store, url):
        return act(store)


def _store_of(url: str, storage_options: Mapping[str, Any] | None, until: float | None = None) -> Store:
    from tbwriter.sinks import _store  # what it brings is for URLs only

    if until is None:
        return _store.store_for(url, storage_options)
    return _store.store_for(url, storage_options, within=_store.at_most(_store.DRIVER_SECS, until))


def _is_object_store(url: str) -> bool:
    match = _urls.URL.match(url)
    return match is not None and match[1] not in _backends


def is_file(url: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Say whether a normalised path or URL names a file.

    Raises:
        OSError: the store cannot be asked.
    """
    if _is_object_store(url):
        return _ask(url, storage_options, lambda store: store.is_file(url))
    if _urls.URL.match(url):
        fs, path = _file_system(url, storage_options)
        return bool(fs.isfile(path))
    return os.path.isfile(url)


def is_directory(url: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Say whether a normalised path or URL names a directory.

    Raises:
        OSError: the store cannot be asked.
    """
    if _is_object_store(url):
        return _ask(url, storage_options, lambda store: store.is_directory(url))
    if _urls.URL.match(url):
        fs, path = _file_system(url, storage_options)
        return bool(fs.isdir(path))
    return os.path.isdir(url)


def remote_info(url: str, storage_options: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return what fsspec's driver tells of the file at a URL: its size and more, under each driver's own keys.

    Raises:
        OSError: there is none, or it cannot be asked.
    """
    if _is_object_store(url):
        return _ask(url, storage_options, lambda store: store.info(url))
    fs, path = _file_system(url, storage_options)
    return cast("Mapping[str, Any]", fs.info(path))


def remote_entries(url: str, storage_options: Mapping[str, Any] | None = None) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the names of all that is directly below a URL, with what the driver tells of each.

    Raises:
        OSError: it cannot be listed.
    """
    if _is_object_store(url):
        return _ask(url, storage_options, lambda store: store.entries(url))
    fs, path = _file_system(url, storage_options)
    return [(about["name"].rstrip("/").rsplit("/", 1)[-1], about) for about in fs.ls(path, detail=True)]


def upload(local: str, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
    """Store a local file at a URL.

    Raises:
        OSError: it cannot be stored.
    """
    if _is_object_store(url):
        _ask(url, storage_options, lambda store: store.upload(local, url))
        return
    fs, path = _file_system(url, storage_options)
    fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    fs.put_file(local, path)


def open_file(url: str, storage_options: Mapping[str, Any] | None = None) -> BinaryIO:
    """Open the file at a normalised path or URL for reading; what is remote is read by ranges.

    Raises:
        OSError: it cannot be opened.
    """
    if _is_object_store(url):
        return _ask(url, storage_options, lambda store: cast("BinaryIO", Reading(store.open(url), store, url)))
    if _urls.URL.match(url):
        fs, path = _file_system(url, storage_options)
        return cast("BinaryIO", fs.open(path, "rb"))
    return open(url, "rb")


def _file_system(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    import fsspec  # only when a URL asks for it

    if url.startswith("memory://"):  # in which fsspec's reading of URLs would see chains
        return fsspec.filesystem("memory", **(storage_options or {})), "/" + url.removeprefix("memory://").strip("/")
    return cast("tuple[Any, str]", fsspec.core.url_to_fs(url, **(storage_options or {})))


def open_sink(
    url: str | os.PathLike[str],
    *,
    name: str,
    header: bytes = b"",
    storage_options: Mapping[str, Any] | None = None,
    spool_dir: str | os.PathLike[str] | None = None,
    policy: SegmentPolicy | None = None,
    probe: bool = True,
    shipper: Shipper = "thread",
) -> Sink:
    """Open the sink that serves `url` and begin the segment `name` in it.

    Args:
        url: a directory: a path, `~`, or a URL.
        name: the file name of the first segment; must not exist yet.
        header: whole records with which it begins.
        storage_options: for the file system behind a URL.
        spool_dir: where records wait for an object store; None takes `TBWRITER_SPOOL_DIR`, or a directory of the user.
        policy: when an object store gets a request; None is the default for it.
        probe: wait, a few seconds at most, for an object store's first answer, so that a wrong bucket or key is an
            error here; False does not, and such an error is only logged.
        shipper: "process" starts a small process that ships what is left when this one was killed.

    Raises:
        ValueError: nothing serves `url`. ImportError: the store's driver is missing. FileExistsError: `name` exists.
        OSError: storage refuses. An object store that is merely down is no error.
    """
    return open_at(
        normalise(url, "url"),
        name=name,
        header=header,
        storage_options=storage_options,
        spool_dir=None if spool_dir is None else os.fspath(spool_dir),
        policy=policy,
        probe=probe,
        shipper=shipper,
    )


def open_at(
    place: str,
    *,
    name: str,
    header: bytes,
    storage_options: Mapping[str, Any] | None,
    spool_dir: str | None,
    policy: SegmentPolicy | None = None,
    probe: bool,
    shipper: Shipper,
    until: float | None = None,
) -> Sink:
    """Open the sink that serves a normalised path or URL, or what `join` made of one.

    Args:
        place: a directory; of a sub-run it may have a name that no user's URL has.
        name: as in `open_sink`.
        header: as in `open_sink`.
        storage_options: as in `open_sink`.
        spool_dir: as in `open_sink`.
        policy: as in `open_sink`.
        probe: as in `open_sink`.
        shipper: as in `open_sink`.
        until: as `patience` returned it; None begins with this call.

    Raises:
        ImportError, FileExistsError, OSError: as `open_sink`.
    """
    options = storage_options or {}
    match = _urls.URL.match(place)
    if match:
        backend = _backends.get(match[1])
        if backend:
            return backend.open(place, name, header, options)
        from tbwriter.sinks._object import SpooledObjectSink

        until = patience(place) if until is None else until
        return SpooledObjectSink(
            place,
            name=name,
            header=header,
            store=_store_of(place, options, until),
            spool_dir=spool_dir,
            policy=policy,
            probe=probe,
            shipper=shipper,
            until=until,
        )
    _refuse_options(place, options)
    return FileSink(place, name=name, header=header)


def _refuse_options(url: str, options: Mapping[str, Any]) -> None:
    check_options(options)
    if options:
        raise ValueError(f"storage_options {sorted(options)} mean nothing for {url!r}; leave them out")
