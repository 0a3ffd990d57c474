"""A few cases of each fuzzer, and that fuzzers and their oracles notice what they should.

``make fuzz`` runs them for as long as you like.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import evomeans
from constraint_oracles import all_labels, best_constrained, inertias
from tests.fuzz import (
    arrays,
    certificate_files,
    certificates,
    estimators,
    files,
    kills,
    optima,
    running,
)
from tests.fuzz.certificates import Problem, Rationals

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals and limits")
X = np.array([[0.0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 7]])


@posix
@pytest.mark.parametrize(
    ("module", "n_cases", "kinds"),
    [
        (files, 40, {"model used", "checkpoint refused"}),
        (arrays, 25, set()),
        (certificates, 60, {"direct optimal"}),
        (certificate_files, 150, {"true", "refused by verify", "file refused"}),
        pytest.param(files, 400, set(), marks=pytest.mark.slow),
        pytest.param(arrays, 150, set(), marks=pytest.mark.slow),
        pytest.param(kills, 5, set(), marks=pytest.mark.slow),
    ],
)
def test_no_case_finds_anything(module, n_cases, kinds) -> None:
    report = running.run(module.__name__, n_cases=n_cases, seed=11)
    assert not report.findings, str(report)
    assert report.n_cases == n_cases
    assert kinds <= report.counts.keys()


def test_cases_need_neither_pytest_nor_hypothesis() -> None:
    # They also run on borrowed machines, where nothing can be installed.
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pytest', 'hypothesis', 'cyclopts']));"
        "from tests.fuzz.__main__ import module_names; print(len(module_names()))"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, cwd=running.ROOT, capture_output=True, text=True, timeout=120)
    assert found.stdout == "6\n", found.stderr


CASES = """
import ctypes, time

CASE_SECONDS = 1.0

def case(rng):
    print("not an answer")
    match rng.bit_generator.seed_seq.entropy[1]:
        case 1:
            ctypes.string_at(0)
        case 2:
            time.sleep(60)
        case 3:
            raise ValueError("something false")
        case 4:
            bytearray(10**12)
    return "fine"
