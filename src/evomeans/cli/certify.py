"""``evomeans certify``."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evomeans.cli.failures import CommandError, ExitCode
from evomeans.cli.options import ProofOptions, TableOptions
from evomeans.cli.predict import fitted_model, matching_table
from evomeans.cli.record import as_json
from evomeans.cli.report import can_report
from evomeans.cli.run_folder import (
    CERTIFICATE,
    MODEL,
    RECORD,
    REPORT,
    REPORT_DATA,
    read_json,
    read_record,
)
from evomeans.cli.terminal import Terminal
from evomeans.estimators.hgmeans import HGMeans
from evomeans.files import write_atomically
from evomeans.wording import duration_text, number_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evomeans.exact.certificate import Certificate

INTERRUPTED = "certify was interrupted"
FIRST_LINE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds to the first line of a log, and the most between two; the pauses double."""


def certify_run(
    folder: Path, name: str, read: TableOptions, proof: ProofOptions, terminal: Terminal
) -> int:
    """Prove how far the clustering of a run can be from the optimum, and keep the proof there."""
    if not folder.is_dir():
        raise CommandError(f"There is no folder {folder}; name the --output of a run.")
    record = read_record(folder)
    model, treatment = fitted_model(folder)
    weighted = bool(record.get("table", {}).get("weighted"))
    if weighted and proof.weights is None:
        raise CommandError(f"The rows of {folder} were weighted; name the column with --weights.")
    table = matching_table(model, name, read, terminal, treatment, samples=proof.samples)
    X = treatment.applied(table)
    if len(X) != len(model.labels_):
        raise CommandError(
            f"{table.name} has {len(X):,} rows and the run {len(model.labels_):,}; certify takes "
            "the table of the fit."
        )
    certificate, interrupted = _certified(model, X, table.weights, proof, terminal)
    _keep(folder, record, model, certificate)
    from evomeans.storage.certificate_file import certificate_to_meta

    shown = {**certificate_to_meta(certificate), "gap": certificate.gap}
    written = f"  written   {folder}: {CERTIFICATE}, with the proof; {MODEL}"
    better = ""
    if certificate.improved:
        better = "\n  labels    the better clustering is in the certificate, not in the run"
    terminal.result(shown, f"{certificate}\n{written}{better}")
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


def _certified(
    model: HGMeans, X: Any, weights: Any, proof: ProofOptions, terminal: Terminal
) -> tuple[Certificate, bool]:
    display = ProofDisplay(terminal, proof.max_time)
    with warnings.catch_warnings(record=True) as caught, display.shown():
        warnings.simplefilter("always")
        try:
            certificate = model.certify(
                np.asarray(X),
                weights,
                max_time=proof.max_time,
                gap=proof.gap,
                n_jobs=proof.jobs,
                method=proof.method,
                sampled_parts=proof.sampled_parts,
                progress=display,
            )
        except (ValueError, ImportError) as error:
            raise CommandError(str(error)) from error
    texts = [str(warning.message) for warning in caught]
    interrupted = any(text.startswith(INTERRUPTED) for text in texts)
    if interrupted:
        terminal.warn(f"{INTERRUPTED}; the best bound so far is kept")
    return certificate, interrupted


def _keep(folder: Path, record: dict[str, Any], model: HGMeans, certificate: Certificate) -> None:
    """Write the proof, and the statement into model, record and report."""
    from evomeans.storage.certificate_file import certificate_to_meta, save_certificate

    save_certificate(certificate, folder / CERTIFICATE)
    model.save(folder / MODEL)
    report = folder / REPORT_DATA
    if report.exists():
        data = read_json(report, "")
        data["run"]["certificate"] = str(certificate)
        write_atomically(report, as_json(data))
        if (folder / REPORT).exists() and can_report():
            from evomeans.report import render_report

            page = render_report(data)
            write_atomically(folder / REPORT, page.encode("utf-8", errors="backslashreplace"))
    files = record.get("files")
    if isinstance(files, list):
        record["files"] = sorted({*files, CERTIFICATE})
    record["certificate"] = certificate_to_meta(certificate)
    write_atomically(folder / RECORD, as_json(record))


class ProofDisplay:
    """Shows both bounds while a proof is under way: live on a terminal, else a few lines."""

    def __init__(self, terminal: Terminal, max_time: float) -> None:
        self.terminal, self.max_time = terminal, max_time
        self._start = time.monotonic()
        self._pause = FIRST_LINE
        self._due = FIRST_LINE
        self._last: tuple[float, float, int] | None = None

    def __call__(self, lower: float, upper: float, nodes: int) -> None:
        """Take in how far the proof is."""
        self._last = lower, upper, nodes
        seconds = time.monotonic() - self._start
        if not self.terminal.is_live and seconds >= self._due:
            self.terminal.note(f"{duration_text(seconds):>11}  {self._text()}")
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._due = seconds + self._pause

    def _text(self) -> str:
        if self._last is None:
            return "preparing; the kernels are compiled on the first use"
        lower, upper, nodes = self._last
        gap = 100 * (upper - lower) / upper if upper > 0 else 0.0
        return (
            f"{number_text(lower, 10)} <= optimum <= {number_text(upper, 10)}, "
            f"gap {number_text(gap, 2)} %, {nodes:,} nodes"
        )

    def shown(self) -> AbstractContextManager[object]:
        """Return what keeps the display alive while it is entered."""
        if not self.terminal.is_live:
            return nullcontext()
        from rich.console import Console
        from rich.live import Live

        return Live(
            get_renderable=self.render,
            console=Console(file=sys.stderr),
            transient=True,
            refresh_per_second=5,
        )

    def render(self) -> RenderableType:
        """Draw the display as it is now."""
        from rich.text import Text

        seconds = time.monotonic() - self._start
        return Text(f"{duration_text(seconds)} of {duration_text(self.max_time)}  {self._text()}")
