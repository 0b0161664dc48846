"""Event files in fsspec's memory file system, `memory://`: for tests and notebooks, gone with the process."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from tbwriter.sinks._base import Durability, SinkStatus


class MemorySink:
    """One directory of `memory://`; each segment is a file in it, visible at once."""

    max_durability = Durability.OS
    visible_at = Durability.OS

    def __init__(self, directory: str, *, name: str, header: bytes = b"") -> None:
        """Create the segment `name` in `directory`, a path with or without `memory://`."""
        import fsspec  # only when a URL asks for it: its import is a tenth of a second

        self._fs: Any = fsspec.filesystem("memory")
        self._directory = "/" + directory.removeprefix("memory://").strip("/")
        self._name = name
        self._lock = threading.Lock()
        self._status = SinkStatus(path="", segment=-1)
        self.roll(name, header)

    @property
    def name(self) -> str:
        """The file name of the current segment."""
        return self._name

    @property
    def _path(self) -> str:
        return f"{self._directory}/{self._name}"

    def append(self, records: bytes) -> None:
        """Add `records` to the file."""
        with self._fs.open(self._path, "ab") as file:
            file.write(records)
        with self._lock:
            self._status = replace(self._status, bytes_os=self._status.bytes_os + len(records))

    def roll(self, name: str, header: bytes) -> None:
        """Begin the file `name`."""
        path = f"{self._directory}/{name}"
        if self._fs.exists(path):
            raise FileExistsError(f"memory:/{path} exists")
        self._fs.makedirs(self._directory, exist_ok=True)
        self._fs.pipe_file(path, header)
        self._name = name
        with self._lock:
            status = self._status
            self._status = replace(
                status,
                path=f"memory:/{path}",
                segment=status.segment + 1,
                bytes_os=status.bytes_os + len(header),
            )

    def roll_due(self) -> bool:
        """Never."""
        return False

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        """Do nothing: what was appended is visible, and nothing survives the process."""
        del level, timeout
        return Durability.OS

    def release(self) -> None:
        """Do nothing: there is no handle."""

    def status(self) -> SinkStatus:
        """Return counters; from any thread."""
        with self._lock:
            return self._status

    def close(self, timeout: float = 10.0) -> SinkStatus:
        """Do nothing more."""
        del timeout
        return self.status()
