"""Memory of the device and of this process."""

import resource
import sys
from collections.abc import Mapping
from pathlib import Path

import mindspore as ms

from msbridge.collectors._base import Collector, Context, NotGivenError, Value

_MIB = 1 << 20
_STATUS = Path("/proc/self/status")


class DeviceMemory(Collector):
    """`memory/device_allocated_mib`, `memory/device_reserved_mib`, `memory/device_peak_mib`, as MindSpore's pool tells.

    Not on the CPU, where MindSpore has no such pool. Asking costs no transfer.
    """

    def collect(self, _context: Context) -> Mapping[str, Value]:
        """Give what the pool tells."""
        if ms.get_context("device_target") == "CPU":
            raise NotGivenError("device memory is not available: MindSpore keeps no memory pool on the CPU")
        return {
            "memory/device_allocated_mib": ms.runtime.memory_allocated() / _MIB,
            "memory/device_reserved_mib": ms.runtime.memory_reserved() / _MIB,
            "memory/device_peak_mib": ms.runtime.max_memory_allocated() / _MIB,
        }


class HostMemory(Collector):
    """`memory/host_mib` and `memory/host_peak_mib`: the resident memory of this process, now and at most.

    Linux's VmRSS and VmHWM. Elsewhere there is the peak alone, from `getrusage`.
    """

    def collect(self, _context: Context) -> Mapping[str, Value]:
        """Give what the kernel tells."""
        if not _STATUS.exists():
            unit = _MIB if sys.platform == "darwin" else 1024
            return {"memory/host_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}
        # Not ru_maxrss here: it remembers the size of the process that started this one.
        kib = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if line.startswith("Vm"))
        return {
            "memory/host_mib": int(kib["VmRSS"].split()[0]) / 1024,
            "memory/host_peak_mib": int(kib["VmHWM"].split()[0]) / 1024,
        }
