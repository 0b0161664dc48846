"""How many machine instructions a scalar takes, all threads: counted by callgrind, so that noise does not reach it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from benchmarks import _child
from benchmarks._measure import exact
from benchmarks._results import Figure
from benchmarks._run import LeftOutError
from benchmarks._setting import Setting

WAYS = ("add_scalar", "add_metrics")
_COUNT = 20_000


def count(setting: Setting) -> list[Figure]:
    """Count the instructions of both ways to add scalars."""
    if setting.quick:
        raise LeftOutError("callgrind takes too long")
    if reason := missing():
        raise LeftOutError(reason)
    values = {}
    for way in WAYS:
        values[way] = exact(per_scalar(setting.fresh(), way))
        setting.progress.tick()
    return [
        Figure(
            name="instructions",
            title="Machine instructions of a scalar, all threads",
            unit="instructions",
            how=f"{_COUNT} scalars, ten a step, from the call to the flushed file; tbwriter, counted by callgrind.",
            values=values,
        )
    ]


def missing() -> str:
    """Return why nothing can be counted; "" when it can."""
    if shutil.which("valgrind") is None or shutil.which("callgrind_control") is None:
        return "valgrind is not installed"
    works = subprocess.run(["valgrind", "--tool=none", "true"], capture_output=True, check=False).returncode == 0
    return "" if works else "valgrind does not run here"


def per_scalar(directory: Path, way: str) -> float:
    """Return the instructions of a scalar that is added by `way`, one of `WAYS`."""
    out = directory / "callgrind.out"
    under = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    found = _child.run("instructions", directory / "run", _COUNT, way, under=under)
    total = re.search(r"^totals: (\d+)", out.read_text(encoding="utf-8"), re.MULTILINE)
    if total is None:
        raise RuntimeError(f"callgrind: no totals in {out}")
    return int(total[1]) / float(found["scalars"])
