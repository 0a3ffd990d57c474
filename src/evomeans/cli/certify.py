"""``evomeans certify`` and ``evomeans verify``."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evomeans.cli.options import ProofOptions, TableOptions
from evomeans.cli.predict import BARE_MATRIX, FittedModel
from evomeans.cli.run_folder import (
    CERTIFICATE,
    MODEL,
    RECORD,
    REPORT,
    REPORT_DATA,
    Content,
    as_json,
    can_report,
    check_writable,
    damaged,
    read_json,
    read_record,
    report_page,
    write_run,
)
from evomeans.cli.tables.table import Table, TableRequest
from evomeans.cli.terminal import CommandError, ExitCode, Terminal, reason_of
from evomeans.estimators.searching import SearchingEstimator
from evomeans.exact.certificate import INTERRUPTED, Certificate
from evomeans.exact.points import WeightedPoints, inertia_of_samples
from evomeans.progress import ProofDisplay
from evomeans.search.stopping import DeferredInterrupt
from evomeans.storage.archive import Archive, ArchiveError
from evomeans.storage.certificate_file import (
    CertificateFileError,
    certificate_from_meta,
    certificate_to_meta,
    load_certificate,
    save_certificate,
)
from evomeans.wording import number_text


@dataclass(frozen=True)
class CertifiableRun:
    """A run, and the table of its fit as the model saw it."""

    folder: Path
    record: dict[str, Any]
    model: SearchingEstimator
    table: Table

    @classmethod
    def read(
        cls, folder: Path, name: str, read: TableOptions, weights: str | None, terminal: Terminal
    ) -> CertifiableRun:
        """Read a run and the table of its fit, or say why nothing can be certified."""
        record = read_record(folder)
        result = record.get("result")
        if isinstance(result, dict) and result.get("best_k", 0) is None:
            raise CommandError(
                f"{folder} is a path that has selected no number of clusters, so it has no model "
                "to certify. Run evomeans path with --select."
            )
        fitted = FittedModel.read(folder)
        model = fitted.model
        try:
            model._check_certifiable()
        except TypeError as error:
            raise CommandError(str(error)) from error
        if bool(record.get("table", {}).get("weighted")) and weights is None:
            raise CommandError("The rows of the run were weighted; name the column with --weights.")
        table = fitted.table(name, read, terminal, weights=weights)
        # A model that Python fitted to rows in Dask keeps no labels.
        labels = getattr(model, "labels_", None)
        if labels is not None and len(table.X) != len(labels):
            sizes = f"{len(table.X):,} rows and the run {len(labels):,}"
            raise CommandError(f"{table.name} has {sizes}; give the table of the fit.")
        return cls(folder, record, model, table)

    def inertia(self) -> float:
        """Compute the inertia of the clustering that the model gives the table."""
        X, weights = self.table.X, self.table.weights
        labels = self.model._labels_to_certify(X, weights)
        return inertia_of_samples(WeightedPoints.of_samples(X, weights), X, weights, labels).value


def certify_run(
    folder: Path, name: str, read: TableOptions, proof: ProofOptions, terminal: Terminal
) -> int:
    """Prove a lower bound for the clustering of a run, and keep the proof there."""
    run = CertifiableRun.read(folder, name, read, proof.weights, terminal)
    report = read_json(folder / REPORT_DATA, "") if (folder / REPORT_DATA).exists() else None
    check_writable(folder)
    display = ProofDisplay(terminal, proof.max_time)
    with terminal.noting_warnings(BARE_MATRIX), display.shown():
        try:
            certificate = run.model.certify(
                run.table.X,
                run.table.weights,
                max_time=proof.max_time,
                gap=proof.gap,
                n_jobs=proof.jobs,
                method=proof.method,
                progress=display,
            )
        except (ValueError, ImportError) as error:
            raise CommandError(str(error)) from error
    # A first signal is ignored in here: the proof is over, and must not be lost.
    with DeferredInterrupt():
        try:
            files = _files(run, report, certificate)
            write_run(folder, files, others_stay=True)
        except OSError as error:
            raise CommandError(f"{folder} could not be written: {reason_of(error)}.") from error
    text = f"{certificate}\n  written   {folder}: {', '.join(sorted(files))}"
    if certificate.improved:
        text += "\n  labels    the better clustering is in the certificate, not in the run"
    terminal.result({**certificate_to_meta(certificate), "gap": certificate.gap}, text)
    interrupted = certificate.stop_reason == INTERRUPTED
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


def _files(run: CertifiableRun, report: Any, certificate: Certificate) -> dict[str, Content]:
    """Return the proof, and model, record and report with the statement in them."""
    folder, record, k = run.folder, run.record, certificate.n_clusters
    certainty = None if math.isnan(run.model.certainty_) else run.model.certainty_
    files: dict[str, Content] = {
        CERTIFICATE: partial(save_certificate, certificate),
        MODEL: run.model.save,
    }
    if report is not None:
        try:
            # The page shows it in the run, or in the model of a path.
            place = report["models"][str(k)] if "models" in report else report["run"]
            place.update(certificate=str(certificate), certainty=certainty)
        except (AttributeError, KeyError, TypeError) as error:
            raise damaged(folder / REPORT_DATA, error) from error
        files[REPORT_DATA] = as_json(report)
        if (folder / REPORT).exists() and can_report():
            files[REPORT] = report_page(report, folder / REPORT_DATA)
    record["certificate"] = certificate_to_meta(certificate)
    if isinstance(listed := record.get("files"), list):
        record["files"] = sorted({*listed, CERTIFICATE})
    if isinstance(result := record.get("result"), dict) and certainty is not None:
        # Of a path, the certainty is that of its k.
        stated, known = result.get("certainty"), result.get("k")
        if not (isinstance(stated, list) and isinstance(known, list)):
            result["certainty"] = certainty
        elif k in known[: len(stated)]:
            stated[known.index(k)] = certainty
    return files | {RECORD: as_json(record)}


STATED = ("lower_bound", "upper_bound", "status", "n_clusters", "n_samples", "constrained")
"""What model and record repeat of a certificate."""
SAME = 1e-6
"""Relative; inertias of the same clustering differ by less."""


def verify_run(
    path: Path, name: str, read: TableOptions, weights: str | None, terminal: Terminal
) -> int:
    """Compute everything again that a certificate says about a table."""
    # A certificate in the folder of a run stands for the run.
    in_run = path.name == CERTIFICATE and (path.parent / RECORD).exists()
    folder = path if path.is_dir() else path.parent if in_run else None
    file = path if folder is None else folder / CERTIFICATE
    if not os.path.lexists(file):
        raise CommandError(
            f"There is no certificate {file}. Name a run after evomeans certify, or a certificate."
        )
    try:
        certificate = load_certificate(file)
    except CertificateFileError as error:
        raise CommandError(str(error)) from error
    if folder is None:
        run = None
        table = TableRequest(name, read, weights).load(terminal)
    else:
        run = CertifiableRun.read(folder, name, read, weights, terminal)
        table = run.table
    try:
        certificate.verify(table.X, table.weights)
    except ValueError as error:
        raise CommandError(f"{file} is not true of {table.name}: {error}") from error
    own = certificate.upper_bound
    text = (
        f"Verified: what {file} says is true of {table.name}. Proof, labels, inertia, gap and "
        f"status were computed again.\n{certificate}"
    )
    if run is not None:
        _check_statement(certificate, run.record.get("certificate"), run.folder / RECORD)
        kept = getattr(run.model, "certificate_", None)
        _check_statement(certificate, kept and certificate_to_meta(kept), run.folder / MODEL)
        try:
            with terminal.noting_warnings(BARE_MATRIX):
                own = run.inertia()
        except ValueError as error:
            raise CommandError(f"{table.name}: {error}") from error
    if own > certificate.upper_bound * (1 + SAME):
        text += (
            f"\n  labels    the run has the inertia {number_text(own, 10)}; the better clustering "
            "is in the certificate"
        )
    meta = certificate_to_meta(certificate)
    terminal.result({"verified": True, **meta, "gap": certificate.gap}, text)
    return ExitCode.DONE


def _check_statement(certificate: Certificate, stated: Any, path: Path) -> None:
    """Refuse a run whose other files say something else than its certificate."""
    try:
        found = certificate_from_meta(Archive(stated, {})) if isinstance(stated, dict) else None
    except ArchiveError:
        found = None
    if found is None or any(getattr(found, one) != getattr(certificate, one) for one in STATED):
        raise CommandError(
            f"{path} does not state what {CERTIFICATE} does. Run evomeans certify again."
        )
