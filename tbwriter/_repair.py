"""Mend event files: leave damage out, keep every good record, and store values so that both readers show them."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tbwriter import _preflight, _rewrite, _scan, _summary, _tree, sinks
from tbwriter._logger import get_logger
from tbwriter._scanned import RunScan, TagScan
from tbwriter._summary import RawEvent, RawValue
from tbwriter._tree import Directory, Found

_log = get_logger(__name__)

SCALARS_OF_BOTH = ("simple_value", "DT_FLOAT 0")
"""The forms in which both of TensorBoard's readers show a scalar; the data server shows no other."""


@dataclass(frozen=True)
class Repaired:
    """What became of one event file.

    Attributes:
        path: the file.
        output: where its new form is.
        records: how many records that holds; all good ones of the file that are Events.
        lost_bytes: bytes of the file that belong to no good record.
        no_events: good records that hold no Event, and are left out.
        changes: what was changed in records, and how often, in words; empty when they are byte for byte the same.
    """

    path: str
    output: str
    records: int
    lost_bytes: int
    no_events: int
    changes: Mapping[str, int]

    @property
    def changed(self) -> bool:
        """Whether the new form differs from the file."""
        return bool(self.lost_bytes or self.no_events or self.changes)


def repair(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    in_place: bool = False,
    clock: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Repaired, ...]:
    """Write event files anew, so that both of TensorBoard's readers show all that is in them.

    Torn tails and damaged records are left out; every good record is kept, in its order. A scalar in a form that the
    data server hides becomes float32; a tag whose first value says no plugin gets the one that a later value says, or
    that its numbers show; values of another kind than the tag's first get the tag `<tag> (<kind>)`; a wall time that is
    no finite number becomes that of the event before.

    Args:
        path: an event file, or a directory with runs at any depth, as path or URL.
        output: a directory for the new files, which lie below it as the old below `path`.
        in_place: replace the files instead, each when its new form is stored; not while a training writes them.
        clock: also never let the wall time of a run go back.
        storage_options: for the file system behind a URL.

    Returns:
        one report for each file that holds an event; the others are left alone, and logged.

    Raises:
        ValueError: neither `output` nor `in_place`, or both; `output` lies in `path`; what is there is no event file.
        FileNotFoundError: no event file there.
        FileExistsError: a file of this name is in `output`. Then nothing was written.
        OSError: a file cannot be read; storage refuses.
    """
    if (output is None) == (not in_place):
        raise ValueError("repair wants either output=, a directory for the new files, or in_place=True")
    place = sinks.normalise(path)
    into = None if output is None else sinks.normalise(output)
    runs = [directory for directory in _tree.walk(place, storage_options) if directory.event_files]
    if not runs:
        raise FileNotFoundError(f"no event file at or below {place!r}")
    if into is not None:
        _preflight.refuse_within([place], into)
    runs, left = _preflight.with_events(runs, storage_options)
    for alone in left:
        _log.warning("%s %s", alone.found.path, alone.why)
    if into is not None:
        _preflight.refuse_existing(_rewrite.targets(runs, into), storage_options)
    return tuple(found for run in runs for found in repair_run(run, into, clock, storage_options))


def repair_run(
    run: Directory,
    output: str | None,
    clock: bool,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] = lambda _bytes: None,
) -> list[Repaired]:
    """Write the event files of one run anew, as `repair` says.

    Args:
        run: the directory.
        output: where the new files go, or None to replace the old.
        clock: never let the wall time go back.
        storage_options: for the file system behind a URL.
        progress: called with the bytes of each file that is done.
    """
    scan = _scan.scan(run.path, run.run, run.event_files, storage_options)
    for file in scan.files:
        if file.error is not None:
            raise OSError(f"{file.found.path} cannot be read: {file.error}")
    mender = _Mender(scan, clock, storage_options)
    done = []
    files = iter(scan.files)
    for found, new in _rewrite.rewrite(run, output, mender.change, storage_options, progress):
        file = next(files)
        changes = {what: count for what, count in mender.changes.pop(found.path, Counter()).items() if count}
        where = _rewrite.target(run, found, output)
        done.append(Repaired(found.path, where, new.records, file.lost_bytes, file.no_events, changes))
    return done


