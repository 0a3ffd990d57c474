"""Steps of ``evomeans fit`` and ``evomeans path``: read, search, record the run, and show it."""

from __future__ import annotations

import platform
import secrets
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from evomeans._version import __version__
from evomeans.cli.info import package_versions
from evomeans.cli.options import RunOptions, SampleOptions, SharedSearchOptions, TableOptions
from evomeans.cli.run_folder import (
    HEADER,
    MODEL,
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
from evomeans.cli.tables.table import Table, TableRequest, check_table, table_bytes
from evomeans.cli.terminal import (
    CommandError,
    ExitCode,
    Terminal,
    UsageError,
    as_typed,
    quote,
    reason_of,
)
from evomeans.engines.constrained.links import InfeasibleError
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.path import HGMeansPath
from evomeans.estimators.searching import SearchingEstimator
from evomeans.progress import Display
from evomeans.search import StopReason
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

    is_path: ClassVar[bool]

    @abstractmethod
    def make(self, seed: int | None) -> Any:
        """Return the estimator that the options describe, or refuse them."""

    def arguments(self, table: Table) -> dict[str, Any]:
        """Return what a fit takes besides samples and weights."""
        return {}

    @abstractmethod
    def display(self, model: Any) -> Display:
        """Return the observer that shows the search."""

    @abstractmethod
    def found(self, model: Any) -> dict[str, Any]:
        """Return the settings of the search and its result, as plain JSON."""

    @abstractmethod
    def frames(self, model: Any, table: Table) -> dict[str, pl.DataFrame]:
        """Return the tables of the run by their names."""

    @abstractmethod
    def lines(self, model: Any, record: dict[str, Any], written: str) -> list[str]:
        """Say what was found, and what was ``written``."""

    def kept_model(self, model: Any) -> SearchingEstimator | None:
        """Return the model of the run, if there is one."""
        return getattr(model, "best_estimator_", None) if self.is_path else model

    def run(self) -> int:
        """Read the table, search, write the run, show what was found; return the exit code."""
        # Whatever can be refused is refused before the search, which may take hours.
        keep, search, samples, terminal = self.keep, self.search, self.samples, self.terminal
        checkpoint = checkpoint_path(keep)
        unfinished = find_unfinished(checkpoint, keep, search.clusters)
        check_output(keep, unfinished)
        if search.engine == "gpu":
            check_gpu()
        seed = search.seed
        if seed is None:
            seed = secrets.randbelow(2**32) if unfinished is None else unfinished.seed
        try:
            model = self.make(seed)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        self._tell_beforehand(checkpoint, unfinished, model)
        began = time.perf_counter()
        request = TableRequest(self.name, self.read, samples.weights, missing=samples.missing)
        table = request.load(terminal, standardize=samples.standardize)
        ks = search.clusters
        table = check_table(table, ks if isinstance(ks, int) else ks[-1], terminal)
        arguments = self.arguments(table)
        times: dict[str, Any] = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "reading_seconds": round(time.perf_counter() - began, 3),
        }
        if checkpoint is not None and unfinished is None:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.unlink(missing_ok=True)
        times |= self._search(model, table, arguments, checkpoint)
        interrupted = model.stop_reason_ == StopReason.INTERRUPTED
        # A checkpoint without --checkpoint is kept only as long as it is needed.
        needed = checkpoint is not None and (keep.checkpoint is not None or interrupted)
        record = self._record(model, table, times, checkpoint if needed else None)
        if keep.output is not None:
            self._write(keep.output, model, table, record, checkpoint)
        if checkpoint is not None and not needed:
            checkpoint.unlink(missing_ok=True)
        terminal.result(record, self._summary(model, table, record))
        if interrupted:
            terminal.warn(how_to_resume(checkpoint))
        return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE

    def _tell_beforehand(
        self, checkpoint: Path | None, unfinished: Unfinished | None, model: Any
    ) -> None:
        note, output = self.terminal.note, self.keep.output
        if unfinished is not None:
            note(f"found {checkpoint}, {unfinished.progress}")
        elif self.keep.resume:
            note(f"note: there is no checkpoint {checkpoint}; a new search begins")
        if output is None or not self.keep.report:
            return
        if not getattr(model, "_is_euclidean", True):
            note(f"note: {NO_DISTANCES}")
        elif not can_report():
            note(
                "note: report.html is left out, it needs jinja2 and matplotlib: "
                f"{how_to_install('report')}. After that: evomeans report {quote(str(output))}"
            )

    def _search(
        self, model: Any, table: Table, arguments: dict[str, Any], checkpoint: Path | None
    ) -> dict[str, float]:
        """Fit the model; return the time that took, by the clock and by the processor."""
        display = self.display(model)
        model.set_params(checkpoint=checkpoint, observers=[display])
        began = time.perf_counter(), time.process_time()
        with self.terminal.noting_warnings("fit was interrupted"), display.shown():
            fit_to(table, model, arguments)
        times = {
            "fit_seconds": round(time.perf_counter() - began[0], 3),
            "fit_cpu_seconds": round(time.process_time() - began[1], 3),
        }
        model.set_params(checkpoint=None, observers=None)
        is_scaled = table.standardization is not None
        if (kept := self.kept_model(model)) is not None and (is_scaled or table.named):
            # The model recognises its columns in another table.
            suffix = " (standardized)" if is_scaled else ""
            names = [f"{name}{suffix}" for name in table.columns]
            kept.feature_names_in_ = np.array(names, dtype=object)
        return times

    def _record(
        self, model: Any, table: Table, times: dict[str, Any], checkpoint: Path | None
    ) -> dict[str, Any]:
        """Return all that a run says about itself, as plain JSON."""
        scaling, missing, output = table.standardization, table.missing, self.keep.output
        if not self.is_path:
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
            **self.found(model),
            "times": times,
            "versions": {"python": platform.python_version(), **package_versions(PACKAGES)},
            "output": None if output is None else str(output),
            "checkpoint": None if checkpoint is None else str(checkpoint),
            "files": [],
        }

    def _write(
        self,
        folder: Path,
        model: Any,
        table: Table,
        record: dict[str, Any],
        checkpoint: Path | None,
    ) -> None:
        # A first signal is ignored in here: the search is over, and its result must not be lost.
        with DeferredInterrupt():
            try:
                write_run(folder, self._files(model, table, record))
            except Exception as error:
                text = f"{folder} could not be written: {reason_of(error)}."
                if checkpoint is not None and checkpoint.exists():
                    text += f" Continue from {checkpoint} with:\n  {as_typed('--resume')}"
                if isinstance(error, OSError):
                    raise CommandError(text) from error
                # A mistake of ours, with a traceback; the search is not lost.
                self.terminal.warn(f"evomeans: {text}")
                raise

    def _files(self, model: Any, table: Table, record: dict[str, Any]) -> dict[str, Content]:
        """Return the files of a run and what they hold; the record learns their names."""
        suffix = self.keep.format_out
        files: dict[str, Content] = {
            f"{name}.{suffix}": table_bytes(frame, suffix)
            for name, frame in self.frames(model, table).items()
        }
        if (kept := self.kept_model(model)) is not None:
            files[MODEL] = kept.save
        if getattr(model, "_is_euclidean", True):
            data = self._report(model, table, record)
            if (rival := data.get("run", {}).get("kmeans")) is not None:
                # Only the report has measured it.
                record["result"]["kmeans"] = rival
            files[REPORT_DATA] = as_json(data)
            if self.keep.report and can_report():
                from evomeans.report import render_report

                files[REPORT] = render_report(data).encode("utf-8", errors="backslashreplace")
        record["files"] = sorted([*files, RECORD])
        return files | {RECORD: as_json(record)}

    def _report(self, model: Any, table: Table, record: dict[str, Any]) -> dict[str, Any]:
        """Return the data of the report."""
        from evomeans.report import report_data

        scaling = table.standardization
        ids: Any = table.ids
        if ids is None and table.rows is not None:
            ids = table.rows + 1
        settings = {
            "table": table.name,
            "rows": len(table.X),
            "columns": listed(table.columns),
            "standardized": scaling is not None,
            "weighted": table.weights is not None,
            "missing values": self.samples.missing or "refused",
            **record["settings"],
        }
        return report_data(
            model,
            table.X,
            feature_names=list(table.columns),
            title=Path(table.name).name,
            settings=settings,
            command=record["command"],
            sample_weight=table.weights,
            standardization=None if scaling is None else (scaling.mean, scaling.scale),
            sample_names=None if ids is None else list(map(str, ids)),
            sample_label=table.id_name or "row",
            notes=table.notes,
        )

    def _summary(self, model: Any, table: Table, record: dict[str, Any]) -> str:
        """Say in a few lines what was found and where it is."""
        written = "nothing; -o FOLDER keeps labels, centers, model and report"
        if record["output"] is not None:
            written = f"{record['output']}: {', '.join(record['files'])}"
        first, *others = self.lines(model, record, written)
        size = f"{counted(len(table.X), 'row')}, {counted(len(table.columns), 'column')}"
        return "\n".join([f"{table.name}: {size}, {first}", *filter(None, others)])


