"""The package as another revision of the repository has it, for comparisons with this one.

What is run with the package of another revision may import only its public names, and of the
laboratory only this module and ``lab.measure``.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import os
import subprocess
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
# Kept between runs, so that compiled kernels are found again; `make clean` removes it.
REVISIONS = ROOT / "build" / "revisions"


def source_of(revision: str) -> Path:
    """Return the folder ``src`` of a revision, checked out under ``build`` on first use.

    The baselines of the revision lie beside it, see :func:`baselines_beside`. A folder is returned
    as it is.
    """
    if Path(revision).is_dir():
        return Path(revision).resolve()
    commit = _git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    folder = REVISIONS / commit
    if not folder.exists():
        unfinished = folder.with_name(f"{commit}.{os.getpid()}")
        parts = [part for part in ("src", "lab/baselines") if _git("ls-tree", commit, part)]
        with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, *parts))) as archive:
            archive.extractall(unfinished, filter="data")
        unfinished.rename(folder)
    return folder / "src"


def environment_of(source: Path) -> dict[str, str]:
    """Return an environment in which ``import evomeans`` takes the package in ``source``."""
    return {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}


def check_imported(source: Path) -> None:
    """Exit unless ``import evomeans`` takes the package in ``source``."""
    import evomeans

    if source.resolve() not in Path(evomeans.__file__).resolve().parents:
        raise SystemExit(f"evomeans was imported from {evomeans.__file__}, not from {source}.")


def baselines_beside(source: Path) -> ModuleType:
    """Return the baselines that belong to the package in ``source``.

    Once they were a part of it. Later they lie in the folder ``lab`` beside it.
    """
    if importlib.util.find_spec("evomeans.baselines"):
        return importlib.import_module("evomeans.baselines")
    import lab

    lab.__path__.insert(0, str(source.parent / "lab"))
    return importlib.import_module("lab.baselines")


def estimator(n_clusters: int, offspring: int | None, **parameters: Any) -> Any:
    """Return HGMeans on one thread with a limit of offspring, whatever this version calls that.

    Without a limit it is ``HGMeans.fast``, which has its own.
    """
    from evomeans import HGMeans

    parameters = {"n_jobs": 1, **parameters}
    if offspring is None:
        return HGMeans.fast(n_clusters, **parameters)
    known = inspect.signature(HGMeans).parameters
    parameters["max_offspring" if "max_offspring" in known else "max_iter"] = offspring
    return HGMeans(n_clusters, **parameters)


def _git(*arguments: str) -> bytes:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.decode().strip()}")
    return done.stdout
