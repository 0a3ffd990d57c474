"""The commands and their options; what they do is imported when they run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter

from evomeans._version import __version__
from evomeans.cli.options import (
    SEARCH,
    TABLE,
    Jobs,
    ModelOptions,
    PathOptions,
    ProofOptions,
    RunOptions,
    SampleOptions,
    SearchOptions,
    TableName,
    TableOptions,
)
from evomeans.cli.terminal import (
    EXIT_CODES,
    OUTPUT,
    ExitCode,
    Flag,
    Terminal,
    UsageError,
    guarded,
)

READ, SAMPLES, MODEL = TableOptions(), SampleOptions(), ModelOptions()
KEEP, PROVE, SHOW = RunOptions(), ProofOptions(), Terminal()

app = App(
    name="evomeans",
    help="Find near-optimal k-means clusterings of tables:\nevomeans fit table.csv -k 10 -o run",
    help_epilogue=EXIT_CODES,
    help_format="plaintext",
    version=__version__,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""

    def action() -> int:
        try:
            code = app(list(arguments), exit_on_error=False, print_error=False)
        except CycloptsError as error:
            raise UsageError(_what_is_wrong(error, arguments[0])) from error
        return code or ExitCode.DONE

    return guarded(action, arguments)


def _what_is_wrong(error: CycloptsError, command: str) -> str:
    """Return the words of cyclopts, or better ones for what was left out altogether."""
    left_out = isinstance(error, MissingArgumentError) and error.keyword is None
    if not left_out or error.argument is None:
        return str(error)
    name = error.argument.name
    if name != "-k":
        return f"evomeans {command} needs {name}; evomeans {command} --help says more."
    if command == "path":
        return "How many clusters? Add a range: -k 2:20."
    return "How many clusters? Add -k 8, or let `evomeans path TABLE -k 2:20` suggest a number."


@app.command(sort_key=0)
def fit(
    table: TableName,
    /,
    *,
    search: SearchOptions,
    model: ModelOptions = MODEL,
    read: TableOptions = READ,
    samples: SampleOptions = SAMPLES,
    keep: RunOptions = KEEP,
    show: Terminal = SHOW,
) -> int:
    """Find the clusters of a table."""
    from evomeans.cli.fit import FitCommand

    return FitCommand(table, search, read, samples, keep, show, model).run()


@app.command(sort_key=1)
def path(
    table: TableName,
    /,
    *,
    search: PathOptions,
    read: TableOptions = READ,
    samples: SampleOptions = SAMPLES,
    keep: RunOptions = KEEP,
    show: Terminal = SHOW,
) -> int:
    """Find the clusters of a table for a range of k, and suggest how many there are."""
    from evomeans.cli.fit import PathCommand

    return PathCommand(table, search, read, samples, keep, show).run()


@app.command(sort_key=2)
def predict(
    model: Path,
    table: TableName,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], group=OUTPUT)] = None,
    force: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    jobs: Annotated[Jobs | None, Parameter(group=SEARCH)] = None,
    read: TableOptions = READ,
) -> int:
    """Find the nearest cluster of every row of a table.

    Parameters
    ----------
    model
        The folder of a run, or a model file.
    output
        The file to write, CSV or .parquet; standard output by default.
    force
        Replace the file if it exists.
    jobs
        Threads, by default one for each core.
    """
    from evomeans.cli.predict import predict_table

    return predict_table(model, table, read, output, force=force, jobs=jobs)


@app.command(sort_key=3)
def report(
    run: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], group=OUTPUT)] = None,
    force: Annotated[Flag, Parameter(group=OUTPUT)] = False,
) -> int:
    """Write the report of a run again, from what the run kept.

    Parameters
    ----------
    run
        The folder of a run.
    output
        The file to write; by default report.html in the folder, which is replaced.
    force
        Replace --output if it exists, and write through links.
    """
    from evomeans.cli.run_folder import write_report

    return write_report(run, output, force=force)


@app.command(sort_key=3)
def certify(
    run: Path,
    table: TableName,
    /,
    *,
    proof: ProofOptions = PROVE,
    read: TableOptions = READ,
    show: Terminal = SHOW,
) -> int:
    """Prove that a run is optimal, or bound its distance from the optimum.

    Parameters
    ----------
    run
        The folder of a run. The proof is kept there. Of a path, the selected model is certified.
    """
    from evomeans.cli.certify import certify_run

    return certify_run(run, table, read, proof, show)


@app.command(sort_key=3)
def verify(
    run: Path,
    table: TableName,
    /,
    *,
    weights: Annotated[str | None, Parameter(group=TABLE)] = None,
    read: TableOptions = READ,
    show: Terminal = SHOW,
) -> int:
    """Check a certificate: compute everything again that it says about a table.

    The exit code is 1 if anything is not true.

    Parameters
    ----------
    run
        The folder of a run with a certificate, or a certificate file.
    weights
        The column that says how much each row counts, if the run had one.
    """
    from evomeans.cli.certify import verify_run

    return verify_run(run, table, read, weights, show)


@app.command(sort_key=5)
def info(*, json: Flag = False) -> int:
    """Show versions, engines, threads and the cache of compiled kernels.

    Parameters
    ----------
    json
        Print one JSON object.
    """
    from evomeans.cli.info import show_info

    return show_info(as_json=json)


@app.command(sort_key=6)
def warmup(*, jobs: Jobs = -1, show: Terminal = SHOW) -> int:
    """Compile all kernels now, for container images and clusters of machines.

    Parameters
    ----------
    jobs
        Processes, -1 for as many as there are cores.
    """
    from evomeans.cli.info import compile_kernels

    return compile_kernels(jobs, show)
