"""Many device scalars, one copy to the host.

Three facts of MindSpore 2.10 with NumPy 2 shape this file. A host read of a bfloat16 tensor is a TypeError or ends the
process, so everything is cast to float32 on the device first. Operators that take a Python tuple or number (`reshape`,
`a * b`) touch NumPy's C interface, and the first such touch of a process is a SystemError; the operators used here
take tensors only. And a kernel that does not exist is found out late, in another operator's call.
"""

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import mint, ops

Array = npt.NDArray[np.float32]

_stack = ops.Stack()
_concat = ops.Concat()
_cast = ops.Cast()

_NUMBERS = frozenset(
    str(getattr(ms, name))
    for name in (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "bfloat16", "float32", "float64",
    )
)  # fmt: skip


def is_tensor(value: object) -> bool:
    """Tell whether `value` lives on the device."""
    return isinstance(value, ms.Tensor)


def to_float32(tensor: Any) -> Any:
    """Cast on the device.

    Raises:
        TypeError: the tensor holds no numbers.
    """
    if tensor.dtype == ms.float32:
        return tensor
    if str(tensor.dtype) not in _NUMBERS:
        raise TypeError(f"a tensor of {tensor.dtype} is no scalar")
    return _cast(tensor, ms.float32)


def to_scalar(tensor: Any) -> Any:
    """Make a tensor with one element a float32 of shape [] that is no Parameter, on the device.

    The sum of one element is exact. Stack refuses a Parameter beside a tensor.
    """
    tensor = to_float32(tensor)
    return mint.sum(tensor) if tensor.ndim or isinstance(tensor, ms.Parameter) else tensor


def mean(value: Any) -> Any:
    """Average tensors, numbers, or lists of them, of any shape, without a copy to the host."""
    if isinstance(value, list | tuple):
        parts = [mean(part) for part in value]
        if not any(is_tensor(part) for part in parts):
            return sum(parts) / len(parts)
        tensors = [part if is_tensor(part) else ms.Tensor(part, ms.float32) for part in parts]
        return mint.mean(_stack(tensors)) if len(tensors) > 1 else tensors[0]
    if not is_tensor(value):
        return float(value)
    return to_scalar(value) if value.size == 1 else mint.mean(to_float32(value))


def pack(tensors: Sequence[Any]) -> Any:
    """Copy float32 scalars and vectors into one new vector on the device, scalars behind the vectors."""
    scalars = [tensor for tensor in tensors if not tensor.ndim]
    parts = [tensor for tensor in tensors if tensor.ndim]
    if scalars:
        parts.append(_stack(scalars))
    return parts[0] if len(parts) == 1 else _concat(parts)


class Transfer:
    """Gather what a collection needs, and copy it once.

    `scalar` and `vector` only note the tensor; `run` makes the one copy; the callables they gave answer after that.
    """

    def __init__(self) -> None:
        self._scalars: list[Any] = []
        self._vectors: list[Any] = []
        self._host: Array | None = None

    def scalar(self, tensor: Any) -> Callable[[], float]:
        """Note a tensor with one element of any numeric dtype.

        Raises:
            TypeError: the tensor holds no numbers.
            ValueError: the tensor has not exactly one element.
        """
        if tensor.size != 1:
            raise ValueError(f"want a tensor with one element, got shape {tuple(tensor.shape)}")
        position = len(self._scalars)
        self._scalars.append(to_scalar(tensor))
        return lambda: float(self._read(position - len(self._scalars)))

    def vector(self, tensor: Any) -> Callable[[], Array]:
        """Note a one-dimensional float32 tensor."""
        start = sum(vector.size for vector in self._vectors)
        self._vectors.append(tensor)
        end = start + tensor.size
        return lambda: self._read(slice(start, end))

    def together(self, tensors: Sequence[Any]) -> Callable[[], Array]:
        """Note vectors and scalars that are read as one vector, in their order."""
        reads = [self.vector(tensor) if tensor.ndim else self.scalar(tensor) for tensor in tensors]
        return lambda: np.hstack([read() for read in reads]).astype(np.float32)

    def run(self) -> None:
        """Copy everything that was noted to the host: one transfer, or none when nothing was."""
        if self._scalars or self._vectors:
            self._host = pack([*self._vectors, *self._scalars]).asnumpy()

    def _read(self, where: Any) -> Any:
        if self._host is None:
            raise RuntimeError("read before the transfer")
        return self._host[where]
