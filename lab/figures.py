"""The figures of the guide: measure them and write them into the pages.

Run ``python -m lab figures``, or name some of its blocks:

  machine      processor, system, versions and commit, in one place for all others
  digits       restarts and searches on the digits, k = 30: inertia, CPU time, labels that repeat
  times        running times and memory by samples, features and clusters (10 to 20 minutes)
  session      a session of the command line, as it is printed
  limits       another one, with a time limit and a continuation
  choosing     one over k, with a proof and its verification

These are measured by default. ``--all`` adds others, which take from a minute to half an hour each
and can also be named:

  whole        whole searches on 39 problems: success, gaps, CPU time
  fast         the same for HGMeans.fast
  offspring    what an offspring of the paper's strategy costs, and the authors' program
  runs         one K-means run, compared with scikit-learn's
  first-use    seconds until the first fit on a machine has ended
  serving      predict, transform and score, compared with KMeans
  memory       the peak of a large fit
  line         one column, solved exactly
  planted      planted clusters in many dimensions, with a picture
  paths        paths over k, compared with separate fits
  proofs       the table of proofs, from the rows of ``python -m lab proof --output``
  pictures     all pictures of docs/pictures, drawn anew

A block is the text between ``<!-- NAME -->`` and ``<!-- end of NAME -->`` on a page of docs/guide
or docs/laboratory. Those of the second list are what another command of the laboratory prints, and
begin with it. ``--print`` shows blocks and writes nothing. Every fit has one thread; seconds
are CPU seconds. A cell of ``times`` runs in a process of its own, whose peak of memory counts.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.files import write_atomically
from lab.measure import mixture, parser_for, replace_block, timed
from lab.memory import peak_gib

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path for name in ("guide", "laboratory") for path in (ROOT / "docs" / name).glob("*.md")
)
SEEDS = 10
WIDTH = 78
# Samples, features and clusters. The mixtures overlap, and have twice as many components as
# clusters are looked for, so that no clustering is obvious.
SIZES = (
    (1_000, 10, 10),
    (1_000, 10, 50),
    (10_000, 10, 10),
    (10_000, 10, 100),
    (10_000, 100, 100),
    (40_000, 384, 100),
    (100_000, 10, 10),
    (100_000, 10, 100),
    (1_000_000, 10, 10),
    (1_000_000, 10, 100),
)
SEPARATION = 5.0
LONGEST = 120.0
"""Seconds after which a search of the table of times ends."""
METHODS = ("KMeans(n_init=1)", "HGMeans.fast", "HGMeans")


def processor_name() -> str:
    """Return the name of the processor as Linux knows it, else what Python knows."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> str:
    """Return the processor, the system, the versions and the commit as a list."""
    packages = ("evomeans", "numpy", "scipy", "scikit-learn", "numba")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"- {processor_name()}, {os.cpu_count()} virtual cores, {platform.system()}\n"
        f"- Python {platform.python_version()}, {versions}\n"
        f"- commit {commit()}\n"
    )


def commit() -> str:
    """Return the last commit of the package, and its day; files that differ from it are named."""
    log = git("log", "-1", "--format=%h of %cs", "--", "src")
    changed = git("diff", "--name-only", "HEAD", "--", "src")
    return ", ".join([log, *(f"changed {name}" for name in changed.splitlines())])


def git(*words: str) -> str:
    """Return what a command of git prints about the clone."""
    done = subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def estimator(method: str, k: int, seed: int, **options: Any) -> Any:
    """Return the estimator that a name in a table stands for."""
    from sklearn.cluster import KMeans

    from evomeans import HGMeans

    if method.startswith("KMeans"):
        n_init = int(method.removeprefix("KMeans(n_init=").rstrip(")"))
        return KMeans(k, n_init=n_init, random_state=seed)
    make = HGMeans.fast if method == "HGMeans.fast" else HGMeans
    return make(k, random_state=seed, n_jobs=1, **options)


