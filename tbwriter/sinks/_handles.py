"""Handles of files that no other part of the program writes into."""

from __future__ import annotations

import os

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LAST_STANDARD = 2


def open_apart(path: str, flags: int, mode: int = 0o666) -> int:
    """As `os.open`, for files, under a number that is none of standard input, output and error.

    Where one of these was closed (`python train.py 2>&-`, some daemons), its number is the next that the system
    gives, and what a C library prints ends in the file that has it. Takes the arguments of `open`'s `opener`.
    """
    fd = os.open(path, flags, mode)
    if fd > _LAST_STANDARD or fcntl is None:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LAST_STANDARD + 1)
    finally:
        os.close(fd)
