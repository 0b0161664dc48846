"""What became of MindSpore's summaries: the reports of `msbridge.convert`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_MOST_OFFSETS = 20


@dataclass
class Damaged:
    """A damaged file of MindSpore's, of which every good record was converted.

    Attributes:
        path: the file.
        places: how many damaged places lie between or before good records.
        offsets: where the first of them begin, in bytes.
        lost_bytes: what lies in them.
        tail_bytes: how much behind the last good record is no whole one: it is cut off, or still being written.
    """

    path: str
    places: int = 0
    offsets: list[int] = field(default_factory=list)
    lost_bytes: int = 0
    tail_bytes: int = 0

    def add(self, offset: int, size: int) -> None:
        """Count a damaged place."""
        self.places += 1
        self.lost_bytes += size
        if len(self.offsets) < _MOST_OFFSETS:
            self.offsets.append(offset)

    @property
    def words(self) -> str:
        """What is wrong, in words."""
        parts = []
        if self.places:
            where = ", ".join(map(str, self.offsets)) + (", ..." if self.places > len(self.offsets) else "")
            noun = f"damaged place{'s' * (self.places > 1)}"
            parts.append(f"{self.places} {noun}, at byte {where}, {self.lost_bytes} bytes lost")
        if self.tail_bytes:
            parts.append(f"its last {self.tail_bytes} bytes are no whole record, cut off or still being written")
        return f"{self.path}: {'; '.join(parts)}"


@dataclass
class Converted:
    """What became of one directory of MindSpore's summaries.

    Attributes:
        path: the directory.
        output: the run's directory.
        records: how many records were read.
        values: how many values were written, by kind.
        skipped: what could not be converted, by reason.
        damage: the files that are damaged.
    """

    path: str
    output: str
    records: int = 0
    values: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    damage: list[Damaged] = field(default_factory=list)
