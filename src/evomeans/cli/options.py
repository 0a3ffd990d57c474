"""The options that commands share, grouped as ``--help`` shows them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from evomeans.cli.terminal import OUTPUT, Flag, UsageError
from evomeans.wording import listed, parse_duration, quoted

TABLE = Group("Table", sort_key=1)
MODEL = Group("Model", sort_key=2)
SEARCH = Group("Search", sort_key=3)
PROOF = Group("Proof", sort_key=3)


def _not_an_option(_: Any, value: str) -> None:
    if value.startswith("-") and value != "-":
        raise ValueError(f"unknown option {value} (a file of that name is ./{value})")


def _not_zero(_: Any, value: int) -> None:
    if value == 0:
        raise ValueError("Must be positive, or -1 for all cores.")


def _read_by(read: Callable[[str], Any], metavar: str | None = None) -> Parameter:
    """Return an option whose text a function reads."""
    return Parameter(converter=lambda _, tokens: read(tokens[0].value), metavar=metavar, n_tokens=1)


def _names(_: Any, tokens: Sequence[Any]) -> tuple[str, ...]:
    """Split "a,b"; a name with a comma is put in double quotes, as in a CSV."""
    texts = [token.value for token in tokens]
    try:
        fields = chain(*csv.reader(texts, skipinitialspace=True, strict=True))
        return tuple(field.strip() for field in fields if field.strip())
    except csv.Error as error:
        raise ValueError(f"{' '.join(texts)} cannot be split into names: {error}.") from error


def _separator(text: str) -> str:
    separator = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(separator.encode()) != 1:
        raise ValueError(f"{quoted(separator)} must be a single character.")
    return separator


def _integer(text: str) -> int:
    """Refuse what cyclopts would round."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a whole number.") from None


def _subsample(text: str) -> int | str:
    if text in ("auto", "all"):
        return text
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{quoted(text)} is neither a number of rows, nor auto, nor all.")
    return int(text)


def _range(text: str) -> Sequence[int]:
    """Read "2:20", "2,4,8" or "20"; ranges stay ranges, because a slip makes them very long."""
    try:
        first, colon, last = text.partition(":")
        if colon:
            ks: Sequence[int] = range(int(first), int(last) + 1)
        else:
            ks = sorted({int(part) for part in text.split(",")})
            ks = ks if "," in text else range(2, ks[0] + 1)
    except ValueError:
        raise ValueError(f"{quoted(text)} must be like 2:20, 2,4,8 or 20.") from None
    if not ks:
        raise ValueError(f"{quoted(text)} is empty: the first number must not exceed the last.")
    if ks[0] < 1:
        raise ValueError(f"{quoted(text)} has {ks[0]}; clusters must be at least 1.")
    return ks


def _sizes(text: str) -> int | str | tuple[int, ...]:
    """Read a size, one for each cluster, or the word for equal sizes."""
    if text == "balanced":
        return text
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a whole number, nor 'balanced'.") from None
    return sizes[0] if len(sizes) == 1 else sizes


def _amount(text: str) -> int | float:
    """Read a number of rows, or a share of them: 20, 0.05 or 5%."""
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100.0
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is neither a number of rows nor a share.") from None


TABLE_HELP = (
    "CSV, TSV, Parquet, Arrow or Feather, NPY, or NPZ (file.npz:name for one array of several); "
    "- is standard input."
)
TableName = Annotated[
    str, Parameter(allow_leading_hyphen=True, validator=_not_an_option, help=TABLE_HELP)
]
Names = Annotated[
    tuple[str, ...],
    Parameter(converter=_names, n_tokens=1, negative="", metavar="NAMES", show_default=False),
]
Subsample = Annotated[int | str, _read_by(_subsample, "ROWS|all|auto")]
Duration = Annotated[float, _read_by(parse_duration, "TIME")]
Integer = Annotated[int, _read_by(_integer)]
AtLeastOne = Annotated[Integer, Parameter(validator=Number(gte=1))]
Seed = Annotated[Integer, Parameter(validator=Number(gte=0))]
Jobs = Annotated[Integer, Parameter(validator=_not_zero)]
Clusters = Annotated[AtLeastOne, Parameter(name=["-k", "--clusters"])]
Range = Annotated[
    Sequence[int], _read_by(_range, "RANGE"), Parameter(name=["-k", "--clusters"], negative="")
]


