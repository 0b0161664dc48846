"""Facts about the machine and the software that a result is worth nothing without. Reads no host name."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from benchmarks._results import Machine

ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("numpy", "protobuf", "crc32c", "tensorboardX", "torch", "tensorboard")


def machine(directory: Path, load_before: list[float]) -> Machine:
    """Describe this machine.

    Args:
        directory: where event files were written; its file system is named.
        load_before: what `load()` gave at the beginning.
    """
    return Machine(
        cpu=_cpu(),
        cores=cores(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        # Without what a distributor or a host adds behind the version.
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        file_system=_file_system(directory),
        load_before=load_before,
        load_after=load(),
    )


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> list[float]:
    """Return the load averages over 1, 5 and 15 minutes; none where the system has none."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else []


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _file_system(directory: Path) -> str:
    """Return the type of the file system that holds `directory`."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    where = directory.resolve()
    holding = [fields for fields in mounts if where.is_relative_to(fields[1])]
    return max(holding, key=lambda fields: len(fields[1]))[2] if holding else "unknown"


def versions() -> dict[str, str]:
    """Return the versions of all packages that take part."""
    installed = {item.metadata["Name"]: item.version for item in importlib.metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}


def commit() -> str:
    """Return the commit that was measured, with a "+" when the product was changed since."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "tbwriter") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
