"""`tbwriter export`: values as CSV or Parquet, run by run, in one process or many."""

from __future__ import annotations

import csv
import enum
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TextIO

import typer

from tbwriter import _rewrite, _scan, _summary
from tbwriter._scanned import Bulk
from tbwriter._tree import Directory
from tbwriter.cli import _common, _damage, _kinds, _saving, _writing
from tbwriter.cli._damage import Damage, FileDamage

COLUMNS = ("run", "tag", "step", "wall_time", "value")
_BATCH = 50_000
_WORTH_A_POOL_BYTES = 64 << 20

Rows = tuple[str, str, list[int], list[float], list[Any]]
"""Values of one tag of one run: run, tag, steps, wall times, values."""
Write = Callable[[Rows], None]
Part = tuple[str, list[FileDamage], bool]
"""The file with the values of one run, what is wrong with the files that it comes from, and whether it has values."""


class Format(str, enum.Enum):
    """What is written."""

    CSV = "csv"
    PARQUET = "parquet"


class Engine(str, enum.Enum):
    """What reads runs side by side."""

    PROCESSES = "processes"
    DASK = "dask"


@_common.command
def export(
    path: _common.Path,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; CSV goes to stdout without.")
    ] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="Without it, FILE's ending says it; else CSV.")
    ] = None,
    tag: _common.TagPattern = None,
    kind: Annotated[str, typer.Option(help="The kind of values; what is no scalar becomes JSON.")] = "scalars",
    jobs: Annotated[int, typer.Option(min=0, help="Processes to read with; 0 chooses.")] = 0,
    engine: Annotated[
        Engine, typer.Option(help="dask: hand the runs to the Dask scheduler of --scheduler.")
    ] = Engine.PROCESSES,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Of the Dask scheduler.")] = None,
    storage_options: _common.StorageOptions = None,
) -> None:
    r"""Write values as a table: run, tag, step, wall_time, value.

    Values of a tag stand in their order; all points are there, not the sample that TensorBoard keeps. Memory stays
    bounded, whatever the size of the files. Damage is left out. FILE may be a pipe or a device, which is written into.
    Parquet needs `pip install 'tbwriter\[parquet]'`. Exit codes: 0; 1 a file is damaged; 2 wrong usage, or no such
    tag; 3 nothing there, not readable or not writable.
    """
    options = _common.options_of(storage_options)
    _writing.pattern(tag, "--tag")
    if (engine is Engine.DASK) != (scheduler is not None):
        raise typer.BadParameter("--engine dask and --scheduler ADDRESS go together")
    chosen = form or (Format.PARQUET if output is not None and output.endswith(".parquet") else Format.CSV)
    runs = _common.runs_below(path, options)
    _kinds.refuse_unknown([kind], "--kind", runs, options)
    damage = Damage()
    nothing = ValueError(f"no {kind} of such a tag in {path}; `tbwriter inspect` lists the tags")
    found = tag is None
    if output is None:
        if chosen is Format.PARQUET:
            raise typer.BadParameter("Parquet goes to a file: say --output FILE")
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as a file
        sys.stdout.write(",".join(COLUMNS) + "\n")
        for run in runs:
            damages, has_values = _push(run, tag, kind, options, lambda rows: _csv_rows(sys.stdout, rows))
            damage.add(damages)
            found = found or has_values
        if not found:
            raise nothing
        damage.end()
    if chosen is Format.PARQUET:
        _arrow()
    inputs = [found.path for run in runs for found in run.event_files]
    target = _saving.Output(output or "", inputs, f"curves.{chosen.value}")
    with target.new_file(options) as whole:
        if not jobs:
            jobs = os.cpu_count() or 1 if _common.size_of(runs) >= _WORTH_A_POOL_BYTES else 1
        folder = os.path.dirname(whole)
        work = [(run, os.path.join(folder, str(n)), chosen, tag, kind, options) for n, run in enumerate(runs)]
        with _common.progress("exporting", _common.size_of(runs)) as advance:

            def told() -> Iterator[str]:
                nonlocal found
                for run, part in zip(runs, _parts(work, engine, scheduler, min(jobs, len(runs))), strict=True):
                    path_of_part, damages, has_values = part
                    damage.add(damages)
                    found = found or has_values
                    yield path_of_part
                    advance(sum(file.size for file in run.event_files))

            _join(told(), whole, chosen)
        if not found:
            raise nothing
    damage.end()


