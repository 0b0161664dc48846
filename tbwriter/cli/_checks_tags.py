"""Checks of a run's tags: steps, clocks, forms that a reader hides, kinds."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator

from tbwriter._naming import MARKER_STEP
from tbwriter._repair import SCALARS_OF_BOTH, numbers_alone
from tbwriter._scanned import Back, FileScan, RunScan, Start
from tbwriter.cli import _order, _readers
from tbwriter.cli._common import duration, shell_word
from tbwriter.cli._finding import ERROR, NOTE, WARNING, Finding, both, logdir_of, merge, names, repair

# Values of one tag may wait in queues of several threads for this long.
_BACK_SECS = 5.0
_FIRST_PLAUSIBLE = 631_152_000.0  # 1990: event files are younger; steps taken for times lie before
_DAY = 86_400.0


def check(run: RunScan) -> Iterator[Finding]:
    """Check one run's tags."""
    yield from _check_steps(run)
    yield from _check_repeats(run)
    yield from _check_restarts(run)
    yield from _check_forms(run)
    yield from _check_kinds(run)
    yield from _check_clock(run)
    yield from _check_samples(run)
    yield from _check_finite(run)


def _check_steps(run: RunScan) -> Iterator[Finding]:
    explained = {id(file) for pair in _order.overlapping(run) for file in pair}
    explained |= {id(file) for pair in _order.out_of_order(run) for file in pair}
    found: dict[str, Back] = {}
    for tag, scan in run.tags.items():
        for back in scan.back_examples:
            if id(run.files[back.file]) not in explained and not _order.is_marked(run, back):
                found.setdefault(tag, back)
    if not found:
        return
    tag, back = next(iter(found.items()))
    file = run.files[back.file]
    restart = back.file > 0 and tag in run.files[back.file - 1].tags
    late = _late_mark(run, back) if restart else None
    yield Finding(
        "steps-back",
        ERROR,
        f"{file.found.path}, tag {tag!r}",
        f"steps go back from {back.before} to {back.after}"
        + (f", where another session began {_without_mark(run, back)}" if restart else "")
        + (f"; {len(found)} tags do so" if len(found) > 1 else ""),
        python=f"drops the old points from step {late} on; those before stay beside the new ones"
        if late is not None
        else "draws a line that runs back: the old points stay beside the new ones"
        if _order.keeps_what_goes_back(run, file)
        else "drops the old points at and after the step, tag by tag",
        data_server="drops the old points at and after the step, tag by tag",
        **merge(
            run.path,
            run.name,
            "lets the later session win; in new runs, resume with purge_step=, or give each training a directory",
        ),
    )


def _without_mark(run: RunScan, back: Back) -> str:
    """Return in words why nothing marks the begin of the session in which steps went back."""
    file = run.files[back.file]
    marks = [start for start in file.starts if start.values_before <= back.values_before]
    if not marks:
        return "without a mark"
    if not any(before.starts for before in run.files[: back.file]):
        return "with the first mark of the run, which voids nothing"
    if all(start.step >= MARKER_STEP for start in marks):
        return "with a mark that voids nothing (no purge_step=)"
    return f"with a mark for step {_late_mark(run, back)}, which comes later"


def _late_mark(run: RunScan, back: Back) -> int | None:
    """Return the step of a restart's mark in the file that voids too little; None where there is none."""
    here = {start for start in run.files[back.file].starts if start.values_before <= back.values_before}
    return min((start.step for start in _order.restarts(run) if start in here), default=None)


def _check_repeats(run: RunScan) -> Iterator[Finding]:
    # A session may begin at the step at which the one before ended: that says nothing of how steps are counted.
    between = len(run.files) - 1
    tags = [tag for tag, scan in run.tags.items() if _readers.repeats(scan) and scan.repeated > between]
    if tags:
        yield Finding(
            "repeated-steps",
            NOTE,
            f"{run.path}, tags {names(tags)}",
            f"{run.tags[tags[0]].repeated} values of {tags[0]!r} have the step of the value before",
            python="draws all of them, one above the other",
            data_server="shows the last value of a step alone",
            fix="count steps so that each value has its own, or log the mean once a step",
        )


def _check_restarts(run: RunScan) -> Iterator[Finding]:
    found = {tag: _order.left_behind(run, scan) for tag, scan in run.tags.items()}
    stale: dict[str, Start] = {tag: start for tag, start in found.items() if start is not None}
    if stale:
        _tag, start = next(iter(stale.items()))
        yield Finding(
            "stale-after-restart",
            WARNING,
            run.path,
            f"a session began again at step {start.step}, but wrote nothing of {names(list(stale))} since",
            python=f"dropped their points from step {start.step} on",
            data_server=f"still shows the points from step {start.step} on, of a past that did not happen",
            **merge(run.path, run.name, "leaves them out, if these tags will not come any more"),
        )


