"""Videos, stored as animated GIF: what TensorBoard's image dashboard plays."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _image, _pixels
from tbwriter._summary._values import as_argument
from tbwriter._summary._words import describe, shown

# Browsers show frames that are shorter than this for 100 ms. GIF counts in 10 ms.
_MIN_FRAME_MS = 20
_MAX_GIF_NUMBER = 0xFFFF  # of pixels a side, and of the 10 ms that a frame lasts


@dataclass(frozen=True)
class Video:
    """Clips that play side by side, as one picture."""

    tag: str
    clips: npt.NDArray[Any]
    """Of shape [n, frames, height, width, channels]."""
    fps: float

    @classmethod
    def of(cls, tag: str, video: Any, dataformats: str, *, fps: Any, copy: bool) -> Video:
        """Take clips of any layout; their numbers mean what an image's do.

        Raises:
            TypeError, ValueError: as `Images.of`; `fps` is not above 0, or a GIF cannot hold it. ImportError: Pillow is
                missing.
        """
        _pixels.require_pillow(tag, "videos")
        rate = as_argument(fps, tag, "fps")
        if not (rate > 0 and math.isfinite(rate)):
            raise ValueError(f"tag {shown(tag)}: fps must be a number above 0, got {describe(fps)}")
        if round(100 / rate) > _MAX_GIF_NUMBER:
            least = f"{100 / _MAX_GIF_NUMBER:.4f}"
            raise ValueError(
                f"tag {shown(tag)}: fps must be at least {least}, as long as a GIF shows a frame, got {describe(fps)}"
            )
        clips = _pixels.arrange(tag, video, dataformats, "NTHWC")
        columns = _columns(len(clips))
        width, height = columns * clips.shape[3], -(-len(clips) // columns) * clips.shape[2]
        if max(width, height) > _MAX_GIF_NUMBER:
            raise ValueError(
                f"tag {shown(tag)}: got {describe(video)}, {width} by {height} pixels side by side, and a GIF holds at "
                f"most {_MAX_GIF_NUMBER} a side; use fewer or smaller clips"
            )
        return cls(tag, np.array(clips) if copy else clips, rate)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.clips.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Encode the frames and return the one Value: width, height, and the GIF."""
        frames = self._frames()
        start = next(frames)
        out = io.BytesIO()
        start.save(out, "GIF", save_all=True, append_images=frames, duration=self._durations(), loop=0)
        width, height = start.size
        return [_image.value(self.tag, width, height, [out.getvalue()], first)]

    def _durations(self) -> int | list[int]:
        """Return how long the frames last, in ms.

        Frames that are alike and follow each other become one, which a GIF shows for 655 s at most: what goes beyond
        lasts no time.
        """
        each = max(_MIN_FRAME_MS, 10 * round(100 / self.fps))
        longest = 10 * _MAX_GIF_NUMBER
        if each * self.clips.shape[1] <= longest:
            return each
        durations, before, shown = [], b"", 0
        for frame in self._frames():
            data = frame.tobytes()
            shown = shown if data == before else 0
            durations.append(min(each, longest - shown))
            shown, before = shown + durations[-1], data
        return durations

    def _frames(self) -> Iterator[Any]:
        columns = _columns(len(self.clips))
        for moment in range(self.clips.shape[1]):
            frame = _pixels.pixels(_pixels.grid(self.clips[:, moment], columns))
            yield _pixels.picture(frame[..., :3])  # a GIF's pixels are opaque or not at all


def _columns(clips: int) -> int:
    """Return how many clips stand in a row."""
    return math.ceil(math.sqrt(clips))
