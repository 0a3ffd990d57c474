"""Steps of ``evomeans fit`` and ``evomeans path``: read, search, record the run, and show it."""

from __future__ import annotations

import platform
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from evomeans._version import __version__
from evomeans.cli.failures import CommandError, ExitCode, UsageError, quote, reason_of
from evomeans.cli.info import package_versions
from evomeans.cli.options import (
    ModelOptions,
    RunOptions,
    SampleOptions,
    SharedSearchOptions,
    TableOptions,
)
from evomeans.cli.run_folder import (
    HEADER,
    MODEL,
    NO_ROWS,
    RECORD,
    REPORT,
    REPORT_DATA,
    Content,
    as_json,
    can_report,
    check_writable,
    files_in_the_way,
    read_record,
    write_run,
)
from evomeans.cli.tables.table import (
    Table,
    check_table,
    is_dask_table,
    load_table,
    scale_notes,
    table_bytes,
)
from evomeans.cli.terminal import Terminal, as_typed
from evomeans.engines import is_dask
from evomeans.engines.constrained.links import InfeasibleError
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.searching import SearchingEstimator
from evomeans.progress import Display
from evomeans.search import OffspringRecord, StopReason
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.archive import ArchiveError, history_from_arrays, read_archive
from evomeans.storage.checkpoint import FORMAT, PATH_FORMAT, PATH_VERSION, VERSION, CheckpointError
from evomeans.wording import counted, how_to_install, listed

if TYPE_CHECKING:
    import polars as pl


NO_DISTANCES = (
    "report.html is left out, because it shows distances to centres in the units of the table, "
    "which this model does not have."
)
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")
"""The versions of these are recorded."""
ROWS_FROM_ZERO = " (Rows are counted from 0 here.)"


