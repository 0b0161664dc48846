"""`tbwriter thin`: smaller files, with the spikes still in them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from tbwriter import _rewrite, _scan
from tbwriter._scanned import Bulk, RunScan, TagScan
from tbwriter._summary import Outliner, RawEvent
from tbwriter._tree import Directory, Found
from tbwriter.cli import _common, _kinds, _writing
from tbwriter.cli._damage import Damage

_AROUND_RECORD = 16  # length and checksums
_SIZE = re.compile(r"\s*([\d.]+)\s*(|k|M|G)i?B?\s*", re.IGNORECASE)
_MOST_TRIES = 6
# So much of a budget is enough: each try goes through all of a run.
_FULL_ENOUGH = 0.9
# Of a bucket of values in a row so many stay. N is a third of its size, and need not be whole.
_STAY = 3


@_common.command
def thin(
    path: _common.Path,
    output: _writing.Output = None,
    every: Annotated[int | None, typer.Option(min=1, help="Keep a point of each N of a tag; as said above.")] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Choose N so that each run's files hold at most this: 100MB, 2GB."),
    ] = None,
    drop_kind: Annotated[list[str] | None, typer.Option(help="Leave this kind out: images, histograms, ...")] = None,
    drop_tag: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Leave out tags in which this is found.")
    ] = None,
    in_place: _writing.InPlace = False,
    force: _writing.Force = False,
    as_json: _common.Json = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Make files smaller: keep one point in N, so that spikes survive, and leave out kinds or tags.

    Of scalars, 3 N points in a row become 3: the smallest, the largest and the last; of other kinds every Nth stays.
    The first and the last point of a tag always stay. Damage is left out. Exit codes: 0; 1 a file is damaged; 2 wrong
    usage, no event file, or a budget that cannot be met; 3 nothing there, not readable or not writable.
    """
    options = _common.options_of(storage_options)
    if every is not None and budget is not None:
        raise typer.BadParameter("--every and --budget both say how many points to keep; give one of them")
    if every is None and budget is None and not drop_kind and not drop_tag:
        raise typer.BadParameter("say what to leave out: --every, --budget, --drop-kind or --drop-tag")
    limit = None if budget is None else _bytes(budget)
    pattern = _writing.pattern(drop_tag, "--drop-tag")
    kinds = set(drop_kind or ())

    found_tag = False

    def unwanted(tag: str, scan: TagScan) -> bool:
        nonlocal found_tag
        is_told = pattern is not None and bool(pattern.search(tag))
        found_tag = found_tag or is_told
        return is_told or scan.plugin in kinds

    runs, into, damage = _writing.plan(path, output, in_place, force, options)
    _kinds.refuse_unknown(kinds, "--drop-kind", runs, options)
    # What stays of each run is settled before the first is written: a budget may turn out to be too small.
    plans = [
        _planned(run, _STAY * (every or 1), unwanted, options, damage)
        if limit is None
        else _planned_within(run, limit, unwanted, options, damage)
        for run in runs
    ]
    if pattern is not None and not found_tag:
        _common.say(f"tbwriter: --drop-tag {drop_tag}: no such tag in {path}")
    done = []
    with _common.progress("thinning", _common.size_of(runs)) as advance:
        for run, plan in zip(runs, plans, strict=True):
            done += _write(run, into, plan, options, advance)
    _writing.tell(done, as_json, damage)


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"--budget wants a size such as 500kB, 100MB or 2GB, got {text!r}")
    return int(float(found[1]) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[found[2].lower()])


class Plan:
    """Which values of a run stay: a bit for each."""

    def __init__(self, bucket: int, unwanted: Callable[[str, TagScan], bool]) -> None:
        """Keep three of each `bucket` values of a tag, and none of the tags that `unwanted` names."""
        self._bucket = bucket
        self._unwanted = unwanted
        self._kept = np.zeros(1024, np.uint8)
        self._bits = b""
        # The bucket of each tag that is not full yet:
        self._begun: dict[str, tuple[list[int], list[float], TagScan]] = {}
        self._dropped: set[str] = set()

    def observe(self, tag: str, bulk: Bulk) -> None:
        """Take in values of a tag, as `_scan.scan` gives them."""
        if tag in self._dropped or (bulk.scan.points == len(bulk.where) and self._unwanted(tag, bulk.scan)):
            self._dropped.add(tag)
            return
        if self._bucket == _STAY:
            self._keep(bulk.where)
            return
        if tag not in self._begun:
            self._keep(bulk.where[:1])
        places, numbers, _ = self._begun.get(tag, ([], [], None))
        where = np.concatenate([np.array(places, np.int64), bulk.where])
        values = np.concatenate([np.array(numbers, np.float64), bulk.numbers])
        whole = len(where) // self._bucket * self._bucket
        if whole:
            self._keep_of(values[:whole].reshape(-1, self._bucket), where[:whole].reshape(-1, self._bucket), bulk.scan)
        self._begun[tag] = where[whole:].tolist(), values[whole:].tolist(), bulk.scan

    def end(self) -> None:
        """Say that all values were seen."""
        for places, numbers, scan in self._begun.values():
            if places:
                self._keep_of(np.array(numbers)[None], np.array(places)[None], scan)
        self._bits = self._kept.tobytes()  # an index into bytes costs less than one into an array

    def __call__(self, place: int) -> bool:
        """Say whether the value at this place of the run stays; after `end`."""
        return bool(self._bits[place >> 3] >> (place & 7) & 1) if place >> 3 < len(self._bits) else False

    def kept(self, first: int, end: int) -> int:
        """Return how many of the values at these places stay."""
        return sum(map(self, range(first, end))) if end - first > 1 else int(self(first))

    def _keep_of(self, rows: npt.NDArray[np.float64], places: npt.NDArray[np.int64], scan: TagScan) -> None:
        """Keep of each row, a bucket or the begin of one, the last, and of scalars the smallest and the largest."""
        self._keep(places[:, -1])
        if scan.plugin != "scalars":
            ends = [self._bucket * part // _STAY for part in range(1, _STAY)]
            self._keep(places[:, [end - 1 for end in ends if end <= places.shape[1]]].ravel())
            return
        # NaN counts as neither, unless there is nothing else.
        index = np.arange(len(rows))
        self._keep(places[index, np.where(np.isnan(rows), np.inf, rows).argmin(axis=1)])
        self._keep(places[index, np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1)])

    def _keep(self, places: npt.NDArray[np.int64]) -> None:
        if not len(places):
            return
        need = (int(places.max()) >> 3) + 1
        if need > len(self._kept):
            self._kept = np.concatenate([self._kept, np.zeros(max(need - len(self._kept), len(self._kept)), np.uint8)])
        np.bitwise_or.at(self._kept, places >> 3, (1 << (places & 7)).astype(np.uint8))


