"""The commands, put together."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

import tbwriter
from tbwriter.cli import (
    _cat,
    _common,
    _convert,
    _doctor,
    _export,
    _inspect,
    _merge,
    _plot,
    _repair,
    _serve,
    _ship,
    _tail,
    _thin,
    _verify,
)

app = typer.Typer(
    help=f"Look into TensorBoard event files, mend them, move them, draw them. {_common.EXIT_CODES}",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tbwriter {tbwriter.__version__}")  # noqa: T201 - the answer
        raise typer.Exit


def _help(docstring: str) -> str:
    """Return a docstring's paragraphs each in one line, for a terminal of any width to fold.

    It ends with the exit codes, to which that of Ctrl-C is added.
    """
    text = "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(docstring).split("\n\n"))
    return f"{text.removesuffix('.')}; 130 Ctrl-C."


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    del version


for _function in (
    _inspect.inspect,
    _doctor.doctor,
    _verify.verify,
    _cat.cat,
    _repair.repair,
    _repair.rewind,
    _merge.merge,
    _thin.thin,
    _convert.convert,
    _ship.ship,
    _export.export,
    _tail.tail,
    _plot.plot,
    _serve.serve,
):
    app.command(help=_help(_function.__doc__ or ""))(_function)
