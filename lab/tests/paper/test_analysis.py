import pytest

from lab.best_known import best_known
from lab.paper.analysis import compare, percent_above, references, with_gaps


def row(dataset, method, inertia, m=3, seed=0):
    return {"dataset": dataset, "m": m, "method": method, "seed": seed, "inertia": inertia}


def test_gaps_are_measured_from_the_best_known_value():
    known = best_known("iris", 3).value
    [scored] = with_gaps([row("iris", "A", 1.05 * known)])
    assert scored["gap"] == pytest.approx(5)


def test_a_run_that_beats_the_best_known_value_becomes_the_reference():
    known = best_known("iris", 3).value
    assert references([row("iris", "A", 0.9 * known), row("iris", "B", known)]) == {
        ("iris", 3): 0.9 * known
    }


def test_mixtures_have_only_their_runs_to_compare_with():
    scored = with_gaps(
        [row("mixture-n9-m3-d2-s0", "A", 10.0), row("mixture-n9-m3-d2-s0", "B", 11.0)]
    )
    assert [one["gap"] for one in scored] == [0.0, pytest.approx(10.0)]


def test_nothing_is_above_zero_but_what_is_more():
    assert percent_above(0.0, 0.0) == 0.0
    assert percent_above(1.0, 0.0) == float("inf")


def test_methods_are_compared_on_common_set_ups_by_their_means():
    rows = [
        {**row("a", "A", 0.0), "gap": 1.0},
        {**row("a", "A", 0.0, seed=1), "gap": 3.0},
        {**row("a", "B", 0.0), "gap": 2.5},
        {**row("b", "A", 0.0), "gap": 0.0},
        {**row("b", "B", 0.0), "gap": 0.0},
        {**row("c", "A", 0.0), "gap": 9.0},
    ]
    result = compare(rows, "A", "B")
    assert (result.setups, result.better, result.worse) == (2, 1, 0)


def test_rounding_is_no_difference():
    rows = [
        {**row(name, method, 0.0), "gap": gap}
        for name in "abcdefgh"
        for method, gap in (("A", 0.0), ("B", 1e-12))
    ]
    result = compare(rows, "A", "B")
    assert (result.better, result.worse, result.p_value) == (0, 0, 1.0)
