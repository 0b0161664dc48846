"""Go through all runs below a place, one after the other or in a pool of processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tbwriter import _scan
from tbwriter._scanned import RunScan
from tbwriter._tree import Directory
from tbwriter.cli import _common

# A process takes half a second to start, in which one reads some 50 MB of scalars.
_WORTH_A_POOL_BYTES = 256 << 20


def scan_all(
    runs: list[Directory], storage_options: Mapping[str, Any] | None, *, jobs: int = 0, what: str = "reading"
) -> Iterator[RunScan]:
    """Yield what each of `runs` holds, in their order.

    Args:
        runs: directories with event files.
        storage_options: for the file system behind a URL.
        jobs: processes to use; 0 chooses.
        what: for the progress bar.
    """
    total = _common.size_of(runs)
    if not jobs:
        jobs = min(os.cpu_count() or 1, len(runs)) if total >= _WORTH_A_POOL_BYTES else 1
    with _common.progress(what, total) as advance:
        if jobs == 1 or len(runs) == 1:
            for run in runs:
                yield _scan.scan(run.path, run.run, run.event_files, storage_options, advance)
            return
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # Not forked: an fsspec file system may have begun a thread.
        with ProcessPoolExecutor(min(jobs, len(runs)), mp_context=get_context("spawn")) as pool:
            waiting = [pool.submit(_scan.scan, run.path, run.run, run.event_files, storage_options) for run in runs]
            for run, future in zip(runs, waiting, strict=True):
                yield future.result()
                advance(sum(found.size for found in run.event_files))
