"""The JSON schema in the repository is that of the dataclasses, and what is checked in holds to it."""

import json
from pathlib import Path

import jsonschema
import pytest

from benchmarks import _schema
from benchmarks._results import Result

RESULTS = sorted((Path(_schema.__file__).parent / "results").glob("*.json"))
SCHEMA = json.loads(_schema.PATH.read_text(encoding="utf-8"))


def test_the_schema_is_that_of_the_dataclasses():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert _schema.PATH.read_text(encoding="utf-8") == _schema.text(), "run `python -m benchmarks._schema`"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_checked_in_result_holds_to_the_schema_and_is_complete(path):
    jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), SCHEMA)
    assert Result.load(path).complete


@pytest.mark.parametrize(
    "change",
    [{"schema": 2}, {"figures": [{}]}, {"host": "here"}, {"complete": "yes"}],
    ids=lambda change: next(iter(change)),
)
def test_the_schema_refuses_what_loading_refuses(change, tmp_path):
    data = json.loads(RESULTS[0].read_text(encoding="utf-8")) | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA)
    (tmp_path / "x.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"x\.json"):
        Result.load(tmp_path / "x.json")
