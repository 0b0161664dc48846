"""The methods that add scalars."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from tbwriter import _summary
from tbwriter._entries import (
    SMALL_GROUP,
    Pending,
    Scalar,
    Scalars,
    Series,
    SubRun,
    pack_floats,
    size_of,
)
from tbwriter._methods._adding import Adding, Group
from tbwriter._wall_times import Given

_now = time.time
_new_tuple = tuple.__new__
_FEW_POINTS = 100
_NO_TEXT = ""  # the same object wherever it stands
# More groups of tags than this means that they never repeat.
_MAX_GROUPS = 4096


class ScalarMethods(Adding):
    """`add_scalar` and its kin."""

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool | str = False,
        double_precision: bool | str = False,
        display_name: str = "",
        summary_description: str = "",
    ) -> None:
        """Add a scalar.

        Behind `walltime` both orders are taken: torch's two switches, and tensorboardX's two texts.

        Args:
            tag: any non-empty text; stored byte for byte.
            scalar_value: any real number, or an array or tensor of size 1 on any device. Stored as the nearest
                float32, the one type that both TensorBoard readers draw; NaN and infinities are drawn too. A masked
                number is NaN.
            global_step: any integer-like value within int64; None is 0.
            walltime: seconds since 1970; None is now.
            new_style: accepted for torch's sake: the stored form is the one that both readers draw either way.
            double_precision: accepted for torch's sake: the default reader draws no float64.
            display_name: the title of the card, instead of the tag.
            summary_description: a text for the card, in Markdown.

        Raises:
            TypeError, ValueError: naming the tag, what was given and what is wanted.
            WriterClosedError: after `close`.
        """
        # The common case, as few steps as possible: a Python float and int under a known tag. CPython has faster
        # comparisons for two floats and for two ints of one digit (30 bits), but not in a chain of them; and faster
        # calls of functions without keyword-only parameters.
        if (
            type(scalar_value) is float
            and type(global_step) is int
            and scalar_value <= 16777216.0
            and scalar_value >= -16777216.0
            and (global_step <= 0x3FFFFFFF or global_step <= 0x7FFFFFFFFFFFFFFF)
            and global_step >= 0
            and walltime is None
            and type(tag) is str
            and tag in self._tb_plain
            and new_style is False
            and double_precision is False
            and display_name is _NO_TEXT
            and summary_description is _NO_TEXT
        ):
            queue = self._tb_queue
            entries = queue.entries
            if len(entries) < queue.threshold:
                entries.append((tag, scalar_value, global_step, _now()))
                return
        if isinstance(new_style, str):
            display_name = display_name or new_style
        if isinstance(double_precision, str):
            summary_description = summary_description or double_precision
        self._tb_add_scalar(tag, scalar_value, global_step, walltime, display_name, summary_description)

    def _tb_add_scalar(
        self, tag: Any, value: Any, step: Any, walltime: Any, display_name: Any, description: Any
    ) -> None:
        known = type(tag) is str and tag in self._tb_plain
        tag = tag if known else _summary.check_tag(tag)
        names = display_name, description
        if display_name is not _NO_TEXT or description is not _NO_TEXT:
            names = _as_names(display_name, description)
        number = _summary.as_scalar(value, tag, self._tb_told)
        step = self._tb_step_of(step, tag)
        wall_time = self._tb_wall_time(walltime, tag)
        if not known:
            self._tb_claim(tag, "scalar")
        if names != (_NO_TEXT, _NO_TEXT):
            self._tb_described.setdefault(tag, names)
            self._tb_plain.pop(tag, None)
            self._tb_groups.clear()
        if tag in self._tb_described:
            scalar = _summary.DescribedScalar(tag, number, *self._tb_described[tag])
            entry = Pending(scalar, step, wall_time)
            self._tb_put(entry, size_of(entry))
            return
        self._tb_plain[tag] = None
        self._tb_put_scalar((tag, number, step, wall_time))

    def add_metrics(self, metrics: Mapping[str, Any], step: Any = None, walltime: float | None = None) -> None:
        """Add several scalars of one step, as one Event: cheaper and smaller than as many `add_scalar`.

        Args:
            metrics: tag -> value, as in `add_scalar`; empty adds nothing.
            step: as `global_step` of `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            TypeError, ValueError, WriterClosedError: as `add_scalar`; then none of `metrics` is added.
        """
        # As in add_scalar: floats under tags that came together before.
        if (
            type(metrics) is dict
            and type(step) is int
            and -0x8000000000000000 <= step <= 0x7FFFFFFFFFFFFFFF
            and walltime is None
        ):
            group = self._tb_groups.get(tuple(metrics))
            values = metrics.values()
            if group is not None and [*map(type, values)] == group.types and sum(map(abs, values)) <= 16777216.0:
                queue = self._tb_queue
                entries = queue.entries
                if len(entries) < queue.threshold:
                    # Without the constructor of the class, which takes twice as long.
                    entries.append(_new_tuple(Scalars, (group.tags, group.pack(*values), step, _now())))
                    return
        self._tb_add_metrics(metrics, step, walltime)

    def _tb_add_metrics(self, metrics: Any, step: Any, walltime: Any) -> None:
        self._tb_check_open()
        metrics = self._tb_checked_metrics(metrics)
        first_tag = next(iter(metrics), "")
        step = self._tb_step_of(step, first_tag)
        wall_time = self._tb_wall_time(walltime, first_tag)
        self._tb_claim_all(metrics)
        if metrics:
            tags = tuple(metrics)
            if len(tags) <= SMALL_GROUP and self._tb_plain.keys() >= metrics.keys():
                if len(self._tb_groups) >= _MAX_GROUPS:
                    self._tb_groups.clear()
                tags = self._tb_groups.setdefault(tags, Group(tags)).tags
            entry = Scalars(tags, pack_floats(metrics.values()), step, wall_time)
            self._tb_put(entry, size_of(entry), len(tags))

    def _tb_checked_metrics(self, metrics: Mapping[str, Any], what: str = "metrics") -> dict[str, float]:
        if not isinstance(metrics, Mapping):
            raise TypeError(f"{what} must be a mapping of tag to value, got {_summary.describe(metrics)}")
        return {
            _summary.check_tag(tag): _summary.as_scalar(value, tag, self._tb_told) for tag, value in metrics.items()
        }

    def _tb_claim_all(self, tags: Iterable[str]) -> None:
        for tag in tags:
            self._tb_check_kind(tag, "scalar")
        for tag in tags:
            self._tb_claim(tag, "scalar")
            if tag not in self._tb_described:
                self._tb_plain[tag] = None

    def add_scalar_series(self, tag: str, values: Any, steps: Any, wall_times: Any = None) -> None:
        """Add many points of one scalar at once; encoding them costs a fifth of a microsecond each.

        They are stored in the order of their steps, equal ones in the order given: TensorBoard takes a step that
        falls for a restart and shows nothing of what came before it from there on.

        Args:
            tag: as in `add_scalar`.
            values: an array-like of shape (n,).
            steps: integers of shape (n,).
            wall_times: seconds since 1970 of shape (n,); None is now for all.

        Raises:
            TypeError, ValueError: shapes differ, steps are no integers within int64, or a wall time is not finite.
            WriterClosedError: after `close`.
        """
        self._tb_check_open()
        series = _summary.as_series(
            _summary.check_tag(tag), values, steps, wall_times, now=time.time(), told=self._tb_told
        )
        self._tb_claim(tag, "scalar")
        if len(series.values) < _FEW_POINTS:
            # Few points are cheaper as scalars than as matrices of bytes.
            for value, step, wall_time in zip(*(column.tolist() for column in series), strict=True):
                self._tb_put_scalar((tag, value, step, wall_time if wall_times is None else Given(wall_time)))
        else:
            entry = Series(tag, *series, at_once=wall_times is None)
            self._tb_put(entry, size_of(entry), len(series.values))

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add scalars that TensorBoard draws into one chart: each goes to a sub-run of its own.

        The layout is torch's: run `<main_tag>_<key>` below this one, tag `main_tag`. All sub-runs share this
        writer's thread and a bounded number of open files.

        Args:
            main_tag: the tag of all of them.
            tag_scalar_dict: key -> value, as in `add_scalar`. A "/" in a key makes a directory.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            TypeError, ValueError, WriterClosedError: as `add_scalar`; then none is added.
        """
        self._tb_check_open()
        main_tag = _summary.check_tag(main_tag, "main_tag")
        step = self._tb_step_of(global_step, main_tag)
        wall_time = self._tb_wall_time(walltime, main_tag)
        shown = _summary.shown(main_tag)
        if not isinstance(tag_scalar_dict, Mapping):
            got = _summary.describe(tag_scalar_dict)
            raise TypeError(f"tag {shown}: tag_scalar_dict must be a mapping of key to value, got {got}")
        items = []
        for key, value in tag_scalar_dict.items():
            key = _summary.check_tag(key, f"tag {shown}: a key of tag_scalar_dict")  # noqa: PLW2901 (a str Enum is its text from here on)
            name = f"{main_tag.replace('/', '_')}_{key}"
            if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name or "\\" in name:
                got = f"{_summary.shown(name)} of {_summary.shown(key)}"
                raise ValueError(f"tag {shown}: a key must make the name of a directory, got {got}")
            number = _summary.as_scalar(value, f"{main_tag}/{key}", self._tb_told)
            items.append(SubRun(name, (main_tag, number, step, wall_time)))
            self._tb_compared[name, main_tag] = key
        self._tb_put_all(items)

    def _tb_put_scalar(self, scalar: Scalar) -> None:
        queue = self._tb_queue
        if len(queue.entries) < queue.threshold:
            queue.entries.append(scalar)
        else:
            self._tb_put(scalar)


def _as_names(display_name: Any, description: Any) -> tuple[str, str]:
    given = {"display_name": display_name, "summary_description": description}
    first, second = (_summary.check_text(_NO_TEXT if text is None else text, name) for name, text in given.items())
    return first, second
