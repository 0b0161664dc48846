"""`tbwriter merge`: several files, sessions or ranks of a run become one clean file.

Where steps of a tag go back, the later session wins: a point is void when a later one of its tag has an earlier step
(as the data server takes it), or when a session's mark says so (as the Python reader takes it).

Over 300 lines: two passes over the files, one that finds what is void and one that copies the rest, which are only
understood together.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import numpy as np
import typer

from tbwriter import _preflight, _rewrite, _scan, sinks
from tbwriter._naming import MARKER_STEP
from tbwriter._scanned import Bulk, RunScan
from tbwriter._summary import Alike, Outliner
from tbwriter._tree import Directory, Found
from tbwriter.cli import _common, _order, _writing
from tbwriter.cli._damage import Damage
from tbwriter.cli._finding import MERGED

_MOST_VOIDS = 100_000
_GRAPHS = {"graph_def", "meta_graph_def", "tagged_run_metadata"}


class Voids:
    """Which points of one tag later ones made void, as a staircase: (place in the run, step), both growing.

    Before a place, points at or after its step are void.
    """

    def __init__(self) -> None:
        self._places: list[int] = []
        self._steps: list[int] = []

    def add(self, place: int, step: int) -> None:
        """Say that before `place` all at or after `step` is void; places come in order."""
        while self._steps and self._steps[-1] >= step:
            self._steps.pop()
            self._places.pop()
        if len(self._steps) >= _MOST_VOIDS:
            raise ValueError(f"steps go back more than {_MOST_VOIDS} times in a tag: these are no sessions of one run")
        self._steps.append(step)
        self._places.append(place)

    def stairs(self) -> list[tuple[int, int]]:
        """Return the (place, step) that count."""
        return list(zip(self._places, self._steps, strict=True))

    def holds(self, place: int, step: int) -> bool:
        """Say whether the point at `place` with `step` is void."""
        later = bisect_right(self._places, place)
        return later < len(self._steps) and self._steps[later] <= step


@_common.command
def merge(
    paths: Annotated[
        list[str], typer.Argument(help="Runs or event files of one run: paths or URLs.", metavar="PATH...")
    ],
    output: _writing.Output = None,
    prefix: Annotated[
        bool, typer.Option("--prefix", help="Put the name of its directory before each tag: for ranks of one run.")
    ] = False,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", metavar="OLD=NEW", help="Rename a tag; may be repeated.")
    ] = None,
    as_json: _common.Json = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Make one clean file of several files, sessions or ranks of a run.

    Files come in the order of their times, whatever their names. Where steps go back, the later session wins, so that
    both readers show each step once. Damage is left out. Runs below a PATH stay apart: each becomes a file of its own.
    Exit codes: 0; 1 a file is damaged; 2 wrong usage, no event file, or writers that cannot be put in order; 3 nothing
    there, not readable or not writable.
    """
    options = _common.options_of(storage_options)
    names = dict(_renaming(text) for text in rename or [])
    if output is None:
        raise typer.BadParameter("say where the new files go: --output DIR")
    into = _common.place(output, "--output")
    places = [_common.place(path) for path in paths]
    found = [(place, run) for place in places for run in _common.runs_below(place, options)]
    _preflight.refuse_within(places, into)
    kept, damage = _writing.with_events([run for _, run in found], options)
    whole = {run.path: run for run in kept}
    groups: dict[str, list[tuple[str, Directory]]] = {}
    for place, run in found:
        if run.path in whole:
            label = place.rsplit("/", 1)[-1]
            # Several runs below one path stay apart; what is given by itself belongs together.
            groups.setdefault("." if prefix or len(paths) > 1 else run.run, []).append(
                (label if run.run == "." else run.run, whole[run.path])
            )
    begins = {file.path: _first_time(file, options) for run in kept for file in run.event_files}
    targets = {}
    for name, group in groups.items():
        where = into if name == "." else sinks.join(into, *name.split("/"))
        targets[name] = sinks.join(where, _name_of(begins[file.path] for _, run in group for file in run.event_files))
    _preflight.refuse_existing(list(targets.values()), options)
    # What cannot be merged is refused before the first file is written.
    merges = [_Merge(group, begins, targets[name], prefix, names, options, damage) for name, group in groups.items()]
    with _common.progress("merging", _common.size_of(kept)) as advance:
        done = [one.write(advance) for one in merges]
    for old in sorted(set(names) - {tag for file in done for tag in file.pop("renamed")}):
        _common.say(f"tbwriter: --rename {old}=...: no such tag in what was merged")
    _writing.tell(done, as_json, damage)


def _renaming(text: str) -> tuple[str, str]:
    old, found, new = text.partition("=")
    if not found or not old or not new:
        raise typer.BadParameter(f"--rename wants OLD=NEW, got {text!r}")
    return old, new


