import io
import logging
import wave

import duck
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tbwriter._summary import Audio

FULL = 32767


def audio(array, sample_rate=8000, told=None, copy=True):
    return Audio.of("snd", array, sample_rate=sample_rate, copy=copy, told=set() if told is None else told)


def stored(array, **kwargs):
    """Return the rate and the samples of shape [frames, channels] as a reader of WAV sees them."""
    (value,) = audio(array, **kwargs).values(True)
    assert [dim.size for dim in value.tensor.tensor_shape.dim] == [1]
    (wav,) = value.tensor.string_val
    with wave.open(io.BytesIO(wav)) as file:
        assert file.getsampwidth() == 2
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return file.getframerate(), samples.reshape(-1, file.getnchannels())


def samples(array, **kwargs):
    return stored(array, **kwargs)[1].tolist()


def test_a_sound_is_a_wav_of_its_rate():
    rate, shown = stored(np.array([0.0, 1.0, -1.0, 0.5]), sample_rate=22050)
    assert rate == 22050
    assert shown.tolist() == [[0], [FULL], [-FULL], [16384]]


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3), (1, 1, 3), (1, 3, 1), (1, 1, 3, 1)])
def test_one_channel_may_stand_alone_first_or_last(shape):
    assert samples(np.array([0.0, 1.0, -1.0]).reshape(shape)) == [[0], [FULL], [-FULL]]


def test_two_channels_are_stereo():
    stereo = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    assert samples(stereo) == samples(stereo.T) == samples(stereo.T[np.newaxis]) == [[0, FULL], [FULL, 0], [-FULL, 0]]


def test_one_frame_in_a_batch_is_a_sound():
    assert samples(np.ones((1, 1, 1))) == [[FULL]]


@given(hnp.arrays(st.sampled_from([np.float16, np.float32, np.float64]), st.integers(1, 50)))
def test_floats_of_any_size_are_clipped_and_nan_is_silent(array):
    with np.errstate(all="ignore"):
        wanted = np.clip(np.nan_to_num(array.astype(np.float64), nan=0.0), -1, 1) * FULL
    assert np.abs(np.array(samples(array))[:, 0] - wanted).max() <= 0.51


@pytest.mark.parametrize(
    ("dtype", "numbers", "shown"),
    [
        ("u1", [0, 128, 255], [-32768, 0, 32512]),
        ("i1", [-128, 0, 127], [-32768, 0, 32512]),
        ("i2", [-32768, 7, 32767], [-32768, 7, 32767]),
        (">i2", [-32768, 7, 32767], [-32768, 7, 32767]),
        ("i4", [-(2**31), 0, 2**31 - 1], [-32768, 0, 32767]),
        ("u2", [0, 7, 65535], [0, 7, 32767]),
        ("i8", [-(2**40), 7, 2**40], [-32768, 7, 32767]),
        ("?", [True, False], [32767, 0]),
    ],
)
def test_integers_are_samples(dtype, numbers, shown):
    assert samples(np.array(numbers, dtype)) == [[number] for number in shown]


def test_bfloat16_is_a_float():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert samples(np.array([0.5, 1.0], ml_dtypes.bfloat16)) == [[16384], [FULL]]


@pytest.mark.parametrize("wrap", [duck.Asnumpy, duck.ArrayForm, duck.RequiresGrad, np.ndarray.tolist])
def test_a_sound_may_be_anything_with_numbers(wrap):
    assert samples(wrap(np.array([0.0, 1.0]))) == [[0], [FULL]]


def test_clipping_is_said_once_a_tag(caplog):
    told = set()
    with caplog.at_level(logging.WARNING):
        samples([1.5], told=told)
        samples([1.5], told=told)
    assert [record.getMessage() for record in caplog.records] == [
        "audio 'snd': samples beyond -1 to 1 are clipped. Said once for this tag"
    ]


def test_a_copy_does_not_change_with_the_array():
    array = np.array([1.0, 1.0])
    waiting, shared = audio(array), audio(array, copy=False)
    array[:] = 0
    assert waiting.samples.tolist() == [[1.0], [1.0]]
    assert shared.samples.tolist() == [[0.0], [0.0]]
    assert waiting.nbytes == 16


@pytest.mark.parametrize("shape", [(), (0,), (0, 2), (3, 3), (5, 4), (2, 3, 4), (1, 3, 4)])
def test_another_shape_is_refused_by_tag(shape):
    with pytest.raises(ValueError, match=r"^tag 'snd': got .*, want shape \(frames,\) or \(frames, 1 or 2 channels\)$"):
        audio(np.zeros(shape))


@pytest.mark.parametrize("rate", [0, -8000, 0.5, 44100.5, 2**31, np.nan])
def test_no_rate_is_refused_by_tag(rate):
    with pytest.raises(ValueError, match=r"^tag 'snd': sample_rate must be a whole number of frames a second, got "):
        audio([0.0], sample_rate=rate)


def test_a_rate_may_be_any_whole_number():
    assert stored([0.0], sample_rate=np.float32(16000))[0] == 16000
