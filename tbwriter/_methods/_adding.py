"""What all `add_*` share: the state of a writer, and the way from checked arguments into the queue.

The methods stand in groups, one class each, that `SummaryWriter` brings together. None of them does I/O or encodes.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any

from tbwriter import _summary
from tbwriter._entries import Item, Pending, size_of
from tbwriter._methods._storing import Storing
from tbwriter._wall_times import Given
from tbwriter.errors import QueueFullError, SinkError


def wall_time_of(walltime: float | None, tag: str) -> float:
    """Return the clock's wall time, or the one that is given, checked."""
    return time.time() if walltime is None else Given(_summary.as_wall_time(walltime, tag))


class Group:
    """Tags that come together, and what `add_metrics` needs for their values."""

    __slots__ = ("pack", "tags", "types")

    def __init__(self, tags: tuple[str, ...]) -> None:
        self.tags = tags
        self.types = [float] * len(tags)
        self.pack = struct.Struct(f"<{len(tags)}f").pack


class NothingKnown(dict[str, None]):
    """Stays empty, so that every scalar takes the path that looks for defaults."""

    def __setitem__(self, tag: str, value: None) -> None:
        pass


class Adding(Storing):
    """A writer without methods to add anything."""

    def _tb_begin_anew(self) -> None:
        super()._tb_begin_anew()
        self._tb_kinds: dict[str, str] = {}  # stored tag -> kind
        self._tb_plain: dict[str, None] = {}  # tags of scalars that need no second look
        self._tb_groups: dict[tuple[str, ...], Group] = {}  # tags, all plain, that came together in add_metrics
        self._tb_described: dict[str, tuple[str, str]] = {}  # tag -> display name, description
        self._tb_compared: dict[tuple[str, str], str] = {}  # sub-run and main tag of add_scalars -> key
        self._tb_told: set[str] = set()  # tags about whose values something was said
        self._tb_default_step: int | None = None  # see use_metadata
        self._tb_default_walltime: float | None = None
        limit = self._tb_settings.max_tag_bytes
        self._tb_budget = None if limit is None else _summary.Budget(limit)

    def _tb_step_of(self, step: Any, tag: str) -> int:
        return _summary.as_step(self._tb_default_step if step is None else step, tag)

    def _tb_wall_time(self, walltime: float | None, tag: str) -> float:
        return wall_time_of(self._tb_default_walltime if walltime is None else walltime, tag)

    def _tb_claim(self, tag: str, kind: str) -> None:
        """Keep every tag to one kind: TensorBoard's readers hide the second, and one of them then fails.

        Raises:
            ValueError: `tag` is used for another kind.
        """
        self._tb_kinds.setdefault(tag, kind)  # atomic: two threads cannot both be the first
        self._tb_check_kind(tag, kind)

    def _tb_check_kind(self, tag: str, kind: str) -> None:
        first = self._tb_kinds.get(tag, kind)
        if first != kind:
            raise ValueError(
                f"tag {_summary.shown(tag)} holds {first}s already and cannot hold {kind}s too; use another tag"
            )

    def _tb_add(
        self, tag: str, summary: _summary.Summary, kind: str, step: Any, walltime: float | None, *, bounded: bool = True
    ) -> None:
        """Queue a summary; `bounded` ones are left out once their tag has used up `max_tag_bytes`."""
        self._tb_add_all(tag, [summary], kind, step, walltime, bounded=bounded)

    def _tb_add_all(
        self,
        tag: str,
        summaries: Sequence[_summary.Summary],
        kind: str,
        step: Any,
        walltime: float | None,
        *,
        bounded: bool = True,
    ) -> None:
        """Queue several summaries of one step, or none of them where a tag is used for another kind.

        `tag` is the user's, for messages; a stored one may be longer.
        """
        step = self._tb_step_of(step, tag)
        wall_time = self._tb_wall_time(walltime, tag)
        for summary in summaries:
            self._tb_check_kind(summary.tag, kind)
        for summary in summaries:
            self._tb_claim(summary.tag, kind)
        budget = self._tb_budget if bounded else None
        self._tb_put_all(
            Pending(summary if budget is None else _summary.Bounded(summary, budget), step, wall_time)
            for summary in summaries
        )

    def _tb_put_all(self, items: Iterable[Item]) -> None:
        """Queue what belongs together: all go in before a failure of strict, or a full queue, is raised."""
        errors = []
        for item in items:
            try:
                self._tb_put(item, size_of(item))
            except (SinkError, QueueFullError) as exc:  # noqa: PERF203 (the others go in all the same)
                errors.append(exc)
        if errors:
            raise errors[0]
