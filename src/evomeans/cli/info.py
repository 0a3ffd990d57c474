"""``evomeans info`` and ``evomeans warmup``."""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from evomeans._version import __version__
from evomeans.cli.terminal import Terminal
from evomeans.engines.protocol import Ability
from evomeans.wording import counted, how_to_install


def needed_calls() -> list[Any]:
    """Return what all models and proofs call on the CPU, for all kinds of samples."""
    from evomeans.engines import spherical as spherical
    from evomeans.engines import trimmed
    from evomeans.engines.constrained import engine as constrained
    from evomeans.engines.cpu import predict
    from evomeans.engines.cpu.kernels import calls, other_calls
    from evomeans.exact import certify
    from evomeans.kernels import matching, ward

    needed = [*certify.kernel_calls(), *matching.kernel_calls(), *ward.kernel_calls()]
    needed += [*constrained.kernel_calls(), *trimmed.kernel_calls()]
    for dtype in (np.float64, np.float32):
        dense = np.ones((1, 1), dtype)
        for samples in (dense, csr_array(dense)):
            needed += [
                *calls(samples, 1, frozenset(Ability), breeding=True, momentum=True),
                *other_calls(samples),
            ]
            needed += [*spherical.kernel_calls_for(samples), *predict.kernel_calls_for(samples)]
    return needed


def compile_kernels(jobs: int, terminal: Terminal) -> int:
    """Compile what is not yet compiled for this machine."""
    from evomeans.compiled.ready import count_cores, missing_calls, ready

    needed = needed_calls()
    began, total, done = time.perf_counter(), len(missing_calls(needed)), 0

    def show(call: Any) -> None:
        nonlocal done
        done += 1
        seconds = time.perf_counter() - began
        terminal.note(f"{done:>3} of {total}  {seconds:5.1f} s  {call.kernel.py_func.__name__}")

    ready(needed, max(1, jobs if jobs > 0 else count_cores() + 1 + jobs), show)
    seconds = time.perf_counter() - began
    compiled = f"{counted(total, 'kernel')} compiled in {seconds:.1f} s"
    text = compiled if total else f"All {counted(len(needed), 'kernel')} were compiled already"
    record = {"compiled": total, "needed": len(needed), "seconds": round(seconds, 3)}
    terminal.result(record, f"{text}; evomeans info says where they are")
    return 0


CORE = ("numpy", "scipy", "scikit-learn", "numba")
EXTRAS = {
    "cli": ("cyclopts", "rich", "polars"),
    "plot": ("matplotlib",),
    "report": ("jinja2", "matplotlib"),
    "gpu": ("torch", "triton"),
    "dask": ("dask", "distributed"),
}
THREAD_LIMITS = ("OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


def show_info(*, as_json: bool) -> int:
    """Print what one wants to know of an installation."""
    from evomeans.estimators.parameters import check_thread_count

    record = {
        "evomeans": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": package_versions(CORE),
        "extras": {extra: package_versions(names) for extra, names in EXTRAS.items()},
        "engines": _engines(),
        "cores": check_thread_count(-1),
        "threads": check_thread_count(None),
        "limits": {name: os.environ[name] for name in THREAD_LIMITS if name in os.environ},
        "cache": _cache(),
    }
    print(json.dumps(record, indent=1) if as_json else _described(record))
    return 0


def package_versions(names: tuple[str, ...]) -> dict[str, str | None]:
    """Return the versions of distributions without importing them; None if one is not there."""
    versions: dict[str, str | None] = {}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions


def _engines() -> dict[str, str]:
    from evomeans.engines.gpu import described_device

    missing = [name for name, found in package_versions(EXTRAS["dask"]).items() if found is None]
    return {
        "cpu": "available: compiled by Numba, threads, dense and sparse",
        "gpu": described_device(),
        "dask": f"not available: {', '.join(missing)} not installed"
        if missing
        else "available: data larger than memory, on this machine or a cluster, dense",
        "reference": "available: plain NumPy, slow, to check others by",
    }


def _cache() -> dict[str, Any]:
    """Return where compiled kernels are kept, and how many of those that fits call are there."""
    from evomeans.compiled.cache import PACKAGE, SUFFIX, folders_for, is_writable
    from evomeans.compiled.ready import missing_calls

    needed = needed_calls()
    possible = folders_for(PACKAGE / "__init__.py")
    files = [file for folder in possible for file in folder.glob(f"*{SUFFIX}")]
    # The one that gets new kernels, else one that has some.
    written = next(filter(is_writable, possible), files[0].parent if files else None)
    return {
        "folder": None if written is None else str(written),
        "needed": len(needed),
        "ready": len(needed) - len(missing_calls(needed)),
        "bytes": sum(file.stat().st_size for file in files),
        "switched_off": os.environ.get("EVOMEANS_CACHE", "1") == "0",
    }


def _described(record: dict[str, Any]) -> str:
    """Write it for people."""
    lines = [
        f"evomeans {record['evomeans']}, Python {record['python']}, {record['system']}",
        f"  packages   {_listed(record['packages'])}",
    ]
    for extra, packages in record["extras"].items():
        hint = "" if all(packages.values()) else f"   (missing: {how_to_install(extra)})"
        lines.append(f"  {extra:<10} {_listed(packages)}{hint}")
    lines += [f"  engine     {engine}: {state}" for engine, state in record["engines"].items()]
    limits = ", ".join(f"{name}={value}" for name, value in record["limits"].items())
    limits = f" ({limits})" if limits else ""
    kernels, place = _kernels(record["cache"])
    lines += [
        f"  threads    {record['threads']} by default, {record['cores']} at most{limits}",
        f"  kernels    {kernels}",
        f"  cache      {place}",
    ]
    return "\n".join(lines)


def _listed(packages: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {found or 'not installed'}" for name, found in packages.items())


def _kernels(cache: dict[str, Any]) -> tuple[str, str]:
    """Say how many kernels are compiled, and where they are."""
    needed, ready = cache["needed"], cache["ready"]
    place = f"{cache['bytes'] / 1e6:.1f} MB in {cache['folder']}"
    if cache["switched_off"]:
        place = "switched off by EVOMEANS_CACHE=0"
    elif cache["folder"] is None:
        place = "no folder can be written; set NUMBA_CACHE_DIR to one that can"
    else:
        others = f"; evomeans warmup compiles the other {needed - ready}"
        return f"{ready} of {needed} are compiled{others if ready < needed else ''}", place
    return f"{needed}, compiled by every process that needs them", place
