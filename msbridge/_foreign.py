"""MindSpore's own summary records as plain values: numbers, histograms, images, a graph, lineage. Pure functions.

The format is that of mindspore/train/summary (_summary_adapter.py, writer.py): records framed as TensorBoard's, with
messages of MindSpore's own. Needs no MindSpore.

Over 300 lines: one small decoder for each kind of record, and the types of what they return.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, Message

from msbridge import _dataset_graph
from msbridge._pb import mindspore_summary_pb2 as pb

_Message = TypeVar("_Message", bound=Message)

# MindSpore's DataType -> how it stands in raw_data; bfloat16 as its 16 bits.
_DTYPES = {
    1: "?", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<u1", 7: "<u2", 8: "<u4", 9: "<u8", 10: "<f2", 11: "<f4",
    12: "<f8", 46: "<u2",
}  # fmt: skip
_BFLOAT16 = 46
_NAMES = {1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
          10: "float16", 11: "float32", 12: "float64", 46: "bfloat16"}  # fmt: skip
_MOST_ATTRIBUTE = 200


@dataclass(frozen=True)
class Buckets:
    """A histogram: contiguous buckets, rising.

    Attributes:
        limits: right edges, of shape (k,).
        counts: of shape (k,).
        low: the left edge of the first.
        nans: values that were no number, and are in no bucket.
        infinities: likewise infinite ones.
    """

    limits: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]
    low: float
    nans: int
    infinities: int


@dataclass(frozen=True)
class Picture:
    """An encoded picture, as serialised Summary of TensorBoard's.

    MindSpore's own bytes: its messages of a picture have TensorBoard's field numbers.
    """

    summary: bytes


@dataclass(frozen=True)
class Landscape:
    """The loss around the end of a training, over two directions.

    Attributes:
        heights: the loss, of shape [y, x].
        tensors: what else there is, by name: the coordinates `x` and `y`; `path` of the training and `end`, of shape
            [3, points], their x, y and loss.
    """

    heights: npt.NDArray[Any]
    tensors: dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Item:
    """One value of a summary; a str says why it cannot be read."""

    tag: str
    value: float | Buckets | npt.NDArray[Any] | Picture | Landscape | str


@dataclass(frozen=True)
class Summaries:
    """The values of one event."""

    step: int
    wall_time: float
    items: tuple[Item, ...]


@dataclass(frozen=True)
class GraphFound:
    """A network, as serialised GraphDef of TensorFlow's."""

    graph_def: bytes


@dataclass(frozen=True)
class Lineage:
    """What is known of a training: hyper-parameters by name, and metrics by name."""

    hparams: dict[str, bool | int | float | str]
    metrics: dict[str, float]


@dataclass(frozen=True)
class DatasetGraph:
    """The steps of a data set, in Markdown."""

    text: str


@dataclass(frozen=True)
class LeftOut:
    """A record of a kind that TensorBoard has nothing for."""

    what: str


def decode(data: bytes) -> Summaries | GraphFound | LeftOut | None:
    """Return what a record of a summary file (`*_MS`) holds; None for what marks the file.

    Raises:
        ValueError: it is no such record.
    """
    event = _parsed(pb.MindSporeEvent, data)
    what = event.WhichOneof("what")
    if what == "graph_def":
        return GraphFound(_graph_def(event.graph_def))
    if what == "summary":
        return Summaries(event.step, event.wall_time, tuple(_items(event.summary)))
    if what == "explain":
        return LeftOut("explanations of pictures, for which TensorBoard has no dashboard")
    return None


def _parsed(kind: type[_Message], data: bytes) -> _Message:
    try:
        return kind.FromString(data)
    # Of protobuf 3: RecursionError in Python (groups in groups), SystemError in C++ where its warnings are errors.
    except (DecodeError, RecursionError, SystemError) as exc:
        raise ValueError(str(exc)) from exc


def decode_lineage(data: bytes) -> Lineage | DatasetGraph | None:
    """Return what a record of a lineage file (`*_lineage`) holds; None for what marks the file.

    Raises:
        ValueError: it is no such record.
    """
    event = _parsed(pb.LineageEvent, data)
    what = event.WhichOneof("what")
    if what == "train_lineage":
        return _train_lineage(event.train_lineage)
    if what == "evaluation_lineage":
        return Lineage({}, _metrics(event.evaluation_lineage.metric))
    if what == "dataset_graph":
        return DatasetGraph(_dataset_graph.in_markdown(event.dataset_graph))
    if what == "user_defined_info":
        return Lineage(dict(_user_values(event.user_defined_info)), {})
    return None


def _items(summary: pb.Summary) -> Iterator[Item]:
    for value in summary.value:
        form = value.WhichOneof("value")
        found: float | Buckets | npt.NDArray[Any] | Picture | Landscape | None = None
        if form == "scalar_value":
            found = float(value.scalar_value)
        elif form == "image":
            found = Picture(pb.Summary(value=[value]).SerializeToString())
        elif form == "tensor":
            found = tensor(value.tensor)
        elif form == "histogram":
            found = _buckets(value.histogram)
        elif form == "loss_landscape":
            found = _landscape(value.loss_landscape)
        yield Item(
            value.tag,
            f"{form or 'value'} that contradicts itself, or of a kind unknown here" if found is None else found,
        )


def _landscape(message: pb.LossLandscape) -> Landscape | None:
    heights = tensor(message.landscape.z)
    if heights is None or heights.ndim != 2 or not heights.size:
        return None
    found = {"x": tensor(message.landscape.x), "y": tensor(message.landscape.y)}
    for name, point in (("path", message.loss_path.points), ("end", message.convergence_point)):
        parts = [part.ravel() for part in map(tensor, (point.x, point.y, point.z)) if part is not None]
        if len(parts) == 3 and len({len(part) for part in parts}) == 1 and len(parts[0]):
            found[name] = np.stack(parts)
    return Landscape(heights, {name: array for name, array in found.items() if array is not None})


