"""What dead owners left for other URLs of a store that this process writes to, sent when there is time.

A run whose URL has its date in it is never begun again, so nobody else would send what its last process left.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

from tbwriter._logger import get_logger
from tbwriter.sinks._credentials import without_user
from tbwriter.sinks._spool_dirs import Leftover, directories, take
from tbwriter.sinks._store import Store

_log = get_logger(__name__)

# Runs that start do not wait for it, and it leaves the store to them.
_FIRST_SECS = 5.0
_PAUSE_SECS = 0.2


class Strays:
    """A job of the uploader; one thread at a time."""

    def __init__(self, store: Store, root: Path, url: str) -> None:
        """Look in `root` for what belongs to the bucket or host of `url`, which `store` serves."""
        self._store = store
        self._root = root
        self._place = _place(url)
        self._options = store.lasting_options
        self._waiting: deque[Path] | None = None
        self._failed: set[str] = set()  # URLs of which something is left: what is later must wait too
        self._begun = False

    def step(self) -> float | None:
        """Send one file; anything that fails is left to the next process."""
        if not self._begun:
            self._begun = True
            return _FIRST_SECS
        if self._waiting is None:
            self._waiting = deque(directories(self._root))
        while self._waiting:
            for leftover in take(self._waiting[0]):
                if self._send_one(leftover):
                    return _PAUSE_SECS
            self._waiting.popleft()
        return None

    def _send_one(self, leftover: Leftover) -> bool:
        """Send the first file of a directory; return whether there may be more."""
        try:
            files = leftover.files()
            if not files or _place(leftover.url) != self._place or not self._is_ours(leftover):
                return False
            if leftover.url in self._failed:
                return False
            name, path = files[0]
            self._store.put(f"{leftover.url.rstrip('/')}/{name}", path.read_bytes())
            leftover.remove(path)
        except Exception as exc:
            self._failed.add(leftover.url)
            _log.info("%s: what is left of it waits: %s", without_user(leftover.url), self._store.words(exc))
            return False
        else:
            return True
        finally:
            leftover.close()

    def _is_ours(self, leftover: Leftover) -> bool:
        """Say whether a directory was written with options like ours: the same endpoint, the same account."""
        return leftover.options == self._options


def _place(url: str) -> tuple[str, str]:
    scheme, rest = without_user(url).split("://", 1)
    return scheme, rest.split("/", 1)[0]
