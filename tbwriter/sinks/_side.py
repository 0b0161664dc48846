"""Files beside the event files: what the projector and other plugins read."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

_PAUSE_SECS = 0.5
_PATIENCE_SECS = 60.0


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
        _put_local(os.path.join(url, *parts), data)
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


def _put_local(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with open(part, "xb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


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
                raise OSError(f"{url}/{name}: cannot be stored: {store.words(exc)}") from None
        time.sleep(_PAUSE_SECS)
