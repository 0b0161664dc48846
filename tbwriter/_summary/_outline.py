"""The fast way through many Events: their numbers, without a message object for each.

A run's scalars are nearly all alike: wall time, step, then for each tag the same bytes, then four bytes of float32.
What lies between step and number is looked up once it is known; everything else goes through protobuf.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tbwriter._summary._raw import RawEvent

_unpack_wall_time = struct.Struct("<d").unpack_from
_unpack_number = struct.Struct("<f").unpack_from
# A float32 whose bytes are all different, to see that these bytes are the number and nothing else.
_PROBE = struct.pack("<f", 1.2345678e-5)
_MOST_KNOWN = 16384
_STEP_KEY = 0x10


class Row(NamedTuple):
    """One value of an Event: tag, form as in RawEvent.outline, its number if it has one, whether it has metadata."""

    tag: str
    form: str
    number: float | None
    has_metadata: bool


class Outliner:
    """Reads Events one after the other and remembers the form of their scalars."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, str, bool]] = {}

    def scalar(self, data: bytes) -> tuple[float, int, str, str, float, bool] | None:
        """Return wall time, step, tag, form, number and whether there is metadata, of an Event of one known scalar.

        None when it is anything else, or its form was not met yet: `outline` tells.
        """
        # 9 bytes of wall time, a step of 1 to 9 bytes (none is step 0; negative ones have 10), at least 4 of number.
        if len(data) < 15 or data[0] != 0x09 or data[9] != _STEP_KEY:
            return None
        at = 10
        step = data[at]
        if step >= 0x80:
            step &= 0x7F
            shift = 7
            while True:
                at += 1
                byte = data[at]
                step |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
                if shift > 56 or at + 6 > len(data):
                    return None
        known = self._known.get(data[at + 1 : -4])
        if known is None:
            return None
        return (
            _unpack_wall_time(data, 1)[0],
            step,
            known[0],
            known[1],
            _unpack_number(data, len(data) - 4)[0],
            known[2],
        )

    def outline(self, data: bytes) -> tuple[RawEvent, list[Row]]:
        """Return the Event and its values, and remember its form if it is one scalar.

        Raises:
            ValueError: `data` is no Event.
        """
        event = RawEvent(data)
        rows = [Row(*row) for row in event.outline()]
        if len(rows) == 1 and rows[0].number is not None and len(self._known) < _MOST_KNOWN:
            self._learn(data, rows[0])
        return event, rows

    def _learn(self, data: bytes, row: Row) -> None:
        """Remember what lies between step and number, if the last four bytes are the number and nothing else."""
        if len(data) < 15 or data[0] != 0x09 or data[9] != _STEP_KEY:
            return
        at = 10
        while data[at] >= 0x80:
            at += 1
        between = data[at + 1 : -4]
        # The same with another step, time and number: whatever else the bytes say, they must not change it.
        probe = bytes(data[:1]) + bytes(8) + b"\x10\x05" + between + _PROBE
        try:
            event = RawEvent(probe)
            seen = event.outline()
        except ValueError:
            return
        if (
            event.step == 5
            and event.wall_time == 0
            and event.what == "summary"
            and seen == [(row.tag, row.form, _unpack_number(_PROBE)[0], row.has_metadata)]
        ):
            self._known[between] = (row.tag, row.form, row.has_metadata)
