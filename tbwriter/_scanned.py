"""What a scan of a run finds: plain data about its files, its tags and itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tbwriter._left import Left
from tbwriter._summary import Metadata
from tbwriter._tree import Found


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
