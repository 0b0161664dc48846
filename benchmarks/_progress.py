"""Show on standard error what is being measured; with rich where it is installed.

Nothing is drawn while a sample is taken: rich's own refresh thread would be measured too, so it is off and every
`tick`, between two samples, draws once.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol


class Progress(Protocol):
    """What measuring code calls."""

    def begin(self, figure: str) -> None:
        """Say that `figure` is measured from here on."""

    def tick(self) -> None:
        """Say that one more sample was taken."""


class _Lines:
    def begin(self, figure: str) -> None:
        print(figure, file=sys.stderr, flush=True)

    def tick(self) -> None:
        pass


class _Rich:
    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self.bars = Bars(*columns, console=Console(stderr=True), auto_refresh=False)
        self._task = self.bars.add_task("", total=total)
        self._figure = ""
        self._begun = self._samples = 0

    def begin(self, figure: str) -> None:
        self._figure, self._samples = figure, 0
        self.bars.update(self._task, description=figure, completed=self._begun, refresh=True)
        self._begun += 1

    def tick(self) -> None:
        self._samples += 1
        self.bars.update(self._task, description=f"{self._figure}: {self._samples} samples", refresh=True)


class _Silent:
    def begin(self, figure: str) -> None:
        pass

    def tick(self) -> None:
        pass


def silent() -> Progress:
    """Return a progress that shows nothing."""
    return _Silent()


@contextlib.contextmanager
def showing(total: int) -> Iterator[Progress]:
    """Show the progress through `total` figures."""
    try:
        bars = _Rich(total) if sys.stderr.isatty() else None
    except ImportError:
        bars = None
    if bars is None:
        yield _Lines()
        return
    with bars.bars:
        yield bars
