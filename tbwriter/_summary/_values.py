"""Turn what users pass into numbers, arrays, tags and steps, and refuse the rest where it was passed.

Duck typing only: MindSpore, torch, JAX and NumPy values are recognised by their methods, no framework is imported.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._logger import get_logger
from tbwriter._summary._host import holds_tensors, is_collection, is_masked, on_host, printable, read, unmasked
from tbwriter._summary._words import MOST_LEVELS, describe, shown

_log = get_logger(__name__)

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EXACT_INT = 2**24
"""Up to here float32 holds every integer; TensorBoard draws float32 and nothing else."""

_REAL_KINDS = frozenset("bfiu")
# Of dtype.isbuiltin: a dtype that another package registered, as ml_dtypes does. They all cast to float32.
_FROM_OUTSIDE = 2
# What float() or NumPy might take, but no user means as a number.
_NEVER_NUMBERS = (str, bytes, bytearray, dict, set, frozenset, np.timedelta64, np.datetime64)


def text_of(value: object, what: str) -> str:
    """Return anything as text, a tensor of rank 0 as its number's, in lists and dicts too.

    What has no UTF-8 form in it is replaced.

    Raises:
        TypeError: it cannot be turned into text.
    """
    try:
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if type(value) in (list, tuple, dict):
            with contextlib.suppress(RecursionError):  # Python prints what holds itself all the same
                value = printable(value)
        value = on_host(value)
        text = str.__str__(value) if isinstance(value, str) else str(value)
    except Exception as exc:  # whatever a foreign __str__ raises, or an int of more digits than Python prints
        raise TypeError(f"{what}: got {describe(value)}, which cannot be turned into text") from exc
    return text.encode("utf-8", "replace").decode("utf-8")


def items_of(value: Any, what: str, want: str) -> list[Any]:
    """Return a list, an array or a tensor of rank 1 or more as a list; a table of pandas as one of its rows.

    Raises:
        TypeError: it has no items.
    """
    try:
        value = on_host(value)
        if hasattr(type(value), "__array__") and not isinstance(value, np.ndarray):
            value = np.asarray(value)  # pandas itself goes through a table by its columns' names
        return list(value)
    except Exception as exc:  # whatever a foreign __iter__ raises
        raise TypeError(f"{what} must be {want}, got {describe(value)}") from exc


def as_array(value: Any, tag: str, *, masked: int | None = None, complex_too: bool = False) -> npt.NDArray[Any]:
    """Return `value` as a host array of bool, integers or floats; no copy where none is needed.

    bfloat16, float8, int4 and the like, which NumPy lacks, come as float32; longdouble as float64, and so do objects
    that are numbers, int64 where all are integers. What a masked array hides has no value: it is NaN, for which bool
    and integers become float64.

    Args:
        value: anything array-like.
        tag: for messages.
        masked: what a masked bool or integer is instead, where the dtype says what a number means, as in pictures and
            sounds.
        complex_too: take complex numbers, as complex64 or complex128.

    Raises:
        TypeError: complex numbers, text, other objects, or something that has no array form.
    """
    array = np.asarray(_to_numpy(value, tag, masked=masked))  # a np.matrix stays two-dimensional whatever is done to it
    if array.dtype.kind == "O":
        array = _of_objects(array, value, tag)
    with np.errstate(all="ignore"):
        if array.dtype.isbuiltin == _FROM_OUTSIDE:
            return array.astype(np.float32)
        if array.dtype.kind in _REAL_KINDS:
            return array.astype(np.float64) if array.dtype.itemsize > 8 else array
        if complex_too and array.dtype.kind == "c":
            return array.astype(np.complex128) if array.dtype.itemsize > 16 else array
    wanted = "bool, integers, floats or complex numbers" if complex_too else "bool, integers or floats"
    raise TypeError(f"tag {shown(tag)}: got {describe(value)}, want an array of {wanted}")


def _to_numpy(value: Any, tag: str, *, masked: int | None = None, levels: int = MOST_LEVELS) -> npt.NDArray[Any]:
    if is_masked(type(value)):
        return unmasked(value, masked)
    if isinstance(value, np.ndarray):
        return value
    if levels <= 0:
        raise TypeError(f"tag {shown(tag)}: got lists nested more than {MOST_LEVELS} deep, or holding themselves")
    if value is None or isinstance(value, _NEVER_NUMBERS):
        raise TypeError(f"tag {shown(tag)}: got {describe(value)}, want numbers")
    try:
        if isinstance(value, (list, tuple)) and holds_tensors(value):
            return np.array([_to_numpy(item, tag, masked=masked, levels=levels - 1) for item in value])
        array = read(value)
        if array is None and is_collection(value):
            return _to_numpy([*value], tag, masked=masked, levels=levels - 1)
    except Exception as exc:
        raise TypeError(f"tag {shown(tag)}: {describe(value)} cannot be read as an array: {exc}") from exc
    if array is None:
        raise TypeError(f"tag {shown(tag)}: got {describe(value)}, want numbers or an array of numbers")
    return array


def _of_objects(array: npt.NDArray[Any], value: Any, tag: str) -> npt.NDArray[Any]:
    """Return Decimals, Fractions, and numbers in a column of mixed types, as an array; refuse the rest by name."""
    try:
        items = [_single(item, tag) for item in array.reshape(-1)]
    except ValueError as exc:  # arrays of several numbers
        raise TypeError(f"tag {shown(tag)}: got {describe(value)}, want an array of single numbers") from exc
    whole = bool(items) and all(isinstance(item, (int, np.integer, np.bool_)) for item in items)
    plain = np.array(items) if whole else array
    if plain.dtype.kind == "O":
        plain = np.array([_to_float(item, tag) for item in items], np.float64)
    return plain.reshape(array.shape)


def as_number(value: Any, tag: str) -> float:
    """Return `value` as a Python float: any real number, or anything of size 1 that holds one.

    Raises:
        TypeError: no number. ValueError: an array of another size.
    """
    return _to_float(_single(value, tag), tag)


def _single(value: Any, tag: str) -> Any:
    """Return the one number in `value` as it is on the host, not yet rounded to float64."""
    kind = type(value)
    if kind is float or kind is int or kind is bool:
        return value
    if value is None or isinstance(value, (*_NEVER_NUMBERS, complex, np.complexfloating)):
        raise TypeError(f"tag {shown(tag)}: got {describe(value)}, want a real number")
    if isinstance(value, (np.floating, np.integer, np.bool_)):
        return value
    if isinstance(value, numbers.Number):
        return value  # Decimal, Fraction
    if not _has_array_form(value):
        return _to_float(value, tag)
    array = _to_numpy(value, tag)
    if array.size != 1:
        raise ValueError(f"tag {shown(tag)}: got {describe(value)}, want a single number")
    item = array.reshape(-1)[0]
    if array.dtype.kind == "O":
        if item is value or not isinstance(item, numbers.Number):
            raise TypeError(f"tag {shown(tag)}: got {describe(item)}, want a real number")
        return _single(item, tag)
    return as_array(array, tag).reshape(-1)[0]


def _has_array_form(value: Any) -> bool:
    names = ("asnumpy", "detach", "__array__", "numpy", "item", "shape", "__len__")
    try:
        return any(hasattr(value, name) for name in names)
    except Exception:  # whatever a foreign property raises
        return True


def _to_float(value: Any, tag: str) -> float:
    try:
        return float(value)
    except OverflowError:  # an int or Fraction beyond float64
        return math.inf if value > 0 else -math.inf
    except Exception as exc:  # whatever a foreign __float__ raises
        raise TypeError(f"tag {shown(tag)}: got {describe(value)}, want a real number") from exc


def as_scalar(value: Any, tag: str, told: set[str]) -> float:
    """Return the float32 nearest to `value`, as a Python float; say once for each tag when that lost something.

    `told` holds the tags that were told. Not a loss worth telling: the rounding of a fraction.

    Raises:
        TypeError, ValueError: as `as_number`.
    """
    exact = _single(value, tag)
    number = _to_float(exact, tag)
    if -EXACT_INT <= number <= EXACT_INT or math.isnan(number):
        return number
    with np.errstate(all="ignore"):
        stored = float(np.float32(number))
    if tag not in told and stored != exact:
        what = None
        if math.isinf(stored):
            what = "is beyond float32 and stored as infinity"
        elif isinstance(exact, (int, np.integer)) or (abs(number) < 2**53 and number == math.floor(number)):
            what = f"is rounded to {stored:.0f}"
        if what:
            told.add(tag)
            _log.warning(
                "tag %s: %s %s: TensorBoard shows float32, exact for integers up to 2**24; log it in thousands or "
                "millions. Said once for this tag", shown(tag), describe(exact), what
            )  # fmt: skip
    return stored


def as_step(step: Any, tag: str) -> int:
    """Return `step` as an int64: any integer-like value; None is 0, as in torch.

    Raises:
        TypeError: text, or no number. ValueError: a fraction, NaN, several values, or beyond int64.
    """
    if step is None:
        return 0
    whole: int
    if isinstance(step, (int, np.integer)) and not isinstance(step, np.timedelta64):
        whole = int(step)
    elif hasattr(step, "__index__") and not _has_array_form(step):
        try:
            whole = operator.index(step)
        except Exception as exc:  # whatever a foreign __index__ raises
            raise TypeError(f"tag {shown(tag)}: step must be an integer, got {describe(step)}") from exc
    else:
        if isinstance(step, _NEVER_NUMBERS):
            raise TypeError(f"tag {shown(tag)}: step must be an integer, got {describe(step)}")
        try:
            number = _single(step, tag)
            whole = int(number) if math.isfinite(number) else 0
        except (TypeError, ValueError) as exc:
            raise type(exc)(f"tag {shown(tag)}: step must be one integer, got {describe(step)}") from exc
        if whole != number:
            raise ValueError(
                f"tag {shown(tag)}: step must be a whole number, got {number}; round it, or count in smaller units"
            )
    if not INT64_MIN <= whole <= INT64_MAX:
        raise ValueError(f"tag {shown(tag)}: step must lie within int64, got {describe(step)}")
    return whole


def as_wall_time(walltime: Any, tag: str) -> float:
    """Return `walltime`, in seconds since 1970, as a float.

    Raises:
        ValueError: not finite: TensorBoard's data server stops reading a file at a NaN. TypeError: no number.
    """
    number = as_argument(walltime, tag, "walltime")
    if not math.isfinite(number):
        raise ValueError(f"tag {shown(tag)}: walltime must be finite seconds since 1970, got {describe(walltime)}")
    return number + 0.0


def as_argument(value: Any, tag: str, name: str) -> float:
    """As `as_number`, for what is no value but an argument beside it, called `name`."""
    try:
        return as_number(value, tag)
    except (TypeError, ValueError) as exc:
        raise type(exc)(f"tag {shown(tag)}: {name} must be a number, got {describe(value)}") from exc