class _Merge:
    """What becomes one file: which files, in which order, and what of them is void."""

    def __init__(
        self,
        group: list[tuple[str, Directory]],
        begins: Mapping[str, float],
        target: str,
        prefix: bool,
        names: Mapping[str, str],
        options: Mapping[str, Any] | None,
        damage: Damage,
    ) -> None:
        """Go through all files; add what is wrong with them to `damage`.

        Raises:
            ValueError: they cannot be put in order, or tags would be mixed.
        """
        self._path = ", ".join(run.path for _, run in group)
        self._target, self._names, self._options, self._prefix = target, names, options, prefix
        self._label_of = {found.path: label for label, run in group for found in run.event_files}
        files = [found for _, run in group for found in run.event_files]
        files.sort(key=lambda found: (begins[found.path], found.name))
        self._begin = _begin(begins[found.path] for found in files)
        labels = dict.fromkeys(self._label_of.values())
        parts = [[found for found in files if self._label_of[found.path] == label] for label in labels]
        self._parts = parts if prefix else [files]
        self._voids: dict[str, Voids] = {}
        scans = []
        offset = 0  # of the values of a scan among all
        for part in self._parts:
            tag_of = functools.partial(self._tag_of, part[0])
            scan = _scan.scan(target, ".", tuple(part), options, observe=_observer(self._voids, tag_of, offset))
            damage.see(scan)
            scans.append(scan)
            _add_marks(self._voids, scan, [tag_of(tag) for tag in scan.tags], offset)
            offset += scan.values
        if not prefix:
            _refuse_mixed(scans[0])
        for part, scan in zip(self._parts, scans, strict=True):
            _refuse_two_of_one_name(scan, functools.partial(self._tag_of, part[0]), names)
        self._renamed = [tag for scan in scans for tag in scan.tags if tag in names]

    def _tag_of(self, found: Found, tag: str) -> str:
        """Return what a tag of a file is called in the new one."""
        return self._names.get(tag, f"{self._label_of[found.path]}/{tag}" if self._prefix else tag)

    def write(self, advance: Callable[[int], None]) -> dict[str, Any]:
        """Write the file; return what is told of it."""
        with _rewrite.NewFile(self._target, self._options) as new:
            for data in _rewrite.header(self._begin):
                new.write(data)
            copier = _Copier(new, self._voids)
            for found in [found for part in self._parts for found in part]:
                copier.copy(found, functools.partial(self._tag_of, found), self._options)
                advance(found.size)
        return {
            "path": self._path,
            "output": self._target,
            "records": new.records,
            "files": sum(map(len, self._parts)),
            "renamed": self._renamed,
            "values_of_earlier_sessions_dropped": copier.dropped,
        }


class _Copier:
    """Copies the values of files that are not void into a new one, under their new tags."""

    def __init__(self, new: _rewrite.NewFile, voids: Mapping[str, Voids]) -> None:
        self.dropped = 0
        self._new = new
        self._voids = voids
        self._metadata = _rewrite.Metadata()
        self._place = 0  # of the next value among all
        self._outliner = Outliner()
        # Of forms whose Events can be stored as they are: how many values, and what may void each, None for nothing.
        self._plain: dict[Alike, tuple[int, list[Voids | None] | None]] = {}

    def copy(self, found: Found, tag_of: Callable[[str], str], options: Mapping[str, Any] | None) -> None:
        """Copy one file, whose tags become what `tag_of` says."""
        self._plain.clear()
        known_of, plain_of = self._outliner.known, self._plain.get
        for batch in _rewrite.batches(found, options):
            kept: list[bytes] = []
            for data in batch:
                known = known_of(data)
                plain = None if known is None else plain_of(known[3])
                if known is None or plain is None:
                    self._any(data, tag_of, kept)
                    if known is not None:
                        self._learn(known[3], tag_of)
                elif plain[1] is None:
                    self._place += plain[0]
                    kept.append(data)
                elif not self._as_it_is(data, known[1], plain[1], kept):
                    self._any(data, tag_of, kept)
            self._new.write_all(kept)

    def _learn(self, alike: Alike, tag_of: Callable[[str], str]) -> None:
        """See whether Events of a form can be stored as they are from now on."""
        tags = [row.tag for row in alike.rows]
        if self._metadata.is_settled(alike) and all(tag_of(tag) == tag for tag in tags):
            voids = [self._voids.get(tag) for tag in tags]
            self._plain[alike] = len(tags), voids if any(void is not None for void in voids) else None

    def _as_it_is(self, data: bytes, step: int, voids: list[Voids | None], kept: list[bytes]) -> bool:
        """Keep an Event of which all values stay, or leave it out if none does; False where only some do."""
        gone = 0
        for place, void in enumerate(voids, self._place):
            gone += void is not None and void.holds(place, step)
        if gone not in {0, len(voids)}:
            return False
        self._place += len(voids)
        self.dropped += gone
        if not gone:
            kept.append(data)
        return True

    def _any(self, data: bytes, tag_of: Callable[[str], str], kept: list[bytes]) -> None:
        """Keep what is to be kept of a record of any kind."""
        try:
            event, _ = self._outliner.outline(data)
        except ValueError:
            return
        if event.what != "summary":
            if event.what in _GRAPHS:
                kept.append(data)
            return
        flags = []
        renamed = False
        for value in event.values:
            tag = tag_of(value.tag)
            if tag != value.tag:
                value.rename(tag)
                renamed = True
            flags.append(tag not in self._voids or not self._voids[tag].holds(self._place, event.step))
            self._place += 1
        self.dropped += flags.count(False)
        rest = _rewrite.keep(event, event.serialised() if renamed else data, flags, self._metadata)
        if rest is not None:
            kept.append(rest)


