"""Adding Events that were built elsewhere."""

from __future__ import annotations

import time
from typing import Any

from tbwriter import _summary
from tbwriter._entries import Raw, RawSummary
from tbwriter._methods._adding import wall_time_of


class EventMethods:
    """The methods that torch's and TensorBoard's own file writers have, over whatever stores `Raw` entries."""

    def _tb_put_raw(self, raw: Raw | RawSummary) -> None:
        raise NotImplementedError

    def _tb_defaults(self) -> tuple[int | None, float | None]:
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
        default_step, default_walltime = self._tb_defaults()
        step = default_step if step is None else step
        walltime = default_walltime if walltime is None else walltime
        if isinstance(event, bytes):
            if step is not None or walltime is not None:
                raise ValueError("a serialised event cannot take a step or a walltime; pass the message itself")
            data = event
        else:
            step = None if step is None else _summary.as_step(step, "event")
            walltime = None if walltime is None else _summary.as_wall_time(walltime, "event")
            data = _serialised(event, "event", step, walltime)
        self._tb_put_raw(Raw(_summary.check_event(data)))

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add an Event of a Summary, given as serialised bytes or as a message; see `add_event`."""
        data = summary if isinstance(summary, bytes) else _serialised(summary, "summary")
        default_step, default_walltime = self._tb_defaults()
        step = default_step if global_step is None else global_step
        walltime = default_walltime if walltime is None else walltime
        wall_time = wall_time_of(walltime, "summary")
        data = _summary.check_summary(data)
        self._tb_put_raw(RawSummary(data, _summary.as_step(step, "summary"), wall_time))


def _serialised(message: Any, name: str, step: int | None = None, walltime: float | None = None) -> bytes:
    """Return a message's bytes; an Event is given its step, and a wall time where it has none.

    Raises:
        TypeError: it is no such message.
    """
    wanted = f"{name} must be serialised bytes or a protobuf message, got {_summary.describe(message)}"
    if isinstance(message, type) or not hasattr(message, "SerializeToString"):
        raise TypeError(wanted)
    try:
        if step is not None:
            message.step = step
        if walltime is not None:
            message.wall_time = walltime
        elif name == "event" and not message.wall_time:
            message.wall_time = time.time()
        data = message.SerializeToString()
    except Exception as exc:  # a message of another kind, or one that lacks what it must have
        raise TypeError(f"{wanted}: {exc}") from exc
    if not isinstance(data, bytes):
        raise TypeError(f"{name}: SerializeToString must give bytes, got {_summary.describe(data)}")
    return data
