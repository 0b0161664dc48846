"""Images: a few of each collected batch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from mindspore import Tensor, ops

from msbridge._checks import checked_count
from msbridge._device import Array, is_tensor
from msbridge._schedule import CollectFreq
from msbridge.collectors._base import Collector, Context, Late, NotHereError, Value, Write
from tbwriter import SummaryWriter

_CHANNELS = frozenset({1, 3, 4})


class InputImages(Collector):
    """`input/images`: the first images of a collected batch.

    The first input of shape (N, C, H, W) or (N, H, W, C) with 1, 3 or 4 channels. Values outside of 0 to 1 (of 0 to
    255 for integers) are stretched to that range. Not in data-sink mode, where the host sees no batch.

    Args:
        most: how many images.
        collect_freq: as in Collector; None: as the callback's `collect_tensor_freq`.
    """

    heavy = True

    def __init__(self, most: int = 4, collect_freq: CollectFreq | None = None) -> None:
        super().__init__(collect_freq)
        self._most = checked_count("InputImages: most", most, least=1)

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the images."""
        element = context.params.get("train_dataset_element")
        inputs = element if isinstance(element, list | tuple) else [element]
        for tensor in inputs:
            if getattr(tensor, "ndim", 0) == 4 and (layout := layout_of(tensor.shape)):
                size = (min(self._most, tensor.shape[0]), *tensor.shape[1:])
                first = ops.Slice()(tensor if is_tensor(tensor) else Tensor(tensor), (0, 0, 0, 0), size)
                return {"input/images": fetch_images(context, first, layout)}
        raise NotHereError("the input has no images: want (N, C, H, W) or (N, H, W, C) with 1, 3 or 4 channels")


def layout_of(shape: Any) -> str:
    """Tell the layout of a batch of images, "" when it is none."""
    if shape[1] in _CHANNELS:
        return "NCHW"
    return "NHWC" if shape[3] in _CHANNELS else ""


def fetch_images(context: Context, tensor: Any, layout: str) -> Late:
    """Let a batch of images join the transfer."""
    read, whole = context.fetch(tensor), str(tensor.dtype).startswith(("Int", "UInt"))
    return lambda: Write(_Images(read(), layout, whole).write)


class _Images:
    """A batch of images in float32, to be written."""

    def __init__(self, values: Array, layout: str, whole: bool) -> None:
        self._values, self._layout, self._whole = values, layout, whole

    def write(self, writer: SummaryWriter, tag: str, step: int, wall_time: float) -> None:
        """Add them in the range from 0 to 1."""
        values: Array = self._values / np.float32(255) if self._whole else self._values
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        if low < 0 or high > 1:
            values = (values - low) / max(high - low, np.finfo(np.float32).tiny)
        shown = np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=0.0)
        writer.add_images(tag, shown, step, wall_time, dataformats=self._layout)
