"""What every writer has: a worker to put entries into, or none yet, or none any more.

What is private in a writer begins with `_tb_`: users make subclasses, which have a `_queue` and a `_put` of their own.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from tbwriter import _live, sinks
from tbwriter._async import Worker
from tbwriter._entries import Item
from tbwriter._logger import get_logger
from tbwriter._methods._opening import Opening
from tbwriter._queue import EntryQueue
from tbwriter._settings import CLOSE_SECS, Settings, as_timeout
from tbwriter._stats import WriterStats
from tbwriter.errors import WriterClosedError

_log = get_logger(__name__)


class Storing:
    """A writer that can put entries, flush and close. A copy opens a file of its own when something is first put."""

    _tb_settings: Settings

    def _tb_begin_anew(self) -> None:
        """Begin as a writer that has added nothing; also in a copy that was pickled."""
        self._tb_closed = False
        self._tb_opening = self._tb_new_opening()
        self._tb_worker: Worker | None = None
        self._tb_queue = UNOPENED if self._tb_settings.write_to_disk else _NOWHERE

    def _tb_open_unless_run_again(self) -> None:
        """Open the first file; but in a process that runs the script again, when something is first put.

        A file of its own would be the newest, for which TensorBoard's Python reader leaves the one of the script.
        """
        runs_again = _live.runs_script_again()
        if runs_again:
            self._tb_settings = self._tb_settings.for_copy()
        self._tb_begin_anew()
        if self._tb_settings.write_to_disk and not runs_again:
            self._tb_begin(self._tb_open_worker())

    def _tb_new_opening(self) -> Opening:
        return Opening(self._tb_settings.max_entries, self._tb_settings.max_queue_bytes)

    def _tb_open_worker(self) -> Worker:
        return self._tb_settings.open(owner=self)

    def _tb_begin(self, worker: Worker) -> None:
        self._tb_worker = worker
        self._tb_queue = worker.queue

    def _tb_check_open(self) -> None:
        """Raise WriterClosedError after `close`, for what may turn out to hold nothing to put."""
        if self._tb_closed:
            raise WriterClosedError

    def _tb_put(self, item: Item, size: int = 0, values: int = 1) -> None:
        worker = self._tb_worker
        if worker is not None:
            try:
                worker.put(item, size, values)
            except WriterClosedError:
                if self._tb_closed or not self._tb_settings.can_open:
                    raise
                self._tb_leave(worker)
            else:
                return
        self._tb_put_unopened(item, size, values)

    def _tb_leave(self, worker: Worker) -> None:
        """Open a file anew with what is added next: `worker` was closed, and not by `close`.

        The exit of the process closes writers, and the collector those that it finds forgotten, before it calls the
        `__del__` of what belongs to them. Exit handlers and a `__del__` that come later may still have values to add.
        """
        worker.finish_closing(CLOSE_SECS)  # readers go from file to file and not back
        if self._tb_worker is worker:
            self._tb_settings = self._tb_settings.for_copy()
            self._tb_opening = self._tb_new_opening()
            self._tb_worker, self._tb_queue = None, UNOPENED

    def _tb_put_unopened(self, item: Item, size: int, values: int) -> None:
        if self._tb_worker is None:
            if self._tb_closed:
                raise WriterClosedError
            if not self._tb_settings.write_to_disk:
                return
            if _live.others_stand_still():  # one of them may be at it
                raise WriterClosedError
            self._tb_opening.put((item, size, values), self._tb_open_worker, self._tb_begin)
            if _live.exit_began():
                self._tb_opening.wait(_live.late_secs())
            if self._tb_closed and self._tb_worker is not None:
                self._tb_worker.start_closing(CLOSE_SECS)  # what closed it found nothing to close
            return
        self._tb_worker.put(item, size, values)

    def _tb_flush_at(self, level: sinks.Durability | None, timeout: float | None) -> bool:
        timeout = as_timeout(timeout)
        return self._tb_opening.is_over if self._tb_worker is None else self._tb_worker.flush(level, timeout)

    def _tb_close_within(self, secs: float | None) -> None:
        """Store what is left and refuse what comes; idempotent."""
        self._tb_closed = True
        if self._tb_worker is None:
            self._tb_queue = UNOPENED  # where everything is refused
            lost = self._tb_opening.give_up()
            if lost:
                where = sinks.without_user(self._tb_settings.url)
                _log.error("%s: closed with %d values not stored: no event file could be created", where, lost)
        else:
            self._tb_worker.close(CLOSE_SECS if secs is None else secs)

    def stats(self) -> WriterStats:
        """Return the writer's counters."""
        if self._tb_worker is None:
            return WriterStats(self._tb_opening.queued, 0, self._tb_opening.dropped, 0, 0, None, 0.0)
        return self._tb_worker.stats()

    def _tb_state(self, kind: type[Storing]) -> tuple[Settings, dict[str, Any]]:
        """Return the settings, and what a subclass of `kind` added: a copy opens a file when something is first added.

        That first call is then its construction, and raises SinkError where the constructor would.
        """
        settings = self._tb_settings.for_copy()
        bare = kind.__new__(kind)  # not the subclass, which may do more when attributes are set
        bare.__setstate__((settings, {}))
        return settings, {name: value for name, value in vars(self).items() if name not in vars(bare)}

    def __setstate__(self, state: tuple[Settings, dict[str, Any]]) -> None:
        self._tb_settings, added = state
        self._tb_begin_anew()
        vars(self).update(added)


def _unopened() -> EntryQueue:
    """Return the queue of a writer without a worker: everything goes through `_tb_put`."""
    queue = EntryQueue(
        max_entries=1, max_bytes=1, on_full="drop", block_secs=0.0, wake=lambda: None, gate=lambda: False
    )
    queue.watch()
    return queue


def _nowhere() -> EntryQueue:
    """Return the queue of a writer that stores nothing: it never fills, so that scalars take the short path."""
    queue = EntryQueue(
        max_entries=2, max_bytes=1 << 20, on_full="drop", block_secs=0.0, wake=lambda: None, gate=lambda: False
    )
    queue.entries = deque(maxlen=0)
    return queue


UNOPENED = _unopened()
"""Where a writer puts things before it has a worker, and after its end where it never had one."""
_NOWHERE = _nowhere()
