"""What the commands share that write event files anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape

from tbwriter import _rewrite, sinks
from tbwriter._tree import Directory
from tbwriter.cli import _common
from tbwriter.cli._finding import being_written

Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="DIR", help="Directory for the new files; a path or a URL.")
]
InPlace = Annotated[bool, typer.Option("--in-place", help="Replace the files, each when its new form is stored.")]
Force = Annotated[bool, typer.Option("--force", help="With --in-place: also files that seem to be still written.")]


def targets(
    path: str, output: str | None, in_place: bool, force: bool, storage_options: Mapping[str, Any] | None
) -> tuple[list[Directory], str | None]:
    """Return the runs to write anew, and the directory for them, None for in place.

    Raises:
        typer.BadParameter: neither or both of `output` and `in_place`; the output lies within what is read.
        ValueError: files to be replaced are still written.
    """
    if (output is None) == (not in_place):
        raise typer.BadParameter("say where the new files go: either --output DIR or --in-place")
    runs = _common.runs_below(path, storage_options)
    if in_place:
        if not force:
            _rewrite.refuse_live([found for run in runs for found in run.event_files], being_written)
        return runs, None
    place = sinks.normalise(output or "")
    if place == sinks.normalise(path):
        raise typer.BadParameter("--output is the place that is read; say --in-place to replace the files")
    return runs, place


def tell(done: list[dict[str, Any]], as_json: bool) -> None:
    """Print what became of each file: `path`, `output`, `records` and what else there is to say."""
    if as_json:
        _common.print_json({"files": done})
        return
    out = _common.console()
    for file in done:
        rest = [f"{key.replace('_', ' ')}: {value}" for key, value in file.items() if key not in _SHOWN and value]
        out.print(
            f"{escape(file['output'])}  {file['records']} records" + (f"  ({escape('; '.join(rest))})" if rest else "")
        )


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
