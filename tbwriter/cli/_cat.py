"""`tbwriter cat`: values as lines of JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tbwriter import _record, _summary, sinks
from tbwriter._repair import SCALARS_OF_BOTH
from tbwriter._summary import Alike, Value
from tbwriter._tree import Found
from tbwriter.cli import _common, _writing
from tbwriter.cli._damage import Damage, FileDamage
from tbwriter.cli._finding import being_written
from tbwriter.cli._visible import in_json
from tbwriter.errors import CorruptRecordError, TruncatedRecordError

_LINES = 1000


@_common.command
def cat(
    path: _common.Path,
    tag: _common.TagPattern = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind: scalars, histograms, images, text, ...")] = None,
    from_step: Annotated[int | None, typer.Option(help="Only from this step on.")] = None,
    to_step: Annotated[int | None, typer.Option(help="Only up to this step.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Images and sounds as base64, huge arrays as lists, instead of their size.")
    ] = False,
    storage_options: _common.StorageOptions = None,
    as_json: Annotated[bool, typer.Option("--json", help="Lines of JSON; there is no other form.")] = True,
) -> None:
    """Print the values as lines of JSON: run, step, wall_time, tag, kind, value.

    In the order of readers: runs, files by name, records as they stand. NaN and infinities are strings. Damage is
    stepped over, and told on stderr. Exit codes: 0; 1 a file is damaged; 2 wrong usage, or no such tag or kind; 3
    nothing there or not readable.
    """
    del as_json
    options = _common.options_of(storage_options)
    pattern = _writing.pattern(tag, "--tag")
    lines = _Lines(pattern, kind, from_step, to_step, full)
    damage = Damage()
    unreadable: list[OSError] = []
    for run in _common.runs_below(path, options, unreadable):
        lines.begin(run.run)
        for found in run.event_files:
            _print(found, lines, damage, unreadable, options)
        lines.flush()
    if (tag is not None or kind is not None) and not lines.matched:
        kinds = f"; there are: {', '.join(sorted(lines.kinds))}" if kind is not None and lines.kinds else ""
        of_kind = "" if kind is None else f" with values of kind {kind!r}"
        raise ValueError(f"no tag in which {tag or ''!r} is found{of_kind} in {path}{kinds}")
    if unreadable:
        damage.say()
        raise typer.Exit(_common.Exit.UNREADABLE)
    damage.end()


def _print(
    found: Found, lines: _Lines, damage: Damage, unreadable: list[OSError], options: Mapping[str, Any] | None
) -> None:
    """Print the values of one file; take in what is wrong with it, or why it cannot be read."""
    try:
        damage.add(_file(found, lines, options))
    except BrokenPipeError:  # of the output
        raise
    except OSError as exc:
        _common.say(f"tbwriter: {_common.in_words(exc)}")
        unreadable.append(exc)


def _file(found: Found, lines: _Lines, options: Mapping[str, Any] | None) -> list[FileDamage]:
    """Print the values of one file; return what is wrong with it."""
    places = good_bytes = no_events = 0
    live = False
    with sinks.open_file(found.path, options) as file:
        for item in _record.iterate(file, found.path):
            if isinstance(item, CorruptRecordError):
                if isinstance(item, TruncatedRecordError) and being_written(found):
                    live = True
                else:
                    places += 1
                continue
            good_bytes += _record.HEADER_SIZE + len(item.data) + _record.FOOTER_SIZE
            try:
                lines.event(item.data)
            except ValueError:
                no_events += 1
        lost = 0 if live else file.seek(0, 2) - good_bytes
    if not places and not no_events:
        return []
    return [FileDamage(found, places, lost, no_events=no_events)]


class _Lines:
    """Prints values, some thousand at a time; those of scalars that are alike without a look at each message."""

    def __init__(
        self, pattern: re.Pattern[str] | None, kind: str | None, first: int | None, last: int | None, full: bool
    ) -> None:
        self._pattern, self._kind, self._first, self._last, self._full = pattern, kind, first, last, full
        self._waiting: list[str] = []
        self.matched = False
        self.kinds: set[str] = set()
        self.begin("")

    def begin(self, run: str) -> None:
        """Begin with the values of a run."""
        self._run = run
        self._head = f'{{"run": {_quoted(run)}, "step": '
        self._outliner = _summary.Outliner()
        self._plugins: dict[str, str] = {}
        # What stands between wall time and number, of each value of Events of one form, "" for one that is not wanted;
        # None where each must be decoded.
        self._between: dict[Alike, list[str] | None] = {}

    def event(self, data: bytes) -> None:
        """Print the values of an event.

        Raises:
            ValueError: `data` is none.
        """
        known = self._outliner.known(data)
        if known is not None:
            wall_time, step, numbers, alike = known
            between = self._between[alike] if alike in self._between else self._learn(alike)
            if between is not None:
                if self._is_wanted(step):
                    head = f'{self._head}{step}, "wall_time": {_number(wall_time)}'
                    for words, number in zip(between, numbers, strict=True):
                        if words:
                            self._waiting.append(f"{head}{words}{_number(number)}}}")
                    if len(self._waiting) >= _LINES:
                        self.flush()
                return
        event = _summary.decode(data, self._plugins)
        if known is None and event.values:
            self._outliner.outline(data)
        for value in event.values:
            if self._is_chosen(value.tag, value.plugin) and self._is_wanted(event.step):
                self._value(event.step, event.wall_time, value)

    def _learn(self, alike: Alike) -> list[str] | None:
        plain = all(
            row.form in SCALARS_OF_BOTH and self._plugins.get(row.tag, "scalars") == "scalars" for row in alike.rows
        )
        between = None
        if plain:
            between = [
                f', "tag": {_quoted(row.tag)}, "kind": "scalars", "value": '
                if self._is_chosen(row.tag, "scalars")
                else ""
                for row in alike.rows
            ]
        self._between[alike] = between
        return between

    def _is_chosen(self, tag: str, kind: str) -> bool:
        self.kinds.add(kind)
        chosen = (self._pattern is None or self._pattern.search(tag) is not None) and self._kind in {None, kind}
        self.matched = self.matched or chosen
        return chosen

    def _is_wanted(self, step: int) -> bool:
        return (self._first is None or step >= self._first) and (self._last is None or step <= self._last)

    def _value(self, step: int, wall_time: float, value: Value) -> None:
        line = {
            "run": self._run,
            "step": step,
            "wall_time": wall_time,
            "tag": value.tag,
            "kind": value.plugin,
            "value": value.data,
        }
        self.flush()
        _common.print_line(line, full=self._full)

    def flush(self) -> None:
        """Print what waits."""
        if self._waiting:
            sys.stdout.write("\n".join(self._waiting) + "\n")
            self._waiting.clear()


def _quoted(text: str) -> str:
    return in_json(json.dumps(text, ensure_ascii=False))


def _number(number: float) -> str:
    return repr(number) if number - number == 0.0 else json.dumps(_common.to_json(number))
