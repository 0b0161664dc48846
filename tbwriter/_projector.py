"""The files of a run's embeddings, beside its event files."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any

from tbwriter import _summary, sinks

_log = logging.getLogger(__name__)


class Projector:
    """Stores embeddings in the order in which they come; one thread at a time."""

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None) -> None:
        """Store below `url`, a normalised path or URL; no I/O yet."""
        self._url = url
        self._storage_options = storage_options
        self._waiting: deque[_summary.Embedding] = deque()
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

    def drain(self) -> None:
        """Store everything: first the files of an embedding, then the configuration that names them.

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
                self.dropped += 1
                _log.warning("embedding %r cannot be stored and is left out: %s", embedding.tag, exc)
            else:
                self.written += 1
            self._waiting.popleft()

    def _store(self, embedding: _summary.Embedding) -> None:
        folder = sinks.join(self._url, *embedding.folder)
        for name, data in embedding.files():
            sinks.put_file(folder, name, data, self._storage_options)
        before = sinks.join(self._url, _summary.CONFIG_NAME)
        existing = b""
        if sinks.is_file(before, self._storage_options):
            with sinks.open_file(before, self._storage_options) as file:
                existing = file.read()
        sinks.put_file(self._url, _summary.CONFIG_NAME, embedding.config(existing), self._storage_options)

    def discard(self) -> None:
        """Give up what is not stored, and count it."""
        self.dropped += len(self._waiting)
        self._waiting.clear()