@Parameter(name="*", group=TABLE)
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How to read a table, and which columns to take."""

    columns: Names | None = None
    """Use these columns only: a,b,c."""

    exclude: Names = ()
    """Use all columns but these: a,b,c."""

    id: str | None = None
    """The column that names the rows; it is written next to the labels."""

    format: Literal["csv", "tsv", "parquet", "arrow", "npy", "npz"] | None = None
    """By default that of the suffix, and CSV if it says nothing."""

    separator: Annotated[str | None, _read_by(_separator)] = None
    """Between the fields of a CSV; by default the most frequent of , ; tab |"""

    header: Annotated[bool | None, Parameter(show_default=False)] = None
    """Whether the first line of a CSV holds the names of the columns."""

    decimal_comma: Flag = False
    """Numbers of a CSV are written 1,5."""

    def __post_init__(self) -> None:
        names = self.columns
        if names is not None and self.exclude:
            raise UsageError("--columns and --exclude cannot be given together.")
        if names == ():
            raise UsageError("--columns names no column.")
        if names and len(set(names)) < len(names):
            raise UsageError(f"--columns names a column twice: {listed(names, 12)}.")


@Parameter(name="*", group=TABLE)
@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """What is done to the rows and columns before they are clustered."""

    weights: str | None = None
    """The column that says how much each row counts."""

    standardize: Flag = False
    """Bring all columns to mean 0 and deviation 1; centres are written in the original units."""

    missing: Literal["drop", "mean", "median"] | None = None
    """Leave out rows with missing values, or fill in means or medians; by default: refuse them."""


@Parameter(name="*", group=PROOF)
@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """The proof."""

    weights: str | None = None
    """The column that says how much each row counts, if the run had one."""

    max_time: Duration = 60.0
    """Stop after this time, with the best bound so far: 90s, 5m, 1h30m."""

    gap: Annotated[float, Parameter(validator=Number(gte=1e-9, lt=1))] = 1e-6
    """Stop when no other clustering can be better by more than this share."""

    method: Literal["auto", "direct", "separation", "relaxation", "plane", "parts"] = "auto"
    """How to prove it; docs/guide/proof.md explains the methods."""

    jobs: Jobs | None = None
    """Cases or parts of the proof to work on at a time, -1 for as many as there are cores."""


Sizes = Annotated[Any, _read_by(_sizes, "SIZE")]
Amount = Annotated[Any, _read_by(_amount, "AMOUNT")]


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What clusters are, if not those of plain k-means."""

    size_min: Sizes = None
    """The fewest rows of a cluster, one number or one for each: 50 or 50,20,20."""

    size_max: Sizes = None
    """The most rows of a cluster; balanced makes all sizes equal."""

    must_link: Path | None = None
    """A CSV with pairs of rows that belong together, by --id, else by their numbers from 1."""

    cannot_link: Path | None = None
    """A CSV with pairs of rows that must be in different clusters."""

    penalty: Annotated[float | None, Parameter(validator=Number(gt=0))] = None
    """What a violated pair costs; by default no pair may be violated."""

    outliers: Amount = None
    """Leave out the rows that are farthest from their centres: 20, 0.05 or 5%."""

    metric: Literal["euclidean", "cosine"] = "euclidean"
    """cosine compares rows by their directions (spherical k-means)."""


@dataclass(frozen=True, kw_only=True)
class SharedSearchOptions:
    """What searches for one k and for many have in common."""

    clusters: Any
    """One number, or a range of them; here, so that help shows it first."""

    strategy: Literal["deep", "paper"] = "deep"
    """deep finds a lower inertia, more reliably; paper is HG-means as published."""

    seed: Seed | None = None
    """The same seed gives the same result; by default one is drawn and shown."""

    jobs: Jobs | None = None
    """Threads, by default one for each core; the result does not depend on it."""

    max_time: Duration | None = None
    """Stop after this long, with the best so far: 90s, 5m, 1h30m."""

    engine: Literal["auto", "cpu", "reference", "gpu"] = "auto"
    """What runs K-means; gpu needs an NVIDIA GPU."""


@Parameter(name="*", group=SEARCH)
@dataclass(frozen=True, kw_only=True)
class SearchOptions(SharedSearchOptions):
    """The search."""

    clusters: Clusters
    """The number of clusters."""

    fast: Flag = False
    """Shorter searches, for interactive use: populations of 5 to 10, and few offspring."""

    max_offspring: AtLeastOne | None = None
    """Stop after this many offspring (5000)."""

    n_iter_no_change: AtLeastOne | None = None
    """Offspring without improvement that end a population (deep: 150, or 3 per k; paper: 500)."""

    target_inertia: Annotated[float | None, Parameter(validator=Number(gte=0))] = None
    """Stop as soon as this is reached."""

    certainty: Annotated[float | None, Parameter(validator=Number(gte=0, lte=1))] = None
    """Stop when it is this probable that nothing better is within reach (0.95)."""

    min_population: AtLeastOne | None = None
    """Solutions kept when the population is cut down (10)."""

    max_population: AtLeastOne | None = None
    """Solutions to begin with, and beyond which the population is cut down (20)."""

    subsample: Subsample | None = None
    """Rows of the subsample on which the search of a large table begins, or all (auto)."""


@Parameter(name="*", group=SEARCH)
@dataclass(frozen=True, kw_only=True)
class PathOptions(SharedSearchOptions):
    """The path over the number of clusters."""

    clusters: Range
    """The numbers of clusters: 2:20, both ends included; 2,4,8; or 20 for 2 to 20."""

    criteria: Names | None = None
    """Criteria to compute; by default all that cost next to nothing."""

    select: str | None = None
    """The criterion that chooses the model, or none (simplified_silhouette)."""

    n_iter_no_change: AtLeastOne | None = None
    """Offspring without improvement that end a population (12, and 1 per 5 k)."""

    confirmations: Annotated[Integer, Parameter(validator=Number(gte=0))] = 0
    """How many new populations to begin for each k at which populations disagree."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a run is kept, and how it can be continued."""

    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    """The folder for labels, centers, history, the model and the report."""

    format_out: Literal["csv", "parquet"] = "csv"
    """Of labels, centers and history."""

    force: Flag = False
    """Replace the run in the folder, and ignore its checkpoint."""

    report: Annotated[bool, Parameter(negative="--no-report", show_default=False)] = True
    """Write report.html, or leave it out."""

    checkpoint: Path | None = None
    """Where the search is kept while it runs; with --output, by default OUTPUT.checkpoint."""

    resume: Flag = False
    """Continue from the checkpoint, if there is one."""
