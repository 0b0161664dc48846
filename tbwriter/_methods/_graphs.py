"""The methods that add graphs, and points for the projector."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from typing import Any

from tbwriter import _summary
from tbwriter._entries import GraphEvent, Points, size_of
from tbwriter._imported import imported
from tbwriter._methods._adding import Adding


class GraphMethods(Adding):
    """Graphs and embeddings."""

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Add the graph of a model. TensorBoard shows one a run.

        Attributes of more than 1 kB, weights above all, are left out: TensorBoard does not show them.

        Args:
            model: a GraphDef, as message or serialised; or a torch module, which torch's own converter traces here.
            input_to_model: what a torch module is called with.
            verbose: print what torch traced.
            use_strict_trace: as in `torch.jit.trace`.

        Raises:
            TypeError: no graph. ValueError: bytes that are no GraphDef. RuntimeError: a module that torch cannot trace.
            ImportError: torch's converter needs TensorBoard. WriterClosedError: after `close`.
        """
        data = _traced(model, input_to_model, verbose, use_strict_trace) if _is_of_torch(model) else model
        self._tb_add_graph_def(data, "model must be a GraphDef, serialised or not, or a torch module")

    def add_onnx_graph(self, prototxt: Any = None, *, onnx_model_file: Any = None) -> None:
        """Add the graph of an ONNX model.

        Args:
            prototxt: the path of the model, or an `onnx.ModelProto`. The name is torch's.
            onnx_model_file: tensorboardX's name of it.

        Raises:
            TypeError: neither. ValueError: the file holds no model. OSError: it cannot be read. ImportError: onnx is
                missing. WriterClosedError: after `close`.
        """
        if (prototxt is None) == (onnx_model_file is None):
            got = "none" if prototxt is None else "both"
            raise TypeError(f"add_onnx_graph takes prototxt, or onnx_model_file as its other name, got {got}")
        model = prototxt if onnx_model_file is None else onnx_model_file
        if isinstance(model, (str, os.PathLike)):
            if importlib.util.find_spec("onnx") is None:
                raise ImportError("graphs of ONNX models need onnx: pip install 'tbwriter[onnx]'")
            path = os.fspath(model)
            model = _loaded(str.__str__(path) if isinstance(path, str) else path)
        graph = getattr(model, "graph", None)
        if isinstance(model, type) or not hasattr(graph, "initializer"):
            raise TypeError(
                f"prototxt must be the path of an ONNX model or an onnx.ModelProto, got {_summary.describe(model)}"
            )
        self._tb_add_graph(_summary.Graph.of_onnx(graph))

    def _tb_add_graph_def(self, graph: Any, wanted: str, walltime: float | None = None) -> None:
        if isinstance(graph, (bytes, bytearray)):
            data = bytes(graph)
        elif getattr(getattr(graph, "DESCRIPTOR", None), "name", "") == "GraphDef" and not isinstance(graph, type):
            data = graph.SerializeToString()
        else:
            raise TypeError(f"{wanted}, got {_summary.describe(graph)}")
        self._tb_add_graph(_summary.Graph.of(data), walltime)

    def _tb_add_graph(self, graph: _summary.Graph, walltime: float | None = None) -> None:
        event = GraphEvent(graph, self._tb_step_of(None, "graph"), self._tb_wall_time(walltime, "graph"))
        self._tb_put(event, size_of(event))

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
        *,
        copy: bool = True,
    ) -> None:
        """Add points for the projector: files beside the event file, written in the worker, and their configuration.

        The files are `<step in five digits>/<tag>/tensors.tsv`, `metadata.tsv` and `sprite.png` below the run's
        directory, and `projector_config.pbtxt` in it. TensorBoard's projector reads local directories only.

        Args:
            mat: the points, of shape (n, dimensions).
            metadata: n labels; or, with a header, n rows of them. Tabs and line ends become blanks.
            label_img: n images of shape (n, channels, height, width), numbers as in `add_image`; together they fill at
                most 8192 by 8192 pixels.
            global_step: as in `add_scalar`; None is 0.
            tag: the name that the projector shows, with the step behind it.
            metadata_header: the names of the columns of `metadata`.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shapes, numbers or sizes do not fit. ImportError: there are images and Pillow is
                missing. WriterClosedError: after `close`.
        """
        step = self._tb_step_of(global_step, tag)
        embedding = _summary.Embedding.of(
            tag, step, mat, labels=metadata, header=metadata_header, images=label_img, copy=copy
        )
        points = Points(embedding)
        self._tb_put(points, size_of(points))


def _loaded(path: str | bytes) -> Any:
    try:
        return importlib.import_module("onnx").load(path, load_external_data=False)
    except OSError:
        raise
    except Exception as exc:  # DecodeError, of which protobuf's implementations have one each, or onnx's own
        raise ValueError(f"prototxt must be the path of an ONNX model, got {path!r}: {exc}") from exc


def _is_of_torch(model: Any) -> bool:
    kinds = imported("torch.nn", "Module"), imported("torch.jit", "ScriptFunction")
    return isinstance(model, tuple(kind for kind in kinds if kind is not None))


def _traced(model: Any, inputs: Any, verbose: bool, strict: bool) -> bytes:
    try:
        converter = importlib.import_module("torch.utils.tensorboard._pytorch_graph")
    except ImportError as exc:
        raise ImportError("graphs of torch modules need TensorBoard: pip install tensorboard") from exc
    try:
        with _left_as_it_is(model):
            graph, _ = converter.graph(model, inputs, verbose, strict)
    except Exception as exc:  # whatever the module itself raises
        got = f"{type(model).__name__} and input_to_model {_summary.describe(inputs)}"
        raise RuntimeError(f"model must be one that torch can trace, got {got}: {exc}") from exc
    data: bytes = graph.SerializeToString()
    return data


@contextlib.contextmanager
def _left_as_it_is(model: Any) -> Iterator[None]:
    """Undo what tracing does to a training: it draws random numbers, and gives every part the mode of the whole model.

    A batch norm that was frozen by `eval()` would train from there on.
    """
    parts = [(part, part.training) for part in model.modules()] if hasattr(model, "modules") else []
    tensors = model.parameters() if parts else ()
    gpus = {tensor.device.index for tensor in tensors if tensor.device.type == "cuda"}
    with importlib.import_module("torch").random.fork_rng(gpus):
        try:
            yield
        finally:
            for part, training in parts:
                if part.training != training:
                    part.training = training
