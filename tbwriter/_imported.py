"""Look into modules that the program has imported, without importing any."""

from __future__ import annotations

import sys
from typing import Any


def imported(module: str, name: str) -> Any:
    """Return what `module` has under `name`; None where nobody has imported it, or a thread has only begun to.

    Whoever holds an object of a class has imported the class.
    """
    return getattr(sys.modules.get(module), name, None)
