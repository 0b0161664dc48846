"""Text, shown as Markdown by TensorBoard's text dashboard."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._host import is_masked
from tbwriter._summary._words import MOST_LEVELS, describe, shown

PLUGIN = "text"


@dataclass(frozen=True)
class Text:
    """A text, or a table of texts of rank 1 or 2."""

    tag: str
    items: tuple[bytes, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, tag: str, text: Any, *, suffix: str = "") -> Text:
        """Take a str, or a list or array of str of rank 1 or 2; it is stored as `tag` with `suffix` behind it.

        Raises:
            TypeError: something else. ValueError: a lone surrogate, rank over 2, an empty table, or 2 GiB and more.
        """
        items: tuple[bytes, ...]
        if isinstance(text, str):
            items, shape = (_encode(tag, text),), ()
        else:
            table = _table(text)
            if table is None or not all(isinstance(item, str) for item in table.reshape(-1)):
                raise TypeError(f"tag {shown(tag)}: got {describe(text)}, want a str, or a list of str")
            if not 0 <= table.ndim <= 2 or table.size == 0:
                raise ValueError(
                    f"tag {shown(tag)}: got texts of shape {table.shape}, want rank 1 or 2 and at least one"
                )
            items, shape = tuple(_encode(tag, item) for item in table.reshape(-1)), table.shape
        _event.check_size(tag, text, sum(map(len, items)))
        return cls(tag + suffix, items, shape)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return sum(map(sys.getsizeof, self.items)) + 8 * len(self.items)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value."""
        value = pb.Summary.Value(tag=self.tag, tensor=_event.strings(self.items, *self.shape))
        if first:
            value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR))
        return [value]


def _table(text: Any) -> npt.NDArray[Any] | None:
    try:
        return np.asarray(_unmasked(text), dtype=object) if isinstance(text, (list, tuple, np.ndarray)) else None
    except Exception:  # ragged rows, lists that hold themselves, or whatever a foreign object in the list raises
        return None


def _unmasked(text: Any, levels: int = MOST_LEVELS) -> Any:
    """Return `text` with nothing in place of what masked arrays in it hide.

    Raises:
        RecursionError: it is nested deeper than `levels`.
    """
    if not levels:
        raise RecursionError
    if is_masked(type(text)):
        hidden: Any = text.astype(object)
        return hidden.filled("").tolist()
    return [_unmasked(item, levels - 1) for item in text] if isinstance(text, (list, tuple)) else text


def _encode(tag: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValueError(
            f"tag {shown(tag)}: text cannot be stored as UTF-8: {exc.reason} at {exc.start}, got {describe(text)}"
        ) from exc
