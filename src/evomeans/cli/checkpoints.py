"""Searches that can be continued: where they are kept, and what is found there."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import RunOptions
from evomeans.cli.terminal import as_typed
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.searching import SearchingEstimator
from evomeans.search import History
from evomeans.storage.archive import ArchiveError, history_from_arrays, read_archive
from evomeans.storage.checkpoint import FORMAT, VERSION
from evomeans.storage.path_checkpoint import FORMAT as PATH_FORMAT
from evomeans.storage.path_checkpoint import VERSION as PATH_VERSION

EARLIER = "an earlier state only, because the last one could not be written."


class Unfinished(NamedTuple):
    """A search that a checkpoint holds: the seed with which it began, and its history."""

    seed: int | None
    history: History


class UnfinishedPath(NamedTuple):
    """A path that a checkpoint holds: its seed, and which k have a solution."""

    seed: int | None
    known: frozenset[int]


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


def find_unfinished(path: Path | None, keep: RunOptions) -> Unfinished | None:
    """Look at the checkpoint, if there is one; refuse it if it is not clear what to do with it."""
    if path is None or not path.exists():
        return None
    if not (keep.resume or keep.force):
        raise CommandError(
            f"{path} holds a search already: --resume continues it, --force begins a new one."
        )
    try:
        archive = read_archive(path, FORMAT, VERSION)
        history, seed = history_from_arrays(archive), archive.meta.get("seed")
    except ArchiveError as error:
        raise CommandError(
            f"{path} is not a checkpoint that can be continued: {error}. Remove it, "
            "or name another with --checkpoint."
        ) from error
    return Unfinished(seed if isinstance(seed, int) else None, history) if keep.resume else None


def find_unfinished_path(path: Path | None, keep: RunOptions) -> UnfinishedPath | None:
    """Look at the checkpoint of a path, like :func:`find_unfinished`."""
    if path is None or not path.exists():
        return None
    if not (keep.resume or keep.force):
        raise CommandError(
            f"{path} holds a search already: --resume continues it, --force begins a new one."
        )
    if not keep.resume:
        return None
    try:
        archive = read_archive(path, PATH_FORMAT, PATH_VERSION)
        seed, known = archive.meta.get("seed"), frozenset(map(int, archive.mapping("entries")))
    except (ArchiveError, ValueError) as error:
        raise CommandError(
            f"{path} is not a checkpoint that can be continued: {error}. Remove it, "
            "or name another with --checkpoint."
        ) from error
    return UnfinishedPath(seed if isinstance(seed, int) else None, known)


def has_last_state(path: Path | None, model: SearchingEstimator | HGMeansPath) -> bool:
    """Whether a checkpoint holds all that a model has searched; a full disk may have cut it off."""
    if path is None:
        return False
    try:
        if isinstance(model, HGMeansPath):
            archive = read_archive(path, PATH_FORMAT, PATH_VERSION)
            return archive.integer("n_steps") >= model._state.n_steps
        return len(history_from_arrays(read_archive(path, FORMAT, VERSION))) >= len(model.history_)
    except (ArchiveError, OSError):
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
