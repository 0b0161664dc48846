"""What the order of a run's files, sessions and steps is: who wrote at one time, what went back, what a mark explains.

`doctor` makes findings of it, `inspect` and `serve` go by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tbwriter import sinks
from tbwriter._naming import MARKER_STEP
from tbwriter._scanned import Back, Bulk, FileScan, Restart, RunScan, Start, TagScan
from tbwriter.cli._finding import writer_of

# Clocks of two nodes, and events that wait in queues, differ by less; and by less than half of what is short.
_OVERLAP_SECS = 1.0
_COMPARED = 1 << 20  # bytes at a time


def overlapping(run: RunScan) -> list[tuple[FileScan, FileScan]]:
    """Return pairs of files that different writers wrote at one time.

    The files of one writer meet at their ends; two writers of one process may have had the same directory all along.
    """
    with_times = [file for file in run.files if file.first_time is not None]
    # Sorted by their begin, a file overlaps with those after it until one begins behind its end.
    with_times.sort(key=lambda file: file.earliest)
    pairs = []
    for first, second in combinations(with_times[:200], 2):
        together = min(first.latest, second.latest) - second.earliest
        shorter = min(file.latest - file.earliest for file in (first, second))
        if together > min(_OVERLAP_SECS, shorter / 2):
            one, other = writer_of(first.found.name), writer_of(second.found.name)
            if one is None or one != other or together > shorter / 2:
                pairs.append((first, second))
    return pairs


def out_of_order(run: RunScan) -> list[tuple[FileScan, FileScan]]:
    """Return pairs of files of which the first by name is wholly the later in time."""
    with_times = [file for file in run.files if file.first_time is not None]
    return [(first, second) for first, second in pairwise(with_times) if first.earliest > second.latest]


def keeps_what_goes_back(run: RunScan, file: FileScan) -> bool:
    """Say whether the Python reader keeps old points where steps go back: it does where a file_version is."""
    return bool(file.version or run.files[0].version)


def is_marked(run: RunScan, back: Back) -> bool:
    """Say whether a mark of a session's start explains a step back.

    The Python reader takes a run's first START for no restart.
    """
    earlier = sum(len(file.starts) for file in run.files[: back.file])
    here = run.files[back.file].starts
    marks = [start for number, start in enumerate(here) if earlier + number > 0]
    return any(start.step <= back.after and start.values_before <= back.values_before for start in marks)


def restarts(run: RunScan) -> list[Start]:
    """Return the marks that void points: all but the run's first, and those that say that nothing is voided."""
    return [start for number, start in enumerate(run.starts) if number > 0 and start.step < MARKER_STEP]


def voids(run: RunScan) -> bool:
    """Say whether the Python reader leaves points of a run out, since a later session voids them."""
    return bool(run.restarts) or (not _has_version(run) and any(scan.backs for scan in run.tags.values()))


def voided(run: RunScan, tag: str, bulk: Bulk) -> npt.NDArray[np.bool_]:
    """Say of each point of a tag whether the Python reader leaves it out, since a later session voids it.

    The mark of a restart voids the points before it that are at or after its step; where no file has a file_version,
    steps that go back do the same within a tag.

    Args:
        run: what a scan of the whole run found; `voids` says whether there is anything to ask.
        tag: whose points.
        bulk: points, of the same scan or of another one.
    """
    if _has_version(run):
        marks = [(start.values_before, start.step) for start in restarts(run)]
    else:
        marks = [(back.values_before, back.after) for back in run.tags[tag].back_examples] if tag in run.tags else []
    if not marks:
        return np.zeros(len(bulk.steps), np.bool_)
    places, steps = np.array(sorted(marks), np.int64).T
    lowest = np.minimum.accumulate(steps[::-1])[::-1]  # of a mark and those behind it
    behind = np.searchsorted(places, bulk.where, side="right")  # the first mark behind each point
    return np.asarray((behind < len(places)) & (bulk.steps >= lowest[np.minimum(behind, len(places) - 1)]))


def _has_version(run: RunScan) -> bool:
    return any(file.version for file in run.files)


def restart_in(run: RunScan, file: FileScan) -> Restart | None:
    """Return the mark in a file that voids the most of the points before it; None where none voids any."""
    here = [restart for restart in run.restarts if run.files[restart.file] is file]
    return max(here, key=lambda restart: restart.voided, default=None)


def are_copies(first: FileScan, second: FileScan, storage_options: Mapping[str, Any] | None) -> bool:
    """Say whether two files hold the same, byte for byte; only where all else that is known agrees, they are read.

    Raises:
        OSError: one cannot be read.
    """
    if _extent(first) != _extent(second):
        return False
    paths = first.found.path, second.found.path
    with sinks.open_file(paths[0], storage_options) as one, sinks.open_file(paths[1], storage_options) as other:
        while True:
            data = one.read(_COMPARED)
            if data != other.read(_COMPARED):
                return False
            if not data:
                return True


def _extent(file: FileScan) -> tuple[object, ...]:
    return file.found.size, file.records, file.values, file.tags, file.earliest, file.latest, file.first_time


def left_behind(run: RunScan, scan: TagScan) -> Start | None:
    """Return the mark that voids points of a tag which never came again; None where there is none."""
    marks = [
        start for start in restarts(run) if scan.last_where < start.values_before and scan.highest_step >= start.step
    ]
    return marks[-1] if marks else None


def together(run: RunScan, tags: Iterable[str]) -> tuple[FileScan, str, str] | None:
    """Return a file that holds two of `tags`, and which: so one session wrote both. None where there is none."""
    wanted = frozenset(tags)
    for file in run.files:
        found = sorted(file.tags & wanted)
        if len(found) > 1:
            return file, found[0], found[1]
    return None
