"""What errors say about values, and the text that files and readers take."""

from __future__ import annotations

import numpy as np

MOST_LEVELS = 64
"""Lists nested deeper are no array of NumPy's, or hold themselves.

Where a program has raised Python's own limit, following them would end it without an exception.
"""
_MAX_SHOWN = 100
_SHOWN_END = 30


def describe(value: object) -> str:
    """Return a short text of `value` for an error message.

    Tensors are never printed: that would read them, and MindSpore 2.10 with NumPy 2 dies of reading a bfloat16 one.
    """
    kind = type(value).__name__
    try:
        if isinstance(value, np.generic):
            return f"{kind} {str(value)[:60]}"
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if shape is not None and dtype is not None:
            return f"{kind} of shape {tuple(shape)} and dtype {dtype}"
        if _is_printable(value):
            text = repr(value)
            return f"{kind} {text if len(text) <= 60 else text[:57] + '...'}"
    except Exception:  # a foreign repr, an int of more digits than Python prints, or what holds itself
        return kind
    if isinstance(value, (list, tuple)):
        return f"{kind} of {len(value)} {'/'.join(sorted({type(item).__name__ for item in value}))}"
    return kind


def shown(tag: str) -> str:
    """Return a tag, or another name of the user's, for a message: quoted, and without its middle where it is long."""
    if len(tag) > _MAX_SHOWN:
        tag = f"{tag[: _MAX_SHOWN - _SHOWN_END]}...{tag[-_SHOWN_END:]}"
    return repr(tag)


def _is_printable(value: object, levels: int = MOST_LEVELS) -> bool:
    """Say whether repr() of `value` reads no tensor: neither itself nor anything in it looks like one.

    Raises:
        RecursionError: it is nested deeper than `levels`.
    """
    if not levels:
        raise RecursionError
    if isinstance(value, dict):
        return _is_printable([*value.keys(), *value.values()], levels - 1)
    if isinstance(value, (list, tuple, set, frozenset)):
        return len(value) <= 8 and all(_is_printable(item, levels - 1) for item in value)
    kind = type(value)
    return not any(hasattr(kind, name) for name in ("asnumpy", "detach", "__array__", "numpy", "item"))


def check_tag(tag: object, what: str = "tag") -> str:
    """Return `tag` if TensorBoard can show it: any text that has a UTF-8 form, kept byte for byte.

    Args:
        tag: the tag, or another name.
        what: what it is called in messages.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty or holds a lone surrogate.
    """
    text = check_text(tag, what)
    if not text:
        raise ValueError(f"{what} is empty; want a name such as 'train/loss'")
    return text


def check_text(text: object, what: str) -> str:
    """Return a text that has a UTF-8 form.

    Raises:
        TypeError: it is no str. ValueError: it holds a lone surrogate.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, got {describe(text)}")
    text = str.__str__(text)  # the text of a str Enum, whose own str() is another one
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValueError(f"{what} {shown(text)} cannot be stored as UTF-8: {exc.reason}") from exc
    return text


def dtype_name(value: object) -> str:
    """Return the name of the dtype of an array or tensor in lower case, "" for anything else."""
    try:
        return str(getattr(value, "dtype", "")).lower()
    except Exception:  # whatever a foreign property raises
        return ""
