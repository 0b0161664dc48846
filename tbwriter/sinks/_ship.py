"""Send what dead owners left in spools: by `ship`, and by a process that outlives the training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tbwriter import _clock as time
from tbwriter.sinks._credentials import check_options

if TYPE_CHECKING:
    from pathlib import Path

    from tbwriter.sinks._spool_dirs import Leftover

_PAUSE_SECS = 0.5


@dataclass(frozen=True)
class Shipped:
    """What became of one spool directory.

    Attributes:
        directory: the spool directory.
        url: where it belongs.
        files: how many files were stored.
        bytes: their size.
        error: why something is left, in words; None when nothing is.
    """

    directory: str
    url: str
    files: int
    bytes: int
    error: str | None


def ship(
    spool_dir: str | os.PathLike[str] | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = 60.0,
) -> list[Shipped]:
    """Store what writers could not, because they were killed or closed while the object store was down.

    Directories whose writer lives, or that another process is shipping, are left alone. Everything stored is removed
    from the spool. Of one URL, what was written first is stored first, and what is later waits where that fails.
    Credentials come from `storage_options` or the environment; the spool has none.

    Args:
        spool_dir: as in `SummaryWriter`, or one spool directory in it; None looks at all default places.
        storage_options: for all URLs, beside what the spool knows of each.
        timeout: how long a store that fails is tried again, in seconds.

    Returns:
        One report for each spool directory, the oldest first.

    Raises:
        FileNotFoundError: `spool_dir` does not exist.
    """
    from tbwriter.sinks._spool_dirs import leftovers, take

    check_options(storage_options)
    deadline = time.monotonic() + timeout
    roots = spool_places(spool_dir)
    if spool_dir is not None and not roots[0].is_dir():
        raise FileNotFoundError(f"{os.fspath(spool_dir)!r} is no directory")
    found = (
        leftover
        for root in filter(os.path.isdir, roots)
        for leftover in (take(root) if (root / "url.json").exists() else leftovers(root))
    )
    return send_all(((leftover, storage_options) for leftover in found), deadline)


def send_all(found: Iterable[tuple[Leftover, Mapping[str, Any] | None]], deadline: float) -> list[Shipped]:
    """Store what is in leftovers, each with the options for its store; where one fails, what is later at its URL waits.

    Readers go through the files of a run in order, and never back.
    """
    shipped: list[Shipped] = []
    left: dict[str, str] = {}  # URLs of which something is, and where
    for leftover, storage_options in found:
        url = leftover.url.rstrip("/")
        if url in left:
            leftover.close()
            shipped.append(Shipped(str(leftover.path), url, 0, 0, f"waits for what is left in {left[url]}"))
            continue
        shipped.append(send(leftover, storage_options, deadline))
        if shipped[-1].error is not None:
            left[url] = shipped[-1].directory
    return shipped


def spool_places(spool_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the directories in which `ship` looks for spools, whether they exist or not."""
    from pathlib import Path

    from tbwriter.sinks._local_names import absolute
    from tbwriter.sinks._spool_dirs import default_roots

    return default_roots() if spool_dir is None else [Path(absolute(os.fspath(spool_dir), "spool_dir"))]


def send(leftover: Leftover, storage_options: Mapping[str, Any] | None, deadline: float) -> Shipped:
    """Store the files of a leftover in order, try again until `deadline` on the monotonic clock, and give it up."""
    from tbwriter.sinks._store import is_refusal, store_for

    url = leftover.url.rstrip("/")
    files = size = 0
    error: str | None = None
    try:
        store = store_for(url, {**leftover.options, **(storage_options or {})})
        while waiting := leftover.files():
            name, path = waiting[0]
            try:
                data = path.read_bytes()
                store.put(f"{url}/{name}", data)
            except Exception as exc:  # reported
                error = store.words(exc)
                if is_refusal(exc) or time.monotonic() >= deadline:
                    break
                time.sleep(_PAUSE_SECS)
                continue
            error = None
            leftover.remove(path)
            files += 1
            size += len(data)
    except (ImportError, OSError, ValueError) as exc:  # there is no driver, or it cannot begin
        error = str(exc)
    finally:
        leftover.close()
    return Shipped(str(leftover.path), url, files, size, error)
