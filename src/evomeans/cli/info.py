"""``evomeans info``."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from evomeans._version import __version__
from evomeans.wording import how_to_install

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
    record = gather_info()
    print(json.dumps(record, indent=1) if as_json else described(record))
    return 0


def gather_info() -> dict[str, Any]:
    """Return versions, engines, threads and the cache, as plain JSON."""
    from evomeans.estimators.parameters import check_thread_count

    return {
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
    from evomeans.engines.gpu.devices import described_device

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
    from evomeans.cli.warmup import needed_calls
    from evomeans.compiled.cache import PACKAGE, SUFFIX, folders_for, is_writable
    from evomeans.compiled.ready import missing_jobs

    needed = needed_calls()
    possible = folders_for(PACKAGE / "__init__.py")
    files = [file for folder in possible for file in folder.glob(f"*{SUFFIX}")]
    # Those with kernels, and the one that gets new kernels.
    written = next(filter(is_writable, possible), None)
    folders = [one for one in possible if one == written or any(one == f.parent for f in files)]
    return {
        "folder": str(written or folders[0]) if folders else None,
        "folders": list(map(str, folders)),
        "needed": len(needed),
        "ready": len(needed) - len(missing_jobs(needed)),
        "bytes": sum(file.stat().st_size for file in files),
        "switched_off": os.environ.get("EVOMEANS_CACHE", "1") == "0",
    }


def described(record: dict[str, Any]) -> str:
    """Write it for people."""
    lines = [
        f"evomeans {record['evomeans']}, Python {record['python']}, {record['system']}",
        f"  packages   {_listed(record['packages'])}",
    ]
    for extra, packages in record["extras"].items():
        missing = [name for name, found in packages.items() if found is None]
        hint = f"   (missing: {how_to_install(extra)})" if missing else ""
        lines.append(f"  {extra:<10} {_listed(packages)}{hint}")
    for engine, state in record["engines"].items():
        lines.append(f"  engine     {engine}: {state}")
    lines.append(f"  threads    {_threads_text(record)}")
    lines.append(f"  kernels    {_kernels_text(record['cache'])}")
    lines.append(f"  cache      {_cache_text(record['cache'])}")
    return "\n".join(lines)


def _listed(packages: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {found or 'not installed'}" for name, found in packages.items())


def _threads_text(record: dict[str, Any]) -> str:
    text = f"{record['threads']} by default, {record['cores']} at most"
    limits = [f"{name}={value}" for name, value in record["limits"].items()]
    return f"{text} ({', '.join(limits)})" if limits else text


def _kernels_text(cache: dict[str, Any]) -> str:
    if cache["switched_off"] or cache["folder"] is None:
        return f"{cache['needed']}, compiled by every process that needs them"
    if cache["ready"] == cache["needed"]:
        return f"all {cache['needed']} are compiled"
    missing = cache["needed"] - cache["ready"]
    return (
        f"{cache['ready']} of {cache['needed']} are compiled; evomeans warmup compiles the other "
        f"{missing}, else the first fit that needs them does"
    )


def _cache_text(cache: dict[str, Any]) -> str:
    if cache["switched_off"]:
        return "switched off by EVOMEANS_CACHE=0"
    if cache["folder"] is None:
        return "no folder can be written; set NUMBA_CACHE_DIR to one that can"
    size = f"{cache['bytes'] / 1e6:.1f} MB"
    within = f", in {len(cache['folders'])} folders" if len(cache["folders"]) > 1 else ""
    return f"{size} in {cache['folder']}{within}"
