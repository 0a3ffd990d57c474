"""``evomeans predict``."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.cli.failures import CommandError, UsageError
from evomeans.cli.options import TableOptions
from evomeans.cli.run_folder import MODEL, RECORD, check_new_file, read_record
from evomeans.cli.tables.numbers import DROP, RULES, MissingValues, Standardization
from evomeans.cli.tables.table import Table, labels_frame, load_table, table_bytes
from evomeans.cli.terminal import Terminal
from evomeans.engines import is_dask
from evomeans.estimators.persistence import ModelFileError
from evomeans.estimators.persistence import load as load_model
from evomeans.estimators.searching import SearchingEstimator
from evomeans.files import write_atomically
from evomeans.wording import counted, listed, quoted

STANDARDIZED = " (standardized)"


def predict_table(
    model_path: Path,
    name: str,
    read: TableOptions,
    output: Path | None,
    *,
    force: bool,
    jobs: int | None,
) -> int:
    """Label the rows of a table by a model."""
    if output is not None:
        check_new_file(output, force)
    terminal = Terminal()
    model, treatment = fitted_model(model_path)
    more = {"in_dask": Path(name).is_dir(), "usual_id": treatment.id}
    table = matching_table(model, name, read, terminal, treatment, **more)
    if table.id_name is None and table.named and treatment.id is not None:
        lost = quoted(treatment.id)
        terminal.note(f"note: {table.name} has no column {lost}; rows are numbered instead")
    X = treatment.applied(table)
    with warnings.catch_warnings():
        # Columns were matched by name above; what is passed on is the bare matrix.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        try:
            labels = np.asarray(model.set_params(n_jobs=jobs).predict(X))
        except ValueError as error:
            raise CommandError(f"{table.name}: {error}") from error
    frame = labels_frame(table, labels)
    if output is None:
        sys.stdout.buffer.write(table_bytes(frame, "csv"))
        return 0
    suffix = "parquet" if output.suffix.lower() in (".parquet", ".pq") else "csv"
    write_atomically(output, table_bytes(frame, suffix))
    terminal.note(f"{output}: the clusters of {counted(len(labels), 'row')}")
    return 0


@dataclass(frozen=True)
class TablePreparation:
    """What a fit did to its table, and what is therefore done to the rows of a prediction."""

    standardization: Standardization | None = None
    missing: MissingValues | None = None
    id: str | None = None
    """The column that named the rows."""

    def applied(self, table: Table) -> Any:
        """Return the samples of a table as the model knows them."""
        X: Any = table.X
        in_dask = is_dask(X)
        steps = [] if self.standardization is None else [self.standardization.apply]
        if in_dask and self.missing is not None and self.missing.values:
            # Of tables in memory, this is done while they are read.
            steps.insert(0, self.missing.filled)
        for step in steps:
            X = X.map_blocks(step, dtype=X.dtype) if in_dask else step(X)
        return X


def fitted_model(path: Path) -> tuple[SearchingEstimator, TablePreparation]:
    """Return a model, and what must be done to samples before it sees them."""
    folder, file = (path, path / MODEL) if path.is_dir() else (path.parent, path)
    if path.is_dir():
        read_record(folder)
    if not file.exists():
        raise CommandError(f"There is no model {file}.")
    try:
        model = load_model(file)
    except ModelFileError as error:
        raise CommandError(str(error)) from error
    # Every engine gives the same labels; the one of the fit need not be there, a GPU for instance.
    if "engine" in model.get_params():
        model.set_params(engine="auto")
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    # Columns of a table may be called so too; the record knows.
    may_be_scaled = bool(names) and all(name.endswith(STANDARDIZED) for name in names)
    if may_be_scaled and not (folder / RECORD).exists():
        raise CommandError(
            f"{file} was fitted to standardized columns. How is written in {RECORD}, which is "
            "not next to it; name the folder of the run."
        )
    # A file of another name need not belong to the run that it lies next to.
    is_known = (folder / RECORD).exists() and (may_be_scaled or file.name == MODEL)
    if not is_known:
        return model, TablePreparation()
    return model, _recorded(model, folder / RECORD, is_scaled=may_be_scaled)


def _recorded(model: SearchingEstimator, path: Path, *, is_scaled: bool) -> TablePreparation:
    """Return what a record says that was done to the samples of a model."""
    record = read_record(path.parent)
    scaling, missing, fits = None, None, True
    try:
        if is_scaled and record.get("standardization", ...) is not None:
            what = "columns were standardized"
            kept = record["standardization"]
            scaling = Standardization(*(tuple(map(float, kept[one])) for one in ("mean", "scale")))
        if (kept := record.get("missing")) is not None:
            what = "missing values were treated"
            missing = MissingValues(str(kept["how"]), tuple(map(float, kept["values"])))
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{path} does not say how {what}.") from error
    d = model.n_features_in_
    if scaling is not None:
        fits = len(scaling.mean) == len(scaling.scale) == d and min(scaling.scale) > 0
    if fits and missing is not None:
        fits = missing.how in RULES and len(missing.values) == (0 if missing.how == DROP else d)
    if not fits:
        raise CommandError(f"{path} is not the record of that model.")
    return TablePreparation(scaling, missing, (record.get("table") or {}).get("id"))


def matching_table(
    model: SearchingEstimator,
    name: str,
    read: TableOptions,
    terminal: Terminal,
    treatment: TablePreparation,
    **more: Any,
) -> Table:
    """Read the columns of the model by their names, or all if they have none.

    ``more`` goes to :func:`load_table`.
    """
    suffix = "" if treatment.standardization is None else STANDARDIZED
    names = tuple(
        str(name).removesuffix(suffix) for name in getattr(model, "feature_names_in_", ())
    )
    if lost := [name for name in read.exclude if name in names]:
        raise UsageError(f"--exclude names columns of the model: {listed(map(quoted, lost))}.")
    if set(read.columns or ()) == set(names):
        # In the order of the model, whatever that of the command.
        read = replace(read, columns=names or None)
    missing = None if more.get("in_dask") else treatment.missing
    expected = names or None
    table = load_table(name, read, terminal, expected=expected, missing=missing, **more)
    if names and table.named and table.columns != names:
        raise UsageError(
            f"--columns names {listed(map(quoted, table.columns), 12)}, and the model has "
            f"{listed(map(quoted, names), 12)}. Leave --columns out: they are found by name."
        )
    if len(table.columns) != model.n_features_in_:
        raise CommandError(
            f"{table.name} has {counted(len(table.columns), 'column')} and the model "
            f"{model.n_features_in_}; choose with --columns or --exclude."
        )
    return table
