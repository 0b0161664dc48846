"""Events of scalars, from templates: the bytes that protobuf would give, at a tenth of its cost.

A layout holds what repeats from step to step, the tags and all lengths, so that an Event of n scalars is one
`struct.pack`. `tests/unit/test_scalar_bytes.py` holds the result against protobuf's own serialisation.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Collection

# Field numbers and wire types (protobuf encoding): tag byte = number << 3 | type.
_WALL_TIME = 0x09  # Event.wall_time = 1, fixed64
_STEP = 0x10  # Event.step = 2, varint
_SUMMARY = b"\x2a"  # Event.summary = 5, length-delimited
_VALUE = b"\x0a"  # Summary.value = 1
_TAG = b"\x0a"  # Summary.Value.tag = 1
_SIMPLE_VALUE = b"\x15"  # Summary.Value.simple_value = 2, fixed32

_pack_wall_time = struct.Struct("<Bd").pack
# More layouts than this means that groups never repeat; then none is worth keeping.
_MAX_LAYOUTS = 4096


def varint(number: int) -> bytes:
    """Return `number`, an int64 or uint64, in protobuf's base 128; negative numbers take 10 bytes."""
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


# Most steps share all but the lowest seven bits with the one before.
_high_bits = functools.lru_cache(maxsize=64)(varint)
_step_and_low_bits = tuple(bytes((_STEP, low | 128)) for low in range(128))


def step_field(step: int) -> bytes:
    """Return the field Event.step; nothing for 0, which proto3 leaves out."""
    if step > 127:
        return _step_and_low_bits[step & 127] + _high_bits(step >> 7)
    return bytes((_STEP,)) + varint(step) if step else b""


def wall_time_field(wall_time: float) -> bytes:
    """Return the field Event.wall_time; nothing for 0."""
    return _pack_wall_time(_WALL_TIME, wall_time) if wall_time else b""


def value_prefix(tag: str) -> bytes:
    """Return a Summary.value field for a scalar of `tag`, up to the four bytes of its float."""
    name = tag.encode("utf-8")
    body = _TAG + varint(len(name)) + name + _SIMPLE_VALUE
    return _VALUE + varint(len(body) + 4) + body


class ScalarEncoder:
    """Encode Events of scalars; one per thread."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[str, ...], _Layout] = {}

    def event(self, tags: tuple[str, ...], values: Collection[float], step: int, wall_time: float) -> bytes:
        """Return the serialised Event of `values` under `tags`, in that order.

        Args:
            tags: distinct, valid tags.
            values: as many floats, each within float32's range, infinite or NaN.
            step: an int64.
            wall_time: finite seconds since 1970.
        """
        layout = self._layouts.get(tags)
        if layout is None:
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[tags] = _Layout(tags)
        return layout.event(values, step, wall_time)


class _Layout:
    __slots__ = ("_fields", "_pack", "_summary_head")

    def __init__(self, tags: tuple[str, ...]) -> None:
        prefixes = [value_prefix(tag) for tag in tags]
        packer = struct.Struct("<" + "".join(f"{len(prefix)}sf" for prefix in prefixes))
        self._pack = packer.pack
        self._summary_head = _SUMMARY + varint(packer.size)
        self._fields: list[bytes | float] = [field for prefix in prefixes for field in (prefix, 0.0)]

    def event(self, values: Collection[float], step: int, wall_time: float) -> bytes:
        fields = self._fields  # one thread, so the template is filled in place
        fields[1::2] = values
        return wall_time_field(wall_time) + step_field(step) + self._summary_head + self._pack(*fields)
