"""Turn what users pass into numbers, arrays, tags and steps, and refuse the rest where it was passed.

Duck typing only: MindSpore, torch, JAX and NumPy values are recognised by their methods, no framework is imported.
"""

from __future__ import annotations

import logging
import math
import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

_log = logging.getLogger(__name__)

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOAT32_MAX = float(np.finfo(np.float32).max)
EXACT_INT = 2**24
"""Up to here float32 holds every integer; TensorBoard draws float32 and nothing else."""

_REAL_KINDS = frozenset("bfiu")


def describe(value: object) -> str:
    """Return a short text of `value` for an error message: its type, its shape and dtype, or its beginning."""
    kind = type(value).__name__
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{kind} of shape {tuple(shape)} and dtype {dtype}"
    text = repr(value)
    return f"{kind} {text if len(text) <= 60 else text[:57] + '...'}"


def check_tag(tag: object) -> str:
    """Return `tag` if TensorBoard can show it: any text that has a UTF-8 form, kept byte for byte.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty or holds a lone surrogate.
    """
    if not isinstance(tag, str):
        raise TypeError(f"tag must be a str, got {describe(tag)}")
    if not tag:
        raise ValueError("tag is empty; want a name such as 'train/loss'")
    try:
        tag.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValueError(f"tag {tag!r} cannot be stored as UTF-8: {exc.reason}") from exc
    return str(tag)


def as_array(value: Any, tag: str) -> npt.NDArray[Any]:
    """Return `value` as a host array of bool, integers or floats; no copy where none is needed.

    bfloat16, which NumPy lacks, comes as float32; longdouble as float64.

    Raises:
        TypeError: complex, text, objects, or something that has no array form.
    """
    array = _to_numpy(value, tag)
    if array.dtype.kind in _REAL_KINDS:
        return array.astype(np.float64) if array.dtype.itemsize > 8 else array
    if array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return array.astype(np.float32)
    raise TypeError(f"tag {tag!r}: got {describe(value)}, want an array of bool, integers or floats")


def _to_numpy(value: Any, tag: str) -> npt.NDArray[Any]:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (str, bytes, dict)) or value is None:
        raise TypeError(f"tag {tag!r}: got {describe(value)}, want numbers")
    try:
        # A device tensor in bfloat16 is cast before it is read: MindSpore 2.10 with NumPy 2 kills the process when
        # a bfloat16 tensor is read on the host, and torch refuses it.
        if "bfloat16" in str(getattr(value, "dtype", "")).lower() and hasattr(value, "float"):
            value = value.float()
        if hasattr(value, "asnumpy"):
            return np.asarray(value.asnumpy())
        if hasattr(value, "detach"):
            value = value.detach()
            value = value.cpu() if hasattr(value, "cpu") else value
            return np.asarray(value.numpy())
        if hasattr(value, "__array__") or isinstance(value, (list, tuple, np.generic, numbers.Number)):
            return _asarray(value)
        if hasattr(value, "numpy"):
            return np.asarray(value.numpy())
        if hasattr(value, "item"):
            return np.asarray(value.item())
        if hasattr(value, "__array_interface__") or hasattr(value, "__buffer__") or hasattr(value, "__len__"):
            return _asarray(value)
    except TypeError:
        raise
    except Exception as exc:
        raise TypeError(f"tag {tag!r}: {describe(value)} cannot be read as an array: {exc}") from exc
    raise TypeError(f"tag {tag!r}: got {describe(value)}, want numbers or an array of numbers")


def _asarray(value: Any) -> npt.NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind == "O" and isinstance(value, (list, tuple)) and value:
        # A list of device tensors, Decimals or Fractions.
        return np.asarray([float(as_number(item, "list")) for item in value])
    return array