def digits() -> str:
    """Compare restarts and searches on the digits over ten seeds."""
    from sklearn.datasets import load_digits
    from sklearn.metrics import adjusted_rand_score

    X, k = load_digits().data, 30
    for method in METHODS:  # compiled before anything is timed
        estimator(method, k, 0).fit(X)
    rows = {}
    for method in ("KMeans(n_init=1)", "KMeans(n_init=10)", "KMeans(n_init=100)", *METHODS[1:]):
        models = [estimator(method, k, seed) for seed in range(SEEDS)]
        fits = [timed(partial(model.fit, X)) for model in models]
        pairs = itertools.combinations([model.labels_ for model, _ in fits], 2)
        agreement = [adjusted_rand_score(first, second) for first, second in pairs]
        inertias = [model.inertia_ for model, _ in fits]
        rows[method] = (inertias, np.mean(agreement), np.mean([seconds for _, seconds in fits]))
    best = min(min(inertias) for inertias, _, _ in rows.values())
    lines = ["| | mean gap | worst | labels of two seeds | CPU time |", "|---|--:|--:|--:|--:|"]
    for method, (inertias, agreement, seconds) in rows.items():
        gaps = 100 * (np.array(inertias) / best - 1)
        lines.append(
            f"| `{method}` | {gaps.mean():.3f} % | {gaps.max():.3f} % | {agreement:.2f} "
            f"| {seconds:.2f} s |"
        )
    return "\n".join(lines) + "\n"


def measure_cell(n: int, d: int, k: int, method: str) -> dict[str, float]:
    """Fit once in this process, after a fit of a few samples that loads the kernels."""
    X = mixture(n, d, 2 * k, SEPARATION).astype(np.float32)
    limit = {} if method.startswith("KMeans") else {"max_time": LONGEST}
    estimator(method, min(k, 10), 0).fit(X[:500])
    model, seconds = timed(lambda: estimator(method, k, 0, **limit).fit(X))
    return {
        "seconds": seconds,
        "gib": peak_gib(),
        "certainty": getattr(model, "certainty_", 0.0),
        "inertia": model.inertia_,
    }


