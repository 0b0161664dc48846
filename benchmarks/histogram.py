"""The figures of `python -m benchmarks histogram`: what a histogram costs, and how near it comes to its data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks import _arrays
from benchmarks._measure import alternate, cpu_secs, exact, ratios, spreads
from benchmarks._results import Figure
from benchmarks._run import FigureMaker
from benchmarks._setting import Setting
from benchmarks._writers import EVENT_FILE, TBWRITER, open_writer

NUMPY = "NumPy, 64 bins"
_BINS = 64
_SIZES = (1_000, 30_000, 1_000_000)
_POINTS = 200_000
_Array = npt.NDArray[np.float32]


def _writers(setting: Setting) -> list[str]:
    return [TBWRITER, *(peer for peer in setting.peers if peer != EVENT_FILE)]


def sizes(setting: Setting) -> list[Figure]:
    """Measure the processor time of arrays of several sizes, all threads."""
    writers = [*_writers(setting), NUMPY]
    random = np.random.default_rng(0)
    figures = []
    for size in _SIZES[: 2 if setting.quick else None]:
        values = random.standard_normal(size, np.float32)
        repeats = max(3, min(200, 1_000_000 // size))

        def sample(writer: str, values: _Array = values, repeats: int = repeats) -> float:
            if writer == NUMPY:
                return cpu_secs(lambda: [np.histogram(values, _BINS) for _ in range(repeats)]) / repeats * 1e6
            logger = open_writer(writer, setting.fresh())
            add_histogram, flush = logger.add_histogram, logger.flush
            assert add_histogram is not None
            add_histogram("weights", values, 0)
            flush()

            def work() -> None:
                for step in range(repeats):
                    add_histogram("weights", values, step)
                flush()

            took = cpu_secs(work) / repeats * 1e6
            logger.close()
            return took

        found = alternate(writers, setting.rounds, sample, setting.progress.tick)
        figures.append(
            Figure(
                name=f"histogram_size_{size}",
                title=f"Processor time of a histogram, all threads: {size:,} float32",
                unit="us",
                how="Normally distributed values with default bins, from the call to the flushed file; NumPy counts "
                f"into {_BINS} equal bins and stores nothing; {setting.rounds} rounds.",
                values=spreads(found),
                ratios=ratios(found, writers[1:], TBWRITER),
            )
        )
    return figures


def _normal(random: np.random.Generator) -> _Array:
    return random.standard_normal(_POINTS, np.float32)


def _gradients(random: np.random.Generator) -> _Array:
    """Return values whose sizes lie anywhere from a millionth to 1, as gradients of many layers do."""
    return (random.standard_normal(_POINTS) * 10.0 ** random.uniform(-6, 0, _POINTS)).astype(np.float32)


def _heavy(random: np.random.Generator) -> _Array:
    return random.lognormal(0.0, 3.0, _POINTS).astype(np.float32)


_DATA: dict[str, Callable[[np.random.Generator], _Array]] = {
    "normal": _normal,
    "sizes over six decades": _gradients,
    "log-normal, sigma 3": _heavy,
}


def accuracy(setting: Setting) -> list[Figure]:
    """Compare what the files hold with the data: the distance of the distributions, lost values, and buckets."""
    distance: dict[str, dict[str, float]] = {}
    lost: dict[str, float] = {}
    buckets: dict[str, float] = {}
    for writer in (*_writers(setting), NUMPY):
        distance[writer] = {}
        for name, make in _DATA.items():
            data = make(np.random.default_rng(0))
            rows = _numpy_rows(data) if writer == NUMPY else _stored_rows(setting, writer, data)
            distance[writer][name] = _distance(data, rows) * 100
            missing = 1 - rows[:, 2].sum() / len(data)
            lost[writer] = max(lost.get(writer, 0.0), missing)
            buckets[writer] = max(buckets.get(writer, 0), len(rows))
        setting.progress.tick()
    how = f"{_POINTS} values, default bins, read back from the file; the rows are the writers."
    figures = [
        Figure(
            name=f"histogram_distance_{i}",
            title=f"Histogram against its data, largest error of a rank: {name}",
            unit="% of all values",
            how=f"{how} The greatest distance of the two cumulative distributions, values spread evenly in a bucket.",
            values={writer: exact(found[name]) for writer, found in distance.items()},
        )
        for i, name in enumerate(_DATA)
    ]
    for name, title, unit, found in (
        ("lost", "values not counted, at worst", "share", lost),
        ("buckets", "buckets, at most", "buckets", buckets),
    ):
        values = {writer: exact(number) for writer, number in found.items()}
        figures.append(Figure(f"histogram_{name}", f"Histogram against its data: {title}", unit, how, values))
    return figures


def _stored_rows(setting: Setting, writer: str, values: _Array) -> npt.NDArray[np.float64]:
    """Return the buckets that a writer stores, as rows of left, right and count."""
    from tbwriter import read_events

    directory = setting.fresh()
    logger = open_writer(writer, directory)
    assert logger.add_histogram is not None
    logger.add_histogram("weights", values, 0)
    logger.close()
    stored = [value for event in read_events(directory) for value in event.values if value.plugin == "histograms"]
    return np.asarray(stored[0].data, np.float64)


def _numpy_rows(values: _Array) -> npt.NDArray[np.float64]:
    counts, edges = np.histogram(values, _BINS)
    return np.column_stack([edges[:-1], edges[1:], counts])


def _distance(values: _Array, rows: npt.NDArray[np.float64]) -> float:
    """Return the Kolmogorov distance between data and buckets."""
    ordered = np.sort(values).astype(np.float64)
    edges = np.append(rows[0, 0], rows[:, 1])
    cumulative = np.append(0.0, np.cumsum(rows[:, 2])) / len(values)
    at = np.interp(ordered, edges, cumulative)
    ranks = np.arange(1, len(ordered) + 1) / len(ordered)
    return float(np.abs(at - ranks).max())


FIGURES: dict[str, FigureMaker] = {"million": _arrays.histograms, "sizes": sizes, "accuracy": accuracy}
