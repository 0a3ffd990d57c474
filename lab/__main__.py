"""The one command line of the laboratory; ``python -m lab --help`` lists what it can do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

# Every command by its group, with what it does in a line. A command is a module of the laboratory
# with a function main, or a folder with a module command; it is imported when it is called.
COMMANDS: dict[str, dict[str, str]] = {
    "The paper": {
        "paper": "all tables and figures, ours and theirs, and experiments past them",
        "data": "the data sets: what is available, and downloads",
        "best_known": "the best values known, and proposals for better ones",
        "instances": "the library of instances: values, solutions and proofs to check",
        "rivals": "all methods at equal CPU time: gaps, anytime curves, ranks",
        "nonsmooth": "the nonsmooth methods of the paper: starts, evaluations, gaps",
    },
    "How good": {
        "whole_runs": "searches that end by themselves: time, success, what they say of it",
        "calibration": "what searches say of themselves, and how often it is true",
        "certainty": "certainty_ on problems that it was not fitted to: fit and report",
        "planted": "planted clusters in many dimensions: how many are missed",
        "large": "searches that begin on samples, and rivals on large data",
        "models": "size limits, links, cosine and outliers compared with rivals",
        "path": "whole paths of k compared with separate fits",
        "criteria": "which k each criterion suggests, where the truth is known",
        "proof": "proofs of optimality: gaps and times",
        "line": "one dimension solved exactly, compared with KMeans",
        "embeddings": "sentence embeddings and codebooks: ours when rivals are done",
    },
    "How fast": {
        "speed": "what an offspring costs, and whole runs compared with the authors' program",
        "scaling": "how the cost of an offspring grows with m, n and d",
        "crossovers": "crossovers of many centres compared with the K-means that follows",
        "kmeans": "one K-means run compared with scikit-learn's, both single-threaded",
        "cores": "whole searches with more threads, also on a busy machine",
        "interpreter": "how long an offspring holds the interpreter",
        "gpu": "the GPU engine: whole fits, single iterations, sizes, batches",
        "dask_engine": "the Dask engine: speed, overhead, memory, many workers",
        "memory": "the peak of a large fit, and what is kept of a solution",
        "serving": "predict, transform and score compared with KMeans, cold and warm",
        "first_use": "import, first fit ever, first fit of later processes",
        "time_limit": "how long fits with a time limit take, and how soon Ctrl-C ends one",
    },
    "The house": {
        "bits": "fits whose results must keep their bits, here and in another revision",
        "side_by_side": "the speed of two revisions in turn",
        "figures": "the figures of the guide: measure them and write them into the pages",
        "house": "lines, modules, classes and constants of the package, and the frames of a fit",
        "warmup": "compile what the package and the baselines need, once for this machine",
    },
}
FOLDERS = {"paper", "data", "rivals", "certainty", "instances"}


def overview() -> str:
    """Return all commands, group by group."""
    lines = ["usage: python -m lab COMMAND ...; each explains itself with --help"]
    for group, commands in COMMANDS.items():
        lines += ["", f"{group}:", *(f"  {name:<13} {text}" for name, text in commands.items())]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given or given[0] in ("-h", "--help"):
        print(overview())
        return 0
    name, *rest = given
    if not any(name in commands for commands in COMMANDS.values()):
        raise SystemExit(f"error: there is no command {name!r}; python -m lab --help lists them")
    module = import_module(f"lab.{name}.command" if name in FOLDERS else f"lab.{name}")
    # A command that reads data sets has imported it; others run with packages that may lack it.
    data = sys.modules.get("lab.data.errors")
    try:
        with data.exit_on_data_errors() if data else nullcontext():
            return module.main(rest) or 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
