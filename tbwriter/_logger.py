"""Loggers that never raise: what a handler of the user's does must cost neither data nor the thread that logs."""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _Adapter = logging.LoggerAdapter[logging.Logger]
else:
    _Adapter = logging.LoggerAdapter  # takes no parameter in Python 3.10


class _Logger(_Adapter):
    """A logger whose failing handlers and filters are told on stderr, as `logging` tells a failing format."""

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        try:
            super().log(level, msg, *args, stacklevel=2, **kwargs)
        except Exception:  # whatever a foreign handler raises
            if logging.raiseExceptions:
                with contextlib.suppress(Exception):  # no stderr, or a closed one
                    traceback.print_exc(file=sys.stderr)


def get_logger(name: str) -> _Logger:
    """Return the logger of a module."""
    return _Logger(logging.getLogger(name), {})