class _Mender:
    """Changes what must be changed in the records of one run, and counts it."""

    def __init__(self, scan: RunScan, clock: bool, storage_options: Mapping[str, Any] | None) -> None:
        self.changes: dict[str, Counter[str]] = defaultdict(Counter)
        self._scan = scan
        self._clock = clock
        self._wall_time = next((file.first_time for file in scan.files if file.first_time is not None), 0.0)
        self._tags = {tag: found for tag, found in scan.tags.items() if _needs_mending(found)}
        self._seen: set[str] = set()
        self._kinds: dict[str, dict[str, str]] = defaultdict(
            dict
        )  # tag -> form -> plugin, of the kinds behind the first
        self._sources = self._metadata_of_later_values(storage_options)
        # With nothing to change inside of records, they need not even be parsed.
        self._bytes_only = not (self._tags or clock or any(file.bad_times or file.no_events for file in scan.files))

    def _metadata_of_later_values(self, storage_options: Mapping[str, Any] | None) -> dict[str, RawValue]:
        wanted = {tag for tag, found in self._tags.items() if found.late_metadata}
        sources: dict[str, RawValue] = {}
        for file in self._scan.files:
            if len(sources) == len(wanted):
                break
            for _, event in _rewrite.events(file.found, storage_options):
                for value in event.values:
                    if value.tag in wanted and value.tag not in sources and value.metadata() is not None:
                        sources[value.tag] = value
                if len(sources) == len(wanted):
                    break
        return sources

    def change(self, found: Found, data: bytes) -> bytes | None:
        """Return the data of a record with what had to be changed; None for what is no Event."""
        if self._bytes_only:
            return data
        try:
            event = RawEvent(data)
        except ValueError:
            return None
        count = self.changes[found.path]
        before = sum(count.values())
        self._mend_time(event, count)
        for value in event.values:
            scan = self._tags.get(value.tag)
            if scan is not None:
                self._mend_value(value, scan, count)
        return event.serialised() if sum(count.values()) > before else data

    def _mend_time(self, event: RawEvent, count: Counter[str]) -> None:
        if not math.isfinite(event.wall_time):
            event.set_wall_time(self._wall_time)
            count["wall time made finite"] += 1
        elif self._clock and event.wall_time < self._wall_time and event.what == "summary":
            event.set_wall_time(self._wall_time)
            count["wall time kept from going back"] += 1
        elif event.what == "summary":
            self._wall_time = event.wall_time

    def _mend_value(self, value: RawValue, scan: TagScan, count: Counter[str]) -> None:
        tag = value.tag
        first = tag not in self._seen
        self._seen.add(tag)
        if scan.other_plugins and not first:
            other = self._other_kind(value, scan)
            if other:
                value.rename(f"{tag} ({other})")
                count[f"values of {tag!r} moved to '{tag} ({other})'"] += 1
                return
        if first and scan.late_metadata:
            value.take_metadata(self._sources[tag])
            count["metadata given to a tag's first value"] += 1
        elif first and not scan.plugin:
            value.set_plugin("scalars")
            count["plugin given to a tag's first value"] += 1
        elif first and scan.metadata is not None and scan.metadata.version and scan.plugin == "scalars":
            value.set_plugin("scalars")
            count["version of the plugin's data set to 0"] += 1
        if _is_scalars(scan) and value.form not in SCALARS_OF_BOTH and value.make_plain_scalar():
            count["scalars stored as float32"] += 1

    def _other_kind(self, value: RawValue, scan: TagScan) -> str:
        """Return the kind of a value of a tag whose first value is of another; "" when it is of the same."""
        metadata = value.metadata()
        plugin = (metadata.plugin if metadata else "") or _summary.PLUGIN_OF_FORM.get(value.form, "")
        known = self._kinds[value.tag]
        if plugin and plugin != scan.plugin:
            known[value.form] = plugin
            return plugin
        # Without a word of its own, it is of the kind that this form had before.
        return "" if plugin else known.get(value.form, "")


def _is_scalars(scan: TagScan) -> bool:
    return scan.plugin == "scalars" or (not scan.plugin and (scan.late_metadata > 0 or numbers_alone(scan)))


def numbers_alone(scan: TagScan) -> bool:
    """Say whether all values are tensors of rank 0 that hold a number."""
    return all(form.endswith(" 0") and not form.startswith("DT_STRING") for form in scan.forms)


def _needs_mending(scan: TagScan) -> bool:
    if scan.late_metadata or scan.other_plugins:
        return True
    if not scan.plugin:
        return numbers_alone(scan)
    if scan.plugin != "scalars":
        return False
    version = scan.metadata.version if scan.metadata is not None else 0
    return bool(version) or any(form not in SCALARS_OF_BOTH for form in scan.forms)
