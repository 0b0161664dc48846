"""Audio, stored as WAV with 16 bits a sample."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter._logger import get_logger
from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._values import as_argument, as_array
from tbwriter._summary._words import describe, dtype_name, shown

_log = get_logger(__name__)

PLUGIN = "audio"
_SILENT_UINT8 = 128  # as in a WAV of 8 bits
_MAX_RATE = 2**31 // 4  # a WAV's byte rate has 32 bits


@dataclass(frozen=True)
class Audio:
    """A sound that waits to be encoded."""

    tag: str
    samples: npt.NDArray[Any]
    """Of shape [frames, channels], 1 or 2 channels; any real dtype."""
    sample_rate: int
    told: set[str] = field(default_factory=set, repr=False)
    """Tags that were told of clipping; shared by the sounds of one writer."""

    @classmethod
    def of(cls, tag: str, sound: Any, *, sample_rate: Any, copy: bool, told: set[str]) -> Audio:
        """Take a sound.

        Args:
            tag: the stored tag.
            sound: of shape [frames], [frames, 1] or [frames, 2], or with the channels first; of more dimensions those
                of size 1 are left out. Floats from -1 to 1; int8, uint8, int16 and int32 over their whole range; other
                integers as 16-bit samples. What is masked is silent.
            sample_rate: frames a second.
            copy: False hands the array over.
            told: the tags that were told of clipping.

        Raises:
            TypeError: no array of real numbers. ValueError: another shape, no frames, 2 GiB and more, or no rate.
        """
        array = as_array(sound, tag, masked=_SILENT_UINT8 if dtype_name(sound) == "uint8" else 0)
        rate = as_argument(sample_rate, tag, "sample_rate")
        if not 1 <= rate <= _MAX_RATE or rate != int(rate):
            raise ValueError(
                f"tag {shown(tag)}: sample_rate must be a whole number of frames a second, got {describe(sample_rate)}"
            )
        samples = np.atleast_1d(np.squeeze(array)) if array.ndim > 2 else array  # a batch of one, as torch takes it
        samples = samples[:, np.newaxis] if samples.ndim == 1 else samples
        if samples.ndim == 2 and samples.shape[1] not in (1, 2) and samples.shape[0] in (1, 2):
            samples = samples.T
        if samples.ndim != 2 or samples.shape[1] not in (1, 2) or not len(samples):
            raise ValueError(
                f"tag {shown(tag)}: got {describe(sound)}, want shape (frames,) or (frames, 1 or 2 channels)"
            )
        _event.check_size(tag, sound, 2 * samples.size)
        return cls(tag, np.array(samples) if copy else samples, int(rate), told)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.samples.nbytes)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Encode and return the one Value, of rank 1: a second column would count as a second sound."""
        value = pb.Summary.Value(tag=self.tag, tensor=_event.strings([self._wav()], 1))
        if first:
            content = plugins.AudioPluginData(encoding=plugins.AudioPluginData.WAV).SerializeToString()
            value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_BLOB_SEQUENCE, content=content))
        return [value]

    def _wav(self) -> bytes:
        import wave  # here and not above: an import of tbwriter is to be quick

        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(self.samples.shape[1])
            file.setsampwidth(2)
            file.setframerate(self.sample_rate)
            file.writeframes(self._pcm().astype("<i2").tobytes())
        return out.getvalue()

    def _pcm(self) -> npt.NDArray[Any]:
        """Return the samples as 16-bit numbers, of an integer type that may be wider."""
        samples = self.samples
        name = samples.dtype.name
        scaled: npt.NDArray[Any]
        if name == "uint8":
            scaled = np.left_shift(samples.astype(np.int16) - _SILENT_UINT8, 8)
        elif name == "int8":
            scaled = np.left_shift(samples.astype(np.int16), 8)
        elif name == "int32":
            scaled = np.right_shift(samples, 16)
        elif samples.dtype.kind in "iu":
            scaled = np.clip(samples, -0x8000, 0x7FFF)
        else:
            scaled = self._from_floats()
        return scaled

    def _from_floats(self) -> npt.NDArray[np.float32]:
        clipped = np.clip(self.samples, -1.0, 1.0)
        # NaN equals nothing, but is no sign of clipping.
        if self.tag not in self.told and ((clipped != self.samples) & ~np.isnan(self.samples)).any():
            self.told.add(self.tag)
            _log.warning("audio %s: samples beyond -1 to 1 are clipped. Said once for this tag", shown(self.tag))
        scaled: npt.NDArray[np.float32] = np.rint(np.nan_to_num(clipped.astype(np.float32)) * np.float32(0x7FFF))
        return scaled