def times() -> str:
    """Return the table of running times; cells that reach the limit show how certain they were."""
    lines = [
        "| samples | features | k | `KMeans` | `fast` | `HGMeans` | certainty | KMeans above "
        "| memory |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for n, d, k in SIZES:
        cells = [cell_in_a_process(n, d, k, method) for method in METHODS]
        restart, _, search = cells
        above = 100 * (restart["inertia"] / search["inertia"] - 1)
        seconds = " | ".join(seconds_text(cell["seconds"]) for cell in cells)
        lines.append(
            f"| {n:,} | {d} | {k} | {seconds} | {search['certainty']:.2f} | {above:.1f} % "
            f"| {search['gib']:.1f} GiB |"
        )
        print(lines[-1], file=sys.stderr)
    return "\n".join(lines) + "\n"


def seconds_text(seconds: float) -> str:
    """Return two digits of a time."""
    return (
        f"{seconds:.2f} s"
        if seconds < 1
        else f"{seconds:.1f} s"
        if seconds < 10
        else f"{seconds:.0f} s"
    )


def cell_in_a_process(n: int, d: int, k: int, method: str) -> dict[str, float]:
    """Measure a cell in a new process, whose peak of memory is then its own."""
    cell = ":".join(map(str, (n, d, k, method)))
    command = [sys.executable, "-m", "lab", "figures", "--cell", cell]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


SESSION = (
    "evomeans fit iris.csv -k 3",
    "evomeans fit iris.csv -k 3 --id flower --exclude species --seed 1 -o run",
    "head -3 run/labels.csv",
    "evomeans predict run new.csv",
)
LIMITS = (
    "evomeans fit digits.csv -k 30 --seed 1 --max-time 1s --checkpoint state",
    "evomeans fit digits.csv -k 30 --seed 1 --checkpoint state --resume -o run",
)


CHOOSING = (
    "evomeans path wine.csv -k 2:10 --id bottle --standardize --seed 1 -o wines",
    "evomeans certify wines wine.csv",
    "evomeans verify wines wine.csv",
)


def transcript(commands: Sequence[str]) -> str:
    """Run commands in a folder with the tables of the guide; return what a terminal shows.

    Long lines of output are folded, with the indentation of their text.
    """
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        run_line("evomeans warmup", Path(name))  # a session does not show the compilation
        write_tables(Path(name))
        for command in commands:
            lines += [f"$ {command}"]
            lines += [part for line in run_line(command, Path(name)) for part in fold(line)] + [""]
    return "".join(f"    {line}".rstrip() + "\n" for line in lines[:-1])


def run_line(command: str, folder: Path) -> list[str]:
    """Run one command; return the lines of both of its streams."""
    program, *arguments = shlex.split(command)
    words = [sys.executable, "-m", "evomeans"] if program == "evomeans" else [program]
    done = subprocess.run(
        [*words, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode().splitlines()


def fold(line: str) -> list[str]:
    """Fold a line at the width of the pages; the rest begins below the text of a labelled line."""
    label, gap, _ = line.strip().partition("  ")
    indent = len(line) - len(line.lstrip())
    if gap and indent:
        indent = line.index(label) + len(label)
        indent += len(line[indent:]) - len(line[indent:].lstrip())
    return textwrap.wrap(
        line,
        WIDTH - 4,
        subsequent_indent=" " * indent,
        drop_whitespace=True,
        break_long_words=False,
    ) or [""]


def write_tables(folder: Path) -> None:
    """Write the tables that sessions use."""
    from sklearn.datasets import load_digits, load_iris, load_wine

    iris = load_iris(as_frame=True)
    table = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
    table.insert(0, "flower", [f"f{i + 1}" for i in range(len(table))])
    table["species"] = iris.target_names[iris.target]
    table.to_csv(folder / "iris.csv", index=False)
    table.drop(columns="species").iloc[::50].to_csv(folder / "new.csv", index=False)
    wine = load_wine(as_frame=True).data
    wine.insert(0, "bottle", [f"w{i + 1}" for i in range(len(wine))])
    wine.to_csv(folder / "wine.csv", index=False)
    load_digits(as_frame=True).data.to_csv(folder / "digits.csv", index=False)


def printed(command: str) -> str:
    """Run a command of the laboratory; return it and what it prints, in Markdown."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "EVOMEANS_LAB_TABLES": "markdown"}
    words = [sys.executable, "-m", "lab", *shlex.split(command)]
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    lines = [f"    python -m lab {command}", ""]
    for line in done.stdout.decode().splitlines():
        # A table is one paragraph, every other line one of its own.
        if line.startswith("|") and lines[-2].startswith("|"):
            lines.pop()
        lines += [line, ""] if line.strip() else []
    return "\n".join(lines[:-1]) + "\n"


def draw_pictures() -> None:
    """Run the programs that draw the pictures of the pages."""
    for path in sorted((ROOT / "docs" / "pictures").glob("*.py")):
        print(path.relative_to(ROOT), flush=True)
        subprocess.run([sys.executable, path], cwd=ROOT, check=True)


BLOCKS: dict[str, Callable[[], str]] = {
    "machine": machine,
    "digits": digits,
    "times": times,
    "session": lambda: transcript(SESSION),
    "limits": lambda: transcript(LIMITS),
    "choosing": lambda: transcript(CHOOSING),
}
COMMANDS = {
    "whole": "whole_runs --results lab/results/whole_runs.csv",
    "fast": "whole_runs --fast --results lab/results/whole_runs_fast.csv",
    "offspring": "speed",
    "runs": "kmeans",
    "first-use": "first_use",
    "serving": "serving --rows 400000 --threads 1 2",
    "memory": "memory",
    "line": "line",
    "planted": "planted --seeds 10 --picture docs/images/planted.png",
    "paths": "path",
    "proofs": "proof --table lab/results/proof.csv",
}
"""What other commands of the laboratory print."""
PICTURES = "pictures"
ALL = {**BLOCKS, **{name: partial(printed, command) for name, command in COMMANDS.items()}}


def main(given: Sequence[str] | None = None) -> None:
    """Measure blocks, and write each into the pages that have its marks."""
    parser = parser_for("figures", __doc__)
    parser.add_argument("blocks", nargs="*", metavar="BLOCK", help="the first list by default")
    parser.add_argument("--all", action="store_true", help="all blocks of both lists")
    parser.add_argument("--print", action="store_true", help="print blocks, write no page")
    parser.add_argument(
        "--cell", help="one cell of times, in this process: samples:features:k:method"
    )
    arguments = parser.parse_args(given)
    if arguments.cell:
        n, d, k, method = arguments.cell.split(":")
        print(json.dumps(measure_cell(int(n), int(d), int(k), method)))
        return
    known = [*ALL, PICTURES]
    if unknown := set(arguments.blocks) - set(known):
        parser.error(f"there is no block {sorted(unknown)}; there are {', '.join(known)}")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in known if arguments.all else arguments.blocks or BLOCKS:
        if name == PICTURES:
            draw_pictures()
            continue
        content = ALL[name]()
        if arguments.print:
            print(content)
        else:
            write_block(name, content)


def write_block(name: str, content: str) -> None:
    """Write a block into every page that has its marks; there has to be one."""
    pages = [page for page in PAGES if f"<!-- {name} -->" in page.read_text(encoding="utf-8")]
    if not pages:
        raise SystemExit(f"No page of docs/guide and docs/laboratory has the mark <!-- {name} -->.")
    for page in pages:
        text = replace_block(page.read_text(encoding="utf-8"), name, f"\n{content}\n")
        write_atomically(page, text.encode())
        print(f"wrote {name} into {page.relative_to(ROOT)}")