@dataclass(frozen=True)
class Command(ABC):
    """A table, the options given for it, and what only one of the two commands does."""

    name: str
    search: SharedSearchOptions
    read: TableOptions
    samples: SampleOptions
    keep: RunOptions
    terminal: Terminal
    options: ModelOptions

    is_path: ClassVar[bool]

    @abstractmethod
    def make(self, seed: int | None) -> Any:
        """Return the estimator that the options describe, or refuse them."""

    def arguments(self, table: Table) -> dict[str, Any]:
        """Return what a fit takes besides samples and weights."""
        return {}

    @abstractmethod
    def display(self, model: Any, unfinished: Unfinished | None) -> Display:
        """Return the observer that shows the search."""

    @abstractmethod
    def settings(self, model: Any) -> dict[str, Any]:
        """Return the parameters of the search, as plain JSON."""

    @abstractmethod
    def result(self, model: Any) -> dict[str, Any]:
        """Return what was found, as plain JSON."""

    @abstractmethod
    def frames(self, model: Any, table: Table) -> dict[str, pl.DataFrame]:
        """Return the tables of the run by their names."""

    @abstractmethod
    def lines(self, run: Run, record: dict[str, Any]) -> list[str]:
        """Say what was found."""

    def closing(self, model: Any) -> str:
        """Return a last line of the summary, if there is one."""
        return ""

    def kept_model(self, model: Any) -> SearchingEstimator | None:
        """Return the model of the run, if there is one."""
        return getattr(model, "best_estimator_", None) if self.is_path else model

    def run(self) -> int:
        """Read the table, search, write the run, show what was found; return the exit code."""
        # Whatever can be refused is refused before the search, which may take hours.
        keep, terminal = self.keep, self.terminal
        checkpoint = checkpoint_path(keep)
        unfinished = find_unfinished(checkpoint, keep, is_path=self.is_path)
        check_output(keep, unfinished)
        if self.search.engine == "gpu":
            from evomeans.engines.gpu import GpuNotAvailableError, chosen_device

            try:
                chosen_device()
            except GpuNotAvailableError as error:
                raise CommandError(str(error)) from error
        seed = self.search.seed
        if seed is None:
            seed = secrets.randbelow(2**32) if unfinished is None else unfinished.seed
        try:
            model = self.make(seed)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        in_dask = self.search.engine == "dask" and is_dask_table(self.name)
        self._tell_beforehand(checkpoint, unfinished, model, in_dask=in_dask)
        with cluster_of(self.search):
            began = time.perf_counter()
            table = load_table(self.name, self.read, terminal, self.samples, in_dask=in_dask)
            ks = self.search.clusters
            check_table(table, ks if isinstance(ks, int) else ks[-1], terminal)
            arguments = self.arguments(table)
            reading_seconds = time.perf_counter() - began
            started = datetime.now(UTC)
            times = self._search(model, table, arguments, checkpoint, unfinished)
        run = Run(self, model, table, started, reading_seconds, *times)
        interrupted = model.stop_reason_ == StopReason.INTERRUPTED
        # A checkpoint without --checkpoint is kept only as long as it is needed.
        needed = checkpoint is not None and (keep.checkpoint is not None or interrupted)
        record = run_record(run, checkpoint if needed else None)
        if keep.output is not None:
            self._write(keep.output, run, record, checkpoint)
        if checkpoint is not None and not needed:
            checkpoint.unlink(missing_ok=True)
        terminal.result(record, summary(run, record))
        if interrupted:
            terminal.warn(how_to_resume(checkpoint, self.name, model))
        return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE

    def _tell_beforehand(
        self, checkpoint: Path | None, unfinished: Unfinished | None, model: Any, *, in_dask: bool
    ) -> None:
        note, output = self.terminal.note, self.keep.output
        if unfinished is not None:
            note(f"found {checkpoint}, {unfinished.described(self.search.clusters)}")
        elif self.keep.resume:
            note(f"note: there is no checkpoint {checkpoint}; a new search begins")
        if output is None or not self.keep.report:
            return
        if in_dask:
            note(f"note: {NO_ROWS}")
        elif not getattr(model, "_is_euclidean", True):
            note(f"note: {NO_DISTANCES}")
        elif not can_report():
            note(
                "note: report.html is left out, it needs jinja2 and matplotlib: "
                f"{how_to_install('report')}. After that: evomeans report {quote(str(output))}"
            )

    def _search(
        self,
        model: Any,
        table: Table,
        arguments: dict[str, Any],
        checkpoint: Path | None,
        unfinished: Unfinished | None,
    ) -> tuple[float, float]:
        """Fit the model; return the time that took, by the clock and by the processor."""
        if checkpoint is not None:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            if unfinished is None:
                checkpoint.unlink(missing_ok=True)
        display = self.display(model, unfinished)
        model.set_params(checkpoint=checkpoint, observers=[display])
        began = time.perf_counter(), time.process_time()
        with self.terminal.noting_warnings("fit was interrupted"), display.shown():
            fit_to(table, model, arguments)
        times = time.perf_counter() - began[0], time.process_time() - began[1]
        model.set_params(checkpoint=None, observers=None)
        is_scaled = table.standardization is not None
        if (kept := self.kept_model(model)) is not None and (is_scaled or table.named):
            # The model recognises its columns in another table.
            suffix = " (standardized)" if is_scaled else ""
            names = [f"{name}{suffix}" for name in table.columns]
            kept.feature_names_in_ = np.array(names, dtype=object)
        return times

    def _write(
        self, folder: Path, run: Run, record: dict[str, Any], checkpoint: Path | None
    ) -> None:
        # A first signal is ignored in here: the search is over, and its result must not be lost.
        with DeferredInterrupt():
            try:
                write_run(folder, run_files(run, record))
            except Exception as error:
                text = f"{folder} could not be written: {reason_of(error)}."
                if checkpoint is not None and checkpoint.exists():
                    held = earlier_state(checkpoint, run.model)
                    text += held or f" The search is kept in {checkpoint}."
                    text += f" Continue it with:\n  {as_typed(['--resume'])}"
                if isinstance(error, OSError):
                    raise CommandError(text) from error
                # A mistake of ours, with a traceback; the search is not lost.
                self.terminal.warn(f"evomeans: {text}")
                raise


