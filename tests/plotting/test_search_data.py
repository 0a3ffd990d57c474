"""The numbers behind the plots of a search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from evomeans import HGMeans, History, OffspringRecord
from evomeans.plotting.search_plots import convergence_data, floor_below, population_data


def history_of(*rows: tuple[int, float, int], members: list[list[float]] | None = None) -> History:
    """Make a history from (number, inertia, population size); one second per solution."""
    records, best = [], np.inf
    for i, (number, inertia, size) in enumerate(rows):
        best = min(best, inertia)
        record = OffspringRecord(number, inertia, best, 0.5, 3, i + 1.0, size, True, False)
        if members:
            record = replace(
                record,
                founder=number == 0,
                population_best=min(members[i]),
                population_median=float(np.median(members[i])),
                population_worst=max(members[i]),
                population_distinct=len(set(members[i])),
            )
        records.append(record)
    return History(records)


ROWS = (0, 130, 1), (0, 120, 2), (1, 110, 3), (2, 125, 2), (3, 100, 3), (4, 100, 4)
MEMBERS = [[130], [130, 120], [130, 120, 110], [110, 120], [110, 120, 100], [110, 120, 100, 100]]
SEARCH = history_of(*ROWS, members=MEMBERS)


def test_convergence_in_percent_above_the_end():
    """Founders are at offspring 0, of which only the best is a corner of the staircase."""
    data = convergence_data(SEARCH)
    assert_array_equal(data.x, [0, 0, 1, 2, 3, 4])
    assert_allclose(data.gap, [30, 20, 10, 25, 0, 0])
    assert_array_equal(data.step_x, [0, 1, 3, 4])
    assert_allclose(data.step_gap, [20, 10, 0, 0])
    assert (data.floor, data.unit) == (1.0, "% above the best found")


def test_convergence_over_time():
    data = convergence_data(SEARCH, "seconds")
    assert_array_equal(data.step_x, [1, 2, 3, 5, 6])
    assert_allclose(data.step_gap, [30, 20, 10, 0, 0])
    with pytest.raises(ValueError, match='x must be "offspring" or "seconds", got \'time\''):
        convergence_data(SEARCH, "time")


def test_rounding_is_no_gap():
    """Differences that the search itself takes for clones do not show as a step."""
    data = convergence_data(history_of((0, 100 * (1 + 1e-12), 1), (1, 100, 2)))
    assert_array_equal(data.gap, [0, 0])
    assert_array_equal(data.step_gap, [0, 0])


def test_an_inertia_of_zero_has_no_percent_above_it():
    data = convergence_data(history_of((0, 8, 1), (1, 2, 2), (2, 0, 3)))
    assert_allclose(data.gap, [100, 25, 0])
    assert data.unit == "% of the first inertia"


def test_long_searches_are_thinned_out_but_not_their_staircase():
    rows = [(i, 1000.0 - i, 1) for i in range(900)]
    data = convergence_data(history_of(*rows), limit=50)
    assert len(data.x) == 50
    assert (data.x[0], data.x[-1]) == (0, 899)
    assert len(data.step_x) == 901


@pytest.mark.parametrize(
    ("gaps", "floor"), [([0.0], 0.1), ([30, 0], 10), ([1.5], 0.1), ([2.1, 400], 1), ([3e-6], 1e-6)]
)
def test_the_floor_is_clearly_below_all_gaps(gaps, floor):
    assert floor_below(np.array(gaps)) == pytest.approx(floor)


def test_nothing_to_show():
    """One column is solved without a search; the history is empty then."""
    assert len(convergence_data(History()).x) == 0
    assert len(population_data(History()).number) == 0


def test_histories_that_do_not_know_the_members_have_no_population():
    """Those of older model files."""
    assert len(population_data(history_of(*ROWS)).number) == 0


def test_one_solution_is_enough():
    history = history_of((0, 5, 1), members=[[5]])
    assert_array_equal(convergence_data(history).step_gap, [0, 0])
    assert_array_equal(population_data(history).number, [0])


def test_the_population_after_each_selection():
    """At the start, when survivors were selected (110 and 120 stay), and at the end."""
    data = population_data(SEARCH)
    assert_array_equal(data.number, [0, 2, 4])
    assert_allclose(data.best, [20, 10, 0])
    assert_allclose(data.median, [25, 15, 5])
    assert_allclose(data.worst, [30, 20, 20])


@pytest.mark.parametrize("seed", range(3))
def test_the_last_population_is_the_one_that_the_search_returns(seed):
    X = np.random.default_rng(seed).normal(size=(150, 3))
    sizes = {"min_population": 4, "max_population": 9}
    # One population, or the best of another one would be returned with it.
    limits = {"max_offspring": 80, "n_iter_no_change": 80}
    model = HGMeans(7, **sizes, **limits, random_state=seed).fit(X)
    data = population_data(model.history_)
    members = np.array([member.inertia for member in model.population_])
    gaps = 100 * (members / members.min() - 1)
    shown = [data.best[-1], data.median[-1], data.worst[-1]]
    assert_allclose(shown, [0, np.median(gaps), gaps.max()], rtol=1e-7, atol=1e-7)
