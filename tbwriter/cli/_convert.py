"""`tbwriter convert`: MindSpore's own summaries become event files."""

from __future__ import annotations

import importlib
import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from tbwriter.cli import _common
from tbwriter.cli._going_on import GoingOn


@_common.command
def convert(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="A summary_dir of MindSpore, or a directory with several: path or URL."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where the runs go; a path or a URL.")],
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on while training writes, until Ctrl-C; also after storage failed.")
    ] = False,
    interval: Annotated[float, typer.Option(min=0.05, metavar="SECS", help="Between two looks of --follow.")] = 2.0,
    as_json: _common.Json = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Turn MindSpore's summaries (of SummaryCollector, SummaryRecord) into event files. Needs no MindSpore.

    Scalars, images, histograms and the graph become TensorBoard's; lineage becomes a row of HParams; tensors become
    histograms, and are kept whole under <tag>/tensor; a data set's graph becomes a text, a loss landscape a picture.
    What is left out is said; damage is stepped over. Exit codes: 0; 1 a file is damaged; 2 wrong usage; 3 nothing
    there, not readable, not writable, or event files are in DIR already.
    """
    options = _common.options_of(storage_options)
    # The bridge stands above the command and is not imported by it; it is in the same distribution.
    module: Any = importlib.import_module("msbridge.convert")
    places = _common.place(path), _common.place(output, "--output")
    with module.Conversion(*places, storage_options=options) as conversion:
        going_on = GoingOn()
        try:
            conversion.step()
            if not conversion.reports and not follow:
                raise FileNotFoundError(f"no summaries of MindSpore at or below {path!r}; `tbwriter doctor` says more")
            while follow:
                time.sleep(interval)
                with going_on.look():
                    conversion.step()
        except KeyboardInterrupt:
            if not follow:
                raise
    # What a training is writing just now is not damaged.
    damage = [file for report in conversion.reports for file in report.damage if file.places or not follow]
    for file in damage:
        _common.say(f"tbwriter: {file.words}")
    if as_json:
        _common.print_json({"runs": conversion.reports})
    else:
        _show(conversion.reports)
    raise typer.Exit(_common.Exit.FOUND if damage else _common.Exit.OK)


def _show(reports: list[Any]) -> None:
    out = _common.console()
    for report in reports:
        values = ", ".join(f"{count} {kind}" for kind, count in sorted(report.values.items())) or "nothing"
        out.print(f"{escape(report.output)}  {values} from {report.records} records", soft_wrap=True)
        for reason, count in report.skipped.items():
            out.print(f"  {count} left out: {escape(reason)}")
