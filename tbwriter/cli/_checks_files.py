"""Checks of a run's files: damage, order, and who wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tbwriter._preflight import COMPRESSED, foreign
from tbwriter._scanned import Damage, FileScan, RunScan
from tbwriter.cli import _checks_writers, _order
from tbwriter.cli._common import counted, duration, megabytes, shell_word
from tbwriter.cli._finding import (
    ERROR,
    NOTE,
    WARNING,
    Finding,
    being_written,
    both,
    let_read,
    merge,
    move_away,
    repair,
)

_UNCHECKED = "shows the damaged values as if they were good, and nothing behind one that cannot be parsed"
_HALF_CHECKED = "may show a wrong value for the first of them; shows nothing of this file behind it"


def check(run: RunScan, storage_options: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Check one run's files."""
    for file in run.files:
        yield from _check_damage(run, file)
    yield from _check_content(run)
    yield from _check_names(run)
    yield from _checks_writers.check(run, storage_options)
    yield from _check_restarts(run)


def _check_damage(run: RunScan, file: FileScan) -> Iterator[Finding]:
    path = file.found.path
    if file.error is not None:
        yield Finding(
            "unreadable",
            ERROR,
            path,
            f"the file cannot be read: {file.error}",
            **both("shows nothing of it"),
            **let_read(path, "TensorBoard"),
        )
    what = foreign(file.head)
    if what:
        yield Finding(
            "not-an-event-file",
            ERROR,
            path,
            f"it {what}",
            **both("shows nothing of it"),
            **(_gunzip(path) if what == COMPRESSED else move_away(path)),
        )
        return
    if file.no_events:
        yield Finding(
            "no-event",
            ERROR,
            path,
            f"{file.no_events} records are whole, but hold no Event",
            python="fails at the first of them and ends reloading: nothing new of any run is shown any more",
            data_server="shows nothing of this file behind the first of them",
            **(repair(run.path, run.name) if file.records > file.no_events else move_away(path)),
        )
    inside = [
        damage for damage in file.damage if not damage.torn_tail and damage.offset + damage.size < file.found.size
    ]
    at_end = [damage for damage in file.damage if damage not in inside]
    holes = [damage for damage in inside if damage.zeros]
    others = [damage for damage in inside if not damage.zeros]
    if holes:
        yield _damage(
            run,
            file,
            holes,
            "zero-hole",
            f"{counted(len(holes), 'hole')} of zeros, as pages that never arrived at the server leave",
        )
    if others:
        more = file.damaged - len(holes) - len(at_end)
        yield _damage(
            run,
            file,
            others,
            "bad-checksum",
            f"{counted(more, 'damaged place')}: {others[0].what.removeprefix(f'{path}: ')}",
        )
    for damage in at_end:
        yield _torn(run, file, damage)


def _gunzip(path: str) -> dict[str, str]:
    if "://" in path:
        return {"fix": "store it again uncompressed"}
    packed = path if path.endswith(".gz") else path + ".gz"
    first = "" if packed == path else f"mv {shell_word(path)} {shell_word(packed)} && "
    return {"command": f"{first}gunzip {shell_word(packed)}", "fix": "gives the event file back"}


def _damage(run: RunScan, file: FileScan, places: list[Damage], code: str, what: str) -> Finding:
    size = sum(place.size for place in places)
    at = ", ".join(str(place.offset) for place in places[:4]) + (", ..." if len(places) > 4 else "")
    behind = "shows nothing of this file behind the first of them"
    more = "; other files of the run are read" if len(run.files) > 1 else ""
    # The data server checks no data: with lengths in order it goes on, and takes damaged data for values.
    first = _UNCHECKED if places[0].framed else _HALF_CHECKED if places[0].headed else behind + more
    return Finding(
        code,
        ERROR,
        f"{file.found.path}, at byte {at}",
        f"{what}; {megabytes(size)} lie in them, {file.records} records are good",
        python=behind + more,
        data_server=first,
        **repair(run.path, run.name),
    )


