"""An image with boxes drawn on it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _image, _pixels
from tbwriter._summary._values import as_argument, as_array, items_of, text_of
from tbwriter._summary._words import describe, shown

_COLOR = "red"
_LINE_WIDTH = 2
_MAX_PIXELS = 1 << 27  # to which a picture may be enlarged


@dataclass(frozen=True)
class BoxedImage:
    """An image and the boxes that are drawn on it in the worker."""

    tag: str
    image: npt.NDArray[Any]
    """Of shape [height, width, channels]."""
    boxes: npt.NDArray[np.float64]
    """Of shape [n, 4]: left, top, right, bottom, in pixels."""
    labels: tuple[str, ...]
    """One for each box, or none at all."""
    rescale: float

    @classmethod
    def of(
        cls, tag: str, image: Any, boxes: Any, dataformats: str, *, labels: Any, rescale: Any, copy: bool
    ) -> BoxedImage:
        """Take one image and its boxes.

        Raises:
            TypeError, ValueError: as `Images.of`; boxes not of shape (n, 4); as many labels as boxes are wanted.
            ImportError: Pillow is missing.
        """
        _pixels.require_pillow(tag, "images")
        batch = _pixels.arrange(tag, image, dataformats, "NHWC")
        if len(batch) != 1:
            raise ValueError(f"tag {shown(tag)}: got {describe(image)}, want one image")
        corners = as_array(boxes, tag).astype(np.float64)
        if corners.size == 0:
            corners = corners.reshape(0, 4)
        corners = corners[np.newaxis] if corners.shape == (4,) else corners
        if corners.ndim != 2 or corners.shape[1] != 4:
            raise ValueError(f"tag {shown(tag)}: boxes must be of shape (n, 4), got {describe(boxes)}")
        where = f"tag {shown(tag)}: labels"
        given = [] if labels is None else [labels] if isinstance(labels, str) else items_of(labels, where, "texts")
        names = tuple(text_of(label, where) for label in given)
        if labels is not None and len(names) != len(corners):
            raise ValueError(f"tag {shown(tag)}: got {len(names)} labels for {len(corners)} boxes, want one for each")
        scale = as_argument(rescale, tag, "rescale")
        if not 0 < scale <= 100:
            raise ValueError(f"tag {shown(tag)}: rescale must be above 0 and at most 100, got {describe(rescale)}")
        if scale > 1 and math.prod(batch.shape[1:3]) * scale**2 > _MAX_PIXELS:
            raise ValueError(
                f"tag {shown(tag)}: rescale={scale:g} makes {describe(image)} larger than {_MAX_PIXELS} pixels; "
                "want less"
            )
        return cls(tag, np.array(batch[0]) if copy else batch[0], corners, names, scale)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        held = sum(map(sys.getsizeof, self.labels)) + 8 * len(self.labels)
        return int(self.image.nbytes + self.boxes.nbytes) + held

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Draw, encode, and return the one Value. Boxes that are not finite are left out: training has diverged."""
        drawing = _pixels.picture(_pixels.pixels(self.image)).convert("RGBA" if self.image.shape[2] == 4 else "RGB")
        for index, box in enumerate(self.boxes):
            if np.isfinite(box).all():
                _draw(drawing, box, self.labels[index] if self.labels else "")
        if self.rescale != 1:
            drawing = drawing.resize([max(1, round(side * self.rescale)) for side in drawing.size])
        width, height = drawing.size
        return [_image.value(self.tag, width, height, [_pixels.encode_png(drawing)], first)]


def _draw(drawing: Any, box: npt.NDArray[np.float64], label: str) -> None:
    from PIL import ImageDraw, ImageFont

    # Far outside is as good as just outside, and Pillow's integers end at 2**31.
    left, right = sorted(np.clip(box[[0, 2]], -1e6, 1e6).tolist())
    top, bottom = sorted(np.clip(box[[1, 3]], -1e6, 1e6).tolist())
    draw = ImageDraw.Draw(drawing)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    draw.line(corners, fill=_COLOR, width=_LINE_WIDTH)
    if label:
        font = ImageFont.load_default()
        if not isinstance(font, ImageFont.FreeTypeFont):  # before Pillow 10.1, or built without FreeType
            label = label.encode("latin-1", "replace").decode("latin-1")
        x0, y0, x1, y1 = draw.textbbox((left, bottom), label, font=font)
        up = y1 - bottom + 1  # the text stands on the lower edge, inside the box
        draw.rectangle([x0, y0 - up, x1 + 1, y1 - up + 1], fill=_COLOR)
        draw.text((left, bottom - up), label, fill="black", font=font)
