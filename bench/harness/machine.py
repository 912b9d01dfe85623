"""What machine this is, and how much memory a process holds.

A child's `ru_maxrss` may be what its parent held when it was started, so peaks are read from
`/proc` where there is one.
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
    """The most memory that this process has held."""
    found = _of_status("VmHWM")
    return in_megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) if found is None else found


def megabytes() -> float:
    """The memory that this process holds now (where the system does not tell: the most it has
    held).
    """
    found = _of_status("VmRSS")
    return peak_megabytes() if found is None else found


def in_megabytes(ru_maxrss: int) -> float:
    """`ru_maxrss` is in kilobytes, on macOS in bytes."""
    return ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def machine() -> dict[str, object]:
    """Processor, cores, memory, system, Python: what a reader must know of figures."""
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
    """How many processes wanted a core in the last minute: well above our own one, figures are
    disturbed.
    """
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0
