import sys

import pytest

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import Graph


def slim(graph):
    """Return a graph, given as a message, as it is stored."""
    event = pb.Event.FromString(Graph.of(graph.SerializeToString()).event(3, 1.5))
    assert (event.step, event.wall_time) == (3, 1.5)
    return plugins.GraphDef.FromString(event.graph_def)


def constant(name, size):
    node = plugins.NodeDef(name=name, op="Const")
    node.attr["value"].s = b"x" * size
    node.attr["small"].s = b"y"
    return node


def test_a_small_graph_is_kept_byte_for_byte():
    graph = plugins.GraphDef(node=[constant("a", 10)]).SerializeToString(deterministic=True)
    assert plugins.GraphDef.FromString(pb.Event.FromString(Graph.of(graph).event(0, 1.5)).graph_def) == (
        plugins.GraphDef.FromString(graph)
    )


def test_constants_above_1_kb_are_left_out_and_named():
    (small, large) = slim(plugins.GraphDef(node=[constant("a", 1000), constant("b", 1100)])).node
    assert len(small.attr["value"].s) == 1000
    assert sorted(large.attr) == ["_too_large_attrs", "small"]
    assert list(large.attr["_too_large_attrs"].list.s) == [b"value"]


def test_constants_in_functions_are_left_out_too():
    graph = plugins.GraphDef()
    graph.library.function.add().node_def.append(constant("a", 5000))
    assert len(slim(graph).SerializeToString()) < 200


def test_fields_that_are_not_known_here_survive():
    graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")
    graph = graph_pb2.GraphDef()
    node = graph.node.add(name="a", op="Const", device="/cpu:0")
    node.attr["value"].tensor.tensor_content = b"x" * 5000
    node.attr["t"].tensor.tensor_content = b"x" * 50
    graph.library.gradient.add(function_name="f")
    graph.versions.min_consumer = 12
    event = Graph.of(graph.SerializeToString()).event(0, 1.5)
    stored = graph_pb2.GraphDef.FromString(pb.Event.FromString(event).graph_def)
    del graph.node[0].attr["value"]
    graph.node[0].attr["_too_large_attrs"].list.s.append(b"value")
    assert stored == graph


def test_bytes_that_are_no_graph_are_refused():
    with pytest.raises(ValueError, match=r"^model must be a serialised GraphDef, got 4 other bytes: "):
        Graph.of(b"\xff\xff\xff\xff")


# ---- ONNX


@pytest.fixture
def onnx():
    return pytest.importorskip("onnx")


def stored_onnx(graph):
    return pb.Event.FromString(Graph.of_onnx(graph).event(0, 1.5)).graph_def


def model(onnx):
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Conv", ["/x", "w"], ["/conv/out"], name="conv", kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        helper.make_node("Split", ["/conv/out"], ["left", "right"], axis=1),
        helper.make_node("Add", ["left", "right"], ["y"]),
    ]
    weight = helper.make_tensor("w", float32, [4, 3, 3, 3], [0.5] * 108)
    inputs = [helper.make_tensor_value_info("/x", float32, ["batch", 3, 8, 8])]
    outputs = [helper.make_tensor_value_info("y", float32, ["batch", 2, 8, 8])]
    return helper.make_model(helper.make_graph(nodes, "net", inputs, outputs, [weight]))


def test_an_onnx_model_is_a_graph_of_its_operators_inputs_and_weights(onnx):
    nodes = {node.name: node for node in plugins.GraphDef.FromString(stored_onnx(model(onnx).graph)).node}
    assert {name: (node.op, list(node.input)) for name, node in nodes.items()} == {
        "x": ("Placeholder", []),
        "w": ("Const", []),
        "conv/out": ("Conv", ["x", "w"]),
        "left": ("Split", ["conv/out"]),
        "y": ("Add", ["left", "left"]),
    }
    assert [dim.size for dim in nodes["x"].attr["shape"].shape.dim] == [-1, 3, 8, 8]
    assert nodes["w"].attr["dtype"].type == pb.DT_FLOAT
    assert nodes["conv/out"].attr["parameters"].s == b"auto_pad = SAME_UPPER, kernel_shape = [3, 3]"


def test_the_weights_of_an_onnx_model_are_left_behind(onnx):
    assert len(stored_onnx(model(onnx).graph)) < 400


def test_onnx_names_that_would_meet_are_told_apart(onnx):
    helper = onnx.helper
    nodes = [helper.make_node("Relu", ["/x"], ["x"]), helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("/x", 1, [1])], [])
    stored = plugins.GraphDef.FromString(stored_onnx(graph)).node
    assert [(node.name, list(node.input)) for node in stored] == [("x", []), ("x_1", ["x"]), ("y", ["x_1"])]


def test_many_onnx_names_that_would_meet_cost_no_more_each_than_few(onnx):
    def calls(number):
        """Return how many functions are called for so many operators whose outputs have one name but for slashes."""
        nodes = [onnx.helper.make_node("Relu", [], ["/" * index + "x"]) for index in range(number)]
        graph = Graph.of_onnx(onnx.helper.make_graph(nodes, "net", [], []))
        events = []
        sys.setprofile(lambda frame, event, _: events.append(event))
        try:
            graph.event(0, 1.5)
        finally:
            sys.setprofile(None)
        return len(events)

    assert calls(400) < 5 * calls(100)


def test_the_types_of_onnx_are_translated(onnx):
    helper = onnx.helper
    names = {"FLOAT16": pb.DT_HALF, "UINT8": pb.DT_UINT8, "DOUBLE": pb.DT_DOUBLE, "BOOL": pb.DT_BOOL}
    inputs = [helper.make_tensor_value_info(name, getattr(onnx.TensorProto, name), [1]) for name in names]
    stored = plugins.GraphDef.FromString(stored_onnx(helper.make_graph([], "net", inputs, []))).node
    assert {node.name: node.attr["dtype"].type for node in stored} == names
