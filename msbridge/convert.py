"""Turn MindSpore's own summary directories into TensorBoard event files. Needs no MindSpore.

    from msbridge.convert import convert
    convert("summary_dir", "runs/converted")

Scalars, images, histograms and the graph become what TensorBoard shows of the kind; lineage becomes a row of HParams;
a tensor becomes a histogram of its values, and is kept whole under `<tag>/tensor`, which no dashboard shows. The graph
of the data set becomes a text; a loss landscape a picture, with its numbers under `<tag>/x`, `/y`, `/z`, `/path` and
`/end`. What is left out, such as explanations, is said once for each directory, and counted in its report.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msbridge import _foreign
from tbwriter import SummaryWriter, read_records

__all__ = ["Conversion", "Converted", "convert"]

_log = logging.getLogger(__name__)
_MARK = ".out.events.summary."
_LINEAGE = "_lineage"


@dataclass
class Converted:
    """What became of one directory of MindSpore's summaries.

    Attributes:
        path: the directory.
        output: the run's directory.
        records: how many records were read.
        values: how many values were written, by kind.
        skipped: what could not be converted, by reason.
    """

    path: str
    output: str
    records: int = 0
    values: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def convert(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> list[Converted]:
    """Convert every directory of MindSpore's summaries at or below `path`.

    Args:
        path: a directory, as path or URL.
        output: where the runs go; each lies below it as its summaries below `path`.
        storage_options: for the file systems behind URLs.

    Returns:
        one report for each directory.

    Raises:
        FileNotFoundError: no summaries of MindSpore there.
        FileExistsError: a run's directory has event files already.
    """
    with Conversion(path, output, storage_options=storage_options) as conversion:
        if not conversion.step():
            raise FileNotFoundError(f"no summaries of MindSpore ('*{_MARK}*') at or below {os.fspath(path)!r}")
        return conversion.reports


class Conversion:
    """A conversion that goes on while training writes; `convert` does it once.

    Args:
        path: as in `convert`.
        output: as in `convert`.
        storage_options: as in `convert`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        import fsspec

        self._options = dict(storage_options or {})
        self._fs, self._root = fsspec.core.url_to_fs(os.path.expanduser(os.fspath(path)), **self._options)
        self._local = "://" not in os.fspath(path)
        self._scheme = "" if self._local else os.fspath(path).split("://", 1)[0] + "://"
        self._output = os.fspath(output)
        self._runs: dict[str, _Run] = {}

    def __enter__(self) -> Conversion:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def reports(self) -> list[Converted]:
        """What was converted so far."""
        return [run.report for run in self._runs.values()]

    def step(self) -> int:
        """Convert what was written since the last call; return how many records that were.

        Raises:
            OSError: storage fails. FileExistsError: as `convert`.
        """
        count = 0
        for folder, files in sorted(self._directories().items()):
            run = self._runs.get(folder)
            if run is None:
                below = folder[len(self._root.rstrip("/")) :].strip("/")
                target = "/".join(part for part in (self._output.rstrip("/"), below) if part)
                run = self._runs[folder] = _Run(self._scheme + folder, target, self._options)
            for name in sorted(files):
                count += run.file(f"{self._scheme}{folder}/{name}")
            run.flush()
        return count

    def follow(self, interval: float = 2.0, pause: Callable[[float], None] = time.sleep) -> Iterator[int]:
        """Convert as training writes, without end; yield the records of each look.

        Args:
            interval: between two looks, in seconds.
            pause: called between them; waits.
        """
        while True:
            yield self.step()
            pause(interval)

    def close(self) -> None:
        """End the event files."""
        for run in self._runs.values():
            run.close()

    def _directories(self) -> dict[str, list[str]]:
        """Return {directory: names} of MindSpore's files."""
        found: dict[str, list[str]] = {}
        for path in self._fs.find(self._root):
            folder, _, name = path.rpartition("/")
            if _MARK in name:
                found.setdefault(folder, []).append(name)
        return found


