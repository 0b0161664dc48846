"""Events and Values through protobuf: everything but the scalars' fast path."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

import numpy.typing as npt
from google.protobuf.message import Message

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary._parsing import parsed
from tbwriter._summary._scalar import varint
from tbwriter._summary._words import describe, shown

_Message = TypeVar("_Message", bound=Message)

FILE_VERSION = "brain.Event:2"
"""TensorBoard's Python reader purges on restarts only from version 2 on."""
WRITER = "tbwriter"
MAX_BYTES = (1 << 31) - (1 << 16)
"""A message of protobuf ends at 2 GiB; the rest of the Event needs some of it."""


class Summary(Protocol):
    """A summary that waits in the queue; everything costly happens in `values`, in the worker."""

    @property
    def tag(self) -> str:
        """The tag under which it is stored."""

    @property
    def nbytes(self) -> int:
        """How much memory it holds while it waits."""

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return what to store: nothing, or Values of which the first is the tag's own.

        Args:
            first: no Value of this tag is in the event file yet, so this one carries the metadata.
        """


def check_size(tag: str, value: object, nbytes: int) -> None:
    """Refuse a value whose stored form, of `nbytes` bytes, no Event can hold.

    Raises:
        ValueError: it is too large.
    """
    if nbytes > MAX_BYTES:
        raise ValueError(f"tag {shown(tag)}: got {describe(value)}, want less than 2 GiB: protobuf holds no more")


def event(values: Iterable[pb.Summary.Value], step: int, wall_time: float) -> bytes:
    """Return a serialised Event of `values`."""
    return pb.Event(wall_time=wall_time, step=step, summary=pb.Summary(value=values)).SerializeToString()


def wrap(summary: bytes, step: int, wall_time: float) -> bytes:
    """Return a serialised Event of a serialised Summary, whichever package's class made it."""
    head = pb.Event(wall_time=wall_time, step=step).SerializeToString()
    return head + b"\x2a" + varint(len(summary)) + summary  # Event.summary = 5


def check_event(event: bytes) -> bytes:
    """Return serialised bytes if both readers get over them: one intact record that is no Event ends the Python one.

    Raises:
        ValueError: they are no Event, or its wall time is not finite.
    """
    wall_time = _of_caller(pb.Event, event).wall_time
    if not math.isfinite(wall_time):
        raise ValueError(f"event: its wall_time must be finite seconds since 1970, got {wall_time}")
    return event


def check_summary(summary: bytes) -> bytes:
    """As `check_event`, for a Summary."""
    _of_caller(pb.Summary, summary)
    return summary


def _of_caller(kind: type[_Message], data: bytes) -> _Message:
    try:
        return parsed(kind, data)
    except ValueError as exc:
        name = kind.DESCRIPTOR.name
        raise ValueError(f"{name.lower()}: {len(data)} bytes are no serialised {name}") from exc


def count_values(event: bytes) -> int:
    """Return how many values a serialised Event of ours holds."""
    return len(pb.Event.FromString(event).summary.value)


def file_version(wall_time: float) -> bytes:
    """Return the Event that begins every event file."""
    return pb.Event(
        wall_time=wall_time, file_version=FILE_VERSION, source_metadata=pb.SourceMetadata(writer=WRITER)
    ).SerializeToString()


def session_start(step: int, wall_time: float) -> bytes:
    """Return the Event that says: a session begins, and what an earlier one wrote from `step` on is void."""
    log = pb.SessionLog(status=pb.SessionLog.START)
    return pb.Event(wall_time=wall_time, step=step, session_log=log).SerializeToString()


def metadata(
    plugin: str, data_class: pb.DataClass, *, content: bytes = b"", display_name: str = "", description: str = ""
) -> pb.SummaryMetadata:
    """Return the metadata that the first Value of a tag carries."""
    return pb.SummaryMetadata(
        plugin_data=pb.SummaryMetadata.PluginData(plugin_name=plugin, content=content),
        display_name=display_name,
        summary_description=description,
        data_class=data_class,
    )


def shape(*sizes: int) -> pb.TensorShapeProto:
    """Return a tensor shape; no sizes is a scalar's."""
    return pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=size) for size in sizes])


def strings(items: Sequence[bytes], *sizes: int) -> pb.TensorProto:
    """Return a string tensor of shape `sizes`."""
    return pb.TensorProto(dtype=pb.DT_STRING, tensor_shape=shape(*sizes), string_val=items)


# NumPy's names of the types that stand in `tensor_content` as they are in memory, least byte first.
DATA_TYPES: dict[str, pb.DataType] = {
    "float32": pb.DT_FLOAT,
    "float64": pb.DT_DOUBLE,
    "int32": pb.DT_INT32,
    "uint8": pb.DT_UINT8,
    "int16": pb.DT_INT16,
    "int8": pb.DT_INT8,
    "complex64": pb.DT_COMPLEX64,
    "int64": pb.DT_INT64,
    "bool": pb.DT_BOOL,
    "uint16": pb.DT_UINT16,
    "complex128": pb.DT_COMPLEX128,
    "uint32": pb.DT_UINT32,
    "uint64": pb.DT_UINT64,
}


def tensor(array: npt.NDArray[Any]) -> pb.TensorProto:
    """Return a tensor of `array`'s shape and dtype, one of `DATA_TYPES`."""
    content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    dtype = DATA_TYPES[array.dtype.name]
    return pb.TensorProto(dtype=dtype, tensor_shape=shape(*array.shape), tensor_content=content)
