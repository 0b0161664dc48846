"""Check arguments where the user stands. Needs no MindSpore."""

import math
from collections.abc import Iterable
from typing import Any


def checked_count(what: str, value: Any, *, least: int) -> int:
    """Give a whole number of any kind as int.

    Raises:
        TypeError: it is none. ValueError: it is below `least`.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"{what} must {f'be at least {least}' if least else 'not be negative'}, got {value!r}")
    return int(value.__index__())


def checked_number(what: str, value: Any, *, above: float | None = None, least: float | None = None) -> float:
    """Give a finite number of any kind as float.

    Raises:
        TypeError: it is none. ValueError: it is not finite, not above `above`, or below `least`.
    """
    try:
        number = float("text" if isinstance(value, bool | str) else value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be a number, got {value!r}") from error
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, got {value!r}")
    if above is not None and not number > above:
        raise ValueError(f"{what} must be above {above:g}, got {value!r}")
    if least is not None and number < least:
        raise ValueError(f"{what} must {f'be at least {least:g}' if least else 'not be negative'}, got {value!r}")
    return number


def checked_tags(what: str, value: Any) -> tuple[str, ...]:
    """Give some tags.

    Raises:
        TypeError: they are none; one text is none either.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{what} must be a list of tags, got {value!r}")
    tags = tuple(value)
    for tag in tags:
        if not isinstance(tag, str):
            raise TypeError(f"{what} must be tags, got {tag!r}")
    return tags


def checked_bool(what: str, value: Any) -> bool:
    """Give a bool.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be a bool, got {value!r}")
    return value
