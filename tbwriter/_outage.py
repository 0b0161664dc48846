"""A time during which storage fails: when it is tried again, and what is said about it."""

from __future__ import annotations

import random

from tbwriter import _clock as time
from tbwriter._logger import get_logger

_log = get_logger(__name__)

_FIRST_PAUSE_SECS = 0.1
_MAX_PAUSE_SECS = 30.0
# Not the module's own, which a training may have seeded: an outage must not change what it draws.
_jitter = random.Random().uniform


class Outage:
    """Errors of storage, from the first one to the next success; one line in the log at each end."""

    def __init__(self) -> None:
        self.since: float | None = None
        """Its begin on the monotonic clock; None while storage works."""
        self.retry_at = 0.0
        """When the next attempt is due, on the monotonic clock."""
        self.errors = 0
        """Attempts that failed, over all outages."""
        self.last_error: str | None = None
        self._pause_secs = _FIRST_PAUSE_SECS
        self._stored = 0

    @property
    def reason(self) -> str | None:
        """The newest error of an outage that lasts; None while storage works."""
        return None if self.since is None else self.last_error

    def failed(self, exc: OSError, path: str, stored: int = 0) -> None:
        """Note a failed attempt; pauses double from 0.1 s to 30 s, with jitter, so that ranks do not retry in step.

        Args:
            exc: the error.
            path: of what, for the log.
            stored: all values stored by now; where these have become more, storage works now and then, and the next
                attempt is soon.
        """
        now = time.monotonic()
        if stored != self._stored:
            self._stored = stored
            self._pause_secs = _FIRST_PAUSE_SECS
        self.errors += 1
        self.last_error = str(exc)
        if self.since is None:
            self.since = now
            _log.warning("%s: storage fails, the data waits and is tried again: %s", path, exc)
        self.retry_at = now + self._pause_secs * _jitter(0.5, 1.0)
        self._pause_secs = min(self._pause_secs * 2, _MAX_PAUSE_SECS)

    def ended(self, path: str) -> None:
        """Note a success."""
        if self.since is not None:
            _log.warning("%s: storage works again after %.1f s", path, time.monotonic() - self.since)
        self.since = None
        self.retry_at = 0.0
        self._pause_secs = _FIRST_PAUSE_SECS
