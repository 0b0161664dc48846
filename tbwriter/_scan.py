"""Go once through the event files of a run and keep what is worth knowing of them, in bounded memory.

Values are gathered by tag in plain arrays and looked at in bulk, a few thousand at a time. Over 300 lines: what is
gathered from records is only understood beside the look that is taken at it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tbwriter import _record, _summary, sinks
from tbwriter._left import Room, Steps
from tbwriter._naming import MARKER_STEP
from tbwriter._scanned import Back, Bulk, Damage, FileScan, Gap, Restart, RunScan, Start, TagScan
from tbwriter._summary import Metadata
from tbwriter._tree import Found
from tbwriter.errors import CorruptRecordError, TruncatedRecordError

MOST_TAGS = 50_000
"""Tags of a run that are told apart; a file of random tags must not fill the memory."""
MOST_EXAMPLES = 20
"""Damaged places, gaps and steps back that are kept with their places; all are counted."""
_MOST_STRIDES = 64
_GATHERED = 100_000
_ZEROS = 32
_AROUND = _record.HEADER_SIZE + _record.FOOTER_SIZE


def scan(
    path: str,
    name: str,
    files: tuple[Found, ...],
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] = lambda _bytes: None,
    observe: Callable[[str, Bulk], None] = lambda _tag, _bulk: None,
) -> RunScan:
    """Go through `files`, the event files of one run, in the order given: readers go by their names.

    Args:
        path: the run's directory.
        name: as TensorBoard names it.
        files: what to go through.
        storage_options: for the file system behind a URL.
        progress: called now and then with the number of bytes that were read since.
        observe: called with a tag and some of its values, in their order.

    Errors of a file stand in its FileScan; the others are gone through all the same.
    """
    scanner = _Scanner(RunScan(path, name), progress, observe)
    for found in files:
        scanner.file(found, storage_options)
    return scanner.run


class _Gathered:
    """Values of one tag that wait to be looked at."""

    __slots__ = ("data_server", "numbers", "python", "scan", "sizes", "steps", "times", "where")

    def __init__(self, room: Room) -> None:
        self.scan = TagScan()
        # What is left for each reader; one and the same as long as nothing is voided.
        self.python = self.data_server = Steps(room)
        self.steps = array("q")
        self.times = array("d")
        self.numbers = array("d")
        self.where = array("q")  # how many values of the run stand before
        self.sizes = 0

    def take(self, file: int) -> Bulk:
        """Return what waits, and forget it."""
        bulk = Bulk(
            self.scan,
            np.frombuffer(self.steps, np.int64),
            np.frombuffer(self.times, np.float64),
            np.frombuffer(self.numbers, np.float64),
            np.frombuffer(self.where, np.int64),
            file,
        )
        self.steps, self.times, self.numbers = array("q"), array("d"), array("d")
        self.where, self.sizes = array("q"), 0
        return bulk


class _Scanner:
    """Fills a RunScan."""

    def __init__(self, run: RunScan, progress: Callable[[int], None], observe: Callable[[str, Bulk], None]) -> None:
        self.run = run
        self._progress = progress
        self._observe = observe
        self._outliner = _summary.Outliner()
        self._tags: dict[str, _Gathered] = {}
        self._lines: dict[_summary.Alike, list[_Gathered]] = {}
        self._gathered = 0
        self._room = Room()
        self._versioned = False  # whether a file_version came: the Python reader goes by marks from then on

    def file(self, found: Found, storage_options: Mapping[str, Any] | None) -> None:
        """Go through one file."""
        scan = FileScan(found)
        self.run.files.append(scan)
        values_before = self.run.values
        self._seen: set[str] = set()
        self._times = array("d")
        try:
            with sinks.open_file(found.path, storage_options) as file:
                self._records(_record.RecordReader(file, found.path), scan)
                if scan.damaged:
                    self._measure_damage(file, scan)
                    if not scan.records:
                        file.seek(0)
                        scan.head = file.read(_record.HEADER_SIZE)
        except (OSError, MemoryError) as exc:
            scan.error = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
        self._look_at_all()
        scan.values = self.run.values - values_before
        before = self.run.files[-2].tags if len(self.run.files) > 1 else frozenset()
        scan.tags = before if before == self._seen else frozenset(self._seen)

    def _records(self, reader: _record.RecordReader, scan: FileScan) -> None:
        told = 0
        while True:
            for data in reader.read_buffered():
                self._record(data, scan)
            if reader.offset - told > 1 << 20:
                self._progress(reader.offset - told)
                told = reader.offset
            try:
                record = reader.read()
            except CorruptRecordError as error:
                skipped = reader.resync()
                scan.damaged += 1
                if scan.damaged <= MOST_EXAMPLES or skipped is None:
                    size = reader.offset - error.offset
                    torn = isinstance(error, TruncatedRecordError)
                    scan.damage.append(
                        Damage(error.offset, size, str(error), torn, False, False, False, self.run.values)
                    )
                if skipped is None:
                    break
                continue
            if record is None:
                break
            self._record(record.data, scan)
        self._progress(reader.offset - told)
        scan.lost_bytes = reader.offset - scan.record_bytes

    @staticmethod
    def _measure_damage(file: BinaryIO, scan: FileScan) -> None:
        """See which damage is a hole of zeros, and which has its lengths in order."""
        for number, damage in enumerate(scan.damage):
            at, end = damage.offset, damage.offset + damage.size
            file.seek(at)
            head = file.read(min(damage.size, _record.HEADER_SIZE))
            headed = _record.is_header(head)
            while at < end and _record.is_header(head):
                at += _AROUND + int.from_bytes(head[:8], "little")
                file.seek(at)
                head = file.read(min(max(end - at, 0), _record.HEADER_SIZE))
            # A record never begins with 12 zeros: the checksum of a length of 0 is not 0. Nor does an Event with 32. A
            # page ends anywhere: where it is lost, the record that reaches into it is damaged, and zeros stand in place
            # of the one behind it, or of all of it but the begin of its header.
            body = file.read(min(max(end - at - len(head), 0), _ZEROS))
            zeros = (len(head) == _record.HEADER_SIZE and not head.strip(b"\0")) or (
                len(body) == _ZEROS and not body.strip(b"\0")
            )
            scan.damage[number] = damage._replace(zeros=zeros, headed=headed, framed=at == end)

    def _record(self, data: bytes, scan: FileScan) -> None:
        scan.records += 1
        size = len(data)
        scan.record_bytes += size + _AROUND
        known = self._outliner.known(data)
        if known is not None:
            wall_time, step, numbers, alike = known
            lines = self._lines.get(alike)
            if lines is None:
                lines = self._lines[alike] = self._lines_of(alike)
            if lines:
                self._times.append(wall_time)
                self._alike(lines, alike, step, wall_time, numbers)
                return
        try:
            event, rows = self._outliner.outline(data)
        except ValueError:
            scan.no_events += 1
            return
        if rows:
            self._times.append(event.wall_time)
            sizes = event.sizes(size)
            values = event.values
            for value, row, value_size in zip(values, rows, sizes, strict=True):
                self._value(event, value, row, value_size)
            if self._gathered >= _GATHERED:
                self._look_at_all()
            return
        what = event.what
        if what == "file_version":
            scan.version, scan.writer = event.file_version, event.writer
            self._versioned = True
        elif what == "session_log" and event.is_session_start:
            self._start(Start(event.step, self.run.values), scan)
        elif what in {"graph_def", "meta_graph_def", "tagged_run_metadata"}:
            self.run.graphs += 1

    def _start(self, start: Start, file: FileScan) -> None:
        # The first START of a run is no restart for the Python reader, which alone goes by them.
        if start.step < MARKER_STEP and self.run.starts and self._versioned:
            self._look_at_all()
            before = [gathered.scan.python.points for gathered in self._tags.values() if gathered.scan.python]
            gone = [_void(gathered, start.step) for gathered in self._tags.values()]
            if any(gone) and len(self.run.restarts) < MOST_EXAMPLES:
                tags = sum(points > 0 for points in gone)
                self.run.restarts.append(Restart(start.step, len(self.run.files) - 1, sum(gone), sum(before), tags))
        file.starts.append(start)

    def _lines_of(self, alike: _summary.Alike) -> list[_Gathered]:
        """Return where values of Events of one form go; [] where each must be looked at."""
        lines = []
        for row in alike.rows:
            gathered = self._tags.get(row.tag)
            if gathered is None or row.form not in gathered.scan.forms:
                return []
            scan = gathered.scan
            # The Event whose form this is was looked at: its metadata is known, and only another kind is counted.
            if scan.other_plugins or (scan.metadata is None and not scan.plugin):
                return []
            lines.append(gathered)
        return lines if len(set(map(id, lines))) == len(lines) else []

    def _alike(
        self, lines: list[_Gathered], alike: _summary.Alike, step: int, wall_time: float, numbers: tuple[float, ...]
    ) -> None:
        alike.count += 1
        place = self.run.values
        for gathered, number in zip(lines, numbers, strict=True):
            gathered.steps.append(step)
            gathered.times.append(wall_time)
            gathered.numbers.append(number)
            gathered.where.append(place)
            place += 1
        self.run.values = place
        self._gathered += len(lines)
        if self._gathered >= _GATHERED:
            self._look_at_all()

    def _value(self, event: _summary.RawEvent, value: _summary.RawValue, row: _summary.Row, size: int) -> None:
        gathered = self._tags.get(row.tag)
        if gathered is None:
            if len(self._tags) >= MOST_TAGS:
                self.run.more_tags += 1
                self.run.values += 1
                return
            gathered = self._tags[row.tag] = _Gathered(self._room)
            metadata = value.metadata()
            self.run.tags[row.tag] = gathered.scan
            gathered.scan.metadata = metadata
            gathered.scan.plugin = (metadata.plugin if metadata else "") or _summary.PLUGIN_OF_FORM.get(row.form, "")
            if gathered.scan.plugin == "hparams":
                self._hparams(value)
        elif row.has_metadata or row.form not in gathered.scan.forms:
            self._another(gathered.scan, value.metadata(), row.form)
            if gathered.scan.other_plugins:
                self._settle()
                self._lines.clear()  # values of this tag must be looked at from now on
        scan = gathered.scan
        scan.forms[row.form] = scan.forms.get(row.form, 0) + 1
        gathered.steps.append(event.step)
        gathered.times.append(event.wall_time)
        gathered.numbers.append(np.nan if row.number is None else row.number)
        gathered.where.append(self.run.values)
        gathered.sizes += size
        self.run.values += 1
        self._gathered += 1
        self._seen.add(row.tag)

    def _hparams(self, value: _summary.RawValue) -> None:
        said = value.hparams() or {}
        if "metrics" in said:  # the record of an experiment
            self.run.columns = frozenset(said["hparams"])
        else:
            self.run.hparams |= frozenset(said.get("hparams", ()))

    @staticmethod
    def _another(scan: TagScan, metadata: Metadata | None, form: str) -> None:
        """See whether a later value is of another kind than the first."""
        plugin = (metadata.plugin if metadata else "") or _summary.PLUGIN_OF_FORM.get(form, "")
        if scan.metadata is None and metadata is not None and not scan.plugin and not scan.late_metadata:
            scan.late_metadata = sum(scan.forms.values())
            scan.plugin = plugin
        elif plugin and plugin != scan.plugin:
            scan.other_plugins[plugin] = scan.other_plugins.get(plugin, 0) + 1

    def _settle(self) -> None:
        """Count what Events of known forms brought."""
        for alike in self._lines:
            if alike.count:
                for row, size in zip(alike.rows, alike.sizes, strict=True):
                    gathered = self._tags[row.tag]
                    gathered.scan.forms[row.form] += alike.count
                    gathered.sizes += size * alike.count
                    self._seen.add(row.tag)
                alike.count = 0

    def _look_at_all(self) -> None:
        file = len(self.run.files) - 1
        self._settle()
        for tag, gathered in self._tags.items():
            if gathered.steps:
                _look(gathered, file, self._versioned)
                self._observe(tag, gathered.take(file))
        self._gathered = 0
        self._look_at_times(self.run.files[file])

    def _look_at_times(self, scan: FileScan) -> None:
        times = np.frombuffer(self._times, np.float64)
        finite = times[np.isfinite(times)]
        scan.bad_times += len(times) - len(finite)
        if len(finite):
            scan.first_time = float(finite[0]) if scan.first_time is None else scan.first_time
            scan.last_time = float(finite[-1])
            scan.earliest = min(scan.earliest, float(finite.min()))
            scan.latest = max(scan.latest, float(finite.max()))
        del times
        self._times = array("d")


def _void(gathered: _Gathered, step: int) -> int:
    """Void the points at and after the step of a mark, for the Python reader; return how many."""
    if gathered.scan.highest_step < step:
        return 0
    if gathered.python is gathered.data_server:
        gathered.python = gathered.data_server.copy()
    gone = gathered.python.cut(step)
    gathered.scan.voided += gone
    gathered.scan.python = gathered.python.left
    return gone


def _keep(gathered: _Gathered, steps: npt.NDArray[np.int64], strides: npt.NDArray[np.int64], versioned: bool) -> None:
    """Take in steps that come after those before by `strides`: what each reader has left then."""
    if gathered.python is gathered.data_server and (strides <= 0).any():
        gathered.python = gathered.data_server.copy()
    gathered.python.append(steps)
    if not versioned and (strides < 0).any():
        gathered.python.forget()  # the reader drops what depends on the steps of other tags
    if gathered.python is not gathered.data_server:
        gathered.data_server.preempt(steps)
    gathered.scan.python, gathered.scan.data_server = gathered.python.left, gathered.data_server.left


def _look(gathered: _Gathered, file: int, versioned: bool) -> None:
    """Take in the values that wait, and forget them."""
    scan = gathered.scan
    steps: npt.NDArray[np.int64] = np.frombuffer(gathered.steps, np.int64)
    numbers: npt.NDArray[np.float64] = np.frombuffer(gathered.numbers, np.float64)
    if scan.points == 0:
        scan.first_step, scan.first_time = int(steps[0]), gathered.times[0]
        strides, begin = np.diff(steps), 1
    else:
        strides, begin = np.diff(steps, prepend=np.int64(scan.last_step)), 0
    _keep(gathered, steps, strides, versioned)
    _look_at_strides(scan, strides, steps[begin:], gathered.where[begin:], file)
    if scan.plugin == "scalars":
        good = np.flatnonzero(np.isfinite(numbers))
        finite = numbers[good]
        if len(good):
            scan.not_finite_from = int(steps[good[-1] + 1]) if good[-1] + 1 < len(steps) else None
        elif scan.not_finite_from is None:
            scan.not_finite_from = int(steps[0])
        scan.nans += int(np.isnan(numbers).sum())
        scan.infinities += int(np.isinf(numbers).sum())
        if len(finite):
            low, high = float(finite.min()), float(finite.max())
            scan.lowest = low if scan.lowest is None else min(low, scan.lowest)
            scan.highest = high if scan.highest is None else max(high, scan.highest)
        scan.last_number = float(numbers[-1])
    _look_at_times(scan, np.frombuffer(gathered.times, np.float64))
    scan.highest_step = max(scan.highest_step, int(steps.max()))
    scan.last_step, scan.last_time, scan.last_where = int(steps[-1]), gathered.times[-1], gathered.where[-1]
    scan.points += len(steps)
    scan.bytes += gathered.sizes


def _look_at_times(scan: TagScan, times: npt.NDArray[np.float64]) -> None:
    finite = times[np.isfinite(times)]
    if not len(finite):
        return
    latest = np.maximum.accumulate(np.concatenate([[scan.latest_time], finite]))
    scan.latest_time = float(latest[-1])
    scan.back_by = max(scan.back_by, float((latest[1:] - finite).max()))


def _look_at_strides(
    scan: TagScan, strides: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], where: array[int], file: int
) -> None:
    scan.repeated += int((strides == 0).sum())
    back = np.flatnonzero(strides < 0)
    scan.backs += len(back)
    for index in back[: MOST_EXAMPLES - len(scan.back_examples)]:
        after = int(steps[index])
        scan.back_examples.append(Back(after - int(strides[index]), after, file, where[index]))
    forward = strides[strides > 0]
    if not len(forward):
        return
    for stride, count in zip(*np.unique(forward, return_counts=True), strict=True):
        if int(stride) in scan.strides or len(scan.strides) < _MOST_STRIDES:
            scan.strides[int(stride)] = scan.strides.get(int(stride), 0) + int(count)
    # Only the largest can be gaps; how large a gap is, is known at the end.
    for index in np.argsort(strides, kind="stable")[-MOST_EXAMPLES:]:
        if strides[index] > 1:
            after = int(steps[index])
            scan.gap_examples.append(Gap(after - int(strides[index]), after))
    scan.gap_examples.sort(key=lambda gap: gap.before - gap.after)
    del scan.gap_examples[MOST_EXAMPLES:]
