"""What the store has of one sink's segments, and what it gets next.

The order is the contract with TensorBoard's readers, which go through a directory by name and never back: leftovers
of dead owners of the URL before anything of ours; no put of a segment before the last put of the one before it; and
a segment that has ended never changes.

Threads: the sink's thread appends and rolls, one uploader thread at a time is in `step`, any thread waits or asks.
`_cond` guards what both sides change and is held for memory only.

Over 300 lines: one state with two sides, which are only understood together.
"""

from __future__ import annotations

import contextlib
import errno
import math
import random
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tbwriter import _clock as time
from tbwriter._logger import get_logger
from tbwriter.sinks._credentials import without_user
from tbwriter.sinks._policy import Backoff, SegmentPolicy
from tbwriter.sinks._spool import Spool
from tbwriter.sinks._spool_dirs import Leftover, is_being_taken, leftovers
from tbwriter.sinks._store import Store, is_refusal
from tbwriter.sinks._thinning import ROOMY, Usage

_log = get_logger(__name__)

_FOREVER_SECS = 1e6
_REFUSED_SECS = 60.0
# Somebody waits: then a failed store is tried again this soon.
_URGENT_SECS = 1.0
# Somebody else ships what a dead owner left: looked at so often, and waited for so long.
_TAKEN_LOOK_SECS = 0.5
_TAKEN_SECS = 60.0


@dataclass
class _Segment:
    name: str
    number: int
    size: int
    acked: int = 0
    puts: int = 0
    sealing: bool = False  # its last put has begun: what comes now belongs into the next one
    ended: bool = False
    removed: bool = False  # from the spool


@dataclass(frozen=True)
class _Side:
    number: int
    name: str
    position: int  # how much was taken before
    size: int


@dataclass
class Counts:
    """What `SinkStatus` tells of an upload."""

    puts: int = 0
    uploaded: int = 0
    retries: int = 0
    last_error: str | None = None


