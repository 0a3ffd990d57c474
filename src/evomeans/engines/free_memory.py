"""How much memory is free, and how much samples take on the CPU."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

# What the CPU engine keeps of each sample besides its values in two forms, the second of them
# float32: its place, and labels and bounds of a few solutions.
BYTES_PER_ROW = 64
CGROUP = Path("/sys/fs/cgroup")


def bytes_of_samples(n_samples: int, n_features: int, itemsize: int) -> int:
    """Return about how many bytes the CPU engine takes for dense samples."""
    return n_samples * (n_features * (max(4, itemsize) + 4) + BYTES_PER_ROW)


def free_memory() -> int | None:
    """Return the bytes that this process can still get; None if the system does not say."""
    bounds = [_available(), _left_in_cgroup()]
    known = [bound for bound in bounds if bound is not None]
    return min(known) if known else None


def _available() -> int | None:
    text = _read(Path("/proc/meminfo"))
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    # macOS and Windows have no such file. Dask, without which nothing depends on it, brings psutil.
    if find_spec("psutil") is None:
        return None
    import psutil

    available: int = psutil.virtual_memory().available
    return available


def _left_in_cgroup() -> int | None:
    limit, used = (_read(CGROUP / name).strip() for name in ("memory.max", "memory.current"))
    if not (limit.isdigit() and used.isdigit()):
        return None
    # Pages of files count as used, but the system takes them back before memory runs out.
    fields = dict(line.split() for line in _read(CGROUP / "memory.stat").splitlines())
    cached = sum(int(fields.get(name, 0)) for name in ("active_file", "inactive_file"))
    return max(0, int(limit) - max(0, int(used) - cached))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
