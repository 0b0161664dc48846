"""The kinds of values, by the names that users give them: those of TensorBoard's plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer

from tbwriter import _scan
from tbwriter._tree import Directory

KINDS = (
    "scalars",
    "histograms",
    "images",
    "audio",
    "text",
    "tensor",
    "hparams",
    "pr_curves",
    "mesh",
    "custom_scalars",
)
"""What tbwriter itself writes."""


def refuse_unknown(
    kinds: Iterable[str], option: str, runs: Iterable[Directory], storage_options: Mapping[str, Any] | None
) -> None:
    """Raise for a kind that is none of KINDS and not in the files either, which are only gone through for such a one.

    Raises:
        typer.BadParameter: naming `option`, and the kinds that there are.
    """
    others = set(kinds) - set(KINDS)
    if not others:
        return
    there: set[str] = set()
    for run in runs:
        for tag in _scan.scan(run.path, run.run, run.event_files, storage_options).tags.values():
            there |= {tag.plugin, *tag.other_plugins}
    for kind in sorted(others - there):
        more = sorted(there - {"", *KINDS})
        raise typer.BadParameter(
            f"{option} {kind!r}: there is no such kind in the files; want one of {', '.join([*KINDS, *more])}"
        )
