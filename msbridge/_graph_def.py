"""MindSpore's compiled graph as a serialised GraphDef, by hand: six fields of three messages.

Fields after tensorflow/core/framework/graph.proto, node_def.proto and attr_value.proto.
"""

from collections.abc import Iterable
from typing import Any


def graph_def(serialised: bytes) -> bytes:
    """Turn what MindSpore gives of a compiled graph into what TensorBoard shows.

    Raises:
        ImportError, ValueError: this MindSpore's message of graphs is another.
    """
    from mindspore.train import anf_ir_pb2

    model = anf_ir_pb2.ModelProto()
    model.ParseFromString(serialised)
    graph = model.graph
    names = {node.name: node.full_name or f"{node.scope}/{node.op_type}-{node.name}" for node in graph.node}
    names |= {parameter.name: f"Parameters/{parameter.name}" for parameter in graph.parameters}
    nodes = [_node(names[parameter.name], "Parameter", (), parameter.type) for parameter in graph.parameters]
    for node in graph.node:
        # Constants are left out: there are more of them than of operators.
        inputs = [names[edge.name] for edge in node.input if edge.name in names]
        nodes.append(_node(names[node.name], node.op_type, inputs, node.output_type))
    return b"".join(_field(1, node) for node in nodes)


def _node(name: str, operator: str, inputs: Iterable[str], kind: Any) -> bytes:
    parts = [_field(1, name.encode()), _field(2, operator.encode())]
    parts += [_field(3, value.encode()) for value in inputs]
    if kind.HasField("tensor_type"):
        sizes = [_number(1, dim.size) for dim in kind.tensor_type.shape.dim]
        shape = b"".join(_field(2, size) for size in sizes)
        attribute = _field(1, _field(7, shape))  # AttrValue.list.shape
        parts.append(_field(5, _field(1, b"_output_shapes") + _field(2, attribute)))
    return b"".join(parts)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value % (1 << 64))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
