"""Images, stored as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event, _pixels

PLUGIN = "images"


@dataclass(frozen=True)
class Images:
    """A batch of images under one tag; they show side by side at one step."""

    tag: str
    batch: npt.NDArray[Any]
    """Of shape [n, height, width, channels], channels 1, 3 or 4; any real dtype."""

    @classmethod
    def of(cls, tag: str, image: Any, dataformats: str, *, copy: bool, max_outputs: int | None = None) -> Images:
        """Take an image or a batch of any layout.

        Args:
            tag: the stored tag.
            image: an array-like, see `_pixels.pixels` for what its numbers mean.
            dataformats: one letter a dimension: H and W, optionally C and N.
            copy: False hands the array over; the caller must not change it any more.
            max_outputs: the most images of a batch that are kept: the first ones.

        Raises:
            TypeError: no array of real numbers. ValueError: shape and `dataformats` do not fit.
            ImportError: Pillow is missing.
        """
        _pixels.require_pillow(tag, "images")
        batch = _pixels.arrange(tag, image, dataformats, "NHWC")[:max_outputs]
        return cls(tag, np.array(batch) if copy else batch)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.batch.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Encode the batch and return the one Value: width, height, then the PNGs."""
        _, height, width, _ = self.batch.shape
        encoded = [_pixels.encode_png(_pixels.picture(_pixels.pixels(image))) for image in self.batch]
        return [value(self.tag, width, height, encoded, first)]


def value(tag: str, width: int, height: int, encoded: Sequence[bytes], first: bool) -> pb.Summary.Value:
    """Return the Value of encoded images of one size."""
    items = [b"%d" % width, b"%d" % height, *encoded]
    out = pb.Summary.Value(tag=tag, tensor=_event.strings(items, len(items)))
    if first:
        out.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_BLOB_SEQUENCE))
    return out
