"""Turn MindSpore's own summary directories into TensorBoard event files. Needs no MindSpore.

    from msbridge.convert import convert
    convert("summary_dir", "runs/converted")

Scalars, images, histograms and the graph become what TensorBoard shows of the kind; lineage becomes a row of HParams;
a tensor becomes a histogram of its values, and is kept whole under `<tag>/tensor`, which no dashboard shows. The graph
of the data set becomes a text; a loss landscape a picture, with its numbers under `<tag>/x`, `/y`, `/z`, `/path` and
`/end`. What is left out, such as explanations, is said once for each directory, and counted in its report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from msbridge import _foreign
from msbridge._converted import Converted, Damaged
from tbwriter import SummaryWriter, _tree, read_records, sinks
from tbwriter._logger import get_logger

__all__ = ["Conversion", "Converted", "Damaged", "convert"]

_log = get_logger(__name__)
_LINEAGE = "_lineage"


def convert(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> list[Converted]:
    """Convert every directory of MindSpore's summaries at or below `path`.

    Damage is stepped over, every good record is converted; the damaged files are logged, and in the reports.

    Args:
        path: a directory, as path or URL.
        output: where the runs go; each lies below it as its summaries below `path`.
        storage_options: for the file systems behind URLs.

    Returns:
        one report for each directory.

    Raises:
        ValueError: no path and no URL that is served.
        FileNotFoundError: no summaries of MindSpore there.
        FileExistsError: a run's directory has event files already.
        OSError: a directory or a file cannot be read.
    """
    with Conversion(path, output, storage_options=storage_options) as conversion:
        conversion.step()
        if not conversion.reports:
            raise FileNotFoundError(f"no summaries of MindSpore at or below {os.fspath(path)!r}")
        for report in conversion.reports:
            for damaged in report.damage:
                _log.warning("%s", damaged.words)
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
        self._options = dict(storage_options or {})
        self._place = sinks.normalise(path, "path", reading=True)
        self._output = sinks.normalise(output, "output")
        self._runs: dict[str, _Run] = {}
        self._left_out: set[str] = set()

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
            OSError: storage fails, or a directory cannot be listed and nothing else is there. FileExistsError: as
                `convert`.
        """
        count = 0
        directories = self._directories()
        for directory in directories:  # before anything is written
            if directory.path not in self._runs:
                _refuse_existing(self._target(directory), self._options)
        for directory in directories:
            run = self._runs.get(directory.path)
            if run is None:
                run = self._runs[directory.path] = _Run(directory.path, self._target(directory), self._options)
            for found in directory.mindspore_files:
                count += run.file(found)
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

    def _target(self, directory: _tree.Directory) -> str:
        return self._output if directory.run == "." else sinks.join(self._output, *directory.run.split("/"))

    def _directories(self) -> list[_tree.Directory]:
        """Return those with files of MindSpore's; none where nothing is yet."""
        try:
            found = list(_tree.walk(self._place, self._options))
        except FileNotFoundError:
            return []
        theirs = [directory for directory in found if directory.mindspore_files]
        for directory in found:
            if directory.error is not None:
                if not theirs:
                    raise directory.error
                if directory.path not in self._left_out:
                    self._left_out.add(directory.path)
                    _log.warning("%s cannot be listed, and is left out: %s", directory.path, directory.error)
        return theirs


class _Run:
    """One directory of summaries, and the run that it becomes."""

    def __init__(self, path: str, output: str, options: Mapping[str, Any]) -> None:
        self.report = Converted(path, output)
        remote = "://" in output
        self._writer = SummaryWriter(output, storage_options=options if remote and options else None)
        self._options = options if "://" in path and options else None
        self._ends: dict[str, int] = {}  # of the last good record of each file
        self._damage: dict[str, Damaged] = {}
        self._last: dict[str, int] = {}  # step of each tag
        self._graph = self._dataset = False
        self._hparams: dict[str, bool | int | float | str] = {}
        self._metrics: dict[str, float] = {}

    def file(self, found: _tree.Found) -> int:
        """Convert the new records of a file; return how many."""
        path, count = found.path, 0
        end = self._ends.get(path, 0)
        damaged = self._damage.setdefault(path, Damaged(path))
        for record in read_records(path, offset=end, storage_options=self._options):
            if record.offset > end:
                damaged.add(end, record.offset - end)
            end = self._ends[path] = record.end
            count += 1
            try:
                if path.endswith(_LINEAGE):
                    self._lineage(_foreign.decode_lineage(record.data))
                else:
                    self._record(_foreign.decode(record.data))
            except ValueError as exc:
                self._skip(f"record that cannot be read: {exc}")
        damaged.tail_bytes = max(found.size - end, 0)
        self.report.damage = [file for file in self._damage.values() if file.places or file.tail_bytes]
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
    if any("tfevents" in name for name in sinks.list_names(output, options if "://" in output else None)):
        raise FileExistsError(f"{output!r} has event files already: convert into another directory")
