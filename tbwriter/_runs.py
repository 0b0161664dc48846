"""What one writer stores: its own run, its embeddings, and the sub-runs that `add_scalars` makes, behind one face.

Over 300 lines: what all three hold, store and lose is one account.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tbwriter import _clock as time
from tbwriter import _summary, sinks
from tbwriter._entries import SUB_RUN_BYTES, Entry, Item, Points, SubRun
from tbwriter._event_file import EventFile, Place, Shipment
from tbwriter._logger import get_logger
from tbwriter._projector import Projector

# Sub-runs beyond this many give their file handle back after each flush.
_MAX_OPEN_FILES = 16
# A file in the way, a name that the file system does not take, a size that no file may have: waiting helps against
# none of these.
_NEVER = frozenset(
    {
        errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP, errno.EILSEQ,
        errno.EFBIG,
    }
)  # fmt: skip
# Values that wait for sub-runs which fail for now, all together: some 15 MB.
_MAX_HELD_BACK = 50_000
_TOO_MANY_OPEN = frozenset({errno.EMFILE, errno.ENFILE})

_LONGEST_ENCODING_SECS = 60.0

_log = get_logger(__name__)


class SubRunError(OSError):
    """A sub-run, or an embedding, could not be stored; the run itself was."""


class Runs:
    """Event files by directory; one thread at a time."""

    def __init__(self, place: Place, *, purge_step: int | None, clock: Callable[[], float], coalesce: bool) -> None:
        """Create the event file of the run itself.

        Raises:
            OSError: storage refuses.
        """
        self._place = place
        self._purge_step = purge_step
        self._clock = clock
        self._coalesce = coalesce
        self._main = EventFile(place, purge_step=purge_step, clock=clock)
        self._projector = Projector(place.url, place.storage_options)
        self._subs: dict[str, EventFile] = {}
        # Entries of a sub-run whose file could not be created yet.
        self._unopened: dict[str, list[Entry]] = {}
        self._impossible: set[str] = set()
        self._failing: set[str] = set()  # sub-runs whose last attempt failed
        self._held_back = 0  # values that wait for them
        self._told = False
        self.stored: Callable[[], None] = lambda: None
        """Called after each piece that was stored, by whoever drains."""

    @property
    def url(self) -> str:
        """The directory of the run itself."""
        return self._place.url

    @property
    def path(self) -> str:
        """Where the run's current event file is."""
        return self._main.path

    @property
    def waiting(self) -> int:
        """Values added and not stored."""
        unopened = sum(map(len, self._unopened.values()))
        return sum(file.waiting for file in self._files()) + unopened + self._projector.waiting

    @property
    def buffered(self) -> int:
        """Memory held by what waits, in bytes, but for sub-runs that fail."""
        subs = sum(file.buffered for name, file in self._subs.items() if name not in self._failing)
        return self._main.buffered + subs + self._projector.buffered

    @property
    def encoding(self) -> bool:
        """Whether a summary is being encoded now, by the worker: what waits for that waits for no storage.

        One that takes unbelievably long counts no more: it may wait for a lock that the waiting thread holds, of a
        handler of the log for example.
        """
        begun = self._main.encoding_since or self._projector.encoding_since
        return begun is not None and time.monotonic() - begun < _LONGEST_ENCODING_SECS

    @property
    def held(self) -> int:
        """As `buffered`, with what sub-runs that do not fail have not begun to encode."""
        unopened = sum(len(entries) for name, entries in self._unopened.items() if name not in self._failing)
        return self.buffered + SUB_RUN_BYTES * unopened

    @property
    def written(self) -> int:
        """Values stored."""
        return sum(file.written for file in self._files()) + self._projector.written

    @property
    def dropped(self) -> int:
        """Values that could not be encoded, that full spools did not take, or that were given up at close."""
        return sum(file.dropped for file in self._files()) + self._projector.dropped

    @property
    def thinned(self) -> int:
        """Values that full spools did not take."""
        return sum(file.thinned for file in self._files())

    @property
    def bytes(self) -> int:
        """Bytes stored."""
        return sum(file.bytes for file in self._files())

    def _files(self) -> list[EventFile]:
        return [self._main, *self._subs.values()]

    def add_scalars(self, entries: Iterable[Any]) -> None:
        """Take scalars of the run itself, in order; what `add` does, without a look at each."""
        self._main.add(entries, coalesce=self._coalesce)

    def add(self, entries: Iterable[Item]) -> None:
        """Take entries in order; no I/O."""
        main: list[Entry] = []
        for entry in entries:
            if isinstance(entry, SubRun):
                if self._has_room(entry.name):
                    self._unopened.setdefault(entry.name, []).append(entry.entry)
                else:
                    self._main.dropped += 1
            elif isinstance(entry, Points):
                self._projector.add(entry.embedding)
            else:
                main.append(entry)
        self._main.add(main, coalesce=self._coalesce)

    def _has_room(self, name: str) -> bool:
        """Count a value for a sub-run; say whether it may wait there."""
        if name not in self._failing:
            return True
        if self._held_back >= _MAX_HELD_BACK:
            if not self._told:
                self._told = True
                _log.warning(
                    "%s: %d values wait for sub-runs that cannot be written; newer ones are dropped and counted until "
                    "they can. Said once an outage",
                    sinks.without_user(self._place.url),
                    self._held_back,
                )
            return False
        self._held_back += 1
        return True

    def drain(self) -> None:
        """Store everything.

        Raises:
            SubRunError: of the run itself everything is stored, of a sub-run or an embedding not.
            OSError: storage failed; call again to go on.
        """
        self._main.drain(self.stored)
        first = self._drain_projector()
        failing = set()
        for name in list(self._unopened):
            try:
                self._open(name)
            except OSError as exc:  # noqa: PERF203 (each on its own is the point)
                failing.add(name)
                first = first or exc
        for name, file in list(self._subs.items()):
            try:
                if file.waiting:
                    file.drain()
            except OSError as exc:
                if exc.errno in _NEVER:
                    self._give_up(name, exc)
                else:
                    failing.add(name)
                    first = first or exc
            if len(self._subs) > _MAX_OPEN_FILES:
                file.release()
        self._failing = failing
        self._held_back = sum(
            len(self._unopened.get(name, ())) + (self._subs[name].waiting if name in self._subs else 0)
            for name in failing
        )
        self._told = self._told and bool(failing)
        if first is not None:
            raise SubRunError(first.errno, first.strerror or str(first), first.filename) from first

    def _drain_projector(self) -> OSError | None:
        """Store embeddings; return what hinders that for now."""
        while True:
            try:
                self._projector.drain(self.stored)
                return None
            except OSError as exc:  # noqa: PERF203 (each embedding on its own is the point)
                if exc.errno not in _NEVER:
                    return exc
                self._projector.drop_first(exc)

    def _open(self, name: str) -> None:
        """Hand the entries that wait for a sub-run's file to it."""
        file = self._sub(name)
        entries = self._unopened.pop(name)
        if file is None:
            self._main.dropped += len(entries)
        else:
            file.add(entries, coalesce=self._coalesce)

    def _give_up(self, name: str, exc: OSError) -> None:
        """Close a sub-run that can never be written; its values are dropped and counted."""
        self._impossible.add(name)
        file = self._subs.pop(name)
        file.close(0.0)
        self._main.dropped += file.dropped
        self._main.thinned += file.thinned
        self._main.written += file.written
        self._main.bytes += file.bytes
        self._tell_impossible("no more can be written to the sub-run", name, exc)

    def _tell_impossible(self, what: str, name: str, exc: OSError) -> None:
        where = sinks.without_user(self._place.url)
        why = exc.strerror or exc  # without its path, which has the name again
        _log.warning("%s: %s %s: %s; its values are dropped", where, what, _summary.shown(name), why)

    def _sub(self, name: str) -> EventFile | None:
        """Return the file of a sub-run, or None where its directory cannot ever be made.

        Raises:
            OSError: it cannot be made now.
        """
        file = self._subs.get(name)
        if file is None and name not in self._impossible:
            url = sinks.join(self._place.url, *name.split("/"))
            place = replace(self._place, url=url, probe=False, second=self._main.second)
            try:
                file = self._subs[name] = EventFile(place, purge_step=self._purge_step, clock=self._clock)
            except OSError as exc:
                if exc.errno in _TOO_MANY_OPEN:
                    for other in self._subs.values():
                        other.release()
                if exc.errno not in _NEVER:
                    raise
                self._impossible.add(name)
                self._tell_impossible("no directory can be made for the sub-run", name, exc)
                return None
            if len(self._subs) > _MAX_OPEN_FILES:
                file.release()
        return file

    def flush(self, level: sinks.Durability | None) -> bool:
        """Drain and bring everything to `level`, as far as the sinks can; False where one fell short.

        None is the level at which other processes see it. What ships on threads of its own tells `shipments`.

        Raises:
            OSError: as `drain`.
        """
        failure: SubRunError | None = None
        try:
            self.drain()
        except SubRunError as exc:
            failure = exc
        reached = [file.flush(level) for file in (self._files() if failure is None else [self._main])]
        if len(self._subs) > _MAX_OPEN_FILES:
            for file in self._subs.values():
                file.release()
        if failure is not None:
            raise failure
        return all(reached)

    def shipments(self, level: sinks.Durability | None) -> list[Shipment]:
        """Return what is on its way to stores after `flush`."""
        return [shipment for file in self._files() if (shipment := file.shipment(level))]

    def failed_uploads(self) -> int:
        """Return how many attempts to reach a store failed, which hold up nothing here."""
        return sum(file.failed_uploads for file in self._files())

    def last_error(self) -> str | None:
        """Return the newest storage error in words, or None."""
        return next((error for file in self._files() if (error := file.status().last_error)), None)

    def close(self, timeout: float) -> None:
        """Close all files, within `timeout` seconds in all; what is not stored by now is dropped and counted."""
        self._discard_unopened()
        deadline = time.monotonic() + timeout
        for file in self._files():
            file.ship()  # all at once, so that none waits for another
        for file in self._files():
            file.close(max(0.0, deadline - time.monotonic()))

    def discard(self) -> None:
        """Give up what is not stored, and count it."""
        self._discard_unopened()
        for file in self._files():
            file.discard()

    def _discard_unopened(self) -> None:
        self._main.dropped += sum(map(len, self._unopened.values()))
        self._unopened.clear()
        self._projector.discard()
