"""Every snippet of README and docs runs, and prints the numbers that it says."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import PAGES, Snippet, name_of, snippets
from sklearn.datasets import load_iris

from evomeans import HGMeans

SLOW = {
    "README.md",
    "index.md",
    "how-sure.md",
    "local-optima.md",
    "dask-engine.md",
    "models.md",
    "proof.md",
}
WITH_SNIPPETS = [page for page in PAGES if page.exists() and snippets(page)]
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Names that a page may use without defining them, in a folder of its own."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot.switch_backend("Agg")
    X = load_iris().data
    gram = X @ X.T
    model = HGMeans(3, random_state=0).fit(X)
    yield {"X": X, "gram": gram, "tfidf": abs(X), "labels": model.labels_, "model": model}
    pyplot.close("all")


def run(snippet: Snippet, names: dict[str, Any]) -> None:
    """Run a snippet and compare its output; a traceback names the page and the line."""
    code = "\n" * (snippet.line - 1) + checked(snippet.code)
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, str(snippet.page), "exec"), names)
    if snippet.output is not None:
        assert stream.getvalue() == snippet.output, f"{name_of(snippet.page)}:{snippet.line}"


def checked(code: str) -> str:
    """Turn ``print(x)  # 3.5`` into a call that also compares what is printed with the comment."""
    pattern = re.compile(r"^print\((.*)\)  # (-?\d[\d,.e-]*)(?=[;:, ]|$).*$", re.MULTILINE)
    return pattern.sub(r"print_and_compare('\2', \1)", code)


def print_and_compare(expected: str, *values: object) -> None:
    """Print values; the first number among them has to be the expected one, as far as it goes."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        print(*values)
    found = NUMBER.search(stream.getvalue())
    assert found, stream.getvalue()
    number, wanted = (float(text.replace(",", "").rstrip(".")) for text in (found[0], expected))
    n_decimals = len(expected.rstrip(".").partition(".")[2])
    assert abs(number - wanted) <= 0.501 * 10.0**-n_decimals, (number, wanted)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else [], id=name_of(page))
        for page in WITH_SNIPPETS
    ],
)
def test_the_snippets_of_a_page_run(page: Path, names: dict[str, Any]) -> None:
    """One after the other, with the names of those before."""
    names["print_and_compare"] = print_and_compare
    prepare = PREPARATIONS.get(page.name)
    with prepare(names) if prepare else contextlib.nullcontext() as replacements:
        for snippet in snippets(page):
            code = snippet.code
            for old, new in (replacements or {}).items():
                code = code.replace(old, new)
            run(replace(snippet, code=code), names)


@contextlib.contextmanager
def many_rows(names: dict[str, Any]) -> Iterator[None]:
    """Give many rows to a page about them."""
    rng = np.random.default_rng(0)
    names["X"] = rng.integers(30, size=(80_000, 1)) + 0.01 * rng.normal(size=(80_000, 2))
    yield


@contextlib.contextmanager
def dask_cluster(_names: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Make a folder of Parquet files, and start a scheduler to connect to."""
    pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(0).normal(size=(400, 4))
    Path("measurements").mkdir()
    pandas.DataFrame(rows, columns=list("abcd")).to_parquet("measurements/0.parquet")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        short = {
            "max_time=600": "max_offspring=25",
            "HGMeans.fast(20,": "HGMeans.fast(20, max_offspring=25,",
        }
        yield {"tcp://scheduler-host:8786": cluster.scheduler_address, "/data/": "", **short}


def needing(*packages: str) -> Callable[[dict[str, Any]], Any]:
    """Return a preparation that skips a page where packages are not installed."""

    @contextlib.contextmanager
    def prepare(_names: dict[str, Any]) -> Iterator[None]:
        for package in packages:
            pytest.importorskip(package)
        yield

    return prepare


PREPARATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "command-line.md": needing("jinja2", "pandas", "polars"),
    "dask-engine.md": dask_cluster,
    "large-data.md": many_rows,
    "onnx.md": needing("skl2onnx", "onnxruntime"),
    "plots-and-report.md": needing("jinja2", "pandas", "polars"),
}


def test_wrong_output_is_noticed() -> None:
    """The comparison with a block of output can fail."""
    page = WITH_SNIPPETS[0]
    run(Snippet(page, 1, "print(2.5)", "2.5\n"), {})
    with pytest.raises(AssertionError):
        run(Snippet(page, 1, "print(2.6)", "2.5\n"), {})


def test_every_print_of_the_guide_has_its_output() -> None:
    """Below the snippet, or in a comment that is compared."""
    pages = [page for page in WITH_SNIPPETS if page.parent.name in {"guide", "docs"}]
    missing = [
        f"{name_of(page)}:{snippet.line}"
        for page in pages
        for snippet in snippets(page)
        if "print(" in checked(snippet.code) and snippet.output is None
    ]
    assert missing == []


def test_a_wrong_number_is_noticed() -> None:
    """The comparison can fail."""
    exec(checked("print(2.5)  # 2.5: right"), {"print_and_compare": print_and_compare})
    with pytest.raises(AssertionError):
        exec(checked("print(2.6)  # 2.5"), {"print_and_compare": print_and_compare})
    with pytest.raises(AssertionError):
        exec(checked("print(831.8)  # 831,711; more"), {"print_and_compare": print_and_compare})
