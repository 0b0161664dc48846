"""An object store in memory, behind fsspec and so behind a spool, that can be away."""

from typing import ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class AwayStore(MemoryFileSystem):
    """Serves `away-test://`; fails while `away`."""

    protocol = "away-test"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]
    away: ClassVar = False

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("away-test://").strip("/")

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if AwayStore.away:
            raise ConnectionError("away")
        super().pipe_file(path, value)

    @classmethod
    def reset(cls):
        """Be there, and empty."""
        cls.away = False
        cls.store.clear()


fsspec.register_implementation("away-test", AwayStore, clobber=True)
