"""Names of files where the system's encoding does not hold them: Python under LC_ALL=C without its UTF-8 mode.

Their bytes are those of UTF-8 there too, so that every other program sees the names that were meant.
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


def text(path: str) -> str:
    """Return what `local` was given for a path that `os` lists; what never was UTF-8 stays as it is."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")
