"""Count what a writer asks of its sinks: a scheme around any place, whose sinks are counted and passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tbwriter import sinks
from tbwriter.testing import SlowSink

_SCHEME = "benchmark-watched"


@dataclass
class Watch:
    """What all sinks opened below `place(...)` were asked for since it was made; one at a time.

    Attributes:
        operations: appends, flushes and new segments.
        opened: the sinks.
    """

    operations: int = 0
    opened: list[sinks.Sink] = field(default_factory=list)

    def __post_init__(self) -> None:
        sinks.register_sink(_SCHEME, self._open, self._list)

    def place(self, inner: str) -> str:
        """Return the URL of `inner`, a path or URL, when it is to be counted."""
        return f"{_SCHEME}://{inner}"

    def totals(self) -> sinks.SinkStatus:
        """Return the sums of the counters of all sinks."""
        found = [sink.status() for sink in self.opened]
        names = ("bytes_os", "bytes_remote", "puts", "bytes_uploaded")
        return sinks.SinkStatus(path="", **{name: sum(getattr(status, name) for status in found) for name in names})

    def _open(self, url: str, name: str, header: bytes, options: Mapping[str, Any]) -> sinks.Sink:
        sink = sinks.open_sink(_inner(url), name=name, header=header, storage_options=options)
        self.opened.append(sink)
        return SlowSink(sink, 0.0, sleep=self._count)

    def _list(self, url: str, options: Mapping[str, Any]) -> list[str]:
        return sinks.list_names(sinks.normalise(_inner(url)), options)

    def _count(self, _: float) -> None:
        self.operations += 1


def _inner(url: str) -> str:
    return url.split("://", 1)[1]
