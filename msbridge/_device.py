"""Many device scalars, one copy to the host.

Three facts of MindSpore 2.10 with NumPy 2 shape this file. A host read of a bfloat16 tensor is a TypeError or ends the
process, so everything is cast to float32 on the device first. Operators that take a Python tuple or number (`reshape`,
`a * b`) touch NumPy's C interface; the first such touch of a process is a SystemError, and where it comes after
`init()`, `msrun` ends with an error once all is trained. So no default collector has such an operator, `past_numpy` is
for those that do, and `touch_numpy` for PyNative mode, where trainings touch NumPy themselves. And a kernel that does
not exist is found out late, in another operator's call.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import mindspore as ms
import numpy as np
import numpy.typing as npt
from mindspore import mint, ops

from tbwriter._logger import get_logger

Array = npt.NDArray[np.float32]
Result = TypeVar("Result")

_MOST_STACKED = 64  # scalars in one operator
_MOST_LOOSE = 256  # scalars that wait for one: of several calls in a row all but the first take a third of the time
_FEW_STACKED = 8
_log = get_logger(__name__)

_stack = ops.Stack()
_concat = ops.Concat()
_cast = ops.Cast()
_reshape = ops.Reshape()
_HAS_NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"

_NUMBERS = frozenset(
    str(getattr(ms, name))
    for name in (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "bfloat16", "float32", "float64",
    )
)  # fmt: skip


def touch_numpy() -> None:
    """Take the first touch of NumPy's C interface in this process, and its SystemError, upon us."""
    with contextlib.suppress(SystemError):
        _reshape(ms.Tensor([1.0], ms.float32), (1,))


def past_numpy(act: Callable[..., Result], *args: Any) -> Result:
    """Give what `act` gives, called once more where it was the first to touch NumPy."""
    try:
        return act(*args)
    except SystemError:
        return act(*args)


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


def copy_scalar(tensor: Any) -> Any:
    """Make a tensor with one element a new float32 of shape [], on the device."""
    return mint.sum(to_float32(tensor))


def checked_scalar(value: Any, what: str) -> Any:
    """Give a number as float, and a tensor with one element as a new device scalar.

    Raises:
        TypeError: it is no number. ValueError: it has not exactly one element.
    """
    if not is_tensor(value) and not isinstance(value, int | float | np.number | np.bool_ | np.ndarray):
        raise TypeError(f"{what}: want a number or a tensor with one element, got {value!r}")
    if not isinstance(value, int | float) and value.size != 1:
        raise ValueError(f"{what}: want one element, got shape {tuple(value.shape)}")
    try:
        return copy_scalar(value) if is_tensor(value) else float(np.asarray(value).reshape(()))
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from error


def mean(value: Any) -> Any:
    """Average tensors, numbers, or lists of them, of any shape, without a copy to the host.

    Raises:
        TypeError: it is neither. ValueError: there is nothing to average.
    """
    if isinstance(value, list | tuple):
        if not value:
            raise ValueError("want numbers, got an empty list")
        parts = [mean(part) for part in value]
        if not any(is_tensor(part) for part in parts):
            return sum(parts) / len(parts)
        tensors = [part if is_tensor(part) else ms.Tensor(part, ms.float32) for part in parts]
        return mint.mean(_stack(tensors)) if len(tensors) > 1 else tensors[0]
    if not is_tensor(value):
        if isinstance(value, Mapping | str):
            raise TypeError(f"want a number, a tensor, or a list of them, got {type(value).__name__}")
        return float(value)
    if not value.size:
        raise ValueError(f"want at least one element, got shape {tuple(value.shape)}")
    return to_scalar(value) if value.size == 1 else mint.mean(to_float32(value))


def flat(tensor: Any) -> Any:
    """Give a tensor in one dimension; a view where it can be one."""
    if tensor.ndim == 1:
        return tensor
    # MindSpore 2.7, which knows NumPy 1 alone, has no kernel for the first on the CPU.
    return mint.flatten(tensor) if _HAS_NUMPY_2 else _reshape(tensor, (-1,))


def copied(tensor: Any) -> Any:
    """Give a new tensor with the same numbers, on the device, in one dimension more."""
    return _stack([tensor])


