"""Go once through the event files of a run and keep what is worth knowing of them, in bounded memory.

Values are gathered by tag in plain arrays and looked at in bulk, a few thousand at a time. Longer than other modules,
since half of it describes, field by field, what the other half fills in.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from tbwriter import _record, _summary, sinks
from tbwriter._left import Left, Room, Steps
from tbwriter._naming import MARKER_STEP
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


class Damage(NamedTuple):
    """A damaged place: where it begins and how many bytes lie between the good records around it; what is wrong."""

    offset: int
    size: int
    what: str
    torn_tail: bool
    zeros: bool
    """Whether zeros stand where a record should begin, as after a page that never reached the disk."""
    headed: bool
    """Whether the header of its first record is good."""
    framed: bool
    """Whether its lengths are in order, so that a reader that checks no data goes on behind it."""
    values_before: int
    """How many values of the run stand before it."""


class Start(NamedTuple):
    """The mark of a session's start: its step, and how many values of the run stand before it."""

    step: int
    values_before: int


class Restart(NamedTuple):
    """A mark that voided points: its step and file, and of how many points, and of how many tags, how many it voided.

    As the Python reader does, which alone goes by marks.
    """

    step: int
    file: int
    voided: int
    points: int
    tags: int


class Back(NamedTuple):
    """Steps of a tag that went back, from value to value: in which file, and after how many values of the run."""

    before: int
    after: int
    file: int
    values_before: int


class Bulk(NamedTuple):
    """Some values of one tag, in their order: steps, wall times, numbers (NaN for what is none).

    `where` says of each how many values of the run stand before it; `file` is the number of their file.
    """

    scan: TagScan
    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.float64]
    where: npt.NDArray[np.int64]
    file: int


class Gap(NamedTuple):
    """Steps of a tag without values: the last before and the first after."""

    before: int
    after: int


@dataclass
class FileScan:
    """What one event file holds.

    Attributes:
        found: the file; its size is that when the scan began.
        records: good ones.
        record_bytes: their size, framing included.
        damage: the first damaged places.
        damaged: how many there are.
        lost_bytes: how many bytes belong to no good record.
        no_events: good records that are no Events.
        version: the text of its file_version; "" when it has none.
        writer: the program that wrote it, where it says so.
        values: how many.
        tags: which; shared with the file before where they are the same.
        first_time: of the first event with a value, in seconds since 1970; None without.
        last_time: of the last.
        earliest: smallest wall time of a value.
        latest: largest.
        bad_times: events whose wall time is no finite number.
        starts: its marks of sessions.
        head: its first bytes, where not one record is good.
        error: why it cannot be read, or cannot be read further; None when it could.
    """

    found: Found
    records: int = 0
    record_bytes: int = 0
    damage: list[Damage] = field(default_factory=list)
    damaged: int = 0
    lost_bytes: int = 0
    no_events: int = 0
    version: str = ""
    writer: str = ""
    values: int = 0
    tags: frozenset[str] = frozenset()
    first_time: float | None = None
    last_time: float | None = None
    earliest: float = np.inf
    latest: float = -np.inf
    bad_times: int = 0
    starts: list[Start] = field(default_factory=list)
    head: bytes = b""
    error: str | None = None

    @property
    def torn(self) -> bool:
        """Whether its last record is cut off."""
        return bool(self.damage) and self.damage[-1].torn_tail


@dataclass
class TagScan:
    """What a run holds of one tag.

    Attributes:
        plugin: the plugin that shows it, by its first value; "" when nothing says.
        metadata: of its first value, or None.
        points: how many values.
        bytes: their size in the files, without framing.
        forms: how many values are stored in which form, as in RawEvent.outline.
        late_metadata: how many values before the first one with metadata, where the first has none; 0 otherwise.
        other_plugins: values that say another plugin than the first, by plugin.
        first_step: of the first value in the order of files and records; last_step likewise.
        first_time: wall time of the first value, in seconds since 1970; last_time likewise.
        latest_time: the largest wall time.
        back_by: seconds by which the wall time goes back at most.
        highest_step: the largest step.
        last_where: how many values of the run stand before the last one.
        voided: points of it that marks of sessions void: at or after their step, and before them in the files.
        python: its points that are left for the Python reader when marks have voided some; None where that took too
            much memory, or where the reader has another rule, for files without a file_version.
        data_server: its points that are left for the data server, where a point voids those before it at its step and
            later ones; None where that took too much memory.
        lowest: of its finite numbers; None without any. highest and last_number likewise.
        nans: values that are no number.
        infinities: values that are infinite.
        not_finite_from: the step from which on no number is finite; None where the last one is.
        repeated: values at the step of the value before.
        backs: how often steps go back; back_examples tells the first places.
        strides: how often the step grows by how much; at most 64 different ones.
        gap_examples: the largest distances between two steps that follow one another.
    """

    plugin: str = ""
    metadata: Metadata | None = None
    points: int = 0
    bytes: int = 0
    forms: dict[str, int] = field(default_factory=dict)
    late_metadata: int = 0
    other_plugins: dict[str, int] = field(default_factory=dict)
    first_step: int = 0
    last_step: int = 0
    first_time: float = 0.0
    last_time: float = 0.0
    latest_time: float = -np.inf
    back_by: float = 0.0
    highest_step: int = -(2**63)
    last_where: int = 0
    voided: int = 0
    python: Left | None = None
    data_server: Left | None = None
    lowest: float | None = None
    highest: float | None = None
    last_number: float | None = None
    nans: int = 0
    infinities: int = 0
    not_finite_from: int | None = None
    repeated: int = 0
    backs: int = 0
    back_examples: list[Back] = field(default_factory=list)
    strides: dict[int, int] = field(default_factory=dict)
    gap_examples: list[Gap] = field(default_factory=list)

    @property
    def stride(self) -> int | None:
        """The usual distance between two steps: that of at least half of them; None when there is none."""
        total = sum(self.strides.values())
        if not total:
            return None
        stride, count = max(self.strides.items(), key=lambda item: item[1])
        return stride if 2 * count >= total else None

    @property
    def gaps(self) -> list[Gap]:
        """The largest gaps: where at least one value of the usual distance is missing."""
        stride = self.stride
        return [] if stride is None else [gap for gap in self.gap_examples if gap.after - gap.before >= 2 * stride]


@dataclass
class RunScan:
    """What a run holds.

    Attributes:
        path: its directory, or the file.
        name: as TensorBoard names it.
        files: in the order in which readers go through them.
        tags: in the order in which they first occur.
        more_tags: values of tags beyond the most that are told apart.
        values: how many values in all.
        graphs: events that hold a graph.
        restarts: the first marks that voided points.
        hparams: the names of its hyper-parameters.
        columns: the names of those for which its record of an experiment makes columns; None without such a record.
    """

    path: str
    name: str
    files: list[FileScan] = field(default_factory=list)
    tags: dict[str, TagScan] = field(default_factory=dict)
    more_tags: int = 0
    values: int = 0
    graphs: int = 0
    restarts: list[Restart] = field(default_factory=list)
    hparams: frozenset[str] = frozenset()
    columns: frozenset[str] | None = None

    @property
    def starts(self) -> list[Start]:
        """The marks of sessions of all files."""
        return [start for file in self.files for start in file.starts]


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
