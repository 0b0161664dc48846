"""Our messages against TensorBoard's: a field with another number or type would be read as something else."""

import importlib
import re
from pathlib import Path

import pytest

from tbwriter._pb import tfevents_pb2

# Where TensorBoard keeps each of our messages and enums.
MODULES = {
    "Event": "event_pb2",
    "SourceMetadata": "event_pb2",
    "SessionLog": "event_pb2",
    "TaggedRunMetadata": "event_pb2",
    "SummaryMetadata": "summary_pb2",
    "HistogramProto": "histogram_pb2",
    "Summary": "summary_pb2",
    "TensorShapeProto": "tensor_shape_pb2",
    "TensorProto": "tensor_pb2",
    "DataClass": "summary_pb2",
    "DataType": "types_pb2",
}
TOP_MESSAGES = tfevents_pb2.DESCRIPTOR.message_types_by_name
TOP_ENUMS = tfevents_pb2.DESCRIPTOR.enum_types_by_name


def with_nested(message, name):
    yield name, message
    for nested in message.nested_types:
        yield from with_nested(nested, f"{name}.{nested.name}")


OURS = {name: ours for top, message in TOP_MESSAGES.items() for name, ours in with_nested(message, top)}


def theirs(name):
    """Return TensorBoard's descriptor of a message or enum."""
    pytest.importorskip("tensorboard")
    top, *nested = name.split(".")
    module = importlib.import_module(f"tensorboard.compat.proto.{MODULES[top]}")
    if top in TOP_ENUMS:
        return module.DESCRIPTOR.enum_types_by_name[top]
    descriptor = module.DESCRIPTOR.message_types_by_name[top]
    for part in nested:
        descriptor = descriptor.nested_types_by_name[part]
    return descriptor


def is_repeated(field):
    # protobuf 7 knows no `label`, protobuf 3.20 no `is_repeated`.
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def type_name(field):
    """Return the name of a field's message or enum, without the package."""
    kind = field.message_type or field.enum_type
    return kind.full_name.partition(".")[2] if kind else None


def test_every_message_and_enum_has_its_counterpart():
    assert set(MODULES) == {*TOP_MESSAGES, *TOP_ENUMS}


@pytest.mark.parametrize("name", OURS)
def test_every_field_of_a_message_is_tensorboards(name):
    other = theirs(name)
    for field in OURS[name].fields:
        their = other.fields_by_name[field.name]
        assert their.number == field.number, field.name
        assert is_repeated(their) == is_repeated(field), field.name
        if field.name in {"graph_def", "meta_graph_def", "obsolete_old_style_histogram", "run_metadata"}:
            assert field.type == field.TYPE_BYTES, field.name
        assert their.type == field.type, field.name
        assert type_name(their) == type_name(field), field.name


@pytest.mark.parametrize("name", OURS)
def test_the_members_of_a_oneof_are_in_tensorboards_too(name):
    other = theirs(name)
    for field in OURS[name].fields:
        their = other.fields_by_name[field.name]
        ours_in = field.containing_oneof.name if field.containing_oneof else None
        theirs_in = their.containing_oneof.name if their.containing_oneof else None
        # SummaryMetadata.display_name and the like are in none, on either side.
        assert ours_in == theirs_in, field.name


@pytest.mark.parametrize("name", TOP_ENUMS)
def test_every_value_of_an_enum_is_tensorboards(name):
    other = theirs(name)
    for value in TOP_ENUMS[name].values:
        assert other.values_by_name[value.name].number == value.number


def test_the_values_of_a_session_are_tensorboards():
    other = theirs("SessionLog").enum_types_by_name["SessionStatus"]
    ours = TOP_MESSAGES["SessionLog"].enum_types_by_name["SessionStatus"]
    assert {value.name: value.number for value in ours.values} == {value.name: value.number for value in other.values}


def test_the_package_and_the_file_are_our_own():
    # A name that another package registers too makes the second import fail, whoever it is.
    assert tfevents_pb2.DESCRIPTOR.package == "tbwriter"
    assert tfevents_pb2.DESCRIPTOR.name == "tbwriter/_pb/tfevents.proto"


def test_the_source_of_the_schema_names_the_same_fields():
    source = Path(__file__).resolve().parents[2] / "proto" / "tbwriter" / "_pb" / "tfevents.proto"
    if not source.exists():
        pytest.skip("the sources of the schema are not here")
    text = re.sub(r"//.*", "", source.read_text(encoding="utf-8"))
    declared = re.findall(r"^ *(?:repeated +)?[\w.]+ +(\w+) *= *(\d+);", text, re.MULTILINE)
    generated = [(field.name, str(field.number)) for message in OURS.values() for field in message.fields]
    assert sorted(declared) == sorted(generated)
