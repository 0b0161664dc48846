"""Paths as `os` takes them: with `~`, and where the system's encoding does not hold a name.

That is so for Python under LC_ALL=C without its UTF-8 mode. The bytes of a name are those of UTF-8 there too, so that
every other program sees the one that was meant.
"""

from __future__ import annotations

import os


def local(path: str) -> str:
    """Return a path in the form that `os` takes for it.

    Raises:
        UnicodeEncodeError: it holds a lone surrogate.
    """
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return os.fsdecode(path.encode("utf-8", "surrogateescape"))
    return path


def expanded(path: str, what: str) -> str:
    """Return a path with `~` and `~user` at its begin replaced.

    Raises:
        ValueError: there is no home directory to put in its place, as in containers whose user has no entry: `os` would
            make a directory called "~".
    """
    whole = os.path.expanduser(path)
    if whole == path and path.split(os.sep, 1)[0] == "~":
        raise ValueError(f"{what} {path!r}: no home directory is known, and HOME is not set; want another path")
    return whole


def text(path: str) -> str:
    """Return what `local` was given for a path that `os` lists; what never was UTF-8 stays as it is."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")
