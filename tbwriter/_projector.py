"""The files of a run's embeddings, beside its event files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from tbwriter import _clock as time
from tbwriter import _summary, sinks
from tbwriter._logger import get_logger

_log = get_logger(__name__)

_READ_SECS = 2.0


class Projector:
    """Stores embeddings in the order in which they come; one thread at a time."""

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None) -> None:
        """Store below `url`, a normalised path or URL; no I/O yet."""
        self._url = url
        self._storage_options = storage_options
        self._waiting: deque[_summary.Embedding] = deque()
        self._config: bytes | None = None  # once read, as it is stored or on its way
        self._stored: set[str] = set()  # files of the first that waits
        self._told = False
        self.encoding_since: float | None = None
        """Since when, of `time.monotonic`, the files of an embedding are being made."""
        self.written = 0
        """Embeddings stored."""
        self.dropped = 0
        """Embeddings given up."""

    @property
    def waiting(self) -> int:
        """Embeddings added and not stored."""
        return len(self._waiting)

    @property
    def buffered(self) -> int:
        """Memory held by what waits, in bytes."""
        return sum(embedding.nbytes for embedding in self._waiting)

    def add(self, embedding: _summary.Embedding) -> None:
        """Take an embedding; no I/O."""
        self._waiting.append(embedding)

    def drain(self, stored: Callable[[], object] = lambda: None) -> None:
        """Store everything: first the files of an embedding, then the configuration that names them.

        `stored` is called after each embedding.

        Raises:
            OSError: storage failed; call again to go on.
        """
        while self._waiting:
            embedding = self._waiting[0]
            try:
                self._store(embedding)
            except OSError:
                raise
            except Exception as exc:  # one embedding must not end the writer
                self.drop_first(exc)
            else:
                self.written += 1
                self._take_first()
            stored()

    def _store(self, embedding: _summary.Embedding) -> None:
        if self._config is None:
            self._config = self._stored_config()
        self.encoding_since = time.monotonic()
        try:
            config, files = embedding.config(self._config), [*embedding.files()]
        finally:
            self.encoding_since = None
        for name, data in files:
            # Once, or each attempt would bring a spool that has no room for the next file more of this one.
            if name not in self._stored:
                self._put("/".join((*embedding.folder, name)), data)
                self._stored.add(name)
        self._put(_summary.CONFIG_NAME, config)
        self._config = config

    def _put(self, name: str, data: bytes) -> None:
        sinks.put_file(self._url, name, data, self._storage_options)

    def _stored_config(self) -> bytes:
        """Return what an earlier session, or another program, left."""
        # The writer's thread waits for no network: a store that does not answer soon is asked again later.
        return sinks.read_file(self._url, _summary.CONFIG_NAME, self._storage_options, within=_READ_SECS) or b""

    def drop_first(self, exc: Exception) -> None:
        """Give up the one at which `drain` failed, and count it; one line tells of all that are given up."""
        self.dropped += 1
        tag = _summary.shown(self._take_first().tag)
        if not self._told:
            self._told = True
            where = sinks.without_user(self._url)
            why = exc.strerror if isinstance(exc, OSError) else exc  # without its path, which holds the tag again
            _log.warning("%s: embedding %s cannot be stored and is dropped: %s. Said once a run", where, tag, why)

    def _take_first(self) -> _summary.Embedding:
        self._stored.clear()
        return self._waiting.popleft()

    def discard(self) -> None:
        """Give up what is not stored, and count it."""
        self.dropped += len(self._waiting)
        self._waiting.clear()
        self._stored.clear()
