"""What drivers of stores raise in ways of their own, as OSError: for those that ask a store about what lies there.

Writers do not: what an error means to them, `_store.is_refusal` finds out of the driver's own.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from tbwriter.sinks._credentials import without_user

if TYPE_CHECKING:
    from tbwriter.sinks._store import Store


@contextmanager
def as_os_error(store: Store, url: str) -> Iterator[None]:
    """Raise what a driver raises within the block as OSError with the same words, and the URL, without credentials."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ImportError):
        raise
    except Exception as exc:  # each driver has its own
        raise OSError(store.note(exc), store.words(exc), without_user(url)) from None


class Reading(io.RawIOBase):
    """An open object, of which each read may fail."""

    def __init__(self, file: BinaryIO, store: Store, url: str) -> None:
        """Take over `file`, the driver's."""
        super().__init__()
        self._file, self._store, self._url = file, store, url

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; fewer only at the end."""
        with as_os_error(self._store, self._url):
            return self._file.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; return it, from the begin."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the place."""
        return self._file.tell()

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be gone through in any order."""
        return True

    def close(self) -> None:
        """Close the driver's file."""
        self._file.close()
        super().close()
