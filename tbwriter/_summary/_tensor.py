"""Tensors as they are, of any dtype: no dashboard shows them, `read_events` gives them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._values import as_array
from tbwriter._summary._words import dtype_name

PLUGIN = "tensor"


@dataclass(frozen=True)
class Tensor:
    """A tensor that waits to be stored."""

    tag: str
    array: npt.NDArray[Any]
    bfloat16: bool
    """`array` is float32 and every value of it one of bfloat16."""

    @classmethod
    def of(cls, tag: str, tensor: Any, *, copy: bool) -> Tensor:
        """Take an array-like of bool, integers, floats or complex numbers.

        What is masked is NaN in floats and 0 in bools and integers, so that the dtype stays.

        Raises:
            TypeError: another dtype. ValueError: 2 GiB or more.
        """
        dtype = dtype_name(tensor)
        array = as_array(tensor, tag, masked=0, complex_too=True)
        _event.check_size(tag, tensor, array.nbytes)
        return cls(tag, np.array(array) if copy else array, "bfloat16" in dtype)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.array.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value."""
        value = pb.Summary.Value(tag=self.tag, tensor=self._proto())
        if first:
            value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR))
        return [value]

    def _proto(self) -> pb.TensorProto:
        array = self.array
        if not self.bfloat16 and array.dtype.name != "float16":
            return _event.tensor(array)
        # Both 16-bit floats stand in `half_val`, one int of 16 bits each.
        if self.bfloat16:
            halves, dtype = array.astype("<f4").view(np.uint32) >> np.uint32(16), pb.DT_BFLOAT16
        else:
            halves, dtype = array.astype("<f2").view(np.uint16), pb.DT_HALF
        numbers = np.ravel(halves).tolist()
        return pb.TensorProto(dtype=dtype, tensor_shape=_event.shape(*array.shape), half_val=numbers)
