"""Events as they stand in a file, for tools that look at them or store some of their values again.

`decode` gives what a value means; this gives the form in which it is stored, which is what the two readers disagree on.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary._hparams import decode_hparams
from tbwriter._summary._parsing import parsed

PLUGIN_OF_FORM = {"simple_value": "scalars", "histo": "histograms", "image": "images", "audio": "audio"}
"""The plugin that shows a value of TensorBoard 1's forms, which carry no metadata."""

# Number types -> how one stands in tensor_content, and the field that holds it elsewhere.
_NUMBERS = {
    pb.DT_FLOAT: ("<f4", "float_val"),
    pb.DT_DOUBLE: ("<f8", "double_val"),
    pb.DT_INT64: ("<i8", "int64_val"),
    pb.DT_INT32: ("<i4", "int_val"),
    pb.DT_INT16: ("<i2", "int_val"),
    pb.DT_INT8: ("<i1", "int_val"),
    pb.DT_UINT8: ("<u1", "int_val"),
    pb.DT_UINT32: ("<u4", "uint32_val"),
    pb.DT_UINT64: ("<u8", "uint64_val"),
    pb.DT_BOOL: ("<u1", "bool_val"),
    pb.DT_HALF: ("<f2", "half_val"),
}


class Metadata(NamedTuple):
    """What a value says of itself.

    Attributes:
        plugin: the plugin that shows it; "" where it says none.
        data_class: by TensorFlow's number; 0 when not set.
        version: of the plugin's own metadata, whose first field it is; 0 when not set.
        titled: whether it has a display name or a description.
    """

    plugin: str
    data_class: int
    version: int
    titled: bool


class RawEvent:
    """An Event as it stands in a file."""

    __slots__ = ("_event", "step", "wall_time")

    def __init__(self, data: bytes) -> None:
        """Parse `data`.

        Raises:
            ValueError: it is no Event.
        """
        self._event = parsed(pb.Event, data)
        self.wall_time: float = self._event.wall_time
        self.step: int = self._event.step

    @property
    def what(self) -> str:
        """What it holds: "summary", "file_version", "graph_def", "session_log", "" for nothing, ..."""
        return self._event.WhichOneof("what") or ""

    @property
    def file_version(self) -> str:
        """The text of a file_version."""
        return self._event.file_version

    @property
    def writer(self) -> str:
        """The program that wrote the file, where the event says so."""
        return self._event.source_metadata.writer

    @property
    def is_session_start(self) -> bool:
        """Whether it marks the start of a session."""
        return self._event.session_log.status == pb.SessionLog.START

    def outline(self) -> list[tuple[str, str, float | None, bool]]:
        """Return tag, form, number and whether there is metadata, of each of its values; the fast way for scans.

        The form is the field that holds the value; of a tensor its type and rank, such as "DT_FLOAT 0".
        """
        out = []
        for value in self._event.summary.value:
            form = value.WhichOneof("value") or ""
            number: float | None = None
            if form == "simple_value":
                number = value.simple_value
            elif form == "tensor":
                tensor = value.tensor
                number = _tensor_number(tensor)
                form = _tensor_form(tensor.dtype, len(tensor.tensor_shape.dim))
            out.append((value.tag, form, number, value.HasField("metadata")))
        return out

    def sizes(self, size: int) -> list[int]:
        """Return the bytes of each value; what they have in common, of an Event of `size` bytes, is shared out."""
        sizes = [value.ByteSize() for value in self._event.summary.value]
        shared = max(size - sum(sizes), 0) // len(sizes) if sizes else 0
        return [own + shared for own in sizes]

    @property
    def values(self) -> list[RawValue]:
        """Its values."""
        return [RawValue(value) for value in self._event.summary.value]

    def keep(self, wanted: Callable[[RawValue], bool]) -> bytes | None:
        """Return the Event with only the values that are `wanted`, serialised; None when that leaves none."""
        values = self._event.summary.value
        kept = [value for value in values if wanted(RawValue(value))]
        if len(kept) == len(values):
            return self._event.SerializeToString()
        if not kept:
            return None
        event = pb.Event()
        event.CopyFrom(self._event)
        del event.summary.value[:]
        event.summary.value.extend(kept)
        return event.SerializeToString()

    def serialised(self) -> bytes:
        """Return the Event as bytes, with what was changed in its values; fields that we do not know stay."""
        return self._event.SerializeToString()

    def set_wall_time(self, wall_time: float) -> None:
        """Change the wall time."""
        self._event.wall_time = self.wall_time = wall_time


