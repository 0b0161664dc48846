"""`tbwriter ship`: send what spools kept."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from tbwriter.cli import _common
from tbwriter.sinks import ship as ship_spools
from tbwriter.sinks import spool_places


@_common.command
def ship(
    spool_dir: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="The spool_dir= of the writers, or one spool in it; all default places without."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.0, metavar="SECS", help="How long a store that fails is tried.")
    ] = 60.0,
    as_json: _common.Json = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Send to the object store what a spool kept: of writers that were killed, or that closed while it was down.

    Spools of living writers are left alone; what is stored is removed. Exit codes: 0 nothing is left; 1 something is; 2
    wrong usage; 3 no such directory.
    """
    options = _common.options_of(storage_options)
    shipped = ship_spools(spool_dir, storage_options=options, timeout=timeout)
    looked_at = spool_places(spool_dir)
    if as_json:
        _common.print_json({"spools": shipped, "looked_at": [str(place) for place in looked_at]})
    else:
        out = _common.console()
        for one in shipped:
            left = f"[red]{escape(one.error)}[/red]" if one.error else "nothing is left"
            sent = f"{_common.counted(one.files, 'file')}, {_common.megabytes(one.bytes)}"
            out.print(f"{escape(one.url)}  {sent}; {left}  (spool {escape(one.directory)})", soft_wrap=True)
        if not shipped:
            places = ", ".join(f"{place}{'' if place.is_dir() else ' (not there)'}" for place in looked_at)
            out.print(f"no spool holds anything to send; looked at {escape(places)}", soft_wrap=True)
    raise typer.Exit(_common.Exit.FOUND if any(one.error for one in shipped) else _common.Exit.OK)
