"""``evomeans predict``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.cli.options import TableOptions
from evomeans.cli.run_folder import MODEL, RECORD, check_new_file, read_record
from evomeans.cli.tables.numbers import DROP, RULES, MissingValues, Standardization
from evomeans.cli.tables.table import Table, TableRequest, labels_frame, table_bytes
from evomeans.cli.terminal import CommandError, Terminal, UsageError
from evomeans.estimators.persistence import ModelFileError
from evomeans.estimators.persistence import load as load_model
from evomeans.estimators.searching import SearchingEstimator
from evomeans.files import write_atomically
from evomeans.wording import counted, listed, quoted

STANDARDIZED = " (standardized)"
BARE_MATRIX = "X does not have valid feature names"
"""A warning of scikit-learn. Columns are matched by name here, and what is passed on has none."""


def predict_table(
    path: Path,
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
    fitted = FittedModel.read(path)
    table = fitted.table(name, read, terminal)
    if table.id_name is None and table.named and fitted.id is not None:
        lost = quoted(fitted.id)
        terminal.note(f"note: {table.name} has no column {lost}; rows are numbered instead")
    with terminal.noting_warnings(BARE_MATRIX):
        try:
            labels = np.asarray(fitted.model.set_params(n_jobs=jobs).predict(table.X))
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
class FittedModel:
    """A model, and what its fit did to the table, which is therefore done to every other one."""

    model: SearchingEstimator
    standardization: Standardization | None = None
    missing: MissingValues | None = None
    id: str | None = None
    """The column that named the rows."""

    @classmethod
    def read(cls, path: Path) -> FittedModel:
        """Read the model of a run, or a model file, next to which the record of its run may lie."""
        folder, file = (path, path / MODEL) if path.is_dir() else (path.parent, path)
        # A file of another name need not belong to the run that it lies next to.
        has_record = path.is_dir() or (file.name == MODEL and (folder / RECORD).exists())
        record = read_record(folder) if has_record else None
        if not file.exists():
            raise CommandError(f"There is no model {file}.")
        try:
            model = load_model(file)
        except ModelFileError as error:
            raise CommandError(str(error)) from error
        # Every engine gives the same labels; that of the fit need not be there, a GPU for instance.
        if "engine" in model.get_params():
            model.set_params(engine="auto")
        if record is not None:
            return cls._recorded(model, record, folder / RECORD)
        names = getattr(model, "feature_names_in_", ("",))
        if all(str(name).endswith(STANDARDIZED) for name in names):
            raise CommandError(
                f"{file} was fitted to standardized columns. How is written in {RECORD}; name the "
                "folder of the run."
            )
        return cls(model)

    @classmethod
    def _recorded(
        cls, model: SearchingEstimator, record: dict[str, Any], place: Path
    ) -> FittedModel:
        """Take from the record what was done to the samples of a model."""
        scaling, missing, d, fits = None, None, model.n_features_in_, True
        try:
            what = "columns were standardized"
            if (kept := record["standardization"]) is not None:
                both = (tuple(map(float, kept[one])) for one in ("mean", "scale"))
                scaling = Standardization(*both)
                fits = len(scaling.mean) == len(scaling.scale) == d and min(scaling.scale) > 0
            what = "missing values were treated"
            if (kept := record.get("missing")) is not None:
                missing = MissingValues(str(kept["how"]), tuple(map(float, kept["values"])))
                n_values = 0 if missing.how == DROP else d
                fits = fits and missing.how in RULES and len(missing.values) == n_values
        except (KeyError, TypeError, ValueError) as error:
            raise CommandError(f"{place} does not say how {what}.") from error
        if not fits:
            raise CommandError(f"{place} is not the record of that model.")
        return cls(model, scaling, missing, (record.get("table") or {}).get("id"))

    def table(
        self, name: str, read: TableOptions, terminal: Terminal, *, weights: str | None = None
    ) -> Table:
        """Read the columns of the model, by name if it has names, and treat them as the fit did."""
        model = self.model
        suffix = "" if self.standardization is None else STANDARDIZED
        given = map(str, getattr(model, "feature_names_in_", ()))
        names = tuple(name.removesuffix(suffix) for name in given)
        if lost := [name for name in read.exclude if name in names]:
            raise UsageError(f"--exclude names columns of the model: {listed(map(quoted, lost))}.")
        if set(read.columns or ()) == set(names):
            # In the order of the model, whatever that of the command.
            read = replace(read, columns=names or None)
        request = TableRequest(name, read, weights, names or None, self.missing, usual_id=self.id)
        table = request.load(terminal)
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
        return table if self.standardization is None else table.standardized(self.standardization)