def _check_forms(run: RunScan) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for tag, scan in run.tags.items():
        if not scan.plugin and not scan.late_metadata:
            # A tensor without a plugin is kept for programs; a number was meant to be seen.
            code = "no-metadata" if numbers_alone(scan) else "no-plugin"
            groups[code, "no value says which plugin shows it"].append(tag)
        elif scan.metadata is not None and scan.metadata.version:
            why = f"the plugin's data is of version {scan.metadata.version}, want 0"
            groups["plugin-version", why].append(tag)
        elif scan.late_metadata:
            groups["late-metadata", "the first value has no metadata, a later one has"].append(tag)
        elif not scan.other_plugins and _readers.hidden_by_data_server(scan):
            groups["hidden-form", _readers.why_hidden_by_data_server(scan)].append(tag)
    for (code, why), tags in groups.items():
        some = code == "hidden-form" and any(form in SCALARS_OF_BOTH for form in run.tags[tags[0]].forms)
        shows_nothing = code in {"no-metadata", "no-plugin", "plugin-version"}
        yield Finding(
            code,
            NOTE if code == "no-plugin" else ERROR,
            f"{run.path}, tags {names(tags)}",
            why,
            python="shows nothing of them" if shows_nothing else "shows them",
            data_server="shows nothing of them" if not some else "leaves these values out",
            **(
                {"fix": "nothing, if they are for programs: `tbwriter cat` and `tbwriter.read_events` give them back"}
                if code == "no-plugin"
                else repair(run.path, run.name)
            ),
        )


def _check_kinds(run: RunScan) -> Iterator[Finding]:
    tags = {tag: scan for tag, scan in run.tags.items() if scan.other_plugins}
    if not tags:
        return
    tag, scan = next(iter(tags.items()))
    other = next(iter(scan.other_plugins))
    yield Finding(
        "two-kinds",
        ERROR,
        f"{run.path}, tags {names(list(tags))}",
        f"{tag!r} holds {scan.plugin or 'values without a kind'} first, and then {other}",
        python="answers with an error, or mixes the values of both",
        data_server=f"shows the {scan.plugin or 'first'} alone",
        **repair(run.path, run.name, more=", in which the second kind has a tag of its own"),
    )


def _check_clock(run: RunScan) -> Iterator[Finding]:
    for file in run.files:
        if file.bad_times:
            yield Finding(
                "bad-wall-time",
                ERROR,
                file.found.path,
                f"the wall time of {file.bad_times} events is NaN or infinite",
                python="shows them",
                data_server="shows nothing of this file behind a NaN; leaves events out whose time is infinite",
                **repair(run.path, run.name),
            )
    explained = bool(_order.overlapping(run) or _order.out_of_order(run))
    back = {tag: scan for tag, scan in run.tags.items() if scan.back_by > _BACK_SECS}
    if back and not explained:
        tag, scan = max(back.items(), key=lambda item: item[1].back_by)
        yield Finding(
            "clock-jump",
            WARNING,
            f"{run.path}, tag {tag!r}",
            f"the wall time goes back by up to {duration(scan.back_by)}"
            + (f"; {len(back)} tags" if len(back) > 1 else ""),
            **both("shows it by step; by wall time or relative time the curve runs back"),
            **repair(
                run.path, run.name, " --clock", ", in which it never goes back; mend the clock of the machine too"
            ),
        )
    for file in run.files:
        if file.first_time is None:
            continue
        if file.earliest < _FIRST_PLAUSIBLE or file.latest > time.time() + _DAY:
            yield _implausible(file)


def _implausible(file: FileScan) -> Finding:
    early = file.earliest < _FIRST_PLAUSIBLE
    seconds = file.earliest if early else file.latest
    return Finding(
        "odd-wall-time",
        WARNING,
        file.found.path,
        f"a wall time is {seconds:.0f} s since 1970: {'before 1990' if early else 'in the future'}",
        **both("shows it by step; by wall time the curve lies far away"),
        fix="pass walltime= in seconds since 1970 (not milliseconds, not a step)",
    )


def _check_samples(run: RunScan) -> Iterator[Finding]:
    groups: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for tag, scan in run.tags.items():
        kept = _readers.KEPT_PYTHON.get(scan.plugin)
        # Points that a restart voids are sampled too, but none of them are shown.
        python, data_server = (left.most if left else scan.points for left in (scan.python, scan.data_server))
        if kept is not None and python > kept:
            groups[scan.plugin].append((tag, python, data_server))
    for plugin, tags in groups.items():
        most = max(python for _, python, _ in tags)
        kept, kept_data_server = _readers.KEPT_PYTHON[plugin], _readers.KEPT_DATA_SERVER[plugin]
        yield Finding(
            "more-points-than-shown",
            NOTE,
            f"{run.path}, {names([tag for tag, _, _ in tags])}",
            f"up to {most} {plugin} in a tag",
            python=f"keeps a random {kept} of them, and the last",
            data_server=f"keeps a random {kept_data_server} of them, and the last"
            if any(data_server > kept_data_server for _, _, data_server in tags)
            else "shows all of them",
            command=f"tensorboard --logdir {shell_word(logdir_of(run.path, run.name))} "
            f"--samples_per_plugin {plugin}={most}",
            fix="keeps all of them, as `tbwriter serve` does"
            + ("; `tbwriter plot` draws all of them" if plugin == "scalars" else ""),
        )


def _check_finite(run: RunScan) -> Iterator[Finding]:
    tags = {
        tag: scan
        for tag, scan in run.tags.items()
        if not scan.other_plugins
        and (scan.not_finite_from is not None or 2 * (scan.nans + scan.infinities) > scan.points)
    }
    if tags:
        tag, scan = next(iter(tags.items()))
        yield Finding(
            "not-finite",
            NOTE,
            f"{run.path}, tags {names(list(tags))}",
            f"{scan.nans + scan.infinities} of {scan.points} values of {tag!r} are NaN or infinite"
            + (f", all from step {scan.not_finite_from} on" if scan.not_finite_from is not None else ""),
            **both("shows these points as NaN or infinite; no line can be drawn through them"),
            fix="look at what the training did before, such as its learning rate and the norm of its gradients",
        )