def tensor(message: pb.Tensor) -> npt.NDArray[Any] | None:
    """Return a tensor as an array, bfloat16 as float32; None where dtype, shape and data do not fit together."""
    dtype = _DTYPES.get(message.data_type)
    if dtype is None or any(size < 0 for size in message.dims):
        return None
    lists = (message.float_data, message.int32_data, message.int64_data, message.double_data, message.uint64_data)
    typed = next((items for items in lists if len(items)), None)
    try:
        if typed is not None:
            array = np.array(typed).astype("<f4" if message.data_type == _BFLOAT16 else dtype)
        else:
            array = np.frombuffer(message.raw_data, dtype)
            if message.data_type == _BFLOAT16:
                array = (array.astype(np.uint32) << 16).view(np.float32)
        return array.reshape([int(size) for size in message.dims])
    except (ValueError, OverflowError):
        return None


def _buckets(histogram: pb.Summary.Histogram) -> Buckets | None:
    limits: list[float] = []
    counts: list[float] = []
    low: float | None = None
    for bucket in histogram.buckets:
        right = bucket.left + bucket.width
        if low is None:
            low = bucket.left
        # Rounding can have a bucket end where it begins; its count goes to the one before.
        if limits and right <= limits[-1]:
            counts[-1] += bucket.count
            continue
        if not limits and right <= low:
            right = float(np.nextafter(low, np.inf)) if np.isfinite(low) else right
        limits.append(right)
        counts.append(float(bucket.count))
    infinities = histogram.pos_inf_count + histogram.neg_inf_count
    if low is None or not np.isfinite([low, *limits]).all():
        return (
            None
            if not (histogram.nan_count or infinities)
            else Buckets(np.empty(0), np.empty(0), 0.0, histogram.nan_count, infinities)
        )
    return Buckets(np.array(limits), np.array(counts), low, histogram.nan_count, infinities)


# ---- graph


def _graph_def(graph: pb.Graph) -> bytes:
    """Return a network as GraphDef: scopes become groups, parameters and constants nodes of their own."""
    names: dict[str, str] = {}
    used: set[str] = set()

    def name_for(key: str, wanted: str) -> str:
        # TensorBoard's names: no leading slash, none empty, each once.
        base = "/".join(part for part in wanted.replace(" ", "_").split("/") if part) or key or "node"
        name, number = base, 1
        while name in used:
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        names[key] = name
        return name

    out = pb.GraphDef()
    for parameter in graph.parameters:
        _add_node(out, name_for(parameter.name, parameter.name), "Parameter", (), _type_words(parameter.type))
    for constant in graph.const_vals:
        _add_node(
            out, name_for(constant.key, f"constants/{constant.key}"), "Const", (), _constant_words(constant.value)
        )
    for node in graph.node:
        name_for(node.name, node.full_name or f"{node.scope}/{node.op_type}{node.name}")
    for node in graph.node:
        inputs = [("^" if edge.type == 1 else "") + names.get(edge.name, edge.name) for edge in node.input]
        attributes = {item.name: next(iter(_constant_words(item.value).values()), "") for item in node.attribute}
        _add_node(
            out, names[node.name], node.op_type or "Node", inputs, {**attributes, **_type_words(node.output_type)}
        )
    return out.SerializeToString()


def _add_node(out: pb.GraphDef, name: str, op: str, inputs: Any, attributes: dict[str, str]) -> None:
    node = out.node.add(name=name, op=op, input=inputs)
    for key, text in attributes.items():
        node.attr[key].s = text[:_MOST_ATTRIBUTE].encode()


def _type_words(kind: pb.Type) -> dict[str, str]:
    if not kind.HasField("tensor_type"):
        return {}
    sizes = [dim.size for dim in kind.tensor_type.shape.dim]
    return {"shape": str(sizes), "dtype": _NAMES.get(kind.tensor_type.elem_type, str(kind.tensor_type.elem_type))}


def _constant_words(constant: pb.Constant) -> dict[str, str]:
    for name in ("str_val", "int_val", "uint_val", "double_val", "float_val", "bool_val"):
        value = getattr(constant, name)
        if value:
            return {"value": str(value)}
    return {}


# ---- lineage


def _train_lineage(message: pb.TrainLineage) -> Lineage:
    given = message.hyper_parameters
    hparams: dict[str, bool | int | float | str] = {
        "optimizer": given.optimizer,
        "learning_rate": given.learning_rate,
        "loss_function": given.loss_function,
        "epoch": given.epoch,
        "parallel_mode": given.parallel_mode,
        "device_num": given.device_num,
        "batch_size": given.batch_size,
        "network": message.algorithm.network,
        "train_dataset_path": message.train_dataset.train_dataset_path,
        "train_dataset_size": message.train_dataset.train_dataset_size,
        "model_path": message.model.path,
        "model_size": message.model.size,
    }
    # What is not known is empty there.
    return Lineage(
        {name: value for name, value in hparams.items() if value}, {"train/final_loss": message.algorithm.loss}
    )


def _metrics(text: str) -> dict[str, float]:
    try:
        found = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    numbers = found.items() if isinstance(found, dict) else ()
    return {f"eval/{name}": float(value) for name, value in numbers if isinstance(value, (int, float))}


def _user_values(info: pb.UserDefinedInfo) -> Iterator[tuple[str, int | float | str]]:
    for values in (info.map_int32, info.map_str, info.map_double):
        yield from values.items()
    for part in (*info.user_info, *info.map_dict.values()):
        yield from _user_values(part)
