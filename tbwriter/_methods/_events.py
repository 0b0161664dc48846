"""Adding Events that were built elsewhere."""

from __future__ import annotations

import time
from typing import Any

from tbwriter import _summary
from tbwriter._entries import Raw


class EventMethods:
    """The methods that torch's and TensorBoard's own file writers have, over whatever stores `Raw` entries."""

    def _put_raw(self, raw: Raw) -> None:
        raise NotImplementedError

    def _defaults(self) -> tuple[int | None, float | None]:
        """Return the step and the wall time of what is added without one."""
        return None, None

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Add an Event.

        Args:
            event: serialised bytes, or a message with `SerializeToString`.
            step: written into the message when given; bytes cannot take one.
            walltime: likewise; a message without a wall time gets the present one.

        Raises:
            TypeError: neither bytes nor a message.
            ValueError: bytes and a step or a wall time; bytes that are no Event; a wall time that is not finite.
            WriterClosedError: after `close`.
        """
        default_step, default_walltime = self._defaults()
        step = default_step if step is None else step
        walltime = default_walltime if walltime is None else walltime
        if isinstance(event, bytes):
            if step is not None or walltime is not None:
                raise ValueError("a serialised event cannot take a step or a walltime; pass the message itself")
            data = event
        else:
            _message(event, "event")
            if step is not None:
                event.step = _summary.as_step(step, "event")
            if walltime is not None:
                event.wall_time = _summary.as_wall_time(walltime, "event")
            elif not event.wall_time:
                event.wall_time = time.time()
            data = event.SerializeToString()
        self._put_raw(Raw(_summary.check_event(_as_bytes(data))))

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add an Event of a Summary, given as serialised bytes or as a message; see `add_event`."""
        data = summary if isinstance(summary, bytes) else _message(summary, "summary").SerializeToString()
        default_step, default_walltime = self._defaults()
        step = default_step if global_step is None else global_step
        walltime = default_walltime if walltime is None else walltime
        wall_time = time.time() if walltime is None else _summary.as_wall_time(walltime, "summary")
        data = _summary.check_summary(_as_bytes(data))
        self._put_raw(Raw(_summary.wrap(data, _summary.as_step(step, "summary"), wall_time)))


def _as_bytes(data: Any) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError(f"SerializeToString must give bytes, got {_summary.describe(data)}")
    return data


def _message(value: Any, name: str) -> Any:
    if not hasattr(value, "SerializeToString"):
        raise TypeError(f"{name} must be serialised bytes or a protobuf message, got {_summary.describe(value)}")
    return value