class RawValue:
    """A Value as it stands in a file."""

    __slots__ = ("_value", "tag")

    def __init__(self, value: pb.Summary.Value) -> None:
        self._value = value
        self.tag: str = value.tag

    @property
    def kind(self) -> str:
        """The field that holds it: "simple_value", "tensor", "image", "histo", "audio", or "" for none."""
        return self._value.WhichOneof("value") or ""

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._value.ByteSize()

    def metadata(self) -> Metadata | None:
        """Return its metadata, or None where it has none."""
        if not self._value.HasField("metadata"):
            return None
        meta = self._value.metadata
        plugin, content = meta.plugin_data.plugin_name, meta.plugin_data.content
        # Every plugin's content but the graphs' begins with its version as field 1, a varint; small ones take one byte.
        version = content[1] if len(content) > 1 and content[0] == 0x08 and plugin != "graphs" else 0
        return Metadata(plugin, meta.data_class, version, bool(meta.display_name or meta.summary_description))

    def hparams(self) -> dict[str, Any] | None:
        """Return what it says of hyper-parameters, as `decode_hparams` does; None where it says nothing of them."""
        return decode_hparams(self._value.metadata.plugin_data.content)

    def number(self) -> float | None:
        """Return the number of a simple_value, or of a tensor of one number; None for anything else."""
        value = self._value
        kind = value.WhichOneof("value")
        if kind == "simple_value":
            return value.simple_value
        return _tensor_number(value.tensor) if kind == "tensor" else None

    @property
    def form(self) -> str:
        """How it is stored, as in RawEvent.outline."""
        value = self._value
        kind = value.WhichOneof("value") or ""
        return _tensor_form(value.tensor.dtype, len(value.tensor.tensor_shape.dim)) if kind == "tensor" else kind

    def rename(self, tag: str) -> None:
        """Give it another tag."""
        self._value.tag = self.tag = tag

    def metadata_alone(self) -> RawValue:
        """Return a Value with its tag and its metadata, which keeps nothing else of the Event in memory."""
        return RawValue(pb.Summary.Value(tag=self.tag, metadata=self._value.metadata))

    def take_metadata(self, source: RawValue) -> None:
        """Take the metadata of another Value."""
        self._value.metadata.CopyFrom(source._value.metadata)

    def set_plugin(self, plugin: str) -> None:
        """Say which plugin shows it, with data of version 0."""
        data = self._value.metadata.plugin_data
        data.plugin_name, data.content = plugin, b""

    def make_plain_scalar(self) -> bool:
        """Store a scalar in the one form of tensor that both readers show: float32 of rank 0.

        Returns:
            Whether it could be: it holds one number, and float32 has room for it.
        """
        number = self.number()
        if number is None:
            return False
        with np.errstate(all="ignore"):
            single = float(np.float32(number))
        if math.isinf(single) and not math.isinf(number):
            return False
        shape = pb.TensorShapeProto()
        self._value.tensor.CopyFrom(pb.TensorProto(dtype=pb.DT_FLOAT, tensor_shape=shape, float_val=[single]))
        return True


def _tensor_number(tensor: pb.TensorProto) -> float | None:
    form = _NUMBERS.get(tensor.dtype)
    if form is None:
        return None
    dtype, name = form
    numbers = getattr(tensor, name)
    if len(numbers) == 1:
        # Half precision stands there as its bits.
        return float(numbers[0] if name != "half_val" else np.uint16(numbers[0] & 0xFFFF).view(np.float16))
    content = tensor.tensor_content
    return float(np.frombuffer(content, dtype)[0]) if len(content) == int(dtype[-1]) else None


@functools.lru_cache(maxsize=1024)
def _tensor_form(number: int, rank: int) -> str:
    return f"{_dtype_name(number)} {rank}"


def _dtype_name(number: int) -> str:
    try:
        return str(pb.DataType.Name(number))
    except ValueError:
        return f"DataType {number}"
