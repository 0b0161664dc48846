"""Draw figures of matplotlib to pixels."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from tbwriter._imported import imported
from tbwriter._summary._pixels import Pixels
from tbwriter._summary._words import describe, shown


def draw(tag: str, figures: Any, *, close: bool) -> Pixels:
    """Return one figure, or several of one size, as pixels of shape [n, height, width, 3].

    This runs in the caller: no backend of matplotlib may draw in two threads at a time, and nothing keeps the loop
    from drawing its next figure meanwhile. The figure's own canvas, a window perhaps, stays in its place.

    Args:
        tag: for messages.
        figures: a `matplotlib.figure.Figure`, or a list of them.
        close: take the figures out of pyplot, which otherwise keeps them for ever.

    Raises:
        TypeError: no figure. ValueError: none at all, figures of different size, or one that matplotlib cannot draw.
        ImportError: no matplotlib.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError(f"tag {shown(tag)}: figures need matplotlib: pip install 'tbwriter[plots]'")
    several = list(figures) if isinstance(figures, (list, tuple)) else [figures]
    if not several:
        raise ValueError(f"tag {shown(tag)}: got an empty list, want at least one figure")
    for figure in several:
        if not hasattr(figure, "set_canvas") or isinstance(figure, type):
            raise TypeError(f"tag {shown(tag)}: got {describe(figure)}, want a matplotlib figure")
    try:
        drawn = [_draw(tag, figure) for figure in several]
    finally:  # whoever catches the error would keep one more figure at each step
        close_in_pyplot = imported("matplotlib.pyplot", "close")  # a figure made without it is not kept by it
        if close and close_in_pyplot is not None:
            for figure in several:
                close_in_pyplot(figure)
    sizes = sorted({image.shape[:2] for image in drawn})
    if len(sizes) > 1:
        raise ValueError(f"tag {shown(tag)}: figures under one tag must have one size in pixels, got {sizes}")
    return np.stack(drawn)


def _draw(tag: str, figure: Any) -> Pixels:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    own, dpi = figure.canvas, figure.dpi
    unscaled = getattr(figure, "_original_dpi", dpi)
    try:
        canvas: Any = FigureCanvasAgg(figure)  # puts itself in the place of the figure's own
        figure.dpi = unscaled  # a window on a screen of many pixels has raised it
        canvas.draw()
        return np.array(np.asarray(canvas.buffer_rgba())[..., :3])
    except Exception as exc:  # text that is no mathtext, more pixels than matplotlib draws, an artist of the user's
        raise ValueError(f"tag {shown(tag)}: got {describe(figure)}, which matplotlib cannot draw: {exc}") from exc
    finally:
        figure.dpi = dpi  # before the window is back, which would change its size
        figure.set_canvas(own)
        figure._original_dpi = unscaled  # the other canvas took the raised one for it
