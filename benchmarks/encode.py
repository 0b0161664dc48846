"""The figures of `python -m benchmarks encode`: from values to framed records in memory; no file, thread or queue."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks._measure import alternate, exact, ratio, spreads
from benchmarks._results import Figure
from benchmarks._setting import Setting
from benchmarks._writers import TAGS
from tbwriter import _record, _summary
from tbwriter._entries import Entry
from tbwriter._event_file import EventFile, Place
from tbwriter._pb import tfevents_pb2 as pb

_WALL_TIME = 1.7e9
_PROTOBUF, _TEMPLATE = "protobuf, an Event each", "template, an Event each"
_PROTOBUF_TEN, _TEMPLATE_TEN = "protobuf, ten to an Event", "template, ten to an Event"
_WORKER, _COLUMNS = "worker: tuples, coalesced", "columns, an Event each"
_FRAME_SMALL, _FRAME_LARGE = "framing alone, an Event each", "framing alone, ten to an Event"


def _protobuf(steps: int) -> int:
    size = 0
    for step in range(steps):
        for tag in TAGS:
            summary = pb.Summary(value=[pb.Summary.Value(tag=tag, simple_value=step * 0.5)])
            event = pb.Event(wall_time=_WALL_TIME, step=step, summary=summary)
            size += len(_record.frame(event.SerializeToString()))
    return size


def _protobuf_ten(steps: int) -> int:
    size = 0
    for step in range(steps):
        summary = pb.Summary(value=[pb.Summary.Value(tag=tag, simple_value=step * 0.5) for tag in TAGS])
        event = pb.Event(wall_time=_WALL_TIME, step=step, summary=summary)
        size += len(_record.frame(event.SerializeToString()))
    return size


def _template(steps: int) -> int:
    event, frame = _summary.ScalarEncoder().event, _record.frame
    singles = [(tag,) for tag in TAGS]
    size = 0
    for step in range(steps):
        for single in singles:
            size += len(frame(event(single, (step * 0.5,), step, _WALL_TIME)))
    return size


def _template_ten(steps: int) -> int:
    event, frame = _summary.ScalarEncoder().event, _record.frame
    size = 0
    for step in range(steps):
        size += len(frame(event(TAGS, [step * 0.5] * len(TAGS), step, _WALL_TIME)))
    return size


def _columns(steps: int) -> int:
    size = 0
    values = np.arange(steps, dtype=np.float32) * np.float32(0.5)
    index, times = np.arange(steps), np.full(steps, _WALL_TIME)
    for tag in TAGS:
        for rows in _summary.rows(tag, values, index, times):
            size += len(_record.frame_rows(rows.data, rows.varying).tobytes())
    return size


def _frames(data: bytes, count: int) -> int:
    frame = _record.frame
    size = 0
    for _ in range(count):
        size += len(frame(data))
    return size


def _worker(entries: list[Entry]) -> int:
    """Do what the worker does between the queue and the sink, in its slices."""
    file = EventFile(Place(url="memory://benchmark-encode"), purge_step=None, clock=time.time)
    for begin in range(0, len(entries), 256):
        file.add(entries[begin : begin + 256], coalesce=True)
    size = file.buffered
    file.close(0.0)
    return size


def scalars(setting: Setting) -> list[Figure]:
    """Measure every way in which a scalar becomes a record."""
    steps = setting.scalars // len(TAGS)
    count = steps * len(TAGS)
    _check_that_all_agree()
    entries: list[Entry] = [(tag, step * 0.5, step, _WALL_TIME) for step in range(steps) for tag in TAGS]
    small, large = (_event_of(tags) for tags in (TAGS[2:3], TAGS))
    works: dict[str, Callable[[], int]] = {
        _PROTOBUF: lambda: _protobuf(steps),
        _PROTOBUF_TEN: lambda: _protobuf_ten(steps),
        _TEMPLATE: lambda: _template(steps),
        _TEMPLATE_TEN: lambda: _template_ten(steps),
        _WORKER: lambda: _worker(entries),
        _COLUMNS: lambda: _columns(steps),
        _FRAME_SMALL: lambda: _frames(small, count),
        _FRAME_LARGE: lambda: _frames(large, steps),
    }
    sizes = {}

    def sample(name: str) -> float:
        begin = time.process_time()
        sizes[name] = works[name]()
        return (time.process_time() - begin) / count * 1e6

    samples = alternate(list(works), setting.rounds, sample, setting.progress.tick)
    pairs = [(_PROTOBUF, _TEMPLATE), (_PROTOBUF, _TEMPLATE_TEN), (_PROTOBUF_TEN, _TEMPLATE_TEN), (_PROTOBUF, _COLUMNS)]
    return [
        Figure(
            name="encode_cpu",
            title="Processor time to encode and frame a scalar",
            unit="us a scalar",
            how=f"{count} scalars, ten tags a step, in one thread and in memory; {setting.rounds} rounds. Before, the "
            "records of all ways were compared byte by byte.",
            values=spreads(samples),
            ratios={f"{above} / {below}": ratio(samples[above], samples[below]) for above, below in pairs},
        ),
        Figure(
            name="encode_bytes",
            title="Bytes of a framed scalar",
            unit="bytes a scalar",
            how="Size of the records above.",
            values={
                name: exact(size / count) for name, size in sizes.items() if name not in (_FRAME_SMALL, _FRAME_LARGE)
            },
        ),
    ]


def _event_of(tags: tuple[str, ...]) -> bytes:
    return _summary.ScalarEncoder().event(tags, [0.5] * len(tags), 1000, _WALL_TIME)


def _check_that_all_agree() -> None:
    """Hold the ways that are compared against protobuf: a fast encoder of other bytes is worth nothing."""
    for tags in (TAGS, TAGS[:1]):
        values = [pb.Summary.Value(tag=tag, simple_value=0.5) for tag in tags]
        want = pb.Event(wall_time=_WALL_TIME, step=1000, summary=pb.Summary(value=values)).SerializeToString()
        if _event_of(tags) != want:
            raise AssertionError(f"the template's Event of {len(tags)} values differs from protobuf's")
    one = np.ones(1)
    rows = next(_summary.rows(TAGS[0], np.float32(one * 0.5), np.int64(one * 1000), one * _WALL_TIME))
    if _record.frame_rows(rows.data, rows.varying).tobytes() != _record.frame(_event_of(TAGS[:1])):
        raise AssertionError("a record made by columns differs from protobuf's")


FIGURES: dict[str, Callable[[Setting], list[Figure]]] = {"scalars": scalars}
