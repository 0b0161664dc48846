import threading

import numpy as np
import pytest

from tbwriter._summary import draw

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def figure(color="red", size=(1, 0.5)):
    made = plt.figure(figsize=size, dpi=100, facecolor=color)
    made.gca().set_axis_off()
    return made


def test_a_figure_is_its_pixels():
    (pixels,) = draw("f", figure(), close=True)
    assert pixels.shape == (50, 100, 3)
    assert (pixels == [255, 0, 0]).all()


def test_several_figures_are_a_batch():
    pixels = draw("f", [figure("red"), figure("blue")], close=True)
    assert [one[0, 0].tolist() for one in pixels] == [[255, 0, 0], [0, 0, 255]]


def test_a_drawn_figure_is_closed_unless_it_is_to_stay():
    draw("f", [figure(), figure()], close=True)
    assert plt.get_fignums() == []
    draw("f", figure(), close=False)
    assert len(plt.get_fignums()) == 1


def test_figures_of_different_size_are_closed_and_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'f': figures under one tag must have one size in pixels, got "):
        draw("f", [figure(), figure(size=(2, 2))], close=True)
    assert plt.get_fignums() == []


def test_a_figure_that_cannot_be_drawn_is_closed_too():
    wrong = figure()
    wrong.text(0, 0, r"$\nothing$")
    with pytest.raises(ValueError, match=r"^tag 'f': got Figure .*, which matplotlib cannot draw: "):
        draw("f", [figure(), wrong, figure()], close=True)
    assert plt.get_fignums() == []


def test_a_figure_keeps_its_own_canvas():
    made = figure()
    canvas = made.canvas
    draw("f", made, close=False)
    assert made.canvas is canvas


def test_a_window_on_a_screen_of_many_pixels_keeps_its_size_and_is_drawn_in_the_figures_own():
    made = figure()
    made.canvas._set_device_pixel_ratio(2)  # as windows of Qt and macOS do
    assert draw("f", [made, made], close=False).shape == (2, 50, 100, 3)
    assert (made.dpi, made.canvas.device_pixel_ratio) == (200, 2)
    made.canvas._set_device_pixel_ratio(1)
    assert made.dpi == 100


def test_a_figure_made_without_pyplot_is_drawn():
    assert draw("f", Figure(figsize=(1, 1), dpi=50), close=True).shape == (1, 50, 50, 3)


def test_a_figure_may_be_drawn_from_any_thread():
    out = []
    made = figure()
    thread = threading.Thread(target=lambda: out.append(draw("f", made, close=True)))
    thread.start()
    thread.join()
    assert (out[0] == [255, 0, 0]).all()


def test_pixels_do_not_change_with_the_figure():
    made = figure()
    pixels = draw("f", made, close=False)
    made.set_facecolor("blue")
    draw("f", made, close=False)
    assert (pixels == [255, 0, 0]).all()


@pytest.mark.parametrize("wrong", [None, "figure.png", np.zeros((3, 2, 2)), [None]])
def test_what_is_no_figure_is_refused_by_tag(wrong):
    with pytest.raises(TypeError, match=r"^tag 'f': got .*, want a matplotlib figure$"):
        draw("f", wrong, close=True)


def test_no_figures_at_all_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'f': got an empty list"):
        draw("f", [], close=True)