def first_line(error: Exception) -> str:
    """Say what an error is. MindSpore's own go on with pages of its insides."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


class Transfer:
    """Gather what one or several collections need, and copy it once.

    `scalar`, `vector` and `copy` only note the tensor; `run` makes the one transfer; the callables they gave answer
    after that. A tensor that cannot be read fails its own callable and no other.
    """

    def __init__(self) -> None:
        self._loose: list[Any] = []  # scalars that are not stacked yet
        self._parts: list[Any] = []  # vectors on the device
        self._host: list[Array | Exception] | None = None  # of each part

    def scalar(self, tensor: Any) -> Callable[[], float]:
        """Note a tensor with one element of any numeric dtype, as it is when `seal` is called.

        Raises:
            TypeError: the tensor holds no numbers.
            ValueError: the tensor has not exactly one element.
        """
        if tensor.size != 1:
            raise ValueError(f"want a tensor with one element, got shape {tuple(tensor.shape)}")
        scalar = to_scalar(tensor)
        part, position = divmod(len(self._loose), _MOST_STACKED)
        part += len(self._parts)
        self._loose.append(scalar)
        return lambda: float(self._read(part)[position])

    def vector(self, tensor: Any) -> Callable[[], Array]:
        """Note a tensor of any shape that nobody changes until `run`; it comes back as one dimension of float32.

        Raises:
            TypeError: the tensor holds no numbers.
        """
        vector = flat(to_float32(tensor))
        self.seal()
        part = len(self._parts)
        self._parts.append(vector)
        return lambda: self._read(part)

    def copy(self, tensor: Any) -> Callable[[], Array]:
        """Note a tensor of any shape as it is now; it comes back in its shape, as float32.

        Raises:
            TypeError: the tensor holds no numbers.
        """
        shape = tuple(tensor.shape)
        read = self.vector(copied(to_float32(tensor)))
        return lambda: read().reshape(shape)

    def seal(self) -> None:
        """Copy the scalars on the device: from here on their owners may change them."""
        loose, self._loose = self._loose, []
        for begin in range(0, len(loose), _MOST_STACKED):
            scalars = loose[begin : begin + _MOST_STACKED]
            try:
                part = _stack(scalars)
            except Exception as error:
                # Found out late: it is another operator's, and told once.
                _log.info("an operator failed before: %s: %s", type(error).__name__, error)
                part = _stack(scalars)
            self._parts.append(part)

    def run(self) -> None:
        """Copy everything that was noted to the host: one transfer, or none when nothing was."""
        self.seal()
        parts, self._parts = self._parts, []
        if not parts:
            self._host = []
            return
        try:
            whole = (parts[0] if len(parts) == 1 else _concat(parts)).asnumpy()
            ends = np.cumsum([part.size for part in parts])
            self._host = list(np.split(whole, ends[:-1]))
        except Exception as error:
            _log.info("a transfer failed, its parts are read one by one: %s: %s", type(error).__name__, error)
            self._host = [_read_alone(part) for part in parts]

    def _read(self, part: int) -> Array:
        if self._host is None:
            raise RuntimeError("read before the transfer")
        found = self._host[part]
        if isinstance(found, Exception):
            raise found
        return found


def _read_alone(part: Any) -> Array | Exception:
    try:
        return np.asarray(part.asnumpy())
    except Exception as error:
        return error


def _stacked(tensors: Sequence[Any]) -> Any:
    """Make a float32 vector of tensors with one element each; behind them the last one again, up to one of two sizes.

    A size that an operator has not seen before takes it milliseconds, and on some devices seconds.
    """
    first, tensors = tensors[0], list(tensors)
    size = _FEW_STACKED if len(tensors) <= _FEW_STACKED else _MOST_STACKED
    tensors += tensors[-1:] * (size - len(tensors))
    dtype, shape = first.dtype, first.shape
    if dtype != ms.bfloat16 and all(type(t) is ms.Tensor and t.dtype == dtype and t.shape == shape for t in tensors):
        return flat(to_float32(_stack(tensors)))  # one cast for all
    return _stack([to_scalar(tensor) for tensor in tensors])


class Strip:
    """A scalar of every step, kept on the device."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._newest: list[Any] = []  # tensors with one element
        self._older: list[Any] = []  # vectors of up to _MOST_STACKED

    def __bool__(self) -> bool:
        return bool(self._steps)

    def add(self, step: int, scalar: Any) -> None:
        """Keep a device tensor with one element that nobody changes; what it is is asked later, many at a time."""
        self._steps.append(step)
        self._newest.append(scalar)
        if len(self._newest) == _MOST_LOOSE:
            self._gather()

    def _gather(self) -> None:
        for begin in range(0, len(self._newest), _MOST_STACKED):
            self._older.append(_stacked(self._newest[begin : begin + _MOST_STACKED]))
        self._newest = []

    def stage(self, transfer: Transfer) -> Callable[[], "tuple[list[int], Array]"]:
        """Let `transfer` copy all that is kept, and begin anew. The answer is steps and values."""
        self._gather()
        steps, reads = self._steps, [transfer.vector(part) for part in self._older]
        self._steps, self._older = [], []
        none = np.empty(0, np.float32)
        return lambda: (steps, np.concatenate([none, *(read() for read in reads)])[: len(steps)])
