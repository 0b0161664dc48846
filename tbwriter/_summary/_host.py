"""Read what holds numbers, of any framework, onto the host as NumPy's arrays.

Duck typing only: MindSpore, torch, JAX and NumPy values are recognised by their methods, no framework is imported.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._imported import imported
from tbwriter._summary._words import MOST_LEVELS, describe, dtype_name

_NOT_OF_NUMPY = ("bfloat16", "float8")


def on_host(value: Any) -> Any:
    """Return what a device tensor holds, as NumPy's; anything else as it is."""
    if not (hasattr(type(value), "asnumpy") or hasattr(type(value), "detach")) or isinstance(value, type):
        return value
    array = read(value)
    return array[()] if array is not None and array.ndim == 0 else array


def printable(value: Any, levels: int = MOST_LEVELS) -> Any:
    """Return lists, tuples and dicts with Python's numbers in place of NumPy's and of tensors of rank 0.

    Larger tensors become words. Printing them would read them, and MindSpore 2.10 with NumPy 2 dies of reading a
    bfloat16 one.

    Raises:
        RecursionError: it is nested deeper than `levels`.
    """
    kind = type(value)
    if not levels:
        raise RecursionError
    if kind is list or kind is tuple:
        return kind([printable(one, levels - 1) for one in value])
    if kind is dict:
        return {printable(key, levels - 1): printable(one, levels - 1) for key, one in value.items()}
    held = on_host(value)
    if held is not value and not isinstance(held, np.generic):
        return describe(value)
    if isinstance(held, np.floating):
        return float(str(held))  # as few digits as tell it from its neighbours, as NumPy prints it
    return held.item() if isinstance(held, (np.bool_, np.integer, np.str_)) else held


def read(value: Any) -> npt.NDArray[Any] | None:
    """Return what the value's own methods give, or None when it has none."""
    # A device tensor in bfloat16 or float8 is cast before it is read: MindSpore 2.10 with NumPy 2 kills the process
    # when a bfloat16 tensor is read on the host, and torch refuses both.
    if any(kind in dtype_name(value) for kind in _NOT_OF_NUMPY) and hasattr(value, "float"):
        value = value.float()
    if hasattr(value, "asnumpy"):
        return np.asarray(value.asnumpy())
    if hasattr(value, "detach"):
        value = value.detach()
        value = value.cpu() if hasattr(value, "cpu") else value
        value = value.dequantize() if getattr(value, "is_quantized", False) else value
        for resolve in ("to_dense", "resolve_conj", "resolve_neg"):  # torch's layouts and views that NumPy has not
            value = getattr(value, resolve)() if hasattr(value, resolve) else value
        return np.asarray(value.numpy())
    if hasattr(value, "toarray"):  # scipy's sparse matrices
        return np.asarray(value.toarray())
    for dense in ("to_dense", "todense"):  # MindSpore's and JAX's
        if hasattr(value, dense):
            return read(getattr(value, dense)())
    if hasattr(value, "__array__") or isinstance(value, (list, tuple, np.generic, numbers.Number)):
        return np.asarray(value)
    if hasattr(value, "numpy"):
        return np.asarray(value.numpy())
    if hasattr(value, "item"):
        return np.asarray(value.item())
    return np.asarray(value) if hasattr(value, "__array_interface__") or _is_buffer(value) else None


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def is_collection(value: Any) -> bool:
    """Say whether a value that `read` does not know holds items: a deque, a view of a dict, torch's ParameterList."""
    kind = type(value)
    has_items = hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")
    return has_items and hasattr(kind, "__len__") and not isinstance(value, Mapping)


def holds_tensors(items: list[Any] | tuple[Any, ...], levels: int = MOST_LEVELS) -> bool:
    """Say whether a list, or one within it, holds device tensors or masked arrays, which NumPy alone does not read.

    It looks at types, since lists of floats may be long.

    Raises:
        RecursionError: it is nested deeper than `levels`.
    """
    if not levels:
        raise RecursionError(f"lists nested more than {MOST_LEVELS} deep, or holding themselves")
    kinds = {type(item) for item in items}
    if any(hasattr(kind, "asnumpy") or hasattr(kind, "detach") or is_masked(kind) for kind in kinds):
        return True
    lists = [item for item in items if isinstance(item, (list, tuple))] if kinds & {list, tuple} else []
    return any(holds_tensors(item, levels - 1) for item in lists)


def is_masked(kind: type) -> bool:
    """Say whether a type is one of NumPy's masked arrays.

    Without loading them, as NumPy 2 does when they are first asked for: that takes 15 ms.
    """
    masked_array = imported("numpy.ma", "MaskedArray")
    return masked_array is not None and issubclass(kind, masked_array)


def unmasked(array: Any, masked: int | None) -> npt.NDArray[Any]:
    """Return a masked array as a plain one, as `as_array` says, objects too; of other dtypes, which it refuses, all."""
    kind = array.dtype.kind
    if kind not in "biufcO" or not np.ma.is_masked(array):
        return np.asarray(array.data)
    if kind in "biu" and masked is not None:
        return np.asarray(array.filled(masked))
    return np.asarray((array.astype(np.float64) if kind in "biu" else array).filled(np.nan))
