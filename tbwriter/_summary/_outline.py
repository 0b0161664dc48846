"""The fast way through many Events: their numbers, without a message object for each.

A run's scalars are nearly all alike: wall time, step, then the same bytes with other numbers in the same places. What
lies around the numbers is looked up once it is known; everything else goes through protobuf.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tbwriter._summary._raw import RawEvent

_unpack_wall_time = struct.Struct("<d").unpack_from
_STEP_KEY = 0x10
_NUMBER = struct.Struct("<f")
# Forms that are remembered, and layouts that are tried for one length; damage must not fill the memory.
_MOST_FORMS = 16_384
_MOST_LAYOUTS = 4
_MOST_VALUES = 64


class Row(NamedTuple):
    """One value of an Event: tag, form as in RawEvent.outline, its number if it has one, whether it has metadata."""

    tag: str
    form: str
    number: float | None
    has_metadata: bool


class Alike:
    """What Events of one form have in common: all but wall time, step and numbers.

    Attributes:
        rows: their values, with the numbers of the first such Event.
        sizes: bytes of each value, with its share of what they have in common.
        count: how many were met; for whoever counts them.
    """

    __slots__ = ("count", "rows", "sizes")

    def __init__(self, rows: tuple[Row, ...], sizes: tuple[int, ...]) -> None:
        self.rows, self.sizes = rows, sizes
        self.count = 0


class _Layout:
    """Where numbers lie behind the step, and what was found around them."""

    def __init__(self, places: tuple[int, ...], size: int) -> None:
        self.places = places
        # The constant parts, as the text of one unpacking: cheaper than a slice for each.
        ends = [0, *(place + _NUMBER.size for place in places)]
        gaps = [begin - end for end, begin in zip(ends, (*places, size), strict=True)]
        self.numbers = struct.Struct("<" + "".join(f"{gap}xf" for gap in gaps[:-1])).unpack_from
        self.around = struct.Struct("<" + "4x".join(f"{gap}s" for gap in gaps)).unpack_from
        self.known: dict[tuple[bytes, ...], Alike] = {}


class Outliner:
    """Reads Events one after the other and remembers the forms of those that hold numbers alone."""

    def __init__(self) -> None:
        self._layouts: dict[int, list[_Layout]] = {}  # by the number of bytes behind the step
        self._forms = 0

    def known(self, data: bytes) -> tuple[float, int, tuple[float, ...], Alike] | None:
        """Return wall time, step, numbers and form, of an Event whose form was met before.

        None when its form was not met yet, or it is no such Event: `outline` tells.
        """
        at = _behind_step(data)
        if at is None:
            return None
        for layout in self._layouts.get(len(data) - at, ()):
            alike = layout.known.get(layout.around(data, at))
            if alike is not None:
                step = data[10] if at == 11 else _varint(data, 10, at)
                return _unpack_wall_time(data, 1)[0], step, layout.numbers(data, at), alike
        return None

    def outline(self, data: bytes) -> tuple[RawEvent, list[Row]]:
        """Return the Event and its values, and remember its form if all of them are numbers.

        Raises:
            ValueError: `data` is no Event.
        """
        event = RawEvent(data)
        rows = [Row(*row) for row in event.outline()]
        if rows and len(rows) <= _MOST_VALUES and self._forms < _MOST_FORMS:
            at = _behind_step(data)
            if at is not None and all(row.number is not None for row in rows):
                self._learn(event, data, at, rows)
        return event, rows

    def _learn(self, event: RawEvent, data: bytes, at: int, rows: list[Row]) -> None:
        """Remember the form of an Event, if its numbers lie in it as float32 and nothing else depends on them."""
        rest = data[at:]
        places: list[int] = []
        begin = 0
        for row in rows:
            packed = _packed(row.number)
            place = -1 if packed is None else rest.find(packed, begin)
            if place < 0:
                return
            places.append(place)
            begin = place + _NUMBER.size
        # The same with another step, time and numbers: what lies around them must say all the rest.
        probes = [_NUMBER.unpack(_NUMBER.pack(1.2345678e-5 * (index + 1)))[0] for index in range(len(rows))]
        changed = bytearray(rest)
        for place, probe in zip(places, probes, strict=True):
            _NUMBER.pack_into(changed, place, probe)
        try:
            seen = RawEvent(b"\x09" + bytes(8) + b"\x10\x05" + bytes(changed))
            want = [(row.tag, row.form, probe, row.has_metadata) for row, probe in zip(rows, probes, strict=True)]
            if (seen.step, seen.wall_time, seen.what) != (5, 0.0, "summary") or seen.outline() != want:
                return
        except ValueError:
            return
        layouts = self._layouts.setdefault(len(rest), [])
        layout = next((layout for layout in layouts if layout.places == tuple(places)), None)
        if layout is None:
            if len(layouts) >= _MOST_LAYOUTS:
                return
            layout = _Layout(tuple(places), len(rest))
            layouts.append(layout)
        layout.known[layout.around(rest, 0)] = Alike(tuple(rows), tuple(event.sizes(len(data))))
        self._forms += 1


def _packed(number: float | None) -> bytes | None:
    try:
        return None if number is None else _NUMBER.pack(number)
    except OverflowError:  # a double too large for a float
        return None


def _behind_step(data: bytes) -> int | None:
    """Return where the step ends, in an Event that begins with wall time and a step that is not negative."""
    if len(data) < 15 or data[0] != 0x09 or data[9] != _STEP_KEY:
        return None
    if data[10] < 0x80:
        return 11
    for at in range(11, min(len(data), 19)):
        if data[at] < 0x80:
            return at + 1
    return None  # negative, or no varint


def _varint(data: bytes, begin: int, end: int) -> int:
    number = 0
    for at in range(end - 1, begin - 1, -1):
        number = number << 7 | data[at] & 0x7F
    return number
