"""Memory of the device and of this process."""

import resource
from collections.abc import Mapping
from pathlib import Path

import mindspore as ms

from msbridge.collectors._base import Collector, Context, NotGivenError, Value

_MIB = 1 << 20
_STATM = Path("/proc/self/statm")


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
    """`memory/host_mib` and `memory/host_peak_mib`: the resident memory of this process, now and at most."""

    def collect(self, _context: Context) -> Mapping[str, Value]:
        """Give what the kernel tells."""
        found = {"memory/host_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
        if _STATM.exists():
            found["memory/host_mib"] = int(_STATM.read_text().split()[1]) * resource.getpagesize() / _MIB
        return found
