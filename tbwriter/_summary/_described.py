"""A scalar with a display name or a description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event


@dataclass(frozen=True, slots=True)
class DescribedScalar:
    """A scalar whose card in TensorBoard has a title and a text of its own.

    It is stored as a tensor: the data server ignores the names of a `simple_value`.
    """

    tag: str
    number: float
    display_name: str
    description: str

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return 200

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value."""
        tensor = pb.TensorProto(dtype=pb.DT_FLOAT, tensor_shape=_event.shape(), float_val=[self.number])
        value = pb.Summary.Value(tag=self.tag, tensor=tensor)
        if first:
            value.metadata.CopyFrom(
                _event.metadata(
                    "scalars",
                    pb.DATA_CLASS_SCALAR,
                    display_name=self.display_name,
                    description=self.description,
                )
            )
        return [value]
