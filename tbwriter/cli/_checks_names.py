"""Checks of names over all runs: of metrics, and of hyper-parameters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from tbwriter._scanned import RunScan
from tbwriter.cli import _order
from tbwriter.cli._common import shell_word
from tbwriter.cli._finding import NOTE, WARNING, Finding, both, into, names

_MOST_RENAMED = 4
_TRAIN = {"train", "training", "trn"}
_SAME = {"lr": ["learning", "rate"], "acc": ["accuracy"], "gradnorm": ["grad", "norm"]}


def check_spellings(runs: Sequence[RunScan]) -> Iterator[Finding]:
    """Check whether one metric has other names from run to run, or from session to session."""
    spellings: dict[tuple[str, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for run in runs:
        for tag, scan in run.tags.items():
            if scan.plugin == "scalars":
                spellings[_metric(tag)][tag].add(run.name)
    for tags in spellings.values():
        # What one session writes under two names is meant to be two.
        if len(tags) < 2 or any(_order.together(run, tags) for run in runs):
            continue
        where = [f"{tag} ({names(sorted(in_runs), 2)})" for tag, in_runs in sorted(tags.items())]
        yield Finding(
            "spellings",
            NOTE,
            ", ".join(where[:4]) + (f" and {len(where) - 4} more" if len(where) > 4 else ""),
            f"{len(tags)} tags that seem to be one metric",
            **both("draws them in separate cards, not over one another"),
            fix="one name in all runs, if it is one; this renames it in what is written already",
            command=_renaming(tags, runs),
        )


def check_columns(place: str, runs: Sequence[RunScan]) -> Iterator[Finding]:
    """Check whether the HParams table has a column for every hyper-parameter.

    TensorBoard takes its columns from the record of one experiment, which it picks from all runs (backend_context.py,
    _find_experiment_tag); without any such record it has a column for all that the trials say.
    """
    records = [run for run in runs if run.columns is not None]
    known = frozenset.intersection(*(run.columns or frozenset() for run in records)) if records else frozenset()
    missing = {name: run for run in runs for name in run.hparams | (run.columns or frozenset()) if name not in known}
    if records and missing:
        yield Finding(
            "hparams-without-column",
            WARNING,
            f"{place}, hyper-parameters {names(sorted(missing))}",
            f"{len(records)} records of an experiment ({names([run.name for run in records], 2)}), "
            "of which not each names all hyper-parameters",
            **both("makes the columns of the HParams table from one of these records, and leaves out what it lacks"),
            command=f"tbwriter thin {shell_word(place)} {into('THINNED', place, '.')} "
            "--drop-tag '^_hparams_/experiment$'",
            fix="leaves these records out: without them all have columns",
        )


def _renaming(tags: Mapping[str, Set[str]], runs: Sequence[RunScan]) -> str:
    """Return the command lines that give one metric its most common name in all runs; "" where they are many.

    Args:
        tags: its names, and the runs that have each.
        runs: all runs.
    """
    name = max(tags, key=lambda tag: (len(tags[tag]), "/" in tag, tag))
    changed = {
        run.path: (run, [tag for tag in sorted(tags) if tag in run.tags and tag != name])
        for run in runs
        if any(tag in run.tags and tag != name for tag in tags)
    }
    if len(changed) > _MOST_RENAMED:
        return ""
    return " && ".join(
        f"tbwriter merge {shell_word(path)} {into('RENAMED', path, run.name)} "
        + " ".join(f"--rename {shell_word(f'{tag}={name}')}" for tag in olds)
        for path, (run, olds) in changed.items()
    )


def _metric(tag: str) -> tuple[str, ...]:
    """Return what a tag names, whatever its spelling: `loss`, `train_loss` and `Train/Loss` are the same."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", tag)
    words = [word for word in re.split(r"[^\w]+|_+", apart.lower()) if word]
    words = [part for word in words for part in _SAME.get(word, [word])]
    rest = sorted(word for word in words if word not in _TRAIN)
    return tuple(rest) if rest else (tag,)
