"""Names of event files, and the marks with which a session begins: how readers put files and sessions in order."""

from __future__ import annotations

import itertools
import re
import socket
from collections.abc import Iterable

MARKER_STEP = 2**63 - 1
"""A SessionLog START at this step voids nothing."""
_STAMP = re.compile(r"tfevents\.(\d+)")
_LAST_SECOND = 9_999_999_999
_MAX_SEGMENT = 999_999


def file_name(
    existing: Iterable[str], *, now: float, host: str, pid: int, suffix: str, previous: str | None = None
) -> str:
    """Return the name of the next event file: it sorts after every event file in `existing`.

    `events.out.tfevents.<10-digit second>.<host>.<pid>.<6-digit number><suffix>`: TensorBoard's Python reader goes
    through a directory in the order of names and never back.

    Args:
        existing: the names in the directory.
        now: seconds since 1970.
        host: as `host_name` returns it.
        pid: of the writing process.
        suffix: of the user; "" for none.
        previous: the name of this writer's file before, whose second is kept where that sorts last all the same.
    """
    theirs = [name for name in existing if "tfevents" in name]
    if previous is not None:
        stem = previous[: len(previous) - len(suffix)]
        number = int(stem.rsplit(".", 1)[1]) + 1
        name = f"{stem.rsplit('.', 1)[0]}.{number:06d}{suffix}"
        if number <= _MAX_SEGMENT and all(other < name for other in theirs):
            return name
    stamps = [match[1] for match in map(_STAMP.search, theirs) if match]
    # Seconds of other lengths (milliseconds, a counter) sort as text all the same.
    after = [int(stamp[:10].ljust(10, "0")) + 1 for stamp in stamps]
    second = min(max([0, int(now), *after]), _LAST_SECOND)
    names = (f"events.out.tfevents.{second:010d}.{host}.{pid}.{number:06d}{suffix}" for number in itertools.count())
    return next(name for name in names if name not in theirs)  # there is none after the last second


def second_of(name: str) -> int:
    """Return the second in a name that `file_name` made."""
    return int(name.split(".", 4)[3])


def host_name() -> str:
    """Return this machine's name, reduced to what every file system and reader takes."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64] or "localhost"


def session_starts(existing: Iterable[str] | None, purge_step: int | None) -> list[int]:
    """Return the steps of the SessionLog STARTs with which a session begins.

    TensorBoard's Python reader voids what lies at or after a START, except for the first START of a run. In an empty
    directory ours is that first one. Elsewhere it need not be: the earlier files may have none. So one that voids
    nothing goes first, and then the one that is meant. `existing` is None where the directory cannot be seen.
    """
    if existing is not None and not any("tfevents" in name for name in existing):
        return [purge_step or 0]
    return [MARKER_STEP] if purge_step is None else [MARKER_STEP, purge_step]
