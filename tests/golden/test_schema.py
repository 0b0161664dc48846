"""Our messages against TensorBoard's: a field with another number or type would be read as something else."""

import importlib
import re
from pathlib import Path

import pytest

from tbwriter._pb import plugins_pb2, tfevents_pb2

PROTO, PLUGINS = "tensorboard.compat.proto", "tensorboard.plugins"
HPARAMS, HPARAMS_API = f"{PLUGINS}.hparams.plugin_data_pb2", f"{PLUGINS}.hparams.api_pb2"
LAYOUT, PROJECTOR = f"{PLUGINS}.custom_scalar.layout_pb2", f"{PLUGINS}.projector.projector_config_pb2"

# Where TensorBoard keeps each of our messages and enums.
FILES = {
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
MODULES = {name: f"{PROTO}.{module}" for name, module in FILES.items()} | {
    "plugins.AudioPluginData": f"{PLUGINS}.audio.plugin_data_pb2",
    "plugins.PrCurvePluginData": f"{PLUGINS}.pr_curve.plugin_data_pb2",
    "plugins.MeshPluginData": f"{PLUGINS}.mesh.plugin_data_pb2",
    "plugins.HParamsPluginData": HPARAMS,
    "plugins.SessionStartInfo": HPARAMS,
    "plugins.SessionEndInfo": HPARAMS,
    "plugins.Status": HPARAMS_API,
    "plugins.DataType": HPARAMS_API,
    "plugins.Experiment": HPARAMS_API,
    "plugins.HParamInfo": HPARAMS_API,
    "plugins.MetricName": HPARAMS_API,
    "plugins.MetricInfo": HPARAMS_API,
    "plugins.Layout": LAYOUT,
    "plugins.Category": LAYOUT,
    "plugins.Chart": LAYOUT,
    "plugins.MultilineChartContent": LAYOUT,
    "plugins.MarginChartContent": LAYOUT,
    "plugins.ProjectorConfig": PROJECTOR,
    "plugins.EmbeddingInfo": PROJECTOR,
    "plugins.SpriteMetadata": PROJECTOR,
    "plugins.GraphDef": f"{PROTO}.graph_pb2",
    "plugins.VersionDef": f"{PROTO}.versions_pb2",
    "plugins.FunctionDefLibrary": f"{PROTO}.function_pb2",
    "plugins.FunctionDef": f"{PROTO}.function_pb2",
    "plugins.NodeDef": f"{PROTO}.node_def_pb2",
    "plugins.AttrValue": f"{PROTO}.attr_value_pb2",
}


def tops(kind):
    """Return {name: descriptor} of all messages or enums of our files, plugins' with their package."""
    return {
        prefix + name: descriptor
        for prefix, module in (("", tfevents_pb2), ("plugins.", plugins_pb2))
        for name, descriptor in getattr(module.DESCRIPTOR, f"{kind}_types_by_name").items()
    }


TOP_MESSAGES, TOP_ENUMS = tops("message"), tops("enum")


def with_nested(message, name):
    yield name, message
    for nested in message.nested_types:
        yield from with_nested(nested, f"{name}.{nested.name}")


OURS = {name: ours for top, message in TOP_MESSAGES.items() for name, ours in with_nested(message, top)}


def theirs(name):
    """Return TensorBoard's descriptor of a message or enum."""
    pytest.importorskip("tensorboard")
    top = name if name in MODULES else max((top for top in MODULES if name.startswith(f"{top}.")), key=len)
    descriptor = importlib.import_module(MODULES[top]).DESCRIPTOR
    short = top.removeprefix("plugins.")
    if top in TOP_ENUMS:
        return descriptor.enum_types_by_name[short]
    descriptor = descriptor.message_types_by_name[short]
    for part in name[len(top) + 1 :].split(".") if name != top else ():
        descriptor = descriptor.nested_types_by_name[part]
    return descriptor


def is_repeated(field):
    # protobuf 7 knows no `label`, protobuf 3.20 no `is_repeated`.
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def type_name(field):
    """Return the name of a field's message or enum, without its packages."""
    kind = field.message_type or field.enum_type
    return ".".join(part for part in kind.full_name.split(".") if part[:1].isupper()) if kind else None


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
    assert plugins_pb2.DESCRIPTOR.package == "tbwriter.plugins"
    assert plugins_pb2.DESCRIPTOR.name == "tbwriter/_pb/plugins.proto"


@pytest.mark.parametrize("module", [tfevents_pb2, plugins_pb2], ids=["tfevents", "plugins"])
def test_the_source_of_the_schema_names_the_same_fields(module):
    source = Path(__file__).resolve().parents[2] / "proto" / module.DESCRIPTOR.name
    if not source.exists():
        pytest.skip("the sources of the schema are not here")
    text = re.sub(r"//.*", "", source.read_text(encoding="utf-8"))
    declared = re.findall(r"^ *(?:repeated +)?[\w.]+(?:<.+>)? +(\w+) *= *(\d+);", text, re.MULTILINE)
    generated = [
        (field.name, str(field.number))
        for name, message in OURS.items()
        if message.file.name == module.DESCRIPTOR.name and not name.endswith("Entry")
        for field in message.fields
    ]
    assert sorted(declared) == sorted(generated)
