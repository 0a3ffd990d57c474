"""``evomeans verify``."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.cli.certify import certifiable_model, run_record, samples_of_run
from evomeans.cli.failures import CommandError, ExitCode
from evomeans.cli.options import SampleOptions, TableOptions
from evomeans.cli.reading import load_table
from evomeans.cli.run_folder import CERTIFICATE, MODEL, RECORD
from evomeans.cli.tables.table import Table
from evomeans.cli.terminal import Terminal
from evomeans.estimators.searching import SearchingEstimator
from evomeans.exact.certificate import Certificate
from evomeans.exact.inertia import inertia_of_samples
from evomeans.exact.points import WeightedPoints
from evomeans.storage.archive import Archive, ArchiveError
from evomeans.storage.certificate_file import (
    CertificateFileError,
    certificate_from_meta,
    certificate_to_meta,
    load_certificate,
)
from evomeans.wording import number_text

STATED = ("lower_bound", "upper_bound", "status", "n_clusters", "n_samples", "constrained")
"""What model and record repeat of a certificate."""
SAME = 1e-6
"""Relative; inertias of the same clustering differ by less."""


def verify_run(
    path: Path, name: str, read: TableOptions, weights: str | None, terminal: Terminal
) -> int:
    """Compute everything again that a certificate says about a table."""
    folder = _folder_of(path)
    file = path if folder is None else folder / CERTIFICATE
    certificate = _certificate(file)
    own = ""
    if folder is None:
        table = load_table(name, read, terminal, SampleOptions(weights=weights))
        X = np.asarray(table.X)
        _verified(certificate, file, table, X)
    else:
        record = run_record(folder)
        model, treatment = certifiable_model(folder)
        table, X = samples_of_run(model, treatment, record, name, read, weights, terminal)
        _verified(certificate, file, table, X)
        _check_statement(certificate, record.get("certificate"), folder / RECORD)
        kept = getattr(model, "certificate_", None)
        _check_statement(certificate, kept and certificate_to_meta(kept), folder / MODEL)
        own = _own_clustering(certificate, model, X, table)
    shown = {"verified": True, **certificate_to_meta(certificate), "gap": certificate.gap}
    text = (
        f"Verified: what {file} says is true of {table.name}. Proof, labels, inertia, gap and "
        f"status were computed again.\n{certificate}{own}"
    )
    terminal.result(shown, text)
    return ExitCode.DONE


def _folder_of(path: Path) -> Path | None:
    """Return the folder of a run, which also a certificate in it stands for; else None."""
    if path.is_dir():
        return path
    in_run = path.name == CERTIFICATE and (path.parent / RECORD).exists()
    return path.parent if in_run else None


def _certificate(file: Path) -> Certificate:
    if not os.path.lexists(file):
        raise CommandError(
            f"There is no certificate {file}. Name a run after evomeans certify, or a certificate."
        )
    try:
        return load_certificate(file)
    except CertificateFileError as error:
        raise CommandError(str(error)) from error


def _verified(certificate: Certificate, file: Path, table: Table, X: Any) -> None:
    try:
        certificate.verify(X, table.weights)
    except ValueError as error:
        raise CommandError(f"{file} is not true of {table.name}: {error}") from error


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


def _own_clustering(
    certificate: Certificate, model: SearchingEstimator, X: Any, table: Table
) -> str:
    """Say so if the run has another clustering than the certificate is about."""
    if certificate.n_clusters != len(model.cluster_centers_):
        raise CommandError(
            f"{CERTIFICATE} is about {certificate.n_clusters} clusters, and the model has "
            f"{len(model.cluster_centers_)}. Run evomeans certify again."
        )
    with warnings.catch_warnings():
        # Columns were matched by name; what is passed on is the bare matrix.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        try:
            labels = model._labels_to_certify(X, table.weights)
        except ValueError as error:
            raise CommandError(f"{table.name}: {error}") from error
    points = WeightedPoints.of_samples(X, table.weights)
    inertia = inertia_of_samples(points, X, table.weights, labels).value
    if inertia <= certificate.upper_bound * (1 + SAME):
        return ""
    own = number_text(inertia, 10)
    return (
        f"\n  labels    the run has the inertia {own}; the better clustering is in the certificate"
    )
