"""A description of the machine, and the memory of a process.

A child's `ru_maxrss` may be the memory of its parent at its start, so peaks are read from `/proc`
if it exists.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def _of_status(key: str) -> float | None:
    try:
        text = _STATUS.read_text()
    except OSError:
        return None
    found = next((line for line in text.splitlines() if line.startswith(f"{key}:")), None)
    return None if found is None else int(found.split()[1]) / 1024


def peak_megabytes() -> float:
    """The peak memory of this process."""
    found = _of_status("VmHWM")
    return in_megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) if found is None else found


def megabytes() -> float:
    """The current memory of this process (its peak, if the system has no other)."""
    found = _of_status("VmRSS")
    return peak_megabytes() if found is None else found


def in_megabytes(ru_maxrss: int) -> float:
    """Megabytes from `ru_maxrss`, which is in kilobytes, on macOS in bytes."""
    return ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def machine() -> dict[str, object]:
    """Processor, cores, memory, system and Python version."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def load_average() -> float:
    """The load average of the last minute; well above 1, figures are disturbed."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0
