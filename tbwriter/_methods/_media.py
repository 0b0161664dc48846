"""The methods that add pictures, moving pictures and sound."""

from __future__ import annotations

from typing import Any

from tbwriter import _summary
from tbwriter._methods._adding import Adding


class MediaMethods(Adding):
    """Images, figures, videos and audio."""

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
        *,
        copy: bool = True,
    ) -> None:
        """Add an image, encoded as PNG in the worker.

        Args:
            tag: as in `add_scalar`.
            img_tensor: an array or tensor with 1, 3 or 4 channels. uint8 as it is; floats from 0 to 1, clipped, NaN
                black; other integers clipped to 0 to 255; bool black and white. What a masked array hides is black. Or
                a picture of Pillow, in any mode, whose dimensions are HW or HWC.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.
            dataformats: which dimension is which: an order of C, H and W, or of H and W; with N, a batch as in
                `add_images`.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shape or dtype do not fit. ImportError: Pillow is missing.
            WriterClosedError: after `close`.
        """
        self._tb_add_images(tag, img_tensor, global_step, walltime, dataformats, copy=copy)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
        *,
        copy: bool = True,
    ) -> None:
        """Add a batch of images that show side by side; see `add_image`.

        `img_tensor` is one array, or a list of images of one size; then `dataformats` may name the dimensions of one.
        The writer's `max_outputs` is the most that are stored. Other arguments and errors as `add_image`.
        """
        self._tb_add_images(tag, img_tensor, global_step, walltime, dataformats, copy=copy)

    def _tb_add_images(
        self, tag: str, images: Any, step: Any, walltime: float | None, dataformats: str, *, copy: bool
    ) -> None:
        limit = self._tb_settings.max_outputs
        tag = _summary.check_tag(tag)
        batch = _summary.Images.of(tag, images, dataformats, copy=copy, max_outputs=limit)
        self._tb_add(tag, batch, "image", step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        *,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
        copy: bool = True,
    ) -> None:
        """Add an image with boxes that are drawn on it in the worker.

        Args:
            tag: as in `add_scalar`.
            img_tensor: one image, as in `add_image`.
            box_tensor: of shape (n, 4): left, top, right and bottom in pixels; those that are not finite are left out.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.
            rescale: a factor for the size of the picture, up to 134 million pixels.
            dataformats: as in `add_image`.
            labels: a text for each box.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shapes, dtypes or numbers do not fit. ImportError: Pillow is missing.
            WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        image = _summary.BoxedImage.of(
            tag,
            img_tensor,
            box_tensor,
            dataformats,
            labels=labels,
            rescale=rescale,
            copy=copy,
        )
        self._tb_add(tag, image, "image", global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Add a figure of matplotlib, or a list of figures of one size.

        Matplotlib draws it here, in the caller, since it may not draw in two threads at a time; the PNG is made in
        the worker.

        Args:
            tag: as in `add_scalar`.
            figure: a `matplotlib.figure.Figure`, whatever its backend, or a list of them.
            global_step: as in `add_scalar`.
            close: close it, so that pyplot does not keep it.
            walltime: as in `add_scalar`.

        Raises:
            TypeError: no figure. ValueError: figures of different size, or that matplotlib cannot draw; a tag used for
                another kind.
            ImportError: matplotlib or Pillow is missing. WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        drawn = _summary.draw(tag, figure, close=bool(close))
        self._tb_add_images(tag, drawn, global_step, walltime, "NHWC", copy=False)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: float = 4,
        walltime: float | None = None,
        *,
        dataformats: str = "NTCHW",
        copy: bool = True,
    ) -> None:
        """Add videos that play side by side, as one animated GIF, which the image dashboard plays.

        Args:
            tag: as in `add_scalar`; of an image or a video.
            vid_tensor: an array or tensor with 1, 3 or 4 channels; numbers as in `add_image`.
            global_step: as in `add_scalar`.
            fps: frames a second; a GIF counts in hundredths of a second, up to 655 s for a picture that stands still,
                and browsers show at most 50.
            walltime: as in `add_scalar`.
            dataformats: which dimension is which: an order of N, T (time), C, H and W; N and C may be missing.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shape or dtype do not fit, or a GIF cannot hold it: more than 65,535 pixels a side.
            ImportError: Pillow is missing. WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        video = _summary.Video.of(tag, vid_tensor, dataformats, fps=fps, copy=copy)
        self._tb_add(tag, video, "image", global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
        *,
        copy: bool = True,
    ) -> None:
        """Add a sound, mono or stereo, as WAV with 16 bits a sample.

        Args:
            tag: as in `add_scalar`.
            snd_tensor: of shape (frames,), (frames, channels) or (channels, frames), 1 or 2 channels; or a batch of
                one of these. Floats from -1 to 1, clipped, NaN silent; int8, uint8, int16 and int32 over their whole
                range; other integers as 16-bit samples. What a masked array hides is silent.
            global_step: as in `add_scalar`.
            sample_rate: frames a second.
            walltime: as in `add_scalar`.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shape, dtype or rate do not fit. WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        audio = _summary.Audio.of(tag, snd_tensor, sample_rate=sample_rate, copy=copy, told=self._tb_told)
        self._tb_add(tag, audio, "sound", global_step, walltime)
