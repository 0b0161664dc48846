"""Store a file under the name that the user gave: never over what is read, nor in the place of a pipe or a device."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tbwriter import sinks
from tbwriter.cli import _common


class Output:
    """A file that a command writes: whole or not at all, unless it is a pipe or a device.

    Args:
        text: what the user gave: a path or a URL. Links are followed: what they lead to is replaced.
        inputs: normalised paths and URLs of the files that are read.
        example: a name for a message.

    Raises:
        ValueError: it is a directory, one of `inputs`, or no path and no URL that is served.
    """

    def __init__(self, text: str, inputs: Iterable[str], example: str) -> None:
        self.place = _common.place(text, "--output")
        """Where it is."""
        self._remote = "://" in self.place
        if not self._remote and (os.path.isdir(self.place) or text.endswith(os.sep)):
            raise ValueError(f"--output {text!r} is a directory; want a file, such as {os.path.join(text, example)!r}")
        if self._is_one_of(inputs):
            raise ValueError(f"--output {text!r} is one of the files that are read; name another")

    @property
    def is_special(self) -> bool:
        """Whether it is there and no regular file, so that it is written into and never replaced."""
        if self._remote or not os.path.exists(self.place):
            return False
        # Of what /dev/stdout leads to, only the kernel knows where it is.
        known = os.stat(self.place)
        return not stat.S_ISREG(known.st_mode) or self._is_stdout() or not self._is_at(os.path.realpath(self.place))

    @contextmanager
    def new_file(self, storage_options: Mapping[str, Any] | None = None) -> Iterator[str]:
        """Give the path of a file to be written, whose contents are stored at the end of the block.

        It lies in a directory of its own, where there is room for others: beside the output where that is a local
        file, so that processes on other machines see it as they see the output.

        Raises:
            OSError: it cannot be stored.
        """
        folder = None if self._remote or self.is_special else os.path.dirname(os.path.realpath(self.place))
        if folder:
            os.makedirs(folder, exist_ok=True)
        try:
            temporary = tempfile.TemporaryDirectory(prefix=".tbwriter-", dir=folder)
        except OSError as exc:  # names a directory that nobody asked for
            raise OSError(exc.errno, exc.strerror, folder or tempfile.gettempdir()) from exc
        with temporary as directory:
            path = os.path.join(directory, "whole")
            yield path
            if self._remote:
                sinks.upload(path, self.place, storage_options)
            elif self.is_special:
                self._pour(path)
            else:
                real = os.path.realpath(self.place)
                if os.path.exists(real):
                    shutil.copymode(real, path)
                os.replace(path, real)

    def _pour(self, path: str) -> None:
        with open(path, "rb") as file:
            if self._is_stdout():
                sys.stdout.flush()
                shutil.copyfileobj(file, sys.stdout.buffer)
                return
            with open(self.place, "wb") as into:
                shutil.copyfileobj(file, into)

    def _is_stdout(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.place), os.fstat(sys.stdout.fileno()))
        except (OSError, ValueError):  # closed, or in place of it something in memory
            return False

    def _is_at(self, path: str) -> bool:
        try:
            return os.path.samestat(os.stat(self.place), os.stat(path))
        except OSError:
            return False

    def _is_one_of(self, inputs: Iterable[str]) -> bool:
        if self._remote or not os.path.exists(self.place):
            return self.place in inputs
        return any("://" not in path and self._is_at(path) for path in inputs)
