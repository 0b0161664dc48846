"""What scalars cost the whole process, from the call to the file: processor time, time and bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._measure import alternate, cpu_secs, exact, ratios, spread, spreads
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting
from benchmarks._writers import FLOOR, TAGS, TBWRITER, TENSORBOARDX, TORCH, open_writer


@dataclass(frozen=True)
class _Cost:
    cpu_us: float
    wall_us: float
    stored_bytes: float


def queue_to_disk(setting: Setting) -> list[Figure]:
    """Measure ten scalars per step through `add_scalar`, until the closed file holds them."""
    steps = setting.scalars // len(TAGS)
    scalars = steps * len(TAGS)
    writers = [TBWRITER, *setting.peers, FLOOR]

    def sample(writer: str) -> _Cost:
        directory = setting.fresh()
        logger = open_writer(writer, directory)
        log_step = logger.log_step

        def work() -> None:
            for step in range(steps):
                log_step(step)
            logger.close()

        begin = time.perf_counter()
        cpu = cpu_secs(work)
        wall = time.perf_counter() - begin
        return _Cost(cpu / scalars * 1e6, wall / scalars * 1e6, _bytes_in(directory) / scalars)

    costs = alternate(writers, setting.rounds, sample, setting.progress.tick)
    how = f"{scalars} scalars, ten a step through add_scalar, then close; {setting.rounds} rounds."
    cpu = {writer: [cost.cpu_us for cost in costs[writer]] for writer in writers}
    wall = {writer: [cost.wall_us for cost in costs[writer]] for writer in writers}
    stored = {writer: exact(costs[writer][0].stored_bytes) for writer in writers if writer != FLOOR}
    over = ratios(cpu, setting.peers, TBWRITER)
    return [
        Figure(
            name="cpu_per_scalar",
            title="Processor time per scalar, all threads",
            unit="us",
            how=f"time.process_time over {how}",
            values=spreads(cpu),
            ratios=over,
            targets=[
                Target.judge(f"times tbwriter's, for {peer}", "at least", 30, over[f"{peer} / {TBWRITER}"])
                for peer in (TENSORBOARDX, TORCH)
                if peer in setting.peers
            ],
        ),
        Figure(
            name="wall_per_scalar",
            title="Time per scalar until the file is closed",
            unit="us",
            how=how,
            values=spreads(wall),
            ratios=ratios(wall, setting.peers, TBWRITER),
        ),
        Figure(
            name="bytes_per_scalar",
            title="Bytes per scalar in the event file",
            unit="bytes",
            how=f"Size of the files over {scalars} scalars, ten a step; tags of {_mean_tag():.1f} bytes on average.",
            values=stored,
            targets=[Target.judge("bytes", "at most", 27, stored[TBWRITER])],
        ),
    ]


def _mean_tag() -> float:
    return sum(map(len, TAGS)) / len(TAGS)


def _bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def series(setting: Setting) -> list[Figure]:
    """Measure `add_scalar_series`, from the arrays to the closed file."""
    from tbwriter import SummaryWriter

    points = setting.scalars
    steps = np.arange(points)
    values = np.linspace(1.0, 2.0, points)
    times = 1.7e9 + np.arange(points) * 0.01
    names = {"one wall time": None, "wall times given": times}

    def sample(name: str) -> float:
        writer = SummaryWriter(setting.fresh())

        def work() -> None:
            for tag in TAGS:
                writer.add_scalar_series(tag, values, steps, names[name])
            writer.close()

        return cpu_secs(work) / (points * len(TAGS)) * 1e6

    samples = alternate(list(names), setting.rounds, sample, setting.progress.tick)
    return [
        Figure(
            name="series_per_scalar",
            title="Processor time per scalar of add_scalar_series",
            unit="us",
            how=f"time.process_time, all threads, over ten series of {points} points, then close; "
            f"{setting.rounds} rounds.",
            values=spreads(samples),
            targets=[Target.judge(f"us, {name}", "at most", 0.3, spread(us)) for name, us in samples.items()],
        )
    ]
