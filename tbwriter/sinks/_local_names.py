"""Paths as `os` takes them: with `~`, and where the system's encoding does not hold a name.

That is so for Python under LC_ALL=C without its UTF-8 mode. The bytes of a name are those of UTF-8 there too, so that
every other program sees the one that was meant.
"""

from __future__ import annotations

import os

_MOST_SHOWN = 100


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


def absolute(path: str, what: str) -> str:
    """Return an absolute path, in the form that `os` takes, with the home directory for "~" or "~user".

    Args:
        path: as a user gave it.
        what: the argument's name.

    Raises:
        ValueError: there is no such home: `os.path.expanduser` would leave a directory called "~".
        UnicodeEncodeError: as `local`.
    """
    expanded = os.path.expanduser(local(path))
    if expanded.startswith("~"):
        name = expanded.replace(os.sep, "/").partition("/")[0]
        raise ValueError(
            f"{what} begins with {name[:_MOST_SHOWN]!r}, and there is no such home directory; want another path, or "
            "'./' before it where it is a name"
        )
    return os.path.abspath(expanded)


def text(path: str) -> str:
    """Return what `local` was given for a path that `os` lists; what never was UTF-8 stays as it is."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")
