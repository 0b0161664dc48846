"""Events of any writer, and of none: what is well-formed protobuf decodes to something, whatever stands in it."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbwriter import read_events
from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import RawEvent, check_event, decode

PLUGINS = ["", "scalars", "histograms", "images", "audio", "text", "pr_curves", "mesh", "hparams", "custom_scalars"]
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
float32 = st.floats(width=32)
few = {"max_size": 5}

tensors = st.builds(
    pb.TensorProto,
    dtype=st.sampled_from(list(pb.DataType.values())) | st.integers(0, 200),
    tensor_shape=st.lists(int64 | st.integers(0, 3), **few).map(
        lambda sizes: pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=size) for size in sizes])
    ),
    tensor_content=st.binary(max_size=40),
    half_val=st.lists(int32, **few),
    float_val=st.lists(float32, **few),
    double_val=st.lists(st.floats(), **few),
    int_val=st.lists(int32, **few),
    string_val=st.lists(st.binary(**few), **few),
    scomplex_val=st.lists(float32, **few),
    dcomplex_val=st.lists(st.floats(), **few),
    int64_val=st.lists(int64, **few),
    bool_val=st.lists(st.booleans(), **few),
    uint32_val=st.lists(st.integers(0, 2**32 - 1), **few),
    uint64_val=st.lists(st.integers(0, 2**64 - 1), **few),
)
histograms = st.builds(
    pb.HistogramProto,
    min=st.floats(),
    max=st.floats(),
    bucket_limit=st.lists(st.floats(), **few),
    bucket=st.lists(st.floats(), **few),
)
metadata = st.builds(
    lambda plugin, content: pb.SummaryMetadata(
        plugin_data=pb.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    ),
    st.sampled_from(PLUGINS),
    st.binary(max_size=20),
)
values = st.builds(pb.Summary.Value, metadata=metadata, tensor=tensors) | st.builds(
    pb.Summary.Value, metadata=metadata, histo=histograms
)


@given(values)
def test_any_value_decodes(value):
    event = pb.Event(summary=pb.Summary(value=[value]))
    assert len(decode(event.SerializeToString(), {}).values) == 1


def data_of(plugin, tensor):
    value = pb.Summary.Value(tag="t", tensor=tensor)
    value.metadata.plugin_data.plugin_name = plugin
    (read,) = decode(pb.Event(summary=pb.Summary(value=[value])).SerializeToString(), {}).values
    return read.data


def shape(*sizes):
    return pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=size) for size in sizes])


def test_a_constant_in_its_short_form_has_its_shape():
    data = data_of("tensor", pb.TensorProto(dtype=pb.DT_FLOAT, tensor_shape=shape(2, 3), float_val=[0.5]))
    assert data.tolist() == [[0.5] * 3] * 2


def test_a_damaged_shape_does_not_ask_for_all_memory():
    data = data_of("tensor", pb.TensorProto(dtype=pb.DT_FLOAT, tensor_shape=shape(2**20, 2**20), float_val=[0.5]))
    assert data.tolist() == [0.5]


def test_sounds_with_labels_beside_them_are_the_sounds():
    tensor = pb.TensorProto(dtype=pb.DT_STRING, tensor_shape=shape(2, 2), string_val=[b"wav", b"label", b"wav2", b""])
    assert data_of("audio", tensor) == [b"wav", b"wav2"]


def test_hyper_parameters_of_torch_have_no_tensor():
    info = plugins.SessionStartInfo()
    info.hparams["lr"].number_value = 0.1
    value = pb.Summary.Value(tag="_hparams_/session_start_info")
    value.metadata.plugin_data.plugin_name = "hparams"
    value.metadata.plugin_data.content = plugins.HParamsPluginData(session_start_info=info).SerializeToString()
    (read,) = decode(pb.Event(summary=pb.Summary(value=[value])).SerializeToString(), {}).values
    assert read.data == {"hparams": {"lr": 0.1}, "group_name": "", "start_time_secs": 0.0}


@pytest.mark.parametrize("number", [7, 200])
def test_a_state_that_a_later_version_knows_is_its_number(number):
    end = plugins.HParamsPluginData(session_end_info=plugins.SessionEndInfo(status=number))
    value = pb.Summary.Value(tag="_hparams_/session_end_info")
    value.metadata.plugin_data.plugin_name = "hparams"
    value.metadata.plugin_data.content = end.SerializeToString()
    event = pb.Event(summary=pb.Summary(value=[value]))
    assert decode(event.SerializeToString(), {}).values[0].data["status"] == str(number)
    log = pb.Event(session_log=pb.SessionLog(status=number))
    assert decode(log.SerializeToString(), {}).session_log == str(number)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "bool", "uint8", "int64"])
def test_a_tensor_that_torch_wrote_is_read(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    writer_of_torch = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    with writer_of_torch(str(tmp_path)) as writer:
        writer.add_tensor("t", torch.tensor([0, 1, 2.5]).to(getattr(torch, dtype)))
    (data,) = [value.data for event in read_events(tmp_path) for value in event.values]
    want = {"bool": [False, True, True], "uint8": [0, 1, 2], "int64": [0, 1, 2]}.get(dtype, [0, 1, 2.5])
    assert np.asarray(data).tolist() == want


NO_EVENTS = {
    "tag 0": b"\x00",
    "end of a group": b"\x0c",
    "end of a group, tag of two bytes": b"\x9c\x06",
    "end of a group, before a field": b"\x0c\x10\x01",
    "end of a group in a summary": b"*\x01\x0c",
    "half a field": b"\x10",
    "half a group": b"\x0b",
    "groups in groups": b"\x9b\x06" * 3000,  # too deep for some, without an end for all
}


@pytest.mark.parametrize("warned", ["error", "ignore"])  # protobuf 3 in C++ only warns of some of these
@pytest.mark.parametrize("wrong", NO_EVENTS.values(), ids=NO_EVENTS)
@pytest.mark.parametrize("before", [b"", pb.Event(wall_time=1.5, step=3).SerializeToString()], ids=["alone", "behind"])
def test_bytes_that_are_no_whole_event_are_an_error_with_every_implementation_of_protobuf(before, wrong, warned):
    with warnings.catch_warnings():
        warnings.simplefilter(warned)
        for take in (RawEvent, check_event, lambda data: decode(data, {})):
            with pytest.raises(ValueError, match=r"."):
                take(before + wrong)
