"""Sinks: where the records of a run are stored, chosen by URL.

`open_sink` takes a path or a URL; `register_sink` adds a scheme. Sinks know nothing of events: they get whole
framed records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NamedTuple, cast

from tbwriter.sinks._base import Durability, Sink, SinkStatus
from tbwriter.sinks._file import FileSink
from tbwriter.sinks._memory import MemorySink
from tbwriter.sinks._mounts import file_system, is_shared

__all__ = [
    "Defaults",
    "Durability",
    "FileSink",
    "MemorySink",
    "PathLike",
    "Sink",
    "SinkStatus",
    "defaults",
    "is_file",
    "join",
    "list_names",
    "normalise",
    "open_file",
    "open_sink",
    "put_file",
    "register_sink",
]

PathLike = os.PathLike[str]
Opener = Callable[[str, str, bytes, Mapping[str, Any]], Sink]
Lister = Callable[[str, Mapping[str, Any]], list[str]]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# pathlib and os.path.normpath turn "s3://bucket" into "s3:/bucket". Only schemes of storage: "run:/x" is a path.
_COLLAPSED = re.compile(
    r"(s3a?|gs|gcs|az|abfss?|adl|obs|oss|cosn?|hdfs|webhdfs|https?|ftp|sftp|ssh|smb|memory|file|hf|dbfs):/(?!/)"
)


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
    if not _SCHEME.fullmatch(scheme + "://") or scheme == "file":
        raise ValueError(f"scheme must be letters, digits, '+', '.' or '-', and not 'file', got {scheme!r}")
    _backends[scheme] = _Backend(opener, lister)


def normalise(url: str | os.PathLike[str]) -> str:
    """Return an absolute local path, or the URL as it is.

    `~` is expanded, `file://` taken off; a relative path is fixed to the working directory of this moment.

    Raises:
        TypeError: neither str nor path-like.
        ValueError: a scheme that no sink serves, or a URL that went through pathlib.
    """
    try:
        text = os.fsdecode(os.fspath(url))
    except TypeError as exc:
        raise TypeError(f"log_dir must be a path or a URL, got {type(url).__name__} {url!r}") from exc
    if not text:
        raise ValueError("log_dir is empty; want a path or a URL")
    if "\0" in text:
        raise ValueError(f"log_dir holds a NUL character: {text!r}")
    match = _SCHEME.match(text)
    if match is None:
        collapsed = _COLLAPSED.match(text)
        if collapsed:
            raise ValueError(
                f"log_dir {text!r} looks like a URL that lost a slash in pathlib or os.path; "
                f"pass it as a str: {collapsed[1]}://{text[collapsed.end() :]}"
            )
        return os.path.abspath(os.path.expanduser(text))
    scheme = match[1]
    if scheme == "file":
        return os.path.abspath(text[len("file://") :])
    if scheme not in _backends:
        raise ValueError(
            f"log_dir {text!r}: no sink serves {scheme}://; want a local path, or one of "
            f"{', '.join(f'{known}://' for known in ('file', *sorted(_backends)))}"
        )
    return text


def defaults(url: str) -> Defaults:
    """Return what suits a normalised path, which need not exist, or a URL."""
    if _SCHEME.match(url):
        return Defaults(1.0, None)
    return _SHARED if is_shared(file_system(url)) else _LOCAL


def join(url: str, *parts: str) -> str:
    """Return the place `parts` below `url`, a normalised path or URL."""
    if _SCHEME.match(url):
        return "/".join([url.rstrip("/"), *parts])
    return os.path.join(url, *parts)


def list_names(url: str, storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of the files at a normalised path or URL; [] where there is nothing.

    Raises:
        OSError: it cannot be listed.
    """
    match = _SCHEME.match(url)
    if match:
        return _backends[match[1]].list(url, storage_options or {})
    try:
        with os.scandir(url) as found:
            return [entry.name for entry in found if entry.is_file()]
    except FileNotFoundError:
        return []


def is_file(url: str, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Say whether a normalised path or URL names a file."""
    if _SCHEME.match(url):
        fs, path = _file_system(url, storage_options)
        return bool(fs.isfile(path))
    return os.path.isfile(url)


def open_file(url: str, storage_options: Mapping[str, Any] | None = None) -> BinaryIO:
    """Open the file at a normalised path or URL for reading.

    Raises:
        OSError: it cannot be opened.
    """
    if _SCHEME.match(url):
        fs, path = _file_system(url, storage_options)
        return cast("BinaryIO", fs.open(path, "rb"))
    return open(url, "rb")


def put_file(url: str, name: str, data: bytes, storage_options: Mapping[str, Any] | None = None) -> None:
    """Store a whole file in the directory at a normalised path or URL, in place of an older one of that name.

    Raises:
        OSError: storage refuses; an older file is then as it was, as far as the storage can do that.
    """
    place = join(url, name)
    if _SCHEME.match(url):
        fs, path = _file_system(place, storage_options)
        fs.makedirs(fs._parent(path), exist_ok=True)
        fs.pipe_file(path, data)
        return
    os.makedirs(url, exist_ok=True)
    part = f"{place}.part"
    with open(part, "wb") as file:
        file.write(data)
    os.replace(part, place)


def _file_system(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    import fsspec  # only when a URL asks for it

    return cast("tuple[Any, str]", fsspec.core.url_to_fs(url, **(storage_options or {})))


def open_sink(
    url: str | os.PathLike[str],
    *,
    name: str,
    header: bytes = b"",
    storage_options: Mapping[str, Any] | None = None,
) -> Sink:
    """Open the sink that serves `url` and begin the segment `name` in it.

    Args:
        url: a directory: a path, `~`, or a URL.
        name: the file name of the first segment; must not exist yet.
        header: whole records with which it begins.
        storage_options: for the file system behind a URL.

    Raises:
        ValueError: nothing serves `url`. FileExistsError: `name` exists. OSError: storage refuses.
    """
    place = normalise(url)
    options = storage_options or {}
    match = _SCHEME.match(place)
    if match:
        return _backends[match[1]].open(place, name, header, options)
    _refuse_options(place, options)
    return FileSink(place, name=name, header=header)


def _refuse_options(url: str, options: Mapping[str, Any]) -> None:
    if options:
        raise ValueError(f"storage_options {sorted(options)} mean nothing for {url!r}; leave them out")
