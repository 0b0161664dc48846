"""Meshes and point clouds: one summary for each of vertices, faces and colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._values import as_array
from tbwriter._summary._words import describe, shown

PLUGIN = "mesh"
_Kind = plugins.MeshPluginData.ContentType
# What the dashboard's server sends of each kind.
_DTYPES = {_Kind.VERTEX: np.float32, _Kind.FACE: np.int32, _Kind.COLOR: np.uint8}


@dataclass(frozen=True)
class MeshPart:
    """The vertices, the faces or the colours of a batch of meshes."""

    name: str
    kind: plugins.MeshPluginData.ContentType
    array: npt.NDArray[Any]
    """Of shape [batch, n, 3]."""
    components: int
    """The kinds of all parts of the mesh, as bits."""
    config: str
    """JSON for the view."""

    @property
    def tag(self) -> str:
        """The tag under which it is stored."""
        return f"{self.name}_{_Kind.Name(self.kind)}"

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.array.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value."""
        with np.errstate(all="ignore"):  # beyond float32 is infinite
            array = _colors(self.array) if self.kind == _Kind.COLOR else self.array
            array = array.astype(_DTYPES[self.kind], copy=False)
        value = pb.Summary.Value(tag=self.tag, tensor=_event.tensor(array))
        if first:
            content = plugins.MeshPluginData(
                name=self.name,
                content_type=self.kind,
                json_config=self.config,
                shape=array.shape,
                components=self.components,
            ).SerializeToString()
            value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR, content=content))
        return [value]


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Any, *, copy: bool) -> list[MeshPart]:
    """Return the parts of a batch of meshes.

    Args:
        tag: the name that TensorBoard shows.
        vertices: coordinates, of shape [batch, n, 3] or [n, 3].
        colors: of the vertices, RGB, of their shape, or None. Integers from 0 to 255; floats from 0 to 1, or to 255
            where one of them is above 1.
        faces: indices of three vertices each, of shape [batch, m, 3] or [m, 3], or None; whole numbers within int32.
        config: what the view is to be, for JSON, in which there is neither NaN nor infinity; or None.
        copy: False hands the arrays over.

    Raises:
        TypeError: no arrays of real numbers, or a config that JSON lacks. ValueError: other shapes, faces that are no
            indices, or 2 GiB and more.
    """
    import json  # here and not above: an import of tbwriter is to be quick

    if config is not None and not isinstance(config, Mapping):
        raise TypeError(f"tag {shown(tag)}: config_dict must be a mapping, got {describe(config)}")
    try:
        text = "{}" if config is None else json.dumps(dict(config), sort_keys=True, allow_nan=False)
    except Exception as exc:  # a TypeError, a ValueError of NaN, a RecursionError, or what a foreign mapping raises
        raise TypeError(
            f"tag {shown(tag)}: config_dict must hold what JSON can: {exc}; got {describe(config)}"
        ) from exc
    arrays = {
        kind: _triples(tag, name, value)
        for kind, name, value in (
            (_Kind.VERTEX, "vertices", vertices),
            (_Kind.FACE, "faces", faces),
            (_Kind.COLOR, "colors", colors),
        )
        if value is not None or kind == _Kind.VERTEX
    }
    points = arrays[_Kind.VERTEX]
    for kind, array in arrays.items():
        if len(array) != len(points) or (kind == _Kind.COLOR and array.shape != points.shape):
            raise ValueError(
                f"tag {shown(tag)}: {_Kind.Name(kind).lower()}s are of shape {array.shape}, "
                f"which does not fit vertices of shape {points.shape}"
            )
    components = sum(1 << kind for kind in arrays)
    return [MeshPart(tag, kind, np.array(array) if copy else array, components, text) for kind, array in arrays.items()]


def _triples(tag: str, name: str, value: Any) -> npt.NDArray[Any]:
    array = as_array(value, tag, masked=0 if name == "colors" else None)
    array = array[np.newaxis] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        raise ValueError(f"tag {shown(tag)}: {name} must be of shape (batch, n, 3) or (n, 3), got {describe(value)}")
    if name == "faces" and not _are_indices(array):
        raise ValueError(f"tag {shown(tag)}: faces must be indices of vertices, whole numbers, got {describe(value)}")
    _event.check_size(tag, value, 4 * array.size)
    return array


def _are_indices(array: npt.NDArray[Any]) -> bool:
    # Negative ones are how batches of unequal meshes are filled up.
    whole = array.dtype.kind != "f" or bool((np.isfinite(array) & (array == np.floor(array))).all())
    return whole and array.min() >= -(2**31) and array.max() < 2**31


def _colors(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if array.dtype.kind == "f":
        wide = np.nan_to_num(array.astype(np.float32), nan=0.0)
        array = np.rint(wide * 255 if wide.max() <= 1 else wide)
    return np.clip(array.astype(np.int64) * 255 if array.dtype == np.bool_ else array, 0, 255).astype(np.uint8)
