"""``evomeans fit``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.cli.checkpoints import (
    Unfinished,
    checkpoint_path,
    find_unfinished,
    how_to_resume,
    where_it_is_kept,
)
from evomeans.cli.failures import CommandError, ExitCode, UsageError, quote, reason_of
from evomeans.cli.options import (
    ModelOptions,
    PathOptions,
    RunOptions,
    SampleOptions,
    SearchOptions,
    TableOptions,
)
from evomeans.cli.progress import SearchDisplay
from evomeans.cli.reading import check_table, load_table
from evomeans.cli.record import Asked, Fit, fit_files, fit_record, summary
from evomeans.cli.run_folder import (
    NO_ROWS,
    can_report,
    check_writable,
    files_in_the_way,
    read_record,
    write_run,
)
from evomeans.cli.tables.opening import is_dask_table
from evomeans.cli.tables.table import Table, read_pairs
from evomeans.cli.terminal import Terminal
from evomeans.engines import is_dask
from evomeans.engines.constrained.links import InfeasibleError
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.parameters import check_parameters
from evomeans.estimators.searching import SearchingEstimator
from evomeans.search import StopReason
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.state_file import CheckpointError
from evomeans.wording import how_to_install

NO_DISTANCES = (
    "report.html is left out, because it shows distances to centres in the units of the table, "
    "which this model does not have."
)
ROWS_FROM_ZERO = " (Rows are counted from 0 here.)"

CONSTRAINTS = ("size_min", "size_max", "must_link", "cannot_link", "penalty")


def chosen_model(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    """Return the class that the options ask for, and the parameters that only it has."""
    wanted = {
        "constrained": [name for name in CONSTRAINTS if getattr(options, name) is not None],
        "trimmed": ["outliers"] if options.outliers is not None else [],
        "spherical": ["metric"] if options.metric == "cosine" else [],
        "kernel": [name for name in ("kernel", "gamma") if getattr(options, name) is not None],
    }
    asked = {model: [f"--{name.replace('_', '-')}" for name in wanted[model]] for model in wanted}
    asked = {model: names for model, names in asked.items() if names}
    if len(asked) > 1:
        first, second = [names[0] for names in asked.values()][:2]
        raise UsageError(
            f"{first} and {second} cannot be given together, because each makes another model."
        )
    if not asked:
        from evomeans.estimators.hgmeans import HGMeans

        return HGMeans, {}
    return _MAKERS[next(iter(asked))](options)


def _constrained(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.constrained import ConstrainedHGMeans

    if options.penalty is not None and options.must_link is None and options.cannot_link is None:
        raise UsageError("--penalty is for pairs; give --must-link or --cannot-link too.")
    own = {name: getattr(options, name) for name in ("size_min", "size_max", "penalty")}
    return ConstrainedHGMeans, own


def _trimmed(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.trimmed import TrimmedHGMeans

    return TrimmedHGMeans, {"n_outliers": options.outliers}


def _spherical(_: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.spherical import SphericalHGMeans

    return SphericalHGMeans, {}


def _kernel(options: ModelOptions) -> tuple[Any, dict[str, Any]]:
    from evomeans.estimators.kernel import KernelHGMeans

    if options.kernel is None:
        raise UsageError("--gamma is for --kernel; give both, or none.")
    return KernelHGMeans, {"kernel": options.kernel, "gamma": options.gamma}


_MAKERS = {
    "constrained": _constrained,
    "trimmed": _trimmed,
    "spherical": _spherical,
    "kernel": _kernel,
}


def read_links(options: ModelOptions, table: Table) -> dict[str, np.ndarray[Any, Any]]:
    """Read the pairs of rows that the options name, as arguments of a fit."""
    files = {"must_link": options.must_link, "cannot_link": options.cannot_link}
    return {name: read_pairs(path, table) for name, path in files.items() if path is not None}


PASSED_ON = (
    *("strategy", "max_time", "max_offspring", "n_iter_no_change", "target_inertia"),
    *("min_population", "max_population", "subsample"),
)
"""Options that are parameters of the estimator, which has its own defaults for them."""


def fit_table(
    name: str,
    search: SearchOptions,
    options: ModelOptions,
    read: TableOptions,
    samples: SampleOptions,
    keep: RunOptions,
    terminal: Terminal,
) -> int:
    """Read a table, search, write the run, show what was found, and return the exit code."""
    # Whatever can be refused is refused before the search, which may take hours.
    checkpoint = checkpoint_path(keep)
    unfinished = find_unfinished(checkpoint, keep)
    check_output(keep, unfinished)
    model = make_model(search, unfinished, options)
    in_dask = search.engine == "dask" and is_dask_table(name)
    _tell_beforehand(checkpoint, unfinished, keep, terminal, model, in_dask=in_dask)
    with cluster_of(search):
        began = time.perf_counter()
        table = load_table(name, read, terminal, samples, in_dask=in_dask)
        check_table(table, search.clusters, terminal)
        links = read_links(options, table)
        reading_seconds = time.perf_counter() - began

        started = datetime.now(UTC)
        times = _search(model, table, links, checkpoint, unfinished, terminal)
    asked = Asked(name, read, samples, options)
    fit = Fit(model, table, asked, started, reading_seconds, *times)
    interrupted = model.stop_reason_ == StopReason.INTERRUPTED
    # A checkpoint without --checkpoint is kept only as long as it is needed.
    needed = checkpoint is not None and (keep.checkpoint is not None or interrupted)
    record = fit_record(fit, keep, checkpoint if needed else None)
    if keep.output is not None:
        _write(keep.output, fit, record, keep, checkpoint, terminal)
    if checkpoint is not None and not needed:
        checkpoint.unlink(missing_ok=True)
    terminal.result(record, summary(fit, record))
    if interrupted:
        terminal.warn(how_to_resume(checkpoint, name, model))
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


@contextmanager
def cluster_of(search: SearchOptions | PathOptions) -> Iterator[None]:
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


def make_model(
    search: SearchOptions,
    unfinished: Unfinished | None = None,
    options: ModelOptions | None = None,
) -> SearchingEstimator:
    """Return the estimator that the options describe."""
    kind, own = chosen_model(options or ModelOptions())
    if search.engine == "gpu":
        check_gpu()
    seed = search.seed
    if seed is None:
        seed = secrets.randbelow(2**32) if unfinished is None else unfinished.seed
    given = ((name, getattr(search, name)) for name in PASSED_ON)
    chosen: dict[str, Any] = {name: value for name, value in given if value is not None}
    if kind is HGMeans:
        own["engine"] = search.engine
        if search.subsample == "all":
            chosen["subsample"] = None
    elif search.engine not in ("auto", "cpu"):
        raise UsageError(f"--engine {search.engine} is for plain k-means; leave it out.")
    elif search.subsample is not None:
        raise UsageError("--subsample is for plain k-means; leave it out.")
    make = kind.fast if search.fast else kind
    parameters = {"n_jobs": search.jobs, "random_state": seed, **chosen, **own}
    model: SearchingEstimator = make(search.clusters, **parameters)
    try:
        check_parameters(model)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error
    return model


def check_gpu() -> None:
    """Say what is missing before anything is read."""
    from evomeans.engines.gpu.devices import GpuNotAvailableError, chosen_device

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
    continued = keep.resume and unfinished is not None and _was_interrupted(keep.output)
    if not there or keep.force or continued:
        return
    raise CommandError(
        f"{keep.output} has a run already ({', '.join(there[:3])} …). Choose another folder, or "
        "replace it with --force."
    )


def _was_interrupted(folder: Path) -> bool:
    try:
        return bool(read_record(folder)["result"]["stop_reason"] == StopReason.INTERRUPTED)
    except (CommandError, KeyError, TypeError):
        return False


def _tell_beforehand(
    checkpoint: Path | None,
    unfinished: Unfinished | None,
    keep: RunOptions,
    terminal: Terminal,
    model: SearchingEstimator,
    *,
    in_dask: bool,
) -> None:
    if unfinished is not None:
        made = unfinished.history[-1].number if unfinished.history else 0
        terminal.note(f"found {checkpoint}, {made:,} offspring into the search")
    elif keep.resume:
        terminal.note(f"note: there is no checkpoint {checkpoint}; a new search begins")
    if keep.output is None or not keep.report:
        return
    if in_dask:
        terminal.note(f"note: {NO_ROWS}")
    elif not model._is_euclidean:
        terminal.note(f"note: {NO_DISTANCES}")
    elif not can_report():
        terminal.note(
            "note: report.html is left out, it needs jinja2 and matplotlib: "
            f"{how_to_install('report')}. After that: evomeans report {quote(str(keep.output))}"
        )


def _search(
    model: SearchingEstimator,
    table: Table,
    links: dict[str, Any],
    checkpoint: Path | None,
    unfinished: Unfinished | None,
    terminal: Terminal,
) -> tuple[float, float]:
    """Fit the model; return the time that took, by the clock and by the processor."""
    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        if unfinished is None:
            checkpoint.unlink(missing_ok=True)
    display = SearchDisplay(terminal, model, unfinished.history if unfinished else ())
    model.set_params(checkpoint=checkpoint, observers=[display])
    began = time.perf_counter(), time.process_time()
    with terminal.noting_warnings("fit was interrupted"), display.shown():
        _fit(model, table, links)
    times = time.perf_counter() - began[0], time.process_time() - began[1]
    model.set_params(checkpoint=None, observers=None)
    name_features(model, table)
    return times


def _fit(model: SearchingEstimator, table: Table, links: dict[str, Any]) -> None:
    try:
        model.fit(table.X, sample_weight=table.weights, **links)
    except CheckpointError as error:
        raise CommandError(str(error)) from error
    except InfeasibleError as error:
        raise CommandError(f"{table.name}: {error}{ROWS_FROM_ZERO if links else ''}") from error
    except ValueError as error:
        # Rows that stay on disk are looked at only now, and so is what models make of rows.
        if not is_dask(table.X) and isinstance(model, HGMeans):
            raise
        raise CommandError(f"{table.name}: {error}") from error
    model.labels_ = np.asarray(model.labels_)


def name_features(model: SearchingEstimator, table: Table) -> None:
    """Let the model remember its columns, so that it recognises them in another table."""
    if table.standardization is not None:
        names = [f"{name} (standardized)" for name in table.columns]
    elif table.named:
        names = list(table.columns)
    else:
        return
    model.feature_names_in_ = np.array(names, dtype=object)


def _write(
    folder: Path,
    fit: Fit,
    record: dict[str, Any],
    keep: RunOptions,
    checkpoint: Path | None,
    terminal: Terminal,
) -> None:
    # A first signal is ignored in here: the search is over, and its result must not be lost.
    with DeferredInterrupt():
        try:
            write_run(folder, fit_files(fit, record, keep))
        except Exception as error:
            text = f"{folder} could not be written: {reason_of(error)}."
            text += where_it_is_kept(checkpoint, fit.model)
            if isinstance(error, OSError):
                raise CommandError(text) from error
            # A mistake of ours, with a traceback; the search is not lost.
            terminal.warn(f"evomeans: {text}")
            raise
