"""Decode serialised Events of any writer into plain values, as TensorBoard's readers take them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary._charts import decode_layout
from tbwriter._summary._hparams import decode_hparams
from tbwriter._summary._parsing import parsed

_DTYPES: dict[int, tuple[str, str]] = {
    # DataType -> NumPy dtype, and the field that holds values outside of tensor_content
    pb.DT_FLOAT: ("<f4", "float_val"),
    pb.DT_DOUBLE: ("<f8", "double_val"),
    pb.DT_INT32: ("<i4", "int_val"),
    pb.DT_UINT8: ("u1", "int_val"),
    pb.DT_INT16: ("<i2", "int_val"),
    pb.DT_INT8: ("i1", "int_val"),
    pb.DT_INT64: ("<i8", "int64_val"),
    pb.DT_BOOL: ("?", "bool_val"),
    pb.DT_UINT16: ("<u2", "int_val"),
    pb.DT_UINT32: ("<u4", "uint32_val"),
    pb.DT_UINT64: ("<u8", "uint64_val"),
    pb.DT_HALF: ("<f2", "half_val"),
    pb.DT_BFLOAT16: ("<u2", "half_val"),
    pb.DT_COMPLEX64: ("<c8", "scomplex_val"),
    pb.DT_COMPLEX128: ("<c16", "dcomplex_val"),
}


# NumPy's limit up to version 1.26.
_MAX_RANK = 32
# A damaged shape must not ask for all memory of whoever copies what it gets.
_MAX_CONSTANT = 1 << 27


@dataclass(frozen=True)
class Value:
    """One value of an event.

    Attributes:
        tag: its name.
        plugin: the plugin that shows it: "scalars", "histograms", "images", "audio", "text", …; "" when unknown.
        data: by plugin: scalars a float; histograms float64 of shape [k, 3] (left, right, count); images and audio a
            list of encoded files as bytes; text a str, or an array of str; pr_curves float32 of shape
            [6, thresholds] (tp, fp, tn, fn, precision, recall); mesh the vertices, faces or colours of shape
            [batch, n, 3]; hparams a dict; custom_scalars {category: {title: (kind, tags)}}; anything else an array,
            bfloat16 as float32, or None.
        display_name: the title, where this Value carries one.
        description: the text for the card, where this Value carries one.
        content: the plugin's own metadata, serialised, where this Value carries it.
    """

    tag: str
    plugin: str
    data: Any = field(repr=False)
    display_name: str = ""
    description: str = ""
    content: bytes = b""

    def scalar(self) -> float | None:
        """Return the number of a scalar; None for any other kind."""
        return self.data if isinstance(self.data, float) else None


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        wall_time: seconds since 1970.
        step: of its values.
        values: what it holds; empty for events that mark something.
        file_version: in the first event of a file.
        session_log: "START", "STOP" or "CHECKPOINT" in a session's marks.
        writer: the program that wrote the file, in its first event.
        graph_def: a serialised GraphDef.
    """

    wall_time: float
    step: int
    values: tuple[Value, ...] = ()
    file_version: str | None = None
    session_log: str | None = None
    writer: str | None = None
    graph_def: bytes | None = field(default=None, repr=False)


def decode(data: bytes, plugins: dict[str, str]) -> Event:
    """Return the Event in `data`.

    Args:
        data: a serialised Event.
        plugins: tag -> plugin as known so far; filled in here, since only a tag's first Value says it.

    Raises:
        ValueError: `data` is no Event.
    """
    event = parsed(pb.Event, data)
    what = event.WhichOneof("what")
    return Event(
        wall_time=event.wall_time,
        step=event.step,
        values=tuple(_value(value, plugins) for value in event.summary.value),
        file_version=event.file_version if what == "file_version" else None,
        session_log=_name(pb.SessionLog.SessionStatus, event.session_log.status) if what == "session_log" else None,
        writer=event.source_metadata.writer or None,
        graph_def=event.graph_def if what == "graph_def" else None,
    )


def _name(kind: Any, number: int) -> str:
    """Return the name of an enum's value, or its number where a later version knows more of them."""
    return str(kind.Name(number)) if number in kind.values() else str(number)


