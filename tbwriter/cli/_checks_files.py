"""Checks of a run's files: damage, order, and who wrote them."""

from __future__ import annotations

from collections.abc import Iterator

from tbwriter._preflight import COMPRESSED, foreign
from tbwriter._scan import Damage, FileScan, Restart, RunScan
from tbwriter.cli import _order
from tbwriter.cli._common import counted, duration, megabytes, shell_word
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding, being_written, both, names, repair

_UNCHECKED = "shows the damaged values as if they were good, and nothing behind one that cannot be parsed"
_HALF_CHECKED = "may show a wrong value for the first of them; shows nothing of this file behind it"


def check(run: RunScan) -> Iterator[Finding]:
    """Check one run's files."""
    for file in run.files:
        yield from _check_damage(run, file)
    yield from _check_content(run)
    yield from _check_names(run)
    yield from _check_writers(run)
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
            fix=f"chmod u+r {shell_word(path)}, or run TensorBoard as a user who may read it",
        )
    what = foreign(file.head)
    if what:
        yield Finding(
            "not-an-event-file",
            ERROR,
            path,
            f"it {what}",
            **both("shows nothing of it"),
            fix=_gunzip(path) if what == COMPRESSED else f"mv {shell_word(path)} to another place",
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
            fix=repair(path)
            if file.records > file.no_events
            else f"mv {shell_word(path)} to another place: it is no event file",
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
        yield _torn(file, damage)


def _gunzip(path: str) -> str:
    if path.endswith(".gz"):
        return f"gunzip {shell_word(path)}"
    return f"mv {shell_word(path)} {shell_word(path + '.gz')}; gunzip {shell_word(path + '.gz')}"


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
        fix=repair(file.found.path),
    )


def _torn(file: FileScan, damage: Damage) -> Finding:
    live = being_written(file.found)
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
        f"{what}; all {file.records} records before are good" + (f"; {live}" if live else ""),
        **both("shows all before it; nothing that is appended behind it is ever shown"),
        fix="nothing while it is written" if live and damage.torn_tail else repair(file.found.path),
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
            else "nothing was logged, or nothing was flushed before the end: call flush() or close(); remove the files",
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
            f"{duration(first.earliest - second.earliest)} later" + _voiding(restart),
            python="reads them in this order: the curve jumps back; one that follows the run never reads the second"
            if restart is None
            else "reads them in this order, and leaves out of the first what the mark in the second voids",
            data_server="drops the points of the first at and after the steps of the second",
            fix=f"tbwriter merge {shell_word(run.path)} -o MERGED"
            + ("" if restart is None else "; if these are two trainings, move each into a directory of its own"),
        )


def _voiding(restart: Restart | None) -> str:
    if restart is None:
        return ""
    return (
        f"; the mark for step {restart.step} in the second voids {restart.voided} of the {restart.points} points before"
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


def _check_writers(run: RunScan) -> Iterator[Finding]:
    pairs = _order.overlapping(run)
    copies = [pair for pair in pairs if _order.are_copies(*pair)]
    if copies:
        yield _copies(run, copies)
    pairs = [pair for pair in pairs if pair not in copies]
    if not pairs:
        return
    shared = sorted(set().union(*(first.tags & second.tags for first, second in pairs)))
    first, second = pairs[0]
    files = f"{first.found.name!r} and {second.found.name!r} were written at one time" + (
        f", and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    )
    if shared:
        last = max((file for pair in pairs for file in pair), key=lambda file: file.found.name)
        restart = _order.restart_in(run, last)
        yield Finding(
            "several-writers",
            ERROR,
            run.path,
            f"{files}, and both hold {names(shared)}" + _voiding(restart).replace("the second", repr(last.found.name)),
            python="draws one curve that runs through the points of all files, one after the other"
            if restart is None
            else f"shows the last file's points alone from step {restart.step} on: its mark voids the others'",
            data_server="shows the last file's points alone from its first step on; the others' are dropped",
            fix="a directory for each writer: move the files into directories rank_0, rank_1, ... below this one",
        )
    else:
        yield Finding(
            "several-writers",
            WARNING,
            run.path,
            f"{files}, with different tags",
            python="reads all when it starts; while it follows the run, it never goes back to the earlier file",
            data_server="shows all",
            fix="a directory for each writer, or tensorboard --reload_multifile true (as `tbwriter serve` does)",
        )


def _copies(run: RunScan, pairs: list[tuple[FileScan, FileScan]]) -> Finding:
    first, second = pairs[0]
    voids = _order.restart_in(run, second) is not None
    return Finding(
        "copies",
        NOTE if voids else ERROR,
        run.path,
        f"{first.found.name!r} and {second.found.name!r} hold the same"
        + (f", and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""),
        python="shows the points once: the mark in the second voids those of the first"
        if voids
        else "draws one curve that runs through the points of all files, one after the other",
        data_server="shows the last value of a step alone",
        fix=f"rm {shell_word(second.found.path)}",
    )
