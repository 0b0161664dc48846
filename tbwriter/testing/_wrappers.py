"""Sinks around a sink: one that fails and forgets, one that is slow."""

from __future__ import annotations

import time
from collections.abc import Callable

from tbwriter.sinks import Durability, Sink, SinkStatus


class _Wrapper:
    """Passes everything on; `_before` sees each call first."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def _before(self, call: str) -> None:
        """Do what the wrapper is for; may raise OSError."""

    @property
    def name(self) -> str:
        """The file name of the current segment."""
        return self._sink.name

    @property
    def max_durability(self) -> Durability:
        """As of the sink within."""
        return self._sink.max_durability

    @property
    def visible_at(self) -> Durability:
        """As of the sink within."""
        return self._sink.visible_at

    def append(self, records: bytes) -> None:
        """Pass on."""
        self._before("append")
        self._sink.append(records)

    def roll(self, name: str, header: bytes) -> None:
        """Pass on."""
        self._before("roll")
        self._sink.roll(name, header)

    def roll_due(self) -> bool:
        """Pass on."""
        return self._sink.roll_due()

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        """Pass on."""
        self._before("flush")
        return self._sink.flush(level, timeout)

    def release(self) -> None:
        """Pass on."""
        self._sink.release()

    def status(self) -> SinkStatus:
        """Pass on."""
        return self._sink.status()

    def close(self, timeout: float = 10.0) -> SinkStatus:
        """Pass on."""
        return self._sink.close(timeout)


class FaultySink(_Wrapper):
    """A sink that fails when it is told to, and knows what a crash of the machine would leave.

    Args:
        sink: does the work.
        fault: called before each `append`, `roll` and `flush` with the call's name and its number, from 1; returns
            the error to raise, or None. An error of `flush` is not raised: like a real sink's it shows in the level
            that was reached.
        header: what the sink's first segment begins with.
        remember: keep all records in memory, for `survivors`; False for long runs.
    """

    def __init__(
        self,
        sink: Sink,
        fault: Callable[[str, int], OSError | None],
        *,
        header: bytes = b"",
        remember: bool = True,
    ) -> None:
        super().__init__(sink)
        self._fault = fault
        self._remember = remember
        self.calls: dict[str, int] = {}
        """How often each method was called."""
        self._written: dict[str, bytes] = {sink.name: header}
        self._synced: dict[str, bytes] = {}

    def _before(self, call: str) -> None:
        self.calls[call] = self.calls.get(call, 0) + 1
        error = self._fault(call, self.calls[call])
        if error is not None:
            raise error

    def append(self, records: bytes) -> None:
        """Fail or pass on."""
        super().append(records)
        if self._remember:
            self._written[self.name] += records

    def roll(self, name: str, header: bytes) -> None:
        """Fail or pass on."""
        super().roll(name, header)
        if self._remember:
            self._written[name] = header

    def flush(self, level: Durability = Durability.OS, timeout: float | None = None) -> Durability:
        """Fail, by reaching nothing, or pass on."""
        try:
            reached = super().flush(level, timeout)
        except OSError:
            return Durability.BUFFER
        if reached >= Durability.SYNC:
            self._synced = dict(self._written)
        return reached

    def survivors(self) -> dict[str, bytes]:
        """Return what a crash of the machine at this moment leaves for certain: segment -> what was synced of it.

        Raises:
            ValueError: `remember` is False.
        """
        if not self._remember:
            raise ValueError("survivors are not known with remember=False; leave it out")
        return dict(self._synced)


class SlowSink(_Wrapper):
    """A sink each of whose `append`, `roll` and `flush` takes `delay_secs` longer.

    Args:
        sink: does the work.
        delay_secs: the time that is added.
        sleep: called with it; for tests that want to hold a call until they let it go.
    """

    def __init__(self, sink: Sink, delay_secs: float, *, sleep: Callable[[float], object] = time.sleep) -> None:
        super().__init__(sink)
        self._delay_secs = delay_secs
        self._sleep = sleep

    def _before(self, call: str) -> None:
        self._sleep(self._delay_secs)
