"""Tensors as they are, of any dtype: no dashboard shows them, `read_events` gives them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._values import as_array, describe

PLUGIN = "tensor"
# A message of protobuf ends at 2 GiB; the rest of the Event needs some of it.
_MAX_BYTES = (1 << 31) - (1 << 16)


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

        Raises:
            TypeError: another dtype. ValueError: 2 GiB or more.
        """
        dtype = str(getattr(tensor, "dtype", "")).lower()
        array = _complex(tag, tensor) if "complex" in dtype else as_array(tensor, tag)
        if array.nbytes > _MAX_BYTES:
            raise ValueError(f"tag {tag!r}: got {describe(tensor)}, want less than 2 GiB: protobuf holds no more")
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


def _complex(tag: str, tensor: Any) -> npt.NDArray[Any]:
    """Return a complex array-like on the host, as complex64 or complex128."""
    try:
        if hasattr(tensor, "asnumpy"):
            array = np.asarray(tensor.asnumpy())
        elif hasattr(tensor, "detach"):
            array = np.asarray(tensor.detach().cpu().resolve_conj().numpy())
        else:
            array = np.asarray(tensor)
        return array if array.dtype == np.complex64 else array.astype(np.complex128)
    except Exception as exc:
        raise TypeError(f"tag {tag!r}: {describe(tensor)} cannot be read as an array: {exc}") from exc
