"""The graph of a data set, as MindSpore's summaries hold it, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator

from msbridge._pb import mindspore_summary_pb2 as pb

_MOST_CHARACTERS = 200
_INDENT = "    "


def in_markdown(graph: pb.DatasetGraph) -> str:
    """Return the steps of a data set as a nested list, what feeds a step below it; what lies deepest comes first."""
    return "\n".join(_lines(graph, ""))


def _lines(graph: pb.DatasetGraph, indent: str) -> Iterator[str]:
    yield f"{indent}- {_words(graph.parameter, 'data set')}"
    below = indent + _INDENT
    for operation in graph.operations:
        yield f"{below}- {_operation(operation, 'operation')}"
    if graph.HasField("sampler"):
        yield f"{below}- {_operation(graph.sampler, 'sampler')}"
    for child in graph.children:
        yield from _lines(child, below)


def _operation(operation: pb.Operation, kind: str) -> str:
    lists = [
        f"{name}={list(items)}" for name, items in (("size", operation.size), ("weights", operation.weights)) if items
    ]
    return ", ".join([f"{kind} {_words(operation.operationParam, '')}".rstrip(), *lists])


def _words(parameter: pb.OperationParameter, unnamed: str) -> str:
    found = {
        **parameter.mapStr,
        **parameter.mapBool,
        **parameter.mapInt,
        **parameter.mapDouble,
        **{name: f"[{', '.join(items.strValue)}]" for name, items in parameter.mapStrList.items()},
    }
    kinds = [str(found.pop(name)) for name in ("op_type", "tensor_op_name", "sampler_name") if name in found]
    rest = ", ".join(f"{name}={_short(str(value))}" for name, value in sorted(found.items()))
    return " ".join(part for part in (f"**{kinds[0]}**" if kinds else unnamed, rest) if part)


def _short(text: str) -> str:
    # Backquotes, so that Markdown takes nothing of it for its own.
    text = text.replace("`", "'").replace("\n", " ")
    return f"`{text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + '...'}`"
