"""Searches that can be continued: where they are kept, and what is found there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import RunOptions
from evomeans.cli.terminal import as_typed
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.searching import SearchingEstimator
from evomeans.search import OffspringRecord
from evomeans.storage.archive import ArchiveError, history_from_arrays, read_archive
from evomeans.storage.checkpoint import FORMAT, VERSION
from evomeans.storage.path_checkpoint import FORMAT as PATH_FORMAT
from evomeans.storage.path_checkpoint import VERSION as PATH_VERSION

EARLIER = "an earlier state only, because the last one could not be written."


class Unfinished(NamedTuple):
    """A search that a checkpoint holds."""

    seed: int | None
    """With which it began."""
    n_steps: int
    """Solutions of a fit, or steps of a path."""
    history: Sequence[OffspringRecord] = ()
    """Of a fit."""
    known: frozenset[int] = frozenset()
    """The k of a path that have a solution."""


def checkpoint_path(keep: RunOptions) -> Path | None:
    """Return where the search is kept: as asked for, or next to the output."""
    if keep.checkpoint is not None:
        if not keep.checkpoint.absolute().parent.is_dir():
            raise CommandError(f"There is no folder for the checkpoint {keep.checkpoint}.")
        return keep.checkpoint
    if keep.output is not None:
        output = keep.output.absolute()
        return keep.output.parent / f"{output.name}.checkpoint"
    if keep.resume:
        raise UsageError("--resume needs --checkpoint, or the --output of the run to continue.")
    return None


def find_unfinished(path: Path | None, keep: RunOptions, *, is_path: bool) -> Unfinished | None:
    """Look at the checkpoint, if there is one; refuse it if it is not clear what to do with it."""
    if path is None or not path.exists():
        return None
    if not (keep.resume or keep.force):
        raise CommandError(
            f"{path} holds a search already: --resume continues it, --force begins a new one."
        )
    try:
        unfinished = _read(path, is_path=is_path)
    except (ArchiveError, ValueError) as error:
        raise CommandError(
            f"{path} is not a checkpoint that can be continued: {error}. Remove it, "
            "or name another with --checkpoint."
        ) from error
    return unfinished if keep.resume else None


def _read(path: Path, *, is_path: bool) -> Unfinished:
    archive = read_archive(path, *((PATH_FORMAT, PATH_VERSION) if is_path else (FORMAT, VERSION)))
    seed = archive.meta.get("seed")
    seed = seed if isinstance(seed, int) else None
    if is_path:
        known = frozenset(map(int, archive.mapping("entries")))
        return Unfinished(seed, archive.integer("n_steps"), known=known)
    history = history_from_arrays(archive)
    return Unfinished(seed, len(history), history)


def has_last_state(path: Path, model: SearchingEstimator | HGMeansPath) -> bool:
    """Whether a checkpoint holds all that a model has searched; a full disk may have cut it off."""
    is_path = isinstance(model, HGMeansPath)
    made = model._state.n_steps if isinstance(model, HGMeansPath) else len(model.history_)
    try:
        return _read(path, is_path=is_path).n_steps >= made
    except (ArchiveError, OSError, ValueError):
        return False


def where_it_is_kept(path: Path | None, model: SearchingEstimator | HGMeansPath) -> str:
    """Say which state a checkpoint holds, and how to continue from it; nothing if there is none."""
    if path is None or not path.exists():
        return ""
    command = as_typed(["--resume"])
    if has_last_state(path, model):
        return f" The search is kept in {path}. Continue it with:\n  {command}"
    return f" {path} holds {EARLIER} Continue from there with:\n  {command}"


def how_to_resume(path: Path | None, table: str, model: SearchingEstimator | HGMeansPath) -> str:
    """Say how to continue an interrupted search."""
    if path is None or not path.exists():
        return (
            "The search was interrupted and cannot be continued: it was not kept. Next time, add "
            "--output or --checkpoint."
        )
    held = "" if has_last_state(path, model) else f" {path} holds {EARLIER}"
    again = " (with the same standard input)" if table == "-" else ""
    command = as_typed(["--resume"])
    return f"The search was interrupted.{held} Continue it{again} with:\n  {command}"