def _planned(
    run: Directory,
    bucket: int,
    unwanted: Callable[[str, TagScan], bool],
    options: Mapping[str, Any] | None,
    damage: Damage,
) -> Plan:
    """Return what stays of a run with buckets of this size; add what is wrong with its files to `damage`."""
    plan = Plan(bucket, unwanted)
    damage.see(_scan.scan(run.path, run.run, run.event_files, options, observe=plan.observe))
    plan.end()
    return plan


def _planned_within(
    run: Directory,
    limit: int,
    unwanted: Callable[[str, TagScan], bool],
    options: Mapping[str, Any] | None,
    damage: Damage,
) -> Plan:
    """As `_planned`, with the smallest buckets of which `limit` bytes hold what stays, or nearly.

    Raises:
        ValueError: not even one point of each tag fits.
    """
    bucket = _estimated(_scan.scan(run.path, run.run, run.event_files, options), limit, unwanted)
    too_small, best, found = _STAY - 1, math.inf, None
    for _ in range(_MOST_TRIES):
        plan = _planned(run, bucket, unwanted, options, damage)
        size = sum(file["bytes"] for file in _write(run, None, plan, options, lambda _bytes: None, dry=True))
        if size > limit:
            too_small = bucket
        else:
            best, found = bucket, plan
            if size >= _FULL_ENOUGH * limit:
                break
        if best - too_small <= 1:
            break
        # Values vary in size, and of a bucket that only rises or falls two stay: what was measured guesses better.
        bucket = int(min(max(bucket * size // limit + 1, too_small + 1), best - 1))
    if found is None:
        raise ValueError(
            f"{run.path}: one point of each tag takes more than the budget of {limit} bytes: drop kinds or tags"
        )
    return found


def _estimated(scan: RunScan, limit: int, unwanted: Callable[[str, TagScan], bool]) -> int:
    """Return the smallest bucket with which the values take about `limit` bytes.

    Raises:
        ValueError: even two points of each tag take more.
    """
    tags = [found for tag, found in scan.tags.items() if not unwanted(tag, found)]

    def size(bucket: int) -> float:
        total = 0.0
        for found in tags:
            each = found.bytes / found.points + (_AROUND_RECORD if found.plugin == "scalars" else 0)
            total += each * min(found.points * _STAY / bucket + 2, found.points)
        return total

    low, high = _STAY, _STAY * max((found.points for found in tags), default=1)
    if size(high) > 2 * limit:
        largest = max(scan.tags.items(), key=lambda item: item[1].bytes / item[1].points)
        raise ValueError(
            f"{scan.path}: two points of each tag take {_common.megabytes(size(high))}, the budget is "
            f"{_common.megabytes(limit)}; drop kinds or tags: {largest[0]!r} has the largest values"
        )
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if size(middle) <= limit else (middle + 1, high)
    return low


def _write(
    run: Directory,
    into: str | None,
    plan: Plan,
    options: Mapping[str, Any] | None,
    advance: Callable[[int], None],
    *,
    dry: bool = False,
) -> list[dict[str, Any]]:
    metadata = _rewrite.Metadata()
    outliner = Outliner()
    place = 0
    begun: Found | None = None

    def change(found: Found, data: bytes) -> bytes | None:
        nonlocal place, begun
        if found is not begun:
            begun = found
            metadata.new_file()
        known = outliner.known(data)
        if known is not None and metadata.is_settled(known[3]):
            first, place = place, place + len(known[3].rows)
            kept = plan.kept(first, place)
            if kept in {0, place - first}:
                return data if kept else None
            event, count = RawEvent(data), place - first
        else:
            try:
                event, rows = outliner.outline(data)
            except ValueError:
                return None
            if event.what != "summary":
                return data
            first, count = place, len(rows)
            place += count
        return _rewrite.keep(event, data, [plan(first + number) for number in range(count)], metadata)

    if dry:
        sizes = []
        for found in run.event_files:
            kept = (change(found, data) for data in _rewrite.records(found, options))
            sizes.append({"bytes": sum(len(data) + 16 for data in kept if data is not None)})
        return sizes
    return [
        {
            "path": found.path,
            "output": _rewrite.target(run, found, into),
            "records": new.records,
            "bytes_before": found.size,
            "bytes": new.size,
        }
        for found, new in _rewrite.rewrite(run, into, change, options, advance)
    ]
