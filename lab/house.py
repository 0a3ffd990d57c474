"""How large the package is, and how long the way of one fit through it.

Run ``python -m lab house`` for this working tree, or compare it with another revision:

    python -m lab house --against v0.1

The rows:

  files             modules of the package
  lines, code       of these files; code is without blank lines, comments and docstrings
  headers           lines of code that import something
  classes, functions
  constants         numbers with a name in capitals, at the top of a module
  ambiguous         names of classes, and of constants with different values, in several modules
  only importer     modules that a single other one imports
  Numba             names outside ``numba`` and ``numba.extending`` that the package imports, and
                    private attributes of Numba that it uses
  and of a second fit of 1,500 samples, with one thread:
  entered files     those with a function that was called
  entered functions
  calls             of Python functions, in all and for each solution
  changes of file   calls from one file of the package into another
  frames            of the package on top of each other, at most
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from lab.measure import mixture, parser_for
from lab.revisions import ROOT, check_imported, environment_of, source_of

Counts = dict[str, float]
PUBLIC_NUMBA = {"numba", "numba.extending"}
PRIVATE = re.compile(r"^_[a-z]\w*$")
DEFINED = re.compile(r"(?:def |self\.|^\s*|\.)(_[a-z]\w*)\s*(?:\(|=|:)", re.MULTILINE)


# ---- sources -------------------------------------------------------------------------------------


def counts_of(package: Path) -> Counts:
    """Count what the sources of a package hold."""
    files = sorted(package.rglob("*.py"))
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    importers = Counter(name for file in files for name in imported(trees[file], package, file))
    return {
        "files": len(files),
        "lines": sum(len(file.read_bytes().splitlines()) for file in files),
        "code": sum(len(code_lines(file, trees[file])) for file in files),
        "headers": sum(header_lines(tree) for tree in trees.values()),
        "classes": sum(isinstance(node, ast.ClassDef) for node in nodes),
        "functions": sum(isinstance(node, ast.FunctionDef) for node in nodes),
        "constants": sum(len(constants(tree)) for tree in trees.values()),
        "ambiguous": len(ambiguous(list(trees.values()))),
        "only importer": sum(count == 1 for count in importers.values()),
        "Numba": len(set().union(*map(numba_names, trees.values()))),
    }


def code_lines(file: Path, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that are neither blank nor comment nor docstring."""
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    nothing |= {tokenize.ENDMARKER, tokenize.ENCODING}
    lines: set[int] = set()
    with file.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type not in nothing:
                lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            lines.difference_update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def header_lines(tree: ast.Module) -> int:
    """Return how many lines of a module import something."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum(node.end_lineno - node.lineno + 1 for node in imports if node.end_lineno)


def constants(tree: ast.Module) -> list[tuple[str, str]]:
    """Return the names in capitals that a module gives to numbers, and these."""
    found: list[tuple[str, str]] = []
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            found += [
                (name.id, ast.unparse(value))
                for name, value in zip(names, values, strict=False)
                if isinstance(name, ast.Name) and name.id.isupper() and is_number(value)
            ]
    return found


def ambiguous(trees: Sequence[ast.Module]) -> list[str]:
    """Return names that several modules give to classes, or to different numbers."""
    classes = Counter(
        node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)
    )
    values: dict[str, set[str]] = {}
    for name, value in (pair for tree in trees for pair in constants(tree)):
        values.setdefault(name, set()).add(value)
    found = [name for name, count in classes.items() if count > 1]
    return sorted(found + [name for name, kinds in values.items() if len(kinds) > 1])


def is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def imported(tree: ast.Module, package: Path, file: Path) -> set[Path]:
    """Return the modules of the package that a module imports, also inside functions."""
    names = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    ]
    found = set()
    for name in names:
        parts = name.split(".")
        if parts[0] == package.name:
            for end in (len(parts), len(parts) - 1):
                module = package.joinpath(*parts[1:end]).with_suffix(".py")
                if module.exists() and module != file:
                    found.add(module)
                    break
    return found


def numba_names(tree: ast.Module) -> set[str]:
    """Return the names of Numba, outside its documented interface, that a module uses."""
    names: set[str] = set()
    uses_numba = False
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            top = node.module.partition(".")[0]
            uses_numba |= top in ("numba", "llvmlite")
            if top in ("numba", "llvmlite") and node.module not in PUBLIC_NUMBA:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            uses_numba |= any(alias.name.partition(".")[0] == "numba" for alias in node.names)
    if uses_numba:
        own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        private = {name for name in attributes if PRIVATE.match(name)}
        names |= (private & private_names_of_numba()) - own
    return names


@cache
def private_names_of_numba() -> frozenset[str]:
    """Return the private attributes that the sources of the installed Numba define."""
    spec = importlib.util.find_spec("numba")
    assert spec is not None
    assert spec.origin is not None
    files = (Path(spec.origin).parent / "core").rglob("*.py")
    return frozenset(
        name for file in files for name in DEFINED.findall(file.read_text(encoding="utf-8"))
    )


# ---- a fit ---------------------------------------------------------------------------------------


def walk_of_a_fit(package: Path) -> Counts:
    """Follow a fit through the package that ``import evomeans`` takes."""
    from evomeans import HGMeans

    samples = mixture(1500, 5, 20, separation=4.0)
    model = HGMeans(20, n_jobs=1, random_state=0).fit(samples)
    trace = Trace(f"{package}/")
    sys.setprofile(trace)
    try:
        model.fit(samples)
    finally:
        sys.setprofile(None)
    return {
        "entered files": len({file for file, _ in trace.functions}),
        "entered functions": len(trace.functions),
        "calls": trace.functions.total(),
        "calls per solution": round(trace.functions.total() / len(model.history_)),
        "changes of file": trace.changes,
        "frames": trace.most_frames,
    }


class Trace:
    """A profiler that counts the calls of functions of a package.

    Parameters
    ----------
    prefix : str
        How the names of their files begin.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.functions: Counter[tuple[str, str]] = Counter()
        self.stack: list[str] = []
        self.changes = self.most_frames = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take note of a call or a return."""
        file = frame.f_code.co_filename
        if not file.startswith(self.prefix):
            return
        if event == "call":
            self.functions[file, frame.f_code.co_qualname] += 1
            self.changes += bool(self.stack) and self.stack[-1] != file
            self.stack.append(file)
            self.most_frames = max(self.most_frames, len(self.stack))
        elif event == "return" and self.stack:
            self.stack.pop()


# ---- the table -----------------------------------------------------------------------------------


def measured(source: Path) -> Counts:
    """Count and trace the package in ``source``, in a process that imports it."""
    command = [sys.executable, "-m", "lab", "house", "--json", "--source", str(source)]
    environment = environment_of(source)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"The package in {source} could not be measured: {done.stderr.decode()}")
    counts: Counts = json.loads(done.stdout)
    return counts


def table(now: Counts, before: Counts | None) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'':20}" + (f"{'before':>10}" if before else "") + f"{'now':>10}"
    for name, count in now.items():
        old = "" if before is None else f"{before.get(name, 0):>10,.0f}"
        yield f"{name:20}{old}{count:>10,.0f}"


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_for("house", __doc__)
    parser.add_argument("--against", metavar="REV", help="a revision to compare with")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--source", type=Path, default=ROOT / "src", help="folder with the package to count"
    )
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    options = parse(given)
    source = options.source.resolve()
    if options.json:
        check_imported(source)
        package = source / "evomeans"
        print(json.dumps({**counts_of(package), **walk_of_a_fit(package)}))
        return
    before = measured(source_of(options.against)) if options.against else None
    print("\n".join(table(measured(source), before)))
