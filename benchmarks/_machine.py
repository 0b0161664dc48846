"""Facts about the machine and the software that a result is worth nothing without. Reads no host name."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from benchmarks._results import Machine

ROOT = Path(__file__).resolve().parent.parent
_MOUNTS = Path("/proc/mounts")
_NFS = ("nfs", "nfs4")
_PACKAGES = (
    "numpy", "protobuf", "crc32c", "tensorboardX", "torch", "tensorboard", "tensorboard-data-server", "mindspore",
    "fsspec", "s3fs", "boto3", "moto",
)  # fmt: skip


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
        file_system=file_system(directory),
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


def file_system(directory: Path) -> str:
    """Return the type of the file system that holds `directory`."""
    where = directory.resolve()
    holding = [(len(point), kind) for point, kind in _mounts() if where.is_relative_to(point)]
    return max(holding)[1] if holding else "unknown"


def nfs_directory() -> Path | None:
    """Return a directory on NFS that can be written: the user's, the current one, or where it is mounted."""
    mounted = [Path(point) for point, kind in _mounts() if kind in _NFS]
    candidates = [Path.home(), Path.cwd(), *mounted] if mounted else []
    return next((path for path in candidates if file_system(path) in _NFS and os.access(path, os.W_OK)), None)


def _mounts() -> list[tuple[str, str]]:
    """Return all mount points with the types of their file systems; none where the system does not tell."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [(point.replace("\\040", " "), kind) for _, point, kind, *_ in map(str.split, lines)]


def versions() -> dict[str, str]:
    """Return the versions of all packages that take part."""
    found = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def commit() -> str:
    """Return the commit that was measured, with a "+" when the product was changed since; "unknown" without git."""
    try:
        if Path(_git("rev-parse", "--show-toplevel")).resolve() != ROOT:  # an archive, unpacked in another repository
            return "unknown"
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "tbwriter", "msbridge") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
