"""Graphs: GraphDefs without their large constants, and GraphDefs of ONNX models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._parsing import parsed

# Beyond this TensorBoard's server leaves an attribute out of what it sends, and says so under the same name.
_MAX_ATTRIBUTE_BYTES = 1024
_LARGE = "_too_large_attrs"
_WEIGHT_BYTES = 400  # what the name and the shape of a weight take

# ONNX's TensorProto.DataType -> TensorFlow's DataType, as which TensorBoard shows it.
_ONNX_TYPES = {
    1: pb.DT_FLOAT,
    2: pb.DT_UINT8,
    3: pb.DT_INT8,
    4: pb.DT_UINT16,
    5: pb.DT_INT16,
    6: pb.DT_INT32,
    7: pb.DT_INT64,
    8: pb.DT_STRING,
    9: pb.DT_BOOL,
    10: pb.DT_HALF,
    11: pb.DT_DOUBLE,
    12: pb.DT_UINT32,
    13: pb.DT_UINT64,
    14: pb.DT_COMPLEX64,
    15: pb.DT_COMPLEX128,
    16: pb.DT_BFLOAT16,
}


@dataclass(frozen=True)
class Graph:
    """A graph that waits to be stored, as bytes; all but the check of them and a copy happens in the worker."""

    data: bytes
    """A serialised GraphDef, or what `onnx` says."""
    onnx: _Onnx | None = None

    @classmethod
    def of(cls, data: bytes) -> Graph:
        """Take a serialised GraphDef.

        Raises:
            ValueError: it is none.
        """
        try:
            parsed(plugins.GraphDef, data)
        except ValueError as exc:
            raise ValueError(f"model must be a serialised GraphDef, got {len(data)} other bytes: {exc}") from exc
        return cls(data)

    @classmethod
    def of_onnx(cls, graph: Any) -> Graph:
        """Take an `onnx.GraphProto`; its weights' values are not copied."""
        copy = type(graph)()
        copy.input.extend(graph.input)
        copy.node.extend(graph.node)
        weights = [_Weight(weight.name, tuple(weight.dims), weight.data_type) for weight in graph.initializer]
        return cls(copy.SerializeToString(), _Onnx(type(graph), weights))

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return len(self.data) + (_WEIGHT_BYTES * len(self.onnx.weights) if self.onnx else 0)

    def event(self, step: int, wall_time: float) -> bytes:
        """Return the serialised Event, without attributes of more than 1 kB."""
        graph = self.onnx.graph_def(self.data) if self.onnx else plugins.GraphDef.FromString(self.data)
        _slim(graph)
        return pb.Event(wall_time=wall_time, step=step, graph_def=graph.SerializeToString()).SerializeToString()


def _slim(graph: plugins.GraphDef) -> None:
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        for node in nodes:
            for name in list(node.attr):
                if name != _LARGE and node.attr[name].ByteSize() > _MAX_ATTRIBUTE_BYTES:
                    del node.attr[name]
                    node.attr[_LARGE].list.s.append(name.encode("utf-8"))


class _Weight(NamedTuple):
    """A weight without its values."""

    name: str
    dims: tuple[int, ...]
    data_type: int


class _Onnx(NamedTuple):
    """What a model of ONNX is beside its inputs and operators."""

    kind: Any
    """The class `onnx.GraphProto`."""
    weights: list[_Weight]

    def graph_def(self, data: bytes) -> plugins.GraphDef:
        """Return serialised inputs and operators, and the weights, as a GraphDef."""
        graph = self.kind.FromString(data)
        names = _Names()
        weights = {weight.name for weight in self.weights}
        nodes = [
            _leaf(names.of(value.name), "Placeholder", value.type.tensor_type)
            for value in graph.input
            if value.name not in weights
        ]
        for weight in self.weights:
            shape = _event.shape(*weight.dims)
            nodes.append(_node(names.of(weight.name), "Const", _ONNX_TYPES.get(weight.data_type, pb.DT_INVALID), shape))
        for index, operator in enumerate(graph.node):
            outputs = [output for output in operator.output if output]
            name = names.of(outputs[0] if outputs else operator.name or f"{operator.op_type}_{index}")
            for output in outputs[1:]:
                names.same(output, name)
            node = plugins.NodeDef(name=name, op=operator.op_type)
            node.input.extend(operator.input)
            text = ", ".join(_attribute(attribute) for attribute in operator.attribute)
            node.attr["parameters"].s = text.encode("utf-8", "replace")
            nodes.append(node)
        for node in nodes:
            # Only now are all names known: operators stand in any order.
            node.input[:] = [names.of(name) for name in node.input if name]
        return plugins.GraphDef(node=nodes, versions=plugins.VersionDef(producer=22))


class _Names:
    """Names of an ONNX model's values as names of nodes: no leading slash, each used once."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last one that was put behind a name

    def of(self, value: str) -> str:
        """Return the name of the node that makes `value`."""
        known = self._names.get(value)
        if known is not None:
            return known
        stem = name = value.lstrip("/") or "node"
        while name in self._used:
            self._numbers[stem] = number = self._numbers.get(stem, 0) + 1
            name = f"{stem}_{number}"
        self._used.add(name)
        self._names[value] = name
        return name

    def same(self, value: str, name: str) -> None:
        """Have `value` come from the node `name`."""
        self._names[value] = name


def _leaf(name: str, op: str, tensor: Any) -> plugins.NodeDef:
    # A dimension without a number, such as "batch", is of any size.
    sizes = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
    return _node(name, op, _ONNX_TYPES.get(tensor.elem_type, pb.DT_INVALID), _event.shape(*sizes))


def _node(name: str, op: str, dtype: Any, shape: pb.TensorShapeProto) -> plugins.NodeDef:
    node = plugins.NodeDef(name=name, op=op)
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.CopyFrom(shape)
    return node


def _attribute(attribute: Any) -> str:
    """Return an operator's attribute as text; tensors and graphs in it by their kind alone."""
    for field, value in attribute.ListFields():
        name = field.name
        if name in ("name", "type", "doc_string", "ref_attr_name"):
            continue
        if name in ("t", "g", "sparse_tensor", "tp", "tensors", "graphs", "sparse_tensors", "type_protos"):
            return f"{attribute.name} = ({name})"
        return f"{attribute.name} = {_text(value)}"
    return f"{attribute.name} = default"


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)