def _torn(run: RunScan, file: FileScan, damage: Damage) -> Finding:
    live = being_written(file.found)
    alone = file.damaged == 1  # else a reader may never come here
    if damage.zeros:
        what = f"{megabytes(damage.size)} of zeros at the end, as a machine that failed leaves"
    elif damage.torn_tail:
        what = f"the last record is cut off: {megabytes(damage.size)} of it are there"
    else:
        what = f"{megabytes(damage.size)} at the end are no records"
    return Finding(
        "zero-hole" if damage.zeros else "torn-tail" if damage.torn_tail else "bad-checksum",
        NOTE if live and damage.torn_tail else WARNING,
        f"{file.found.path}, at byte {damage.offset}",
        f"{what}; {'all ' if alone else ''}{file.records} records before are good" + (f"; {live}" if live else ""),
        **both(f"{'shows all before it; ' if alone else ''}nothing that is appended behind it is ever shown"),
        **({"fix": "nothing while it is written"} if live and damage.torn_tail else repair(run.path, run.name)),
    )


def _check_content(run: RunScan) -> Iterator[Finding]:
    if any(file.error or file.damaged for file in run.files):
        return
    filled = [file for file in run.files if file.values]
    if not filled and not run.graphs and any(file.found.size for file in run.files):
        live = next((words for file in run.files if (words := being_written(file.found))), "")
        yield Finding(
            "only-file-version",
            NOTE if live else WARNING,
            run.path,
            f"{len(run.files)} event file{'s' * (len(run.files) > 1)} with nothing but the header"
            + (f"; {live}, and has flushed nothing else" if live else ""),
            **both("lists the run without curves"),
            fix="wait, or flush more often"
            if live
            else "nothing was logged, or nothing was flushed before the end: call flush() or close(), and remove the "
            "files",
        )
    for file in filled:
        if not file.version and file.records:
            yield Finding(
                "no-file-version",
                NOTE,
                file.found.path,
                "the file does not begin with a file_version: its head is missing, or another program wrote it",
                python="drops points of a tag at and after the step, when its steps go back",
                data_server="shows it as any other",
                fix="nothing, unless the head was cut off",
            )
            break


def _check_names(run: RunScan) -> Iterator[Finding]:
    for first, second in _order.out_of_order(run)[:1]:
        restart = _order.restart_in(run, second)
        yield Finding(
            "names-sort-wrong",
            ERROR,
            run.path,
            f"{first.found.name!r} sorts before {second.found.name!r}, but begins "
            f"{duration(first.earliest - second.earliest)} later" + _checks_writers.voiding(restart),
            python="reads them in this order: the curve jumps back; one that follows the run never reads the second"
            if restart is None
            else "reads them in this order, and leaves out of the first what the mark in the second voids",
            data_server="drops the points of the first at and after the steps of the second",
            **merge(
                run.path,
                run.name,
                "writes one file in the order of the times"
                + ("" if restart is None else "; if these are two trainings, move each into a directory of its own"),
            ),
        )


def _check_restarts(run: RunScan) -> Iterator[Finding]:
    """Check whether a restart voids so much that it may be another training."""
    explained = {id(file) for pair in (*_order.overlapping(run), *_order.out_of_order(run)) for file in pair}
    found = [
        restart
        for restart in run.restarts
        if 2 * restart.voided > restart.points and id(run.files[restart.file]) not in explained
    ]
    if found:
        restart = max(found, key=lambda restart: restart.voided)
        yield Finding(
            "restart-voids-most",
            WARNING,
            run.files[restart.file].found.path,
            f"a session that began at step {restart.step} voids {restart.voided} of the {restart.points} points of the "
            f"sessions before, of {counted(restart.tags, 'tag')}"
            + (f"; {counted(len(found) - 1, 'other session')} did so too" if len(found) > 1 else ""),
            python="leaves out the points that the mark of its start voids",
            data_server="drops the old points at and after the step, tag by tag",
            fix="nothing, if one training was begun again; if these are two trainings, move the files of each into a "
            "directory of its own",
        )