class _Run:
    """One directory of summaries, and the run that it becomes."""

    def __init__(self, path: str, output: str, options: Mapping[str, Any]) -> None:
        self.report = Converted(path, output)
        _refuse_existing(output, options)
        remote = "://" in output
        self._writer = SummaryWriter(output, storage_options=options if remote and options else None)
        self._options = options if "://" in path and options else None
        self._offsets: dict[str, int] = {}
        self._last: dict[str, int] = {}  # step of each tag
        self._graph = self._dataset = False
        self._hparams: dict[str, bool | int | float | str] = {}
        self._metrics: dict[str, float] = {}

    def file(self, path: str) -> int:
        """Convert the new records of a file; return how many."""
        count = 0
        for record in read_records(path, offset=self._offsets.get(path, 0), storage_options=self._options):
            self._offsets[path] = record.end
            count += 1
            try:
                if path.endswith(_LINEAGE):
                    self._lineage(_foreign.decode_lineage(record.data))
                else:
                    self._record(_foreign.decode(record.data))
            except ValueError as exc:
                self._skip(f"record that cannot be read: {exc}")
        self.report.records += count
        return count

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        if self._hparams or self._metrics:
            try:
                self._writer.add_hparams(self._hparams, self._metrics, global_step=max(self._last.values(), default=0))
                self.report.values["hparams"] += 1
            except (ValueError, TypeError) as exc:
                self._skip(f"lineage: {exc}")
            self._hparams, self._metrics = {}, {}
        self._writer.close()

    def _skip(self, reason: str) -> None:
        self.report.skipped[reason] += 1
        if self.report.skipped[reason] == 1 and reason is not _REPEATED:
            _log.warning("%s: %s; said once", self.report.path, reason)

    def _record(self, found: _foreign.Summaries | _foreign.GraphFound | _foreign.LeftOut | None) -> None:
        if isinstance(found, _foreign.LeftOut):
            self._skip(found.what)
        elif isinstance(found, _foreign.GraphFound):
            if not self._graph:  # TensorBoard shows one
                self._graph = True
                self._writer.add_graph(found.graph_def)
                self.report.values["graph"] += 1
        elif found is not None:
            for item in found.items:
                # MindSpore writes the last step of an epoch twice, and what is left at the end with step 0.
                if found.step <= self._last.get(item.tag, -1):
                    self._skip(_REPEATED)
                    continue
                if isinstance(item.value, str):
                    self._skip(f"value of {item.tag!r}: {item.value}")
                    continue
                try:
                    self._item(item, found.step, found.wall_time)
                    self._last[item.tag] = found.step
                except (ValueError, TypeError) as exc:
                    self._skip(f"value of {item.tag!r}: {exc}")

    def _item(self, item: _foreign.Item, step: int, wall_time: float) -> None:
        value, writer = item.value, self._writer
        if isinstance(value, float):
            writer.add_scalar(item.tag, value, step, wall_time)
            kind = "scalars"
        elif isinstance(value, _foreign.Picture):
            events = writer.file_writer
            assert events is not None, "None after close, which comes last"
            events.add_summary(value.summary, step, wall_time)
            kind = "images"
        elif isinstance(value, _foreign.Landscape):
            self._landscape(item.tag, value, step, wall_time)
            kind = "landscapes"
        elif isinstance(value, _foreign.Buckets):
            self._histogram(item.tag, value, step, wall_time)
            kind = "histograms"
        else:
            writer.add_histogram(item.tag, value, step, walltime=wall_time)
            writer.add_tensor(f"{item.tag}/tensor", value, step, wall_time)
            kind = "tensors"
        self.report.values[kind] += 1

    def _histogram(self, tag: str, value: _foreign.Buckets, step: int, wall_time: float) -> None:
        if value.nans:
            self._writer.add_scalar(f"{tag}/nan_count", value.nans, step, wall_time)
        if value.infinities:
            self._writer.add_scalar(f"{tag}/inf_count", value.infinities, step, wall_time)
        if len(value.counts):
            total = float(value.counts.sum())
            # Neither the sum nor that of squares is shown or stored.
            self._writer.add_histogram_raw(
                tag, value.low, float(value.limits[-1]), total, 0.0, 0.0, value.limits, value.counts, step, wall_time
            )

    def _landscape(self, tag: str, value: _foreign.Landscape, step: int, wall_time: float) -> None:
        """Keep a landscape whole, and show its heights as a picture: black is the lowest loss, white the highest."""
        for name, array in {"z": value.heights, **value.tensors}.items():
            self._writer.add_tensor(f"{tag}/{name}", array, step, wall_time)
        heights = value.heights.astype(np.float64)
        finite = heights[np.isfinite(heights)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
        grey = np.nan_to_num(np.clip((heights - low) / (high - low or 1.0), 0, 1), nan=1.0)
        try:
            self._writer.add_image(tag, grey.astype(np.float32), step, wall_time, dataformats="HW")
        except ImportError as exc:
            self._skip(f"picture of a landscape, whose numbers are kept: {exc}")

    def _lineage(self, found: _foreign.Lineage | _foreign.DatasetGraph | None) -> None:
        if isinstance(found, _foreign.DatasetGraph):
            if not self._dataset:  # MindSpore tells it again for each training
                self._dataset = True
                self._writer.add_text("dataset_graph", found.text, 0)
                self.report.values["dataset graph"] += 1
            return
        # MindSpore spreads what belongs to one training over several records and files: one row holds all of it.
        if found is not None:
            # A damaged record may hold a value without a name, which must not cost the others.
            self._hparams.update({name: value for name, value in found.hparams.items() if name})
            self._metrics.update(found.metrics)


_REPEATED = "value of a step that was there already, or before the last one"


def _refuse_existing(output: str, options: Mapping[str, Any]) -> None:
    import fsspec

    fs, path = fsspec.core.url_to_fs(os.path.expanduser(output), **(options if "://" in output else {}))
    if fs.isdir(path) and any("tfevents" in name.rsplit("/", 1)[-1] for name in fs.ls(path, detail=False)):
        raise FileExistsError(f"{output!r} has event files already: convert into another directory")
