"""Checks of who wrote the files of a run: several writers at one time, or the same file twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tbwriter._scanned import FileScan, Restart, RunScan
from tbwriter.cli import _order
from tbwriter.cli._common import shell_word
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding, names, writer_of

_MOST_APART = 8


def check(run: RunScan, storage_options: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Check whether several writers wrote the files of a run at one time."""
    pairs = _order.overlapping(run)
    copies = [pair for pair in pairs if _order.are_copies(*pair, storage_options)]
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
            f"{files}, and both hold {names(shared)}" + voiding(restart).replace("the second", repr(last.found.name)),
            python="draws one curve that runs through the points of all files, one after the other"
            if restart is None
            else f"shows the last file's points alone from step {restart.step} on: its mark voids the others'",
            data_server="shows the last file's points alone from its first step on; the others' are dropped",
            **_apart(run, pairs),
        )
    else:
        yield Finding(
            "several-writers",
            WARNING,
            run.path,
            f"{files}, with different tags",
            python="reads all when it starts; while it follows the run, it never goes back to the earlier file",
            data_server="shows all",
            command=f"tbwriter serve {shell_word(run.path)}",
            fix="starts TensorBoard with --reload_multifile true; in new runs, give each writer a directory",
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
        fix="leaves one of them",
        command=f"rm {shell_word(second.found.path)}" if "://" not in run.path else "",
    )


def _apart(run: RunScan, pairs: list[tuple[FileScan, FileScan]]) -> dict[str, str]:
    """Return `command` and `fix` that give each writer of one time a directory of its own; the first stays."""
    stays = pairs[0][0].found.name
    others: dict[object, list[str]] = {}
    for name in dict.fromkeys(file.found.name for pair in pairs for file in pair):
        of = writer_of(name) or name
        # Two writers of one process are told apart by their files alone.
        others.setdefault(of if of != writer_of(stays) else name, []).append(name)
    others.pop(stays, None)
    words = "puts the files of each other writer into a directory of its own; in new runs, give each writer one"
    if "://" in run.path or not 0 < len(others) <= _MOST_APART:
        return {
            "fix": "a directory for each writer: move the files into directories rank_0, rank_1, ... below this one"
        }
    lines = []
    for number, files in enumerate(others.values(), 1):
        folder = f"{run.path}/writer_{number}"
        moved = " ".join(shell_word(f"{run.path}/{name}") for name in files)
        lines.append(f"mkdir {shell_word(folder)} && mv {moved} {shell_word(folder)}")
    return {"command": " && ".join(lines), "fix": words}


def voiding(restart: Restart | None) -> str:
    """Return in words what the mark of a session in the second of two files voids."""
    if restart is None:
        return ""
    return (
        f"; the mark for step {restart.step} in the second voids {restart.voided} of the {restart.points} points before"
    )
