"""Pictures as arrays: which dimension is which, what their numbers mean, and PNG."""

from __future__ import annotations

import importlib.util
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._imported import imported
from tbwriter._summary._values import as_array
from tbwriter._summary._words import describe, shown

# Of Pillow: whose numbers are grey, or red, green and blue. Those of the others are places in a palette, inks, ...
_MODES_OF_PLAIN_COLOURS = ("1", "L", "RGB", "RGBA", "I", "F")

Pixels = npt.NDArray[np.uint8]


def require_pillow(tag: str, what: str) -> None:
    """Raise ImportError when Pillow is missing, with the line that installs it."""
    if importlib.util.find_spec("PIL") is None:
        raise ImportError(f"tag {shown(tag)}: {what} need Pillow: pip install 'tbwriter[images]'")


def arrange(tag: str, value: Any, dataformats: str, wanted: str) -> npt.NDArray[Any]:
    """Return an array-like of any layout as an array with the dimensions `wanted`.

    Args:
        tag: for messages.
        value: an array-like of bool, integers or floats; a list of pictures is a batch. What is masked is black. A
            picture of Pillow, whose dimensions are HW or HWC, shows the colours that it stands for.
        dataformats: one letter for each dimension of `value`. C may be missing: grey; and N: a batch of one.
        wanted: "NHWC", or "NTHWC" for videos.

    Returns:
        A view where that is possible.

    Raises:
        TypeError: no array of real numbers. ValueError: shape and `dataformats` do not fit.
    """
    array: npt.NDArray[Any] = as_array(_of_pillow(value, tag), tag, masked=0)
    letters = str.upper(dataformats) if isinstance(dataformats, str) else ""
    needed = set(wanted) - set("NC")
    if len({*letters}) != len(letters) or not needed <= {*letters} <= {*wanted}:
        orders = f"orders of {', '.join(letter for letter in wanted if letter in needed)}, with C and N or without"
        raise ValueError(f"tag {shown(tag)}: dataformats must be one of the {orders}, got {describe(dataformats)}")
    if isinstance(value, (list, tuple)) and "N" not in letters and array.ndim == len(letters) + 1:
        letters = "N" + letters
    if array.ndim != len(letters):
        raise ValueError(
            f"tag {shown(tag)}: got {describe(value)}, want {len(letters)} dimensions as in {shown(letters)}"
        )
    array = array.transpose([letters.index(letter) for letter in wanted if letter in letters])
    if "N" not in letters:
        array = array[np.newaxis]
    if "C" not in letters:
        array = array[..., np.newaxis]
    if array.shape[-1] not in (1, 3, 4) or 0 in array.shape:
        raise ValueError(
            f"tag {shown(tag)}: got {describe(value)} read as {letters}, want 1, 3 or 4 channels and no empty side; "
            f"say which dimension is which with dataformats="
        )
    return array


def _of_pillow(value: Any, tag: str) -> Any:
    """Return a picture of Pillow, or a list with some, as arrays whose numbers are colours; anything else as it is.

    Raises:
        TypeError: Pillow cannot read it, or knows no way from its colours to red, green and blue.
    """
    picture = imported("PIL.Image", "Image")
    if picture is None:
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(one, picture) for one in value):
        return [_of_pillow(one, tag) if isinstance(one, picture) else one for one in value]
    if not isinstance(value, picture):
        return value
    is_plain = value.mode in _MODES_OF_PLAIN_COLOURS or value.mode.startswith("I;")
    is_transparent = value.mode in ("LA", "La", "PA", "RGBa") or "transparency" in value.info
    try:
        return np.asarray(value if is_plain else value.convert("RGBA" if is_transparent else "RGB"))
    except Exception as exc:  # a file that is damaged, or colours that Pillow does not turn
        raise TypeError(f"tag {shown(tag)}: got {describe(value)}, which Pillow cannot read as RGB: {exc}") from exc


def pixels(image: npt.NDArray[Any]) -> Pixels:
    """Return 8-bit pixels: floats are clipped to [0, 1], NaN is black; integers are clipped to [0, 255]."""
    wide: npt.NDArray[Any] = image
    if image.dtype == np.bool_:
        wide = np.where(image, np.uint8(255), np.uint8(0))
    elif image.dtype.kind == "f":
        clipped = np.nan_to_num(np.clip(image, 0.0, 1.0).astype(np.float32), nan=0.0)
        wide = clipped * np.float32(255) + np.float32(0.5)
    elif image.dtype != np.uint8:
        wide = np.clip(image, 0, 255)
    return np.ascontiguousarray(wide.astype(np.uint8, copy=False))


def picture(image: Pixels) -> Any:
    """Return pixels of shape [height, width, channels] as a picture of Pillow."""
    from PIL import Image

    return Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)


def encode_png(drawing: Any) -> bytes:
    """Return a picture of Pillow as PNG."""
    out = io.BytesIO()
    # Level 1 to 3 costs a third of the default 6 and a few per cent in size; this shares a core with the training.
    drawing.save(out, "PNG", compress_level=2)
    return out.getvalue()


def grid(images: npt.NDArray[Any], columns: int) -> npt.NDArray[Any]:
    """Return images of shape [n, height, width, channels] as one, row by row; what is left over is black."""
    number, height, width, channels = images.shape
    rows = -(-number // columns)
    canvas = np.zeros((rows * columns, height, width, channels), images.dtype)
    canvas[:number] = images
    lines = canvas.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    sheet: npt.NDArray[Any] = lines.reshape(rows * height, columns * width, channels)
    return sheet