@contextmanager
def cluster_of(search: SharedSearchOptions) -> Iterator[None]:
    """Work on the cluster that the options name, else on threads of this machine."""
    if search.scheduler is None:
        yield
        return
    if search.engine != "dask":
        raise UsageError("--scheduler is for --engine dask.")
    from evomeans.engines.dask.blocks import import_dask_array

    import_dask_array()
    from distributed import Client

    try:
        client = Client(search.scheduler)
    except (OSError, TimeoutError, ValueError) as error:
        raise CommandError(
            f"There is no Dask scheduler at {search.scheduler}: {error}. Start one with: "
            "dask scheduler"
        ) from error
    with client:
        yield


def check_output(keep: RunOptions, unfinished: object) -> None:
    """Refuse to replace a run, unless it is continued or that is forced."""
    if keep.output is None:
        return
    check_writable(keep.output)
    there = files_in_the_way(keep.output)
    if not there or keep.force:
        return
    if keep.resume and unfinished is not None:
        with suppress(CommandError, KeyError, TypeError):
            if read_record(keep.output)["result"]["stop_reason"] == StopReason.INTERRUPTED:
                return
    raise CommandError(
        f"{keep.output} has a run already ({', '.join(there[:3])} …). Choose another folder, or "
        "replace it with --force."
    )


def fit_to(table: Table, model: Any, arguments: dict[str, Any]) -> None:
    """Fit a model to a table; what it refuses is the table's fault, or a mistake of ours."""
    try:
        model.fit(table.X, sample_weight=table.weights, **arguments)
    except CheckpointError as error:
        raise CommandError(str(error)) from error
    except InfeasibleError as error:
        raise CommandError(f"{table.name}: {error}{ROWS_FROM_ZERO if arguments else ''}") from error
    except ValueError as error:
        # Rows that stay on disk are looked at only now, and so is what models make of rows.
        if not is_dask(table.X) and isinstance(model, HGMeans | HGMeansPath):
            raise
        raise CommandError(f"{table.name}: {error}") from error


class Unfinished(NamedTuple):
    """A search that a checkpoint holds."""

    seed: int | None
    """With which it began."""
    n_steps: int
    """Solutions of a fit, or steps of a path."""
    history: Sequence[OffspringRecord] = ()
    """Of a fit."""
    known: frozenset[int] | None = None
    """The k of a path that have a solution."""

    def described(self, ks: Any) -> str:
        """Say how far it is; ``ks`` are those that are asked for."""
        if self.known is not None:
            return f"with solutions for {len(self.known.intersection(ks))} numbers of k"
        made = self.history[-1].number if self.history else 0
        return f"{made:,} offspring into the search"


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
        known = frozenset(map(int, archive.field("entries", "dict")))
        return Unfinished(seed, archive.field("n_steps", "int"), known=known)
    history = history_from_arrays(archive)
    return Unfinished(seed, len(history), history)


def earlier_state(path: Path, model: Any) -> str:
    """Say so if a checkpoint does not hold all that was searched, because the disk was full."""
    is_path = isinstance(model, HGMeansPath)
    made = model._state.n_steps if is_path else len(model.history_)
    try:
        if _read(path, is_path=is_path).n_steps >= made:
            return ""
    except (ArchiveError, OSError, ValueError):
        pass
    return f" {path} holds an earlier state only, because the last one could not be written."


def how_to_resume(path: Path | None, table: str, model: Any) -> str:
    """Say how to continue an interrupted search."""
    if path is None or not path.exists():
        return (
            "The search was interrupted and cannot be continued: it was not kept. Next time, add "
            "--output or --checkpoint."
        )
    again = " (with the same standard input)" if table == "-" else ""
    return (
        f"The search was interrupted.{earlier_state(path, model)} Continue it{again} with:\n"
        f"  {as_typed(['--resume'])}"
    )


@dataclass(frozen=True)
class Run:
    """A command, the table it read, the model fitted to it, and how long that took."""

    command: Command
    model: Any
    table: Table
    started: datetime
    reading_seconds: float
    fit_seconds: float
    """By the clock."""
    cpu_seconds: float
    """By the processor."""

    @property
    def unit(self) -> str:
        """The unit of the inertia, if it is not that of the table."""
        return " in standardized units" if self.table.standardization is not None else ""


