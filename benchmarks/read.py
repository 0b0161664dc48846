"""The figures of `python -m benchmarks read`: what reading back costs, beside both readers of TensorBoard."""

from __future__ import annotations

import importlib
import importlib.util
import resource
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from benchmarks._measure import alternate, cpu_secs, exact, ratio, spreads
from benchmarks._results import Figure, Spread, Target
from benchmarks._run import FigureMaker
from benchmarks._setting import Setting
from benchmarks._writers import TAGS
from tbwriter import EventFileWriter, SummaryWriter, _record, _scan, _tree, read_events, verify
from tbwriter._pb import tfevents_pb2 as pb

ACCUMULATOR, DATA_SERVER = "TensorBoard's EventAccumulator", "TensorBoard's data server"
_PACKAGES = {ACCUMULATOR: "tensorboard", DATA_SERVER: "tensorboard_data_server"}
_TIMES = 5
_MEMORY_MIB = 300


def _ours_ten(directory: Path, count: int) -> None:
    """Write as SummaryWriter does: ten scalars a step, which share an Event."""
    with SummaryWriter(directory) as writer:
        for step in range(count // len(TAGS)):
            writer.add_metrics(dict.fromkeys(TAGS, step * 0.5), step)


def _singles(directory: Path, count: int) -> None:
    """Write as torch and tensorboardX do: an Event for each scalar, as simple_value."""
    with EventFileWriter(directory) as writer:
        for step in range(count // len(TAGS)):
            for tag in TAGS:
                summary = pb.Summary(value=[pb.Summary.Value(tag=tag, simple_value=step * 0.5)])
                writer.add_event(pb.Event(wall_time=1.7e9 + step, step=step, summary=summary).SerializeToString())


def _tensors(directory: Path, count: int) -> None:
    """Write as TensorFlow 2 does: an Event for each scalar, as a tensor with metadata each time."""
    data = pb.SummaryMetadata.PluginData(plugin_name="scalars")
    metadata = pb.SummaryMetadata(plugin_data=data, data_class=pb.DATA_CLASS_SCALAR)
    with EventFileWriter(directory) as writer:
        for step in range(count // len(TAGS)):
            for tag in TAGS:
                tensor = pb.TensorProto(dtype=pb.DT_FLOAT, tensor_shape=pb.TensorShapeProto(), float_val=[step * 0.5])
                summary = pb.Summary(value=[pb.Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])
                writer.add_event(pb.Event(wall_time=1.7e9 + step, step=step, summary=summary).SerializeToString())


_FILES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "an Event for each scalar, simple_value": (_singles, 1),
    "an Event for each scalar, tensor": (_tensors, 1),
    "ten scalars to an Event": (_ours_ten, len(TAGS)),
}
"""By name: what writes such a file, and how many scalars an Event of it holds."""


def _inspect(directory: Path) -> None:
    (run,) = [found for found in _tree.walk(str(directory)) if found.event_files]
    _scan.scan(run.path, run.run, run.event_files)


def _read(directory: Path) -> None:
    for _ in read_events(directory):
        pass


def _accumulate(directory: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    # 0 keeps all points, as reading everything means.
    EventAccumulator(str(directory), size_guidance={"scalars": 0, "tensors": 0}).Reload()


def _serve(directory: Path) -> float:
    """Have TensorBoard's data server load all points; return its processor time until then, in seconds."""
    binary = importlib.import_module("tensorboard_data_server").server_binary()
    command = [binary, "--logdir", str(directory), "--reload", "once", "--port", "0", "--verbose"]
    before = _children_secs()
    with subprocess.Popen([*command, "--samples-per-plugin", "scalars=0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            loaded = any("Finished load cycle" in line for line in server.stderr)
        finally:
            server.kill()
    if not loaded:
        raise RuntimeError(f"{DATA_SERVER} ended before it had loaded the files")
    return _children_secs() - before


def _children_secs() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def scalars(setting: Setting) -> list[Figure]:
    """Measure the processor time to read files of three writers: of a scalar, of a megabyte, of an Event."""
    count = min(setting.scalars, 50_000) // len(TAGS) * len(TAGS)
    works: dict[str, Callable[[Path], float]] = {
        "inspect": lambda directory: cpu_secs(lambda: _inspect(directory)),
        "verify": lambda directory: cpu_secs(lambda: verify(directory)),
        "read_events": lambda directory: cpu_secs(lambda: _read(directory)),
        ACCUMULATOR: lambda directory: cpu_secs(lambda: _accumulate(directory)),
        DATA_SERVER: _serve,
    }
    missing = [name for name, package in _PACKAGES.items() if importlib.util.find_spec(package) is None]
    names = [name for name in works if name not in missing]
    notes = [f"{name} was left out: {_PACKAGES[name]} not installed." for name in missing]
    judged = () if ACCUMULATOR in missing else ("inspect", "verify")
    how = (
        f"{count} scalars of ten tags, from the file to what is kept of it, by processor time; TensorBoard's readers "
        f"keep all points, the start of the data server is in its time; {setting.rounds} rounds."
    )
    scalar, megabyte, event = [], [], []
    for number, (form, (write, scalars_an_event)) in enumerate(_FILES.items()):
        directory = setting.fresh()
        write(directory, count)
        megabytes = sum(path.stat().st_size for path in directory.iterdir()) / 1e6

        def sample(name: str, directory: Path = directory) -> float:
            return works[name](directory)

        for name in names:
            sample(name)  # the page cache, and what is imported at the first call
        secs = alternate(names, setting.rounds, sample, setting.progress.tick)
        over = {name: ratio(secs[ACCUMULATOR], secs[name]) for name in judged}
        scalar.append(
            Figure(
                name=f"read_{number}",
                title=f"Processor time to read a scalar: {form}",
                unit="us a scalar",
                how=how,
                values=spreads({name: [took / count * 1e6 for took in found] for name, found in secs.items()}),
                ratios={f"{ACCUMULATOR} / {name}": times for name, times in over.items()},
                targets=[
                    Target.judge(f"times {name}'s, for {ACCUMULATOR}", "at least", _TIMES, times)
                    for name, times in over.items()
                ],
                notes=notes,
            )
        )
        title = f"Megabytes read in a second: {form}"
        megabyte.append(Figure(f"read_{number}_bytes", title, "MB/s", how, _per_second(megabytes, secs)))
        title = f"Events read in a second: {form}"
        events = count / scalars_an_event
        event.append(Figure(f"read_{number}_events", title, "events/s", how, _per_second(events, secs)))
    return [*scalar, *megabyte, *event]


def _per_second(amount: float, secs: dict[str, list[float]]) -> dict[str, Spread]:
    return spreads({name: [amount / took for took in found] for name, found in secs.items()})


def memory(setting: Setting) -> list[Figure]:
    """Measure the memory of `inspect` over files of growing size: it must not grow with them."""
    sizes = (10, 40) if setting.quick else (50, 200, 800)
    peaks = {}
    for size in sizes:
        directory = setting.fresh()
        block = b"".join(_record.frame(_event(step)) for step in range(20_000)) + bytes(500)
        path = directory / "events.out.tfevents.1700000000.host.1.000000"
        with path.open("wb") as file:
            for _ in range(size * 1_000_000 // len(block)):
                file.write(block)
        peaks[f"{size} MB"] = exact(_peak(directory))
        path.unlink()
        setting.progress.tick()
    return [
        Figure(
            name="read_memory",
            title="Memory of inspect, at most",
            unit="MiB",
            how="Peak resident size of a process that does nothing else, interpreter and NumPy included; one file of "
            "scalars of fifty tags, with a hole of zeros every megabyte.",
            values=peaks,
            targets=[Target.judge("MiB", "at most", _MEMORY_MIB, max(peaks.values(), key=lambda peak: peak.median))],
        )
    ]


def _event(step: int) -> bytes:
    value = pb.Summary.Value(tag=f"tag{step % 50}", simple_value=step * 0.5)
    return pb.Event(wall_time=1.7e9 + step, step=step, summary=pb.Summary(value=[value])).SerializeToString()


def _peak(directory: Path) -> float:
    program = f"""
        import resource
        from benchmarks.read import _inspect
        _inspect({str(directory)!r})
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    return int(done.stdout) / (1024 if sys.platform != "darwin" else 1 << 20)


FIGURES: dict[str, FigureMaker] = {"scalars": scalars, "memory": memory}
