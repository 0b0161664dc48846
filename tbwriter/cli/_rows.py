"""Rows for people: a table where it fits the terminal, and otherwise a paragraph for each row."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tbwriter.cli._visible import cell, visible

_WIDE = 1_000_000


def show(out: Console, headings: Sequence[str], rows: Sequence[Sequence[str]], *, red: frozenset[str]) -> None:
    """Print rows of plain cells, of which the first names the row and is never cut.

    Args:
        out: where to.
        headings: of the columns.
        rows: the cells; "" for nothing.
        red: headings of the columns that tell of something wrong.
    """
    table = Table(*headings, box=None, padding=(0, 2))
    for row in rows:
        cells = (
            f"[red]{cell(text)}[/red]" if heading in red else cell(text)
            for heading, text in zip(headings, row, strict=True)
        )
        table.add_row(*cells)
    if Measurement.get(out, out.options.update_width(_WIDE), table).maximum <= out.width:
        out.print(table)
        return
    for name, *rest in rows:
        out.print(Padding(Text(visible(name), style="bold", overflow="fold"), (0, 0, 0, 2)))
        parts = []
        for heading, text in zip(headings[1:], rest, strict=True):
            if text:
                parts += [Text(f"{heading} ", style="dim"), Text(visible(text), style="red" if heading in red else "")]
                parts.append(Text("; "))
        out.print(Padding(Text.assemble(*parts[:-1], overflow="fold"), (0, 0, 0, 6)))
