"""Fonts for pictures: matplotlib's own lacks Chinese, Japanese and Korean."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from tbwriter.cli import _common

_MISSING = r"Glyph .* missing from (current )?font|.*Matplotlib currently does not support"
_MOST_FONTS = 500
_told: list[str] = []


def for_texts(texts: Iterable[str]) -> list[str]:
    """Return families of fonts in which these texts can be drawn: matplotlib's own, and one for what that lacks.

    Says so once where no installed font has it.
    """
    import matplotlib as mpl
    from matplotlib import font_manager

    own = list(mpl.rcParams["font.family"])
    wanted = {ord(character) for text in texts for character in text if not character.isascii()}
    if not wanted:
        return own
    wanted -= _characters(font_manager.findfont(font_manager.FontProperties(family=own)))
    best, has = "", 0
    # The "last resort" that matplotlib brings has a box for every character.
    fonts = [font for font in font_manager.fontManager.ttflist if "Last Resort" not in font.name]
    for entry in islice(sorted(fonts, key=_rank), _MOST_FONTS) if wanted else ():
        found = len(wanted & _characters(entry.fname))
        if found > has:
            best, has = entry.name, found
        if found == len(wanted):
            break
    if has < len(wanted) and not _told:
        _told.append(best)
        _common.say(
            "tbwriter: no installed font has all characters of these names, and boxes are drawn for some; install one, "
            "such as fonts-noto-cjk"
        )
    return [*own, best] if best else own


def _rank(entry: object) -> tuple[bool, str]:
    name = str(getattr(entry, "name", ""))
    return not any(word in name for word in ("CJK", "Hei", "Song", "Ming", "Gothic", "Unicode")), name


def _characters(path: str) -> set[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return set(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return set()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep matplotlib from a warning for each missing glyph, each time it is drawn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_MISSING)
        yield
