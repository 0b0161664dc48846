"""Files beside the event files: what the projector and other plugins read."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from typing import Any

from tbwriter import _clock as time
from tbwriter.sinks._credentials import without_user
from tbwriter.sinks._file import make_directory
from tbwriter.sinks._handles import open_apart
from tbwriter.sinks._local_names import local

_PAUSE_SECS = 0.5
_PATIENCE_SECS = 60.0
# What mounts of object stores, such as Mountpoint for S3, say to a rename.
_NO_RENAME = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EPERM})


def put_file(url: str, name: str, data: bytes, storage_options: Mapping[str, Any] | None = None) -> None:
    """Store a file, whole and at once; one of that name is replaced.

    Where this process has an open writer on the URL of an object store, its spool takes the file and its uploader
    ships it, before whatever is added to the writer later; `writer.flush()` then waits for it too. Else the call
    itself waits for the store, and tries again for a minute.

    Args:
        url: a normalised path or URL of a directory, as `normalise` returns it.
        name: below it; may hold "/".
        data: the content.
        storage_options: for the file system behind a URL.

    Raises:
        ValueError: `name` leads out of the directory. OSError: storage refuses, or fails for a minute.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in name or "\\" in name:
        raise ValueError(f"name must be a path below the directory, got {name!r}")
    if "://" not in url:
        _put_local(os.path.join(url, *map(local, parts)), data)
    elif url.startswith("memory://"):
        import fsspec

        fsspec.filesystem("memory").pipe_file(f"/{url.removeprefix('memory://').strip('/')}/{name}", data)
    else:
        from tbwriter.sinks._object import live_sink

        sink = live_sink(url)
        if sink is None:
            _put_remote(url.rstrip("/"), name, data, storage_options)
        else:
            sink.put_side(name, data)


def read_file(url: str, name: str, storage_options: Mapping[str, Any] | None = None, *, within: float) -> bytes | None:
    """Return the content of a small file, None where there is none.

    Args:
        url: as in `put_file`.
        name: as in `put_file`.
        storage_options: as in `put_file`.
        within: how long an object store may take, in seconds.

    Raises:
        OSError: it cannot be read, or not in time.
    """
    if "://" not in url:
        try:
            with open(os.path.join(url, *map(local, name.split("/"))), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
    if url.startswith("memory://"):
        import fsspec

        memory, path = fsspec.filesystem("memory"), f"/{url.removeprefix('memory://').strip('/')}/{name}"
        return bytes(memory.cat_file(path)) if memory.isfile(path) else None
    from tbwriter.sinks._store import call_within, store_for

    store, place = store_for(url, storage_options), f"{url.rstrip('/')}/{name}"
    try:
        return call_within(within, lambda: store.read(place))
    except FileNotFoundError:
        return None
    except Exception as exc:  # each driver has its own
        raise OSError(errno.EIO, f"cannot be read: {store.words(exc)}", without_user(place)) from None


def _put_local(path: str, data: bytes) -> None:
    make_directory(os.path.dirname(path))
    part = f"{path}.{os.urandom(4).hex()}.part"
    try:
        _write_new(part, data)
        os.replace(part, path)
    except BaseException as exc:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        if not isinstance(exc, OSError) or exc.errno not in _NO_RENAME or exc.filename2 is None:
            raise
        # Not at once, then: nobody can.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        _write_new(path, data)


def _write_new(path: str, data: bytes) -> None:
    with open(path, "xb", opener=open_apart) as file:
        file.write(data)


def _put_remote(url: str, name: str, data: bytes, storage_options: Mapping[str, Any] | None) -> None:
    from tbwriter.sinks._store import is_refusal, store_for

    store = store_for(url, storage_options)
    give_up_at = time.monotonic() + _PATIENCE_SECS
    while True:
        try:
            store.put(f"{url}/{name}", data)
            return
        except Exception as exc:
            if is_refusal(exc) or time.monotonic() >= give_up_at:
                message = f"cannot be stored: {store.words(exc)}"
                raise OSError(errno.EIO, message, without_user(f"{url}/{name}")) from None
        time.sleep(_PAUSE_SECS)