def _observer(voids: dict[str, Voids], tag_of: Callable[[str], str], offset: int) -> Callable[[str, Bulk], None]:
    last: dict[str, tuple[int, int]] = {}  # step and file of the last value of each tag, by its new name

    def observe(tag: str, bulk: Bulk) -> None:
        tag = tag_of(tag)
        before, file = last.get(tag, (None, bulk.file))
        steps = bulk.steps
        strides = np.diff(steps, prepend=steps[0] - 1 if before is None else before)
        back = strides < 0
        # A session that begins at the step where the one before ended; within a session, a step may repeat.
        back[0] |= file != bulk.file and strides[0] == 0
        for index in np.flatnonzero(back):
            voids.setdefault(tag, Voids()).add(offset + int(bulk.where[index]), int(steps[index]))
        last[tag] = int(steps[-1]), bulk.file

    return observe


def _add_marks(voids: dict[str, Voids], scan: RunScan, tags: list[str], offset: int) -> None:
    """Take in the marks of sessions, which void points of all tags; the first of a directory is no restart."""
    begun: set[str] = set()
    marks = []
    for file in scan.files:
        folder = file.found.path.rsplit("/", 1)[0]
        for start in file.starts:
            if folder in begun and start.step < MARKER_STEP:
                marks.append(start)
            begun.add(folder)
    if not marks:
        return
    for tag in tags:
        known = voids.setdefault(tag, Voids())
        merged = Voids()
        for place, step in sorted([*known.stairs(), *((offset + mark.values_before, mark.step) for mark in marks)]):
            merged.add(place, step)
        voids[tag] = merged


def _refuse_mixed(scan: RunScan) -> None:
    for first, second in _order.overlapping(scan):
        shared = first.tags & second.tags
        if shared:
            raise ValueError(
                f"{first.found.path} and {second.found.path} were written at one time, and both hold "
                f"{min(shared)!r}: they are no sessions one after the other. Move each writer's files into a "
                "directory of its own, such as rank_0, rank_1, and merge these with --prefix"
            )


def _refuse_two_of_one_name(scan: RunScan, tag_of: Callable[[str], str], names: Mapping[str, str]) -> None:
    """Raise where renaming would mix what one session wrote under two tags, or two kinds."""
    sources: dict[str, list[str]] = {}
    for tag in scan.tags:
        sources.setdefault(tag_of(tag), []).append(tag)
    for new, tags in sources.items():
        found = _order.together(scan, tags)
        if found is not None:
            file, one, other = found
            raise ValueError(
                f"--rename would mix {one!r} and {other!r} in {new!r}: one session wrote both, in {file.found.path}; "
                f"give {' and '.join(repr(tag) for tag in tags if tag in names)} another name"
            )
        kinds = {scan.tags[tag].plugin: tag for tag in tags}
        if len(kinds) > 1:
            words = ", ".join(f"{tag!r} holds {kind or 'no kind'}" for kind, tag in kinds.items())
            raise ValueError(f"--rename would make one tag, {new!r}, of two kinds: {words}")


def _name_of(begins: Iterable[float]) -> str:
    """Return the name of the file that several become, from the times of their first values."""
    host, process = MERGED
    return f"events.out.tfevents.{max(int(_begin(begins)), 0):010d}.{host}.{process}.000000"


def _begin(begins: Iterable[float]) -> float:
    return min((time for time in begins if time < float("inf")), default=0.0)


def _first_time(found: Found, options: Mapping[str, Any] | None) -> float:
    for _, event in _rewrite.events(found, options):
        if event.what == "summary":
            return event.wall_time
    return float("inf")
