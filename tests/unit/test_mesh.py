import json

import duck
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._summary import mesh

POINTS = np.arange(12.0).reshape(1, 4, 3)
FACES = np.array([[[0, 1, 2], [1, 2, 3]]])
COLORS = np.arange(12).reshape(1, 4, 3) * 20


def parts(vertices=POINTS, colors=None, faces=None, config=None, copy=True):
    return mesh("m", vertices, colors, faces, config, copy=copy)


def contents(found):
    return [plugins.MeshPluginData.FromString(part.values(True)[0].metadata.plugin_data.content) for part in found]


def colors_of(array):
    *_, part = parts(colors=array)
    (value,) = part.values(True)
    return np.frombuffer(value.tensor.tensor_content, np.uint8).reshape(4, 3).tolist()


def test_each_part_has_a_tag_of_its_own_and_knows_of_the_others():
    found = parts(colors=COLORS, faces=FACES)
    assert [part.tag for part in found] == ["m_VERTEX", "m_FACE", "m_COLOR"]
    assert [content.components for content in contents(found)] == [0b1110] * 3
    assert [content.name for content in contents(found)] == ["m"] * 3


def test_a_point_cloud_is_its_vertices():
    (part,) = parts()
    assert contents([part])[0].components == 0b10
    assert np.frombuffer(part.values(True)[0].tensor.tensor_content, "<f4").tolist() == POINTS.ravel().tolist()


def test_one_mesh_may_stand_without_a_batch():
    found = parts(POINTS[0], COLORS[0], FACES[0])
    assert [list(content.shape) for content in contents(found)] == [[1, 4, 3], [1, 2, 3], [1, 4, 3]]


@pytest.mark.parametrize("wrap", [duck.Asnumpy, duck.ArrayForm, np.ndarray.tolist])
def test_a_mesh_may_be_anything_with_numbers(wrap):
    assert [part.tag for part in parts(wrap(POINTS), wrap(COLORS), wrap(FACES))] == ["m_VERTEX", "m_FACE", "m_COLOR"]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float32])
def test_colours_from_0_to_255_are_as_they_are(dtype):
    assert colors_of(COLORS.astype(dtype)) == COLORS[0].tolist()


def test_floats_from_0_to_1_are_the_share_of_a_colour_and_nan_is_none():
    array = np.zeros((1, 4, 3))
    array[0, 0] = [1.0, 0.5, np.nan]
    assert colors_of(array)[0] == [255, 128, 0]


def test_colours_beyond_are_clipped_and_never_wrapped():
    array = COLORS.copy()
    array[0, 0] = [-5, 256, 1000]
    assert colors_of(array)[0] == [0, 255, 255]


@given(
    hnp.arrays(st.sampled_from(["?", "u1", "i4", "i8", "f2", "f4", "f8"]), (1, 4, 3)),
    hnp.arrays(st.sampled_from(["?", "u1", "i8", "f2", "f4", "f8"]), (1, 4, 3)),
)
def test_no_numbers_are_too_strange_for_a_mesh(vertices, colors):
    assert all(len(part.values(True)[0].tensor.tensor_content) in (12, 48) for part in parts(vertices, colors))


def test_the_config_is_json():
    assert [json.loads(content.json_config) for content in contents(parts(config={"b": 1, "a": [2]}))] == [
        {"a": [2], "b": 1}
    ]


def test_later_values_carry_no_metadata():
    assert not any(part.values(False)[0].HasField("metadata") for part in parts(colors=COLORS, faces=FACES))


def test_a_copy_does_not_change_with_the_array():
    array = POINTS.copy()
    (waiting,) = parts(array)
    array[:] = 0
    assert waiting.array.tolist() == POINTS.tolist()
    assert waiting.nbytes == 96


@pytest.mark.parametrize("shape", [(3,), (4, 2), (1, 4, 4), (1, 0, 3), (1, 1, 4, 3)])
def test_vertices_of_another_shape_are_refused_by_tag(shape):
    with pytest.raises(ValueError, match=r"^tag 'm': vertices must be of shape \(batch, n, 3\) or \(n, 3\), got "):
        parts(np.zeros(shape))


def test_parts_that_do_not_fit_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'm': colors are of shape \(1, 3, 3\), which does not fit vertices"):
        parts(colors=COLORS[:, :3])
    with pytest.raises(ValueError, match=r"^tag 'm': faces are of shape \(2, 2, 3\), which does not fit vertices"):
        parts(faces=np.concatenate([FACES, FACES]))


def test_a_config_that_json_lacks_is_refused_by_tag():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for config in ({"a": object()}, {"a": float("nan")}, {"a": [float("inf")]}, {"a": deep}, {1: 1, "a": 1}):
        with pytest.raises(TypeError, match=r"^tag 'm': config_dict must hold what JSON can: .*; got dict"):
            parts(config=config)


@pytest.mark.parametrize("config", [5, "text", [1]])
def test_a_config_that_is_no_mapping_is_refused_by_tag(config):
    with pytest.raises(TypeError, match=r"^tag 'm': config_dict must be a mapping, got "):
        parts(config=config)


@pytest.mark.parametrize("face", [0.5, np.nan, np.inf, 2**31, -(2**31) - 1])
def test_faces_that_are_no_indices_are_refused_by_tag(face):
    with pytest.raises(ValueError, match=r"^tag 'm': faces must be indices of vertices, whole numbers, got "):
        parts(faces=[[[0, 1, face]]])


def test_a_batch_may_be_filled_up_with_faces_below_0():
    *_, part = parts(faces=[[[0, 1, 2], [-1, -1, -1]]])
    assert part.array.tolist() == [[[0, 1, 2], [-1, -1, -1]]]


def test_a_mesh_beyond_2_gib_is_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'm': got ndarray .*, want less than 2 GiB"):
        parts(np.broadcast_to(np.float32(0), (1, 2**28, 3)), copy=False)


def test_a_mesh_without_vertices_is_refused_by_tag():
    with pytest.raises(TypeError, match=r"^tag 'm': "):
        parts(None)
