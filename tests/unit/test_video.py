import io

import numpy as np
import pytest

from tbwriter._summary import Video

Image = pytest.importorskip("PIL.Image")

# Two grey levels a frame, so that a palette of 256 colours holds them exactly.
FRAMES = np.array([[[0, 255, 0], [255, 0, 255]], [[255, 255, 255], [0, 0, 0]], [[10, 20, 30], [40, 50, 60]]], np.uint8)


def video(array, dataformats="THW", fps=4):
    return Video.of("clip", array, dataformats, fps=fps, copy=True)


def stored(summary):
    (value,) = summary.values(True)
    width, height, gif = value.tensor.string_val
    picture = Image.open(io.BytesIO(gif))
    assert picture.format == "GIF"
    assert (b"%d" % picture.width, b"%d" % picture.height) == (width, height)
    return picture


def frames(summary):
    picture = stored(summary)
    out = []
    for index in range(picture.n_frames):
        picture.seek(index)
        out.append(np.asarray(picture.convert("RGB")))
    return out


def test_a_video_is_an_animated_gif_of_its_frames():
    shown = frames(video(FRAMES))
    assert [frame[..., 0].tolist() for frame in shown] == FRAMES.tolist()


def test_it_plays_for_ever_at_its_rate():
    picture = stored(video(FRAMES, fps=5))
    assert picture.info["loop"] == 0
    assert picture.info["duration"] == 200


def test_a_rate_that_browsers_do_not_show_is_the_fastest_that_they_do():
    assert stored(video(FRAMES, fps=1000)).info["duration"] == 20


@pytest.mark.parametrize("order", ["NTCHW", "NTHWC", "TNHWC", "HWCNT", "ntchw"])
def test_a_video_of_any_layout_shows_the_same(order):
    clips = np.stack([FRAMES, 255 - FRAMES])[..., np.newaxis].repeat(3, -1)  # NTHWC
    array = clips.transpose(["NTHWC".index(letter) for letter in order.upper()])
    shown = frames(video(array, order))
    assert [frame[..., 0].tolist() for frame in shown] == np.concatenate([FRAMES, 255 - FRAMES], 2).tolist()


def test_clips_that_fill_no_square_leave_it_black():
    clips = np.full((3, 2, 4, 4), 1.0)
    clips[:, 1] = 0.5
    first, second = frames(video(clips, "NTHW"))
    assert first.shape == (8, 8, 3)
    assert first[4:, 4:].max() == second[4:, 4:].max() == 0
    assert (first[:4].min(), second[:4].min()) == (255, 128)


def test_colours_are_kept_about_as_they_are():
    clip = np.zeros((2, 8, 8, 3))
    clip[0, ..., 0] = 1.0
    clip[1, ..., 2] = 1.0
    first, second = frames(video(clip, "THWC"))
    assert first[0, 0].tolist() == [255, 0, 0]
    assert second[0, 0].tolist() == [0, 0, 255]


def test_floats_are_clipped_and_nan_is_black():
    clip = np.array([[[1.5, -0.5]], [[np.nan, 1.0]]])
    assert [frame[..., 0].tolist() for frame in frames(video(clip))] == [[[255, 0]], [[0, 255]]]


@pytest.mark.parametrize("fps", [0, -1, np.inf, np.nan])
def test_no_rate_is_refused_by_tag(fps):
    with pytest.raises(ValueError, match=r"^tag 'clip': fps must be a number above 0, got "):
        video(FRAMES, fps=fps)


@pytest.mark.parametrize("fps", [0.0015, 1e-300])
def test_a_rate_below_what_a_gif_can_hold_is_refused_by_tag(fps):
    with pytest.raises(ValueError, match=r"^tag 'clip': fps must be at least 0.0015, as long as a GIF shows a frame"):
        video(FRAMES, fps=fps)


def test_the_slowest_video_is_stored():
    assert len(frames(video(FRAMES, fps=0.001526))) == len(FRAMES)


@pytest.mark.parametrize(
    ("shape", "sides"),
    [((1, 1, 2, 65536), "65536 by 2"), ((1, 1, 65536, 2), "2 by 65536"), ((2, 1, 1, 32768), "65536")],
)
def test_clips_larger_than_a_gif_are_refused_by_tag(shape, sides):
    with pytest.raises(ValueError, match=rf"^tag 'clip': got ndarray .*, {sides}.* and a GIF holds at most 65535"):
        video(np.broadcast_to(np.uint8(0), shape), "NTHW")


@pytest.mark.parametrize("order", ["CHW", "NCHW", "", "NTCHWX", None])
def test_a_layout_without_time_is_refused_by_tag(order):
    with pytest.raises(
        ValueError, match=r"^tag 'clip': dataformats must be one of the orders of T, H, W, with C and N"
    ):
        video(FRAMES, order)


@pytest.mark.parametrize(("fps", "still"), [(0.1, 70), (0.0016, 2), (4, 3000)])
def test_a_picture_that_stands_still_for_longer_than_a_gif_can_say_is_shown_as_long_as_it_can(fps, still):
    """A game that hangs: Pillow adds up the times of frames that are alike, and failed beyond 655 s."""
    clip = np.repeat(FRAMES[[0, 1]], [still, 1], axis=0)
    picture = stored(video(clip, fps=fps))
    durations = []
    for index in range(picture.n_frames):
        picture.seek(index)
        durations.append(picture.info["duration"])
    assert durations == [655_350, 10 * round(100 / fps)]
    assert [frame[..., 0].tolist() for frame in frames(video(clip, fps=fps))] == FRAMES[[0, 1]].tolist()
