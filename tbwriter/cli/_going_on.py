"""For commands that look again and again: storage may fail for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tbwriter.cli import _ends
from tbwriter.cli._common import in_words, say


class GoingOn:
    """For a command that goes on looking when storage fails: what it fails with is said once an outage."""

    def __init__(self) -> None:
        self._said = ""

    @contextmanager
    def look(self) -> Iterator[None]:
        """Say what storage fails with within the block."""
        try:
            yield
        except FileExistsError:
            raise  # waiting helps nothing
        except OSError as exc:
            if isinstance(exc, BrokenPipeError) and _ends.reader_has_gone():
                raise
            words = in_words(exc)
            if words != self._said:
                say(f"tbwriter: {words}; trying again")
            self._said = words
        else:
            self._said = ""