def _value(value: pb.Summary.Value, plugins: dict[str, str]) -> Value:
    form = value.WhichOneof("value")
    legacy = {"simple_value": "scalars", "histo": "histograms", "image": "images", "audio": "audio"}
    plugin = plugins.setdefault(value.tag, value.metadata.plugin_data.plugin_name or legacy.get(form or "", ""))
    data: Any = None
    if form == "simple_value":
        data = float(value.simple_value)
    elif form == "histo":
        data = _legacy_histogram(value.histo)
    elif form == "image":
        data = [value.image.encoded_image_string]
    elif form == "audio":
        data = [value.audio.encoded_audio_string]
    elif form == "tensor":
        data = _tensor(value.tensor, plugin)
    meta = value.metadata
    if plugin == "hparams" and meta.plugin_data.content:
        data = decode_hparams(meta.plugin_data.content)
    return Value(value.tag, plugin, data, meta.display_name, meta.summary_description, bytes(meta.plugin_data.content))


def _legacy_histogram(histo: pb.HistogramProto) -> npt.NDArray[np.float64]:
    """Return buckets as TensorBoard 2.21 does: the outer edges are the data's, empty ends are left out."""
    limits, counts = np.array(histo.bucket_limit), np.array(histo.bucket)
    used = np.flatnonzero(counts)
    if not len(used) or len(limits) != len(counts):
        return np.empty((0, 3))
    first, last = used[0], used[-1]
    rights = np.append(limits[first:last], histo.max)
    lefts = np.insert(limits[first:last], 0, histo.min)
    return np.stack([lefts, rights, counts[first : last + 1]], axis=1)


def _tensor(tensor: pb.TensorProto, plugin: str) -> Any:
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.dtype == pb.DT_STRING:
        return _strings(list(tensor.string_val), shape, plugin)
    if tensor.dtype not in _DTYPES:
        return None
    dtype, name = _DTYPES[tensor.dtype]
    content = tensor.tensor_content
    if content:
        if len(content) % np.dtype(dtype).itemsize:
            return None
        array = np.frombuffer(content, dtype)
        if tensor.dtype == pb.DT_BFLOAT16:
            array = _from_halves(array, tensor.dtype)
    else:
        # torch puts uint8 where uint32 belongs.
        numbers = getattr(tensor, name) or (tensor.uint32_val if tensor.dtype == pb.DT_UINT8 else ())
        array = _unpacked(numbers, np.dtype(dtype), tensor.dtype)
    count = _count(shape)
    if array.size == 1 and 1 < count <= _MAX_CONSTANT:
        # TensorProto's short form of a constant: a view, so that a few bytes do not ask for gigabytes.
        return np.broadcast_to(array[0], shape)
    if array.size != count:
        return array
    array = array.reshape(shape)
    return float(array.reshape(-1)[0]) if plugin == "scalars" and array.size == 1 and array.dtype.kind != "c" else array


def _strings(items: list[bytes], shape: list[int], plugin: str) -> Any:
    if plugin == "images":
        return items[2:]
    if plugin == "audio" and len(shape) == 2:
        return items[:: max(1, shape[1])]  # an older form, with a label beside each sound
    if plugin == "custom_scalars" and items:
        return decode_layout(items[0])
    if plugin == "text":
        texts = [item.decode("utf-8", "replace") for item in items]
        if not shape:
            return texts[0] if texts else ""
        table = np.array(texts, object)
        return table.reshape(shape) if _count(shape) == len(texts) else table
    return items


def _count(shape: list[int]) -> int:
    """Return how many elements a shape has; -1 where it is none."""
    return math.prod(shape) if min(shape, default=0) >= 0 and len(shape) <= _MAX_RANK else -1


def _unpacked(numbers: Any, dtype: np.dtype[Any], kind: int) -> npt.NDArray[Any]:
    """Return the numbers of a field of its own, such as `float_val`."""
    array: npt.NDArray[Any]
    if kind in (pb.DT_HALF, pb.DT_BFLOAT16):
        bits = np.array(numbers, "<i4")
        # torch puts the bits of float32 here.
        array = bits.view("<f4") if (bits & 0xFFFF != bits).any() else _from_halves(bits, kind)
    elif dtype.kind == "c":  # real and imaginary parts in turn
        parts = np.array(numbers, np.float32 if dtype.itemsize == 8 else np.float64)
        array = parts[: len(parts) // 2 * 2].view(dtype)
    elif dtype.kind in "iu" and dtype.itemsize < 8:
        array = np.array(numbers, np.int64).astype(dtype)  # a damaged field may hold more than the type
    else:
        array = np.array(numbers, dtype)
    return array


def _from_halves(bits: npt.NDArray[Any], kind: int) -> npt.NDArray[Any]:
    """Return 16-bit floats by their bits; bfloat16, which NumPy lacks, as float32."""
    floats: npt.NDArray[Any] = bits.astype("<u2").view("<f2")
    if kind == pb.DT_BFLOAT16:
        floats = (bits.astype("<u4") << np.uint32(16)).view("<f4")
    return floats