def check_gpu() -> None:
    """Refuse the GPU engine if it lacks something here."""
    from evomeans.engines.gpu import GpuNotAvailableError, chosen_device

    try:
        chosen_device()
    except GpuNotAvailableError as error:
        raise CommandError(str(error)) from error


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
        # Other models refuse only now what they cannot make of the rows.
        if isinstance(model, HGMeans | HGMeansPath):
            raise
        raise CommandError(f"{table.name}: {error}") from error


class Unfinished(NamedTuple):
    """A search that a checkpoint holds."""

    seed: int | None
    """With which it began."""
    progress: str
    """How far it is, in words."""


def checkpoint_path(keep: RunOptions) -> Path | None:
    """Return where the search is kept: as asked for, or next to the output."""
    if keep.checkpoint is not None:
        if not keep.checkpoint.absolute().parent.is_dir():
            raise CommandError(f"There is no folder for the checkpoint {keep.checkpoint}.")
        return keep.checkpoint
    if keep.output is not None:
        return keep.output.parent / f"{keep.output.absolute().name}.checkpoint"
    if keep.resume:
        raise UsageError("--resume needs --checkpoint, or the --output of the run to continue.")
    return None


def find_unfinished(path: Path | None, keep: RunOptions, ks: Any) -> Unfinished | None:
    """Look at the checkpoint, if there is one; refuse it if it is not clear what to do with it.

    ``ks`` are the one number of clusters of a fit, or those of a path.
    """
    if path is None or not path.exists():
        return None
    if not (keep.resume or keep.force):
        raise CommandError(
            f"{path} holds a search already: --resume continues it, --force begins a new one."
        )
    try:
        if isinstance(ks, int):
            archive = read_archive(path, FORMAT, VERSION)
            history = history_from_arrays(archive)
            made = history[-1].number if history else 0
            progress = f"{made:,} offspring into the search"
        else:
            archive = read_archive(path, PATH_FORMAT, PATH_VERSION)
            known = set(map(int, archive.field("entries", "dict"))).intersection(ks)
            progress = f"with solutions for {len(known)} numbers of k"
    except (ArchiveError, ValueError) as error:
        raise CommandError(
            f"{path} is not a checkpoint that can be continued: {error}. Remove it, "
            "or name another with --checkpoint."
        ) from error
    seed = archive.meta.get("seed")
    return Unfinished(seed if isinstance(seed, int) else None, progress) if keep.resume else None


def how_to_resume(checkpoint: Path | None) -> str:
    """Say how to continue an interrupted search."""
    if checkpoint is None or not checkpoint.exists():
        return (
            "The search was interrupted and cannot be continued: it was not kept. Next time, add "
            "--output or --checkpoint."
        )
    return f"The search was interrupted. Continue it with:\n  {as_typed('--resume')}"


def search_seconds(model: Any) -> float:
    """Return how long the search of a model took, without preparations."""
    return float(model.history_[-1].seconds) if model.history_ else 0.0
