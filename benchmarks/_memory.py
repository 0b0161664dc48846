"""Whether memory grows with the number of scalars."""

from __future__ import annotations

from benchmarks import _child
from benchmarks._measure import exact
from benchmarks._results import Figure, Target
from benchmarks._setting import Setting

_SAMPLES = 10
_MIB = 2**20
# A leak of half a byte a scalar would show; samples differ by more, as the allocator keeps more or less.
_FLAT_MIB = 2.0


def growth(setting: Setting) -> list[Figure]:
    """Watch resident memory over `setting.memory_scalars` scalars."""
    found = _child.run("memory", setting.fresh(), setting.memory_scalars, _SAMPLES)
    if found["dropped"]:
        raise RuntimeError(f"memory: {found['dropped']} values were dropped; storage is too slow to measure this")
    resident = [value / _MIB for value in found["resident"]]
    part = setting.memory_scalars // _SAMPLES
    values = {f"after {(i + 1) * part:,} scalars": exact(value) for i, value in enumerate(resident)}
    values["largest at any moment"] = exact(found["peak"] / _MIB)
    half = _SAMPLES // 2
    grown = exact(max(resident[half:]) - max(resident[:half]))
    return [
        Figure(
            name="memory",
            title=f"Resident memory over {setting.memory_scalars:,} scalars",
            unit="MiB",
            how="One process with tbwriter alone, ten scalars a step at full rate, a flush before each sample of "
            f"VmRSS; the whole took {found['secs']:.1f} s.",
            values=values,
            targets=[
                Target.judge(
                    "MiB from the first half's largest sample to the second half's",
                    "at most",
                    _FLAT_MIB,
                    grown,
                )
            ],
            notes=["The largest includes the queue, which the loop fills faster than the worker empties it."],
        )
    ]
