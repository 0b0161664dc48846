"""The writers that are compared, behind one face. Each keeps its own defaults: queue lengths, flush intervals.

`log_step` is the loop that a user would write, ten scalars through `add_scalar`, with nothing between it and the
writer; `add_metrics` is tbwriter's, and the same loop for a writer that has none. The floor, "list", appends the tuples
that tbwriter queues to a list in the same loop, inline. The "bare queue" is the least that a writer with a thread can
be: a method appends them, the thread takes all and writes as many bytes. It checks nothing and encodes nothing.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Names as in real runs; 12.9 bytes on average.
TAGS = (
    "train/loss",
    "train/lr",
    "train/grad_norm",
    "train/step_time",
    "train/tokens_per_sec",
    "train/loss_scale",
    "train/accuracy",
    "train/epoch",
    "val/loss",
    "val/accuracy",
)

TBWRITER, TENSORBOARDX, TORCH, EVENT_FILE, FLOOR = "tbwriter", "tensorboardX", "torch", "EventFileWriter", "list"
PEERS = (TENSORBOARDX, TORCH, EVENT_FILE)
BARE = "bare queue"
# What tbwriter stores for a scalar of ten in a step.
_SCALAR_BYTES = 25


@dataclass(frozen=True)
class Logger:
    """An open writer.

    Attributes:
        add_scalar: takes tag, value, step.
        log_step: logs the ten scalars of `TAGS` at a step.
        add_metrics: takes {tag: value}, step.
        add_histogram: takes tag, array, step; None where the writer has none.
        add_image: takes tag, uint8 array of shape (3, height, width), step; None where the writer has none.
        flush: returns when all that was added is with the operating system.
        close: flushes and closes.
    """

    add_scalar: Callable[[str, float, int], object]
    log_step: Callable[[int], None]
    add_metrics: Callable[[Mapping[str, float], int], object]
    add_histogram: Callable[[str, Any, int], object] | None
    add_image: Callable[[str, Any, int], object] | None
    flush: Callable[[], object]
    close: Callable[[], object]


def _tbwriter(place: str, **options: Any) -> Logger:
    from tbwriter import SummaryWriter

    writer = SummaryWriter(place, **options)
    return _logger(writer, writer.add_metrics)


def _tensorboardx(place: str) -> Logger:
    from tensorboardX import SummaryWriter

    return _logger(SummaryWriter(place))


def _torch(place: str) -> Logger:
    from torch.utils.tensorboard import SummaryWriter

    return _logger(SummaryWriter(place))


def _event_file_writer(place: str) -> Logger:
    """Open tensorboard's EventFileWriter; each scalar is an Event made by hand, the least that it can be given."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(place)
    add_event, value_of, now = writer.add_event, Summary.Value, time.time

    def add_scalar(tag: str, value: float, step: int) -> None:
        summary = Summary(value=[value_of(tag=tag, simple_value=value)])
        add_event(Event(wall_time=now(), step=step, summary=summary))

    return Logger(add_scalar, _steps(add_scalar), _metrics(add_scalar), None, None, writer.flush, writer.close)


def _list(place: str) -> Logger:
    del place
    items: list[tuple[str, float, int, float]] = []
    now = time.time

    def add_scalar(tag: str, value: float, step: int) -> None:
        items.append((tag, value, step, now()))

    def log_step(step: int) -> None:
        value = 1.0 / (step + 1)
        append = items.append
        for tag in TAGS:
            append((tag, value, step, now()))

    def add_metrics(metrics: Mapping[str, float], step: int) -> None:
        append = items.append
        for tag, value in metrics.items():
            append((tag, value, step, now()))

    return Logger(add_scalar, log_step, add_metrics, None, None, lambda: None, items.clear)


def _bare_queue(place: str) -> Logger:
    entries: deque[tuple[str, float, int, float]] = deque()
    wanted, stored, now = threading.Semaphore(0), threading.Semaphore(0), time.time
    file = os.open(Path(place, "bare"), os.O_WRONLY | os.O_CREAT)
    over = False

    def add_scalar(tag: str, value: float, step: int) -> None:
        entries.append((tag, value, step, now()))

    def work() -> None:
        while wanted.acquire() and not over:
            items = list(itertools.starmap(entries.popleft, itertools.repeat((), len(entries))))
            if items:
                _, values, _, _ = zip(*items, strict=True)
                os.write(file, struct.pack(f"<{len(values)}f", *values).ljust(_SCALAR_BYTES * len(values), b"\0"))
            stored.release()

    def flush() -> None:
        wanted.release()
        stored.acquire()

    def close() -> None:
        nonlocal over
        over = True
        wanted.release()
        thread.join()
        os.close(file)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return Logger(add_scalar, _steps(add_scalar), _metrics(add_scalar), None, None, flush, close)


def _logger(writer: Any, add_metrics: Callable[[Mapping[str, float], int], object] | None = None) -> Logger:
    return Logger(
        writer.add_scalar,
        _steps(writer.add_scalar),
        add_metrics or _metrics(writer.add_scalar),
        writer.add_histogram,
        writer.add_image,
        writer.flush,
        writer.close,
    )


def _metrics(add_scalar: Callable[[str, float, int], object]) -> Callable[[Mapping[str, float], int], None]:
    def add_metrics(metrics: Mapping[str, float], step: int) -> None:
        for tag, value in metrics.items():
            add_scalar(tag, value, step)

    return add_metrics


def _steps(add_scalar: Callable[[str, float, int], object]) -> Callable[[int], None]:
    def log_step(step: int) -> None:
        value = 1.0 / (step + 1)
        for tag in TAGS:
            add_scalar(tag, value, step)

    return log_step


_OPEN: dict[str, tuple[str, Callable[..., Logger]]] = {
    TBWRITER: ("tbwriter", _tbwriter),
    TENSORBOARDX: ("tensorboardX", _tensorboardx),
    TORCH: ("torch", _torch),
    EVENT_FILE: ("tensorboard", _event_file_writer),
    FLOOR: ("time", _list),
    BARE: ("time", _bare_queue),
}


def open_writer(name: str, place: str | Path, **options: Any) -> Logger:
    """Open the writer `name`, one of the constants of this module, on a directory or URL of its own.

    Args:
        name: see above.
        place: as the writer takes it.
        options: of tbwriter's SummaryWriter; no other writer takes any.
    """
    return _OPEN[name][1](str(place), **options)


def available(wanted: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return which of the peers `wanted` can be measured, and why the others cannot."""
    here: list[str] = []
    left_out: dict[str, str] = {}
    for name in PEERS:
        packages = ("torch", "tensorboard") if name == TORCH else (_OPEN[name][0],)
        missing = [package for package in packages if importlib.util.find_spec(package) is None]
        if name not in wanted:
            left_out[name] = "not asked for"
        elif missing:
            left_out[name] = f"{' and '.join(missing)} not installed"
        else:
            here.append(name)
    return here, left_out
