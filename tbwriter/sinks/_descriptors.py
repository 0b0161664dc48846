"""File descriptors that are ours alone."""

from __future__ import annotations

import os

_LAST_STANDARD = 2


def open_apart(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Open a file as `os.open` does, but never as standard input, output or error.

    A process that was started without these gives their numbers to the first files that it opens, and what libraries
    print then lands in them.
    """
    handles = [os.open(path, flags, mode)]
    try:
        while handles[-1] <= _LAST_STANDARD:
            handles.append(os.dup(handles[-1]))
        return handles.pop()
    finally:
        for handle in handles:
            os.close(handle)