def as_number(value: Any, tag: str) -> float:
    """Return `value` as a Python float: any real number, or anything of size 1 that holds one.

    Raises:
        TypeError: no number. ValueError: an array of another size.
    """
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        return _to_float(value)
    if isinstance(value, (str, bytes, dict, complex)) or value is None:
        raise TypeError(f"tag {tag!r}: got {describe(value)}, want a real number")
    if isinstance(value, (np.floating, np.integer, np.bool_)):
        return float(value)
    if isinstance(value, numbers.Number) or (not hasattr(value, "__len__") and not _has_array_form(value)):
        try:
            return _to_float(value)
        except TypeError as exc:
            raise TypeError(f"tag {tag!r}: got {describe(value)}, want a real number") from exc
    array = _to_numpy(value, tag)
    if array.size != 1:
        raise ValueError(f"tag {tag!r}: got {describe(value)}, want a single number")
    if array.dtype.kind == "O":
        return as_number(array.reshape(-1)[0], tag)
    return float(as_array(array, tag).reshape(-1)[0])


def _has_array_form(value: Any) -> bool:
    return any(hasattr(value, name) for name in ("asnumpy", "detach", "__array__", "numpy", "item", "shape"))


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an int beyond float64
        return math.inf if value > 0 else -math.inf


def as_scalar(value: Any, tag: str, told: set[str]) -> float:
    """Return the float32 nearest to `value`, as a Python float; say once for each tag when that lost something.

    `told` holds the tags that were told. Not a loss worth telling: the rounding of a fraction.

    Raises:
        TypeError, ValueError: as `as_number`.
    """
    number = as_number(value, tag)
    if -EXACT_INT <= number <= EXACT_INT or math.isnan(number):
        return number
    with np.errstate(over="ignore"):
        stored = float(np.float32(number))
    if tag not in told and stored != value:
        what = None
        if math.isinf(stored) and not _is_infinite(value):
            what = "is beyond float32 and stored as infinity"
        elif isinstance(value, (int, np.integer)) or (abs(number) < 2**53 and number == math.floor(number)):
            what = f"is rounded to {stored:.0f}"
        if what:
            told.add(tag)
            _log.warning(
                "tag %r: %r %s: TensorBoard shows float32, exact for integers up to 2**24; log it in thousands or "
                "millions. Said once for this tag", tag, value, what
            )  # fmt: skip
    return stored


def _is_infinite(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isinf(value))


def as_step(step: Any, tag: str) -> int:
    """Return `step` as an int64: any integer-like value; None is 0, as in torch.

    Raises:
        TypeError: text, or no number. ValueError: a fraction, NaN, several values, or beyond int64.
    """
    if step is None:
        return 0
    whole: int
    if isinstance(step, (int, np.integer)):
        whole = int(step)
    else:
        if isinstance(step, (str, bytes)):
            raise TypeError(f"tag {tag!r}: step must be an integer, got {describe(step)}")
        array = _to_numpy(step, tag)
        if array.size != 1 or array.dtype.kind not in _REAL_KINDS:
            raise ValueError(f"tag {tag!r}: step must be one integer, got {describe(step)}")
        number = array.reshape(-1)[0]
        if array.dtype.kind == "f" and not (np.isfinite(number) and number == np.floor(number)):
            raise ValueError(
                f"tag {tag!r}: step must be a whole number, got {step!r}; round it, or count in smaller units"
            )
        whole = int(number)
    if not INT64_MIN <= whole <= INT64_MAX:
        raise ValueError(f"tag {tag!r}: step must lie within int64, got {whole}")
    return whole


def as_wall_time(walltime: Any, tag: str) -> float:
    """Return `walltime`, in seconds since 1970, as a float.

    Raises:
        ValueError: not finite: TensorBoard's data server stops reading a file at a NaN. TypeError: no number.
    """
    number = as_number(walltime, tag)
    if not math.isfinite(number):
        raise ValueError(f"tag {tag!r}: walltime must be finite seconds since 1970, got {walltime!r}")
    return number + 0.0
