"""Tags that somebody waits for in vain: a rule on `loss` would never speak where the curve is `train/loss`."""

import fnmatch
from collections.abc import Collection, Iterable

from tbwriter._logger import get_logger

_log = get_logger(__name__)


class Unseen:
    """Who waits for which tag, and has not seen one yet. Each is told of once.

    Args:
        wanted: (who, tag), with `*`, `?` and `[]` in the tag as in rules.
    """

    def __init__(self, wanted: Iterable[tuple[str, str]]) -> None:
        self._wanted = list(dict.fromkeys(wanted))

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def see(self, tags: Collection[str]) -> None:
        """Look at tags of which values came, and say where one of them may have been meant."""
        waiting = []
        for who, wanted in self._wanted:
            if any(fnmatch.fnmatchcase(tag, wanted) for tag in tags):
                continue
            if meant := [tag for tag in tags if tag.endswith(f"/{wanted}")]:
                _log.warning("%s: no curve is called %r, but %s is there", who, wanted, " and ".join(sorted(meant)))
            else:
                waiting.append((who, wanted))
        self._wanted = waiting

    def tell(self) -> None:
        """Say, at a training's end, what never came."""
        for who, wanted in self._wanted:
            _log.warning("%s: no value of %r came in the whole training", who, wanted)
        self._wanted = []