"""


@posix
def test_crashes_hangs_errors_and_memory_are_findings(tmp_path, monkeypatch) -> None:
    """Each is reported with its case, and the cases after it run all the same."""
    (tmp_path / "hostile_cases.py").write_text(CASES, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    report = running.run("hostile_cases", n_cases=6, processes=2)
    assert report.counts == {"fine": 2, "SIGSEGV": 1, "hang": 1, "ValueError": 1, "MemoryError": 1}
    assert [one.number for one in report.findings] == [1, 2, 3, 4]
    assert "something false" in str(report)
    assert "python -m tests.fuzz hostile_cases --seed 0 --case 1" in str(report)


def test_the_oracle_notices_what_is_false() -> None:
    """Each claim by itself."""
    proven = evomeans.certify(X, [0, 0, 0, 1, 1, 1])
    bound = proven.lower_bound
    certificate_files.check_truth(proven, bound, X, None)
    for change in (
        {"lower_bound": 1.001 * bound},
        {"upper_bound": 1.001 * proven.upper_bound},
        {"labels": np.array([0, 0, 1, 1, 1, 1], np.int32)},
        {"n_samples": 7},
    ):
        with pytest.raises(AssertionError):
            certificate_files.check_truth(replace(proven, **change), bound, X, None)
    with pytest.raises(AssertionError):
        certificate_files.check_truth(proven, 1.001 * bound, X, None)


def test_the_optimum_in_rational_numbers() -> None:
    """Two pairs that are one apart and a sample that is worth two; and by another method."""
    line = np.array([[0.0], [1], [10], [11], [20]])
    exact = Rationals(Problem("", "", line, np.array([1.0, 1, 1, 1, 2]), 3))
    assert exact.optimum == 1
    assert exact.of_labels(exact.labels()) == 1
    assert Rationals(Problem("", "", line[:2], None, 1)).optimum == 0.5
    for k in (1, 2, 3, 6):
        found = evomeans.ExactKMeans(k, random_state=0).fit(X).inertia_
        optimum = float(Rationals(Problem("", "", X, None, k)).optimum)
        assert optimum == pytest.approx(found, rel=1e-12, abs=1e-15)


# ---- the fuzzer of estimators --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", estimators.KINDS)
def test_some_cases_of_each_kind(kind):
    """Tiny searches and a default one; a false answer raises, whatever was missed."""
    for number in range(8):
        rng = np.random.default_rng([2026, number])
        outcome = estimators.KINDS[kind](rng, estimators.TINY if number else {})
        assert outcome in ("optimal", "above", "infeasible", "refused")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["spherical", "trimmed", "constrained"])
def test_default_searches_find_the_optimum_of_every_model(kind):
    """Weights, duplicates, sizes, links and penalties: the optimum, or that there is none."""
    outcomes = [estimators.KINDS[kind](np.random.default_rng([1, n]), {}) for n in range(60)]
    assert set(outcomes) <= {"optimal", "infeasible", "refused"}
    assert outcomes.count("optimal") > 40


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attribute", ["inertia_", "labels_"])
@pytest.mark.parametrize("kind", ["deep", "spherical", "trimmed", "constrained"])
def test_a_false_answer_is_noticed(kind, attribute, monkeypatch):
    """Inertias that are too low, and labels of another clustering."""
    changed = {"inertia_": lambda one: one * 0.9 - 1.0, "labels_": lambda one: np.abs(1 - one)}
    model = {
        "deep": estimators.HGMeans,
        "spherical": estimators.SphericalHGMeans,
        "trimmed": estimators.TrimmedHGMeans,
        "constrained": estimators.ConstrainedHGMeans,
    }[kind]
    fit = model.fit

    def lying(self, *arguments, **keywords):
        fit(self, *arguments, **keywords)
        setattr(self, attribute, changed[attribute](getattr(self, attribute)))
        return self

    monkeypatch.setattr(model, "fit", lying)
    failed = 0
    for number in range(12):
        rng = np.random.default_rng([7, number])
        try:
            estimators.KINDS[kind](rng, estimators.TINY)
        except (AssertionError, IndexError):  # a label may be one of no cluster
            failed += 1
    assert failed >= 3


@pytest.mark.parametrize("seed", range(4))
def test_optima_are_those_of_the_plain_enumeration(seed):
    """Look-ups of subsets and sums over labels give the same optima."""
    rng = np.random.default_rng(seed)
    n, k = 5, 1 + seed % 3
    X, weights = rng.normal(size=(n, 2)), rng.random(n)
    squares, labels = optima.squared_distances(X), all_labels(n, k)
    costs = optima.costs_of_subsets(squares, weights)
    expected = inertias(X, weights, labels, k).min()
    assert optima.lowest(costs, n, k) == pytest.approx(expected)
    limits, must, cannot = (np.zeros(k), np.full(k, 3)), [(0, 1)], [(2, 3)]
    found = optima.lowest_constrained(costs, *limits, np.array(must), np.array(cannot), 0.3)
    expected = best_constrained(X, weights, k, *limits, must, cannot, 0.3)
    assert found == pytest.approx(expected)
    rows = combinations(range(n), 3)
    few = all_labels(3, k)
    expected = min(inertias(X[list(kept)], np.ones(3), few, k).min() for kept in rows)
    assert optima.lowest_trimmed(squares, np.ones(n), 2.0, k) == pytest.approx(expected)


def test_the_best_trimming_may_leave_out_a_part():
    """Half of a heavy sample goes: 1.5 of 3, with the sample at 1 left alone."""
    squares = optima.squared_distances(np.array([[0.0], [1.0]]))
    found = optima.lowest_trimmed(squares, np.array([3.0, 1.0]), 1.5, 1)
    # Without the sample at 1 and half of the weight 3, nothing is left to pay.
    assert found == 0.0
    found = optima.lowest_trimmed(squares, np.array([3.0, 1.0]), 0.5, 1)
    assert found == pytest.approx(3.0 * 0.5 / 3.5)
