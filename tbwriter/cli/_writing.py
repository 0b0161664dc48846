"""What the commands share that write event files anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape

from tbwriter import _preflight, _rewrite
from tbwriter._tree import Directory
from tbwriter.cli import _common
from tbwriter.cli._damage import Damage, FileDamage
from tbwriter.cli._finding import being_written

Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="DIR", help="Directory for the new files; a path or a URL.")
]
InPlace = Annotated[bool, typer.Option("--in-place", help="Replace the files, each when its new form is stored.")]
Force = Annotated[bool, typer.Option("--force", help="With --in-place: also files that seem to be still written.")]


class Work(NamedTuple):
    """What a command has to do: the runs to write anew, the directory for them (None is in place), known damage."""

    runs: list[Directory]
    into: str | None
    damage: Damage


def plan(path: str, output: str | None, in_place: bool, force: bool, storage_options: Mapping[str, Any] | None) -> Work:
    """Return what is to be written anew; nothing is written before all that can be known to fail was looked at.

    Raises:
        typer.BadParameter: neither or both of `output` and `in_place`.
        ValueError: `output` lies within what is read; files to be replaced are still written; no event file is there.
        FileExistsError: a new file would take the place of another.
    """
    if (output is None) == (not in_place):
        raise typer.BadParameter("say where the new files go: either --output DIR or --in-place")
    into = None if output is None else _common.place(output, "--output")
    runs = _common.runs_below(path, storage_options)
    if into is not None:
        _preflight.refuse_within([_common.place(path)], into)
    runs, damage = with_events(runs, storage_options)
    if into is not None:
        _preflight.refuse_existing(_rewrite.targets(runs, into), storage_options)
    elif not force:
        _preflight.refuse_live([found for run in runs for found in run.event_files], being_written)
    return Work(runs, into, damage)


def with_events(runs: list[Directory], storage_options: Mapping[str, Any] | None) -> tuple[list[Directory], Damage]:
    """Return runs with those of their files of which something can be made, and as damage the others.

    Raises:
        ValueError: no event file is there.
    """
    runs, left = _preflight.with_events(runs, storage_options)
    damage = Damage()
    damage.add(FileDamage(alone.found, left_alone=alone.why) for alone in left)
    return runs, damage


def tell(done: list[dict[str, Any]], as_json: bool, damage: Damage) -> None:
    """Print what became of each file: `path`, `output`, `records` and what else there is to say; end the command.

    Raises:
        typer.Exit: as `Damage.end`.
    """
    if as_json:
        _common.print_json({"files": done, "damage": damage.as_list()})
        damage.end()
    out = _common.console()
    for file in done:
        rest = [f"{key.replace('_', ' ')}: {value}" for key, value in file.items() if key not in _SHOWN and value]
        more = f"  ({escape('; '.join(rest))})" if rest else ""
        out.print(f"{escape(file['output'])}  {_common.counted(file['records'], 'record')}{more}", soft_wrap=True)
    damage.end()


_SHOWN = {"path", "output", "records"}


def pattern(text: str | None, option: str) -> re.Pattern[str] | None:
    """Return a compiled regular expression.

    Raises:
        typer.BadParameter: it is none.
    """
    try:
        return None if text is None else re.compile(text)
    except re.error as exc:
        raise typer.BadParameter(f"{option} {text!r} is no regular expression: {exc}") from exc
