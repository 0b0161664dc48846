"""Images, stored as PNG."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._values import as_array, describe

PLUGIN = "images"


@dataclass(frozen=True)
class Images:
    """A batch of images under one tag; they show side by side at one step."""

    tag: str
    batch: npt.NDArray[Any]
    """Of shape [n, height, width, channels], channels 1, 3 or 4; any real dtype."""

    @classmethod
    def of(cls, tag: str, image: Any, dataformats: str, *, batched: bool, copy: bool) -> Images:
        """Take an image or a batch of any layout.

        Args:
            tag: the stored tag.
            image: an array-like, see `_pixels` for what its numbers mean.
            dataformats: one letter a dimension: H and W, optionally C, and N when `batched`.
            batched: whether there is a batch dimension.
            copy: False hands the array over; the caller must not change it any more.

        Raises:
            TypeError: no array of real numbers. ValueError: shape and `dataformats` do not fit.
            ImportError: Pillow is missing.
        """
        if importlib.util.find_spec("PIL") is None:
            raise ImportError(f"tag {tag!r}: images need Pillow: pip install 'tbwriter[images]'")
        array = as_array(image, tag)
        letters = dataformats.upper() if isinstance(dataformats, str) else ""
        allowed = ("NHWC", "NHW") if batched else ("HWC", "HW")
        if sorted(letters) not in [sorted(form) for form in allowed]:
            orders = "orders of N, H, W and optionally C" if batched else "orders of H, W and optionally C"
            raise ValueError(f"tag {tag!r}: dataformats must be one of the {orders}, got {dataformats!r}")
        if array.ndim != len(letters):
            raise ValueError(f"tag {tag!r}: got {describe(image)}, want {len(letters)} dimensions as in {letters!r}")
        array = array.transpose([letters.index(letter) for letter in "NHWC" if letter in letters])
        if "N" not in letters:
            array = array[np.newaxis]
        if "C" not in letters:
            array = array[..., np.newaxis]
        if array.shape[3] not in (1, 3, 4) or 0 in array.shape:
            raise ValueError(
                f"tag {tag!r}: got {describe(image)} read as {letters}, want 1, 3 or 4 channels and no empty side; "
                f"say which dimension is which with dataformats="
            )
        return cls(tag, np.array(array) if copy else array)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.batch.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Encode the batch and return the one Value: width, height, then the PNGs."""
        _, height, width, _ = self.batch.shape
        items = [b"%d" % width, b"%d" % height, *(_png(image) for image in self.batch)]
        value = pb.Summary.Value(tag=self.tag, tensor=_event.strings(items, len(items)))
        if first:
            value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_BLOB_SEQUENCE))
        return [value]


def _png(image: npt.NDArray[Any]) -> bytes:
    from PIL import Image

    pixels = _pixels(image)
    out = io.BytesIO()
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    # Level 1 to 3 costs a third of the default 6 and a few per cent in size; this shares a core with the training.
    picture.save(out, "PNG", compress_level=2)
    return out.getvalue()


def _pixels(image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return 8-bit pixels: floats are clipped to [0, 1], NaN is black; integers are clipped to [0, 255]."""
    pixels: npt.NDArray[Any] = image
    if image.dtype == np.bool_:
        pixels = np.where(image, np.uint8(255), np.uint8(0))
    elif image.dtype.kind == "f":
        clipped = np.nan_to_num(np.clip(image, 0.0, 1.0).astype(np.float32), nan=0.0)
        pixels = clipped * np.float32(255) + np.float32(0.5)
    elif image.dtype != np.uint8:
        pixels = np.clip(image, 0, 255)
    return np.ascontiguousarray(pixels.astype(np.uint8, copy=False))