def run_record(run: Run, checkpoint: Path | None) -> dict[str, Any]:
    """Return all that a run says about itself, as plain JSON."""
    command, model, table = run.command, run.model, run.table
    scaling, missing = table.standardization, table.missing
    output = command.keep.output
    times: dict[str, Any] = {
        "started": run.started.astimezone(UTC).isoformat(timespec="seconds"),
        "reading_seconds": round(run.reading_seconds, 3),
        "fit_seconds": round(run.fit_seconds, 3),
        "fit_cpu_seconds": round(run.cpu_seconds, 3),
    }
    if not command.is_path:
        times["search_seconds"] = round(search_seconds(model), 3)
    return {
        **HEADER,
        "evomeans": __version__,
        "command": as_typed(),
        "table": {
            "name": table.name,
            "format": table.format,
            "rows": len(table.X),
            "columns": list(table.columns),
            "named": table.named,
            "dtype": str(table.X.dtype),
            "id": table.id_name,
            "weighted": table.weights is not None,
        },
        "standardization": None if scaling is None else asdict(scaling),
        "missing": missing and {**asdict(missing), "n_values": sum(missing.columns.values())},
        "model": type(model).__name__,
        "settings": command.settings(model),
        "result": command.result(model),
        "times": times,
        "versions": {"python": platform.python_version(), **package_versions(PACKAGES)},
        "output": None if output is None else str(output),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "files": [],
    }


def search_seconds(model: Any) -> float:
    """Return how long the search of a model took, without preparations."""
    return float(model.history_[-1].seconds) if model.history_ else 0.0


def run_files(run: Run, record: dict[str, Any]) -> dict[str, Content]:
    """Return the files of a run and what they hold; the record learns their names."""
    command, keep = run.command, run.command.keep
    files: dict[str, Content] = {
        f"{name}.{keep.format_out}": table_bytes(frame, keep.format_out)
        for name, frame in command.frames(run.model, run.table).items()
    }
    if (model := command.kept_model(run.model)) is not None:
        files[MODEL] = model.save
    # A report needs rows, and those in Dask stay where they are.
    if not is_dask(run.table.X) and getattr(run.model, "_is_euclidean", True):
        data = report_of(run)
        if (rival := data.get("run", {}).get("kmeans")) is not None:
            # Only the report has measured it.
            record["result"]["kmeans"] = rival
        files[REPORT_DATA] = as_json(data)
        if keep.report and can_report():
            from evomeans.report import render_report

            files[REPORT] = render_report(data).encode("utf-8", errors="backslashreplace")
    record["files"] = sorted([*files, RECORD])
    return files | {RECORD: as_json(record)}


def report_of(run: Run) -> dict[str, Any]:
    """Return the data of the report."""
    from evomeans.report import report_data

    command, table, scaling = run.command, run.table, run.table.standardization
    settings = {
        "table": table.name,
        "rows": len(table.X),
        "columns": listed(table.columns),
        "standardized": scaling is not None,
        "weighted": table.weights is not None,
        "missing values": command.samples.missing or "refused",
        **command.settings(run.model),
    }
    ids = table.ids
    if ids is None and table.rows is not None:
        ids = table.rows + 1
    return report_data(
        run.model,
        table.X,
        feature_names=list(table.columns),
        title=Path(table.name).name,
        settings=settings,
        command=as_typed(),
        sample_weight=table.weights,
        standardization=None if scaling is None else (scaling.mean, scaling.scale),
        sample_names=None if ids is None else list(map(str, ids)),
        sample_label=table.id_name or "row",
        notes=[*table.notes, *scale_notes(table)],
    )


def summary(run: Run, record: dict[str, Any]) -> str:
    """Say in a few lines what was found and where it is."""
    table, command = run.table, run.command
    written = "nothing; -o FOLDER keeps labels, centers, model and report"
    if record["output"] is not None:
        written = f"{record['output']}: {', '.join(record['files'])}"
    first, *others = command.lines(run, record)
    size = f"{counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}"
    lines = [f"{table.name}: {size}, {first}", *others, f"  written   {written}"]
    return "\n".join(filter(None, [*lines, command.closing(run.model)]))
