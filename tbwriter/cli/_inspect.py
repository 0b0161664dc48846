"""`tbwriter inspect`: what the runs hold, and what each reader shows of it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from tbwriter import _summary, sinks
from tbwriter._naming import MARKER_STEP
from tbwriter._scanned import FileScan, RunScan, TagScan
from tbwriter.cli import _common, _readers, _rows, _scanning, _writing
from tbwriter.cli._visible import cell

_ASK_SECS = 10.0  # an object store, for the projector's configuration


@_common.command
def inspect(
    path: _common.Path,
    tag: _common.TagPattern = None,
    as_json: _common.Json = False,
    jobs: Annotated[int, typer.Option(min=0, help="Processes to read with; 0 chooses.")] = 0,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Show runs, files, sessions and tags, and what each of TensorBoard's readers shows of them.

    Of each tag: kind, points, first and last step and time, missing steps, NaN, bytes. Of one file: what is shown of a
    directory that holds it alone. Memory stays bounded, whatever the size of the files. Exit codes: 0; 1 when a file is
    damaged; 2 wrong usage, or no such tag; 3 nothing there or not readable.
    """
    options = _common.options_of(storage_options)
    pattern = _writing.pattern(tag, "--tag")
    unreadable: list[OSError] = []
    runs = _common.runs_below(path, options, unreadable)
    damaged = found = False
    told: list[dict[str, Any]] = []
    out = _common.console()
    for run in _scanning.scan_all(runs, options, jobs=jobs):
        damaged = damaged or any(file.damaged for file in run.files)
        unreadable += [OSError(file.error) for file in run.files if file.error]
        found = found or bool(_chosen(run, pattern))
        embeddings = _embeddings(run, options)
        if as_json:
            told.append({**run_as_dict(run, pattern), "embeddings": embeddings})
        else:
            _show(out, run, pattern, embeddings)
    if as_json:
        _common.print_json({"path": path, "runs": told})
    if not found and tag is not None:
        raise ValueError(f"no tag in which {tag!r} is found in {path}; without --tag, all are shown")
    if unreadable:
        raise typer.Exit(_common.Exit.UNREADABLE)
    raise typer.Exit(_common.Exit.FOUND if damaged else _common.Exit.OK)