class Shipping:
    """The upload of one sink."""

    def __init__(
        self,
        store: Store,
        url: str,
        spool: Spool,
        policy: SegmentPolicy,
        *,
        name: str,
        root: Path | None,
        usage: Usage,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        """Begin with the segment `name`, which `spool` holds; `root` is where leftovers are looked for."""
        self._store = store
        self._url = url
        self._spool = spool
        self._policy = policy
        self._usage = usage
        self._clock = clock
        self._rng = rng or random.Random()
        self._backoff = Backoff(self._rng)
        self._born = clock()
        self.counts = Counts()
        self.ended = threading.Event()
        """Set when nothing will be shipped any more, and the spool is given up."""

        # Of the uploader's thread:
        self._root = root
        self._adopted: list[Leftover] | None = None
        self._adopt_until = self._born + _TAKEN_SECS
        self._failed_at = -math.inf
        self._retry_at = -math.inf
        self._next_put_at = -math.inf  # of the tail: the store's least gap
        self._due = self._born + (policy.interval(0.0, self._rng) if policy.only_sealed else 0.0)

        # Guarded by _cond:
        self._cond = threading.Condition()
        self._segments = deque([_Segment(name, 0, spool.size)])
        self._sides: deque[_Side] = deque()
        self._side_number = 0
        self.taken = spool.size
        """Bytes that came in, over all segments."""
        self._acked = 0
        self._wanted = 0
        self._lost_at = math.inf  # from here on the store cannot have everything: the spool has lost some
        self._closing = False
        self._abandoned = False
        self._call: Future[Any] | None = None
        self.refusal: BaseException | None = None
        """Why the store does not take anything, where waiting does not help."""
        usage.add(spool.size)

    # -- the sink's thread

    def grown(self) -> bool:
        """Take note of an append; return whether the uploader must be woken for it."""
        with self._cond:
            tail = self._segments[-1]
            was_even = tail.acked == tail.size
            self._take(tail, self._spool.size - tail.size)
            return was_even

    def rolled(self, name: str, final: int) -> None:
        """Take note of a new segment; `final` is the size of the one that ended."""
        with self._cond:
            old = self._segments[-1]
            self._take(old, final - old.size)
            old.ended = True
            new = _Segment(name, old.number + 1, 0)
            self._segments.append(new)
            self._take(new, self._spool.size)

    def _take(self, segment: _Segment, size: int) -> None:
        segment.size += size
        self.taken += size
        self._usage.add(size)

    def roll_due(self) -> bool:
        """Say whether the current segment takes no more."""
        tail = self._segments[-1]
        return tail.sealing or tail.size >= self._policy.max_bytes

    def put_side(self, name: str, data: bytes) -> None:
        """Ship another file, before anything that is appended from now on.

        Raises:
            OSError: the spool does not take it.
        """
        if self._usage.free(len(data)) < ROOMY:
            # As of arrays and images, whose records a spool leaves out from here on. A file that may come again waits.
            never = len(data) > (1 - ROOMY) * self._usage.limit
            raise OSError(
                errno.EFBIG if never else errno.ENOSPC,
                f"the spool has no room for its {len(data)} bytes: {self._usage.limit} are the most, of which curves "
                "have the last quarter",
                f"{without_user(self._url)}/{name}",
            )
        with self._cond:
            self._side_number += 1
            number = self._side_number
        self._spool.put_side(number, name, data)
        with self._cond:
            self._sides.append(_Side(number, name, self.taken, len(data)))
        self._usage.add(len(data))

    @property
    def segment(self) -> int:
        """The number of the current segment."""
        return self._segments[-1].number if self._segments else 0

    # -- any thread

    @property
    def shipped(self) -> int:
        """Up to which byte, counted over all segments, the store has everything that came in."""
        with self._cond:
            return self._shipped()

    def _shipped(self) -> int:
        waiting = self._sides[0].position - 1 if self._sides else self._acked
        return int(min(self._acked, waiting, self._lost_at))

    def want(self, mark: int) -> None:
        """Ask for everything up to `mark` bytes at once."""
        with self._cond:
            self._wanted = max(self._wanted, mark)

    def wait(self, mark: int, timeout: float) -> bool:
        """Wait until the store has everything up to `mark` bytes; return whether it has."""
        with self._cond:
            self._cond.wait_for(lambda: self._shipped() >= mark or self.ended.is_set(), timeout)
            return self._shipped() >= mark

    def wait_for_first_put(self, timeout: float) -> None:
        """Wait until the store has taken, or refused, something."""
        with self._cond:
            self._cond.wait_for(lambda: self._acked > 0 or self.refusal is not None, timeout)

    def sealed(self) -> None:
        """Take note of the end of the current segment, whose last bytes came with it; `rolled` may follow."""
        with self._cond:
            self._seal()

    def _seal(self) -> None:
        tail = self._segments[-1]
        self._take(tail, self._spool.size - tail.size)
        tail.ended = True

    def close(self) -> None:
        """Ship what is left and then end; the spool is sealed."""
        with self._cond:
            self._seal()
            self._closing = True

    def abandon(self, *, idle: bool) -> None:
        """End now; what is left stays in the spool.

        Args:
            idle: no uploader's thread is in `step` nor will be. Else a put that goes on is broken off where the driver
                can do that, and that thread's next step ends it all.
        """
        with self._cond:
            self._abandoned = True
            if self._call is not None:
                self._call.cancel()
        if idle and not self.ended.is_set():
            self._end()

    def left(self) -> int:
        """Return how many bytes the store does not have."""
        with self._cond:
            return self._left()

    def _left(self) -> int:
        return self.taken - self._acked + sum(side.size for side in self._sides)

    # -- the uploader's thread

    def step(self) -> float | None:
        """Put at most one object; return seconds until the next step, None at the end."""
        with self._cond:
            abandoned = self._abandoned
            urgent = self._closing or self._wanted > self._shipped()
        if abandoned:
            self._end()
            return None
        now = self._clock()
        retry_at = min(self._retry_at, self._failed_at + _URGENT_SECS) if urgent else self._retry_at
        if now < retry_at:
            return retry_at - now
        try:
            pause = self._adopt() if self._root else None
            return self._ship(now) if pause is None else pause
        except CancelledError:
            return 0.0
        except Exception as exc:
            return self._fail(exc)

    def _adopt(self) -> float | None:
        """Ship one file of a dead owner's; return the pause until the next step, None when there is no more."""
        assert self._root is not None
        if self._adopted is None:
            if is_being_taken(self._root, self._url) and self._clock() < self._adopt_until:
                return _TAKEN_LOOK_SECS
            self._adopted = self._leftovers(self._root)
        while self._adopted:
            leftover = self._adopted[0]
            files = leftover.files()
            if files:
                name, path = files[0]
                self._put(name, path.read_bytes())
                leftover.remove(path)
                return 0.0
            leftover.close()
            del self._adopted[0]
        self._root = None
        return None

    def _leftovers(self, root: Path) -> list[Leftover]:
        """Take what dead owners of the URL left for this store; another one may have a bucket of the same name."""
        url, ours = without_user(self._url), []
        for leftover in leftovers(root, self._url):
            if self._store.is_of(leftover.options):
                ours.append(leftover)
            else:
                leftover.close()
                _log.warning(
                    "%s: what an earlier process left in %s belongs to a store with another endpoint or account, and "
                    "stays there; `tbwriter ship` sends it",
                    url,
                    leftover.path,
                )
        if ours:
            _log.warning("%s: what an earlier process left in %s is sent first", url, root)
        return ours

    def _ship(self, now: float) -> float | None:
        with self._cond:
            side = self._sides[0] if self._sides else None
        if side is not None:
            self._ship_side(side)
            return 0.0
        done: list[_Segment] = []
        chosen = self._choose(now, done)
        for segment in done:
            self._spool.remove(segment.name)
        if isinstance(chosen, float):
            return chosen
        if chosen is None:
            self._end()
            return None
        segment, size = chosen
        if segment.acked < size:
            try:
                data = self._spool.read(segment.name, size)
            except OSError as exc:
                self._lose(segment, size, exc)
                return 0.0
            self._put(segment.name, data)
            segment.puts += 1
            self._next_put_at = now + self._store.min_gap_secs
        self._acknowledge(segment, size)
        now = self._clock()
        self._due = now + self._pause_after(segment, now)
        return 0.0

    def _pause_after(self, segment: _Segment, now: float) -> float:
        if segment.number == 0 and segment.puts == 1 and not self._policy.only_sealed:
            return self._policy.first_phase(self._rng)
        return self._policy.interval(now - self._born, self._rng)

    def _ship_side(self, side: _Side) -> None:
        try:
            data = self._spool.read_side(side.number, side.name)
        except OSError as exc:
            _log.error("%s/%s: lost from the spool: %s", without_user(self._url), side.name, exc)
            with self._cond:
                self._lost_at = min(self._lost_at, side.position - 1)
                self._sides.popleft()
            self._usage.add(-side.size)
            return
        self._put(side.name, data)
        self._spool.remove_side(side.number, side.name)
        self._usage.add(-side.size)
        with self._cond:
            self._sides.popleft()
            self._cond.notify_all()

    def _choose(self, now: float, done: list[_Segment]) -> tuple[_Segment, int] | float | None:
        """Return the segment to put and how much of it; or the pause until there is one; None at the end of all.

        What the store has for good comes into `done`.
        """
        with self._cond:
            head = self._segments[0]
            while head.ended and head.acked == head.size:
                if not head.removed:
                    head.removed = True
                    done.append(head)
                if len(self._segments) == 1:
                    return None if self._closing else _FOREVER_SECS
                self._segments.popleft()
                head = self._segments[0]
            if head.ended:
                return head, head.size
            if head.acked == head.size:
                return _FOREVER_SECS
            due = now if self._wanted > self._acked else self._due
            due = max(due, self._next_put_at)
            if now < due:
                return due - now
            if head.puts + 1 >= self._policy.puts(head.number):
                head.sealing = True
            return head, head.size

    def _put(self, name: str, data: bytes) -> None:
        sent = self._store.put(f"{self._url.rstrip('/')}/{name}", data, self._began)
        with self._cond:
            self._call = None
        self._store.worked(self._url)
        self._backoff.reset()
        self._retry_at = -math.inf
        self.counts.puts += 1
        self.counts.uploaded += sent

    def _began(self, call: Future[Any]) -> None:
        with self._cond:
            self._call = call
            if self._abandoned:
                call.cancel()

    def _acknowledge(self, segment: _Segment, size: int) -> None:
        with self._cond:
            self._usage.add(segment.acked - size)
            self._acked += size - segment.acked
            segment.acked = size
            self.refusal = None
            self._cond.notify_all()

    def _lose(self, segment: _Segment, size: int, exc: OSError) -> None:
        _log.error("%s/%s: %d bytes are lost from the spool: %s", without_user(self._url), segment.name, size, exc)
        with self._cond:
            self._lost_at = min(self._lost_at, self._acked)
            segment.sealing = True
        self._acknowledge(segment, size)

    def _fail(self, exc: Exception) -> float:
        now = self._clock()
        refused = is_refusal(exc)
        pause = self._rng.uniform(0.5, 1.0) * _REFUSED_SECS if refused else self._backoff.pause()
        self._failed_at, self._retry_at = now, now + pause
        self._store.failed(exc, self._url, self._spool.directory or "memory")
        self.counts.retries += 1
        self.counts.last_error = self._store.words(exc)
        with self._cond:
            self._call = None
            self.refusal = exc if refused else None
            self._cond.notify_all()
        return pause

    def _end(self) -> None:
        for leftover in self._adopted or ():
            leftover.close()
        with contextlib.suppress(OSError):
            self._spool.close()
        with self._cond:
            self._usage.add(-self._left())
            self.ended.set()
            self._cond.notify_all()