def _push(
    run: Directory, tag: str | None, kind: str, options: Mapping[str, Any] | None, into: Write
) -> tuple[list[FileDamage], bool]:
    """Give the values of one run to `into`, some thousand of a tag at a time.

    Return what is wrong with its files, and whether there were values.
    """
    pattern = re.compile(tag or "")
    has_values = False

    def write(rows: Rows) -> None:
        nonlocal has_values
        has_values = True
        into(rows)

    def observe(name: str, bulk: Bulk) -> None:
        if kind == bulk.scan.plugin == "scalars" and pattern.search(name):
            write((run.run, name, bulk.steps.tolist(), bulk.times.tolist(), bulk.numbers.tolist()))

    scan = _scan.scan(run.path, run.run, run.event_files, options, observe=observe)
    for file in scan.files:
        if file.error is not None:
            raise OSError(f"{file.found.path} cannot be read: {file.error}")
    if kind != "scalars":
        plugins: dict[str, str] = {}
        for found in run.event_files:
            for data in _rewrite.records(found, options):
                _push_event(data, plugins, run.run, pattern, kind, write)
    return _damage.in_scan(scan), has_values


def _push_event(
    data: bytes, plugins: dict[str, str], run: str, pattern: re.Pattern[str], kind: str, write: Write
) -> None:
    """Give the values of one kind in a record to `write`, as JSON; nothing of a record that is no Event."""
    try:
        event = _summary.decode(data, plugins)
    except ValueError:
        return
    for value in event.values:
        if value.plugin == kind and pattern.search(value.tag):
            text = json.dumps(_common.to_json(value.data), ensure_ascii=False)
            write((run, value.tag, [event.step], [event.wall_time], [text]))


@contextmanager
def _writer(path: str, form: Format, kind: str) -> Iterator[Write]:
    """Open a part for rows; a CSV part has no heading."""
    if form is Format.CSV:
        with open(path, "w", encoding="utf-8", newline="") as file:
            yield lambda rows: _csv_rows(file, rows)
        return
    pa, pq = _arrow()
    value = pa.float64() if kind == "scalars" else pa.string()
    schema = pa.schema(list(zip(COLUMNS, (pa.string(), pa.string(), pa.int64(), pa.float64(), value), strict=True)))
    waiting: list[Rows] = []
    with pq.ParquetWriter(path, schema) as file:

        def store() -> None:
            columns: list[list[Any]] = [[], [], [], [], []]
            for run, tag, steps, times, values in waiting:
                columns[0] += [run] * len(steps)
                columns[1] += [tag] * len(steps)
                columns[2] += steps
                columns[3] += times
                columns[4] += values
            waiting.clear()
            file.write_table(pa.table(columns, schema=schema))

        def write(rows: Rows) -> None:
            waiting.append(rows)
            if sum(len(steps) for _, _, steps, _, _ in waiting) >= _BATCH or len(waiting) >= _BATCH:
                store()

        yield write
        store()


def _csv_rows(file: TextIO, rows: Rows) -> None:
    run, tag, steps, times, values = rows
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows((run, tag, step, time, value) for step, time, value in zip(steps, times, values, strict=True))


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as exc:
        raise ImportError("Parquet needs pyarrow; install it with: pip install 'tbwriter[parquet]'") from exc
    return pa, pq


def write_part(
    run: Directory, path: str, form: Format, tag: str | None, kind: str, options: Mapping[str, Any] | None
) -> Part:
    """Write the values of one run to a file of its own; return what `Part` holds. Runs in other processes."""
    with _writer(path, form, kind) as write:
        return path, *_push(run, tag, kind, options, write)


def _parts(jobs: Iterable[tuple[Any, ...]], engine: Engine, scheduler: str | None, processes: int) -> Iterator[Part]:
    """Have `write_part` done for each of `jobs`, and yield what it returns in their order."""
    if engine is Engine.DASK:
        yield from _dask_parts(jobs, scheduler)
    elif processes == 1:
        for job in jobs:
            yield write_part(*job)
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # Not forked: an fsspec file system may have begun a thread.
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            waiting = [pool.submit(write_part, *job) for job in jobs]
            try:
                for future in waiting:
                    yield future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)  # nobody will take the rest
                raise


def _dask_parts(jobs: Iterable[tuple[Any, ...]], scheduler: str | None) -> Iterator[Part]:
    try:
        from dask.distributed import Client
    except ImportError as exc:
        raise ImportError("--engine dask needs Dask; install it with: pip install distributed") from exc
    with Client(scheduler, timeout=30) as client:
        futures = [client.submit(write_part, *job, pure=False) for job in jobs]
        for future in futures:
            yield future.result()


def _join(parts: Iterable[str], path: str, form: Format) -> None:
    """Put the parts into one file, in their order, and remove them."""
    if form is Format.CSV:
        with open(path, "wb") as whole:
            whole.write((",".join(COLUMNS) + "\n").encode())
            for part in parts:
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, whole)
                os.unlink(part)
        return
    _, pq = _arrow()
    writer = None
    try:
        for part in parts:
            with pq.ParquetFile(part) as file:
                writer = writer or pq.ParquetWriter(path, file.schema_arrow)
                for batch in file.iter_batches():
                    writer.write_batch(batch)
            os.unlink(part)
    finally:
        if writer is not None:
            writer.close()