def _embeddings(run: RunScan, options: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the embeddings beside the event files of a run, which only the projector reads."""
    try:
        config = sinks.read_file(run.path, _summary.CONFIG_NAME, options, within=_ASK_SECS)
        found = _summary.embeddings_in(config or b"")
    except NotADirectoryError:  # one file was asked for
        return []
    except (OSError, ValueError) as exc:
        return [{"name": "?", "tensors": "", "error": str(exc)}]
    return [{"name": name, "tensors": path, "error": ""} for name, path in found]


def _chosen(run: RunScan, pattern: re.Pattern[str] | None) -> dict[str, TagScan]:
    """Return the tags in which a pattern is found."""
    return {name: scan for name, scan in run.tags.items() if pattern is None or pattern.search(name)}


def run_as_dict(run: RunScan, pattern: re.Pattern[str] | None) -> dict[str, Any]:
    """Return a run for JSON."""
    return {
        "run": run.name,
        "path": run.path,
        "is_one_file": _is_one_file(run),
        "sessions": [start.step for start in run.starts],
        "values": run.values,
        "graphs": run.graphs,
        "values_of_further_tags": run.more_tags,
        "files": [_file_as_dict(file) for file in run.files],
        "tags": [_tag_as_dict(run, name, scan) for name, scan in _chosen(run, pattern).items()],
    }


def _is_one_file(run: RunScan) -> bool:
    """Say whether a file was asked for, of which no reader shows anything when it is its log directory."""
    return [file.found.path for file in run.files] == [run.path]


def _file_as_dict(file: FileScan) -> dict[str, Any]:
    return {
        "name": file.found.name,
        "bytes": file.found.size,
        "records": file.records,
        "values": file.values,
        "writer": file.writer,
        "file_version": file.version,
        "first_time": file.first_time,
        "last_time": file.last_time,
        "sessions": [start.step for start in file.starts],
        "damaged_places": file.damaged,
        "lost_bytes": file.lost_bytes,
        "torn_tail": file.torn,
        "error": file.error,
    }


def _tag_as_dict(run: RunScan, name: str, scan: TagScan) -> dict[str, Any]:
    python, data_server = _readers.shown(run, name).words
    return {
        "tag": name,
        "kind": scan.plugin,
        "forms": scan.forms,
        "points": scan.points,
        "bytes": scan.bytes,
        "first_step": scan.first_step,
        "last_step": scan.last_step,
        "first_time": scan.first_time,
        "last_time": scan.last_time,
        "stride": scan.stride,
        "gaps": [[gap.before, gap.after] for gap in scan.gaps],
        "steps_back": scan.backs,
        "repeated_steps": scan.repeated,
        "nan": scan.nans,
        "infinite": scan.infinities,
        "lowest": scan.lowest,
        "highest": scan.highest,
        "last": scan.last_number,
        "python_reader": python,
        "data_server": data_server,
    }


def _show(out: Console, run: RunScan, pattern: re.Pattern[str] | None, embeddings: list[dict[str, str]]) -> None:
    size = sum(file.found.size for file in run.files)
    sessions = ", ".join(
        "none resumed" if start.step >= MARKER_STEP else f"from step {start.step}" for start in run.starts
    )
    counted = _common.counted
    out.print(f"[bold]{cell(run.name)}[/bold]  {cell(run.path)}")
    out.print(
        f"  {counted(len(run.files), 'file')}, {_common.megabytes(size)}, {counted(run.values, 'value')} of "
        f"{counted(len(run.tags), 'tag')}, {counted(len(run.starts), 'session mark')}"
        f"{f' ({sessions})' if run.starts else ''}{', a graph' if run.graphs else ''}"
    )
    if len(run.files) > 1 or any(file.damaged or file.error for file in run.files):
        _rows.show(out, _FILES, _file_rows(run), red=frozenset({"damage"}))
    tags = _chosen(run, pattern)
    if tags:
        _rows.show(out, _TAGS, _tag_rows(run, tags), red=frozenset())
    for embedding in embeddings:
        out.print(f"  embedding {cell(embedding['name'])}  {cell(embedding['error'] or embedding['tensors'])}")
    if tags and _is_one_file(run):
        out.print("  readers: of a directory that holds this file alone; they list nothing with a file as --logdir")
    if run.more_tags:
        out.print(f"  {run.more_tags} values of further tags are not shown")
    out.print()


_FILES = ("file", "bytes", "records", "from", "to", "writer", "damage")


def _file_rows(run: RunScan) -> list[list[str]]:
    rows = []
    for file in run.files:
        places = _common.counted(file.damaged, "place")
        damage = f"{places}, {_common.megabytes(file.lost_bytes)} lost" if file.damaged else ""
        rows.append(
            [
                file.found.name,
                _common.megabytes(file.found.size),
                str(file.records),
                _moment(file.first_time),
                _moment(file.last_time),
                file.writer,
                file.error or damage,
            ]
        )
    return rows


_TAGS = (
    "tag",
    "kind",
    "points",
    "steps",
    "time",
    "missing",
    "NaN/Inf",
    "bytes",
    "last",
    "Python reader",
    "data server",
)


def _tag_rows(run: RunScan, tags: dict[str, TagScan]) -> list[list[str]]:
    rows = []
    for name, scan in tags.items():
        gaps = scan.gaps
        python, data_server = _readers.shown(run, name).words
        largest = f"the largest {gaps[0].before}..{gaps[0].after}" if gaps else ""
        notes = [f"{_common.counted(len(gaps), 'gap')}, {largest}"] if gaps else []
        if scan.backs:
            notes.append(f"back {_common.counted(scan.backs, 'time')}")
        rows.append(
            [
                name,
                scan.plugin or "?",
                str(scan.points),
                f"{scan.first_step}..{scan.last_step}",
                _common.duration(max(scan.last_time - scan.first_time, 0.0)),
                ", ".join(notes),
                f"{scan.nans}/{scan.infinities}" if scan.nans or scan.infinities else "",
                _common.megabytes(scan.bytes),
                "" if scan.last_number is None else f"{scan.last_number:.6g}",
                python,
                data_server,
            ]
        )
    return rows


def _moment(seconds: float | None) -> str:
    if seconds is None:
        return ""
    try:
        return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"
