"""The JSON schema of results, made from the dataclasses: `python -m benchmarks._schema` writes it anew."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path
from typing import Any, Literal

from benchmarks._results import SCHEMA, Result

PATH = Path(__file__).resolve().parent / "results.schema.json"
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number"}


def schema() -> dict[str, Any]:
    """Return the schema of what `Result.save` writes."""
    definitions: dict[str, Any] = {}
    reference = _of(Result, definitions)
    definitions["Result"]["properties"]["schema"] = {"const": SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of python -m benchmarks",
        **reference,
        "$defs": definitions,
    }


def text() -> str:
    """Return the schema as it stands in the repository."""
    return json.dumps(schema(), indent=1) + "\n"


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type that `_results` knows; dataclasses go into `definitions`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        name = typing.cast(type, kind).__name__
        if name not in definitions:
            fields = {field: _of(hint, definitions) for field, hint in typing.get_type_hints(kind).items()}
            definitions[name] = {
                "type": "object",
                "description": (kind.__doc__ or "").split("\n", maxsplit=1)[0],
                "properties": fields,
                "required": list(fields),
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{name}"}
    if origin is list:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin is Literal:
        return {"enum": list(arguments)}
    return {"type": _PLAIN[kind]}


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
