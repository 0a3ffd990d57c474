"""The drawing half: what stands on the axes, and that nothing needs more than it says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from evomeans import HGMeans, HGMeansPath, History, OffspringRecord, plotting
from evomeans.plotting.axes import OKABE_ITO
from evomeans.plotting.cluster_plots import draw_sizes
from evomeans.plotting.search_plots import convergence_data, floor_below, population_data

matplotlib.use("Agg")

FAST = {"min_population": 3, "max_population": 5, "max_offspring": 20, "random_state": 0}
RNG = np.random.default_rng(0)
CORNERS = np.array([[0, 0, 0, 1], [20, 0, 1, 0], [0, 14, 0, 0], [20, 14, 0, 5]])
FRAME = pd.DataFrame(
    np.repeat(CORNERS, 15, axis=0) + RNG.normal(size=(60, 4)),
    columns=["height", "cost in $", "$x_1$", "a name that is far too long for any tick"],
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    return HGMeans(4, engine="reference", **FAST).fit(FRAME)


@pytest.fixture(scope="module")
def many():
    """200 clusters of 300 columns; one offspring."""
    samples = RNG.normal(size=(1000, 300))
    settings = {"min_population": 1, "max_population": 1, "max_offspring": 1, "random_state": 0}
    return HGMeans(200, **settings).fit(samples), samples


def draw(ax):
    """Everything that is only found out while drawing: layout, fonts, mathematics in names."""
    ax.figure.canvas.draw()
    return ax


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_every_plot_draws_into_given_axes_and_returns_them(model):
    """No new figure is made, and the figure of a new one is the caller's."""
    history = model.history_
    plots = [
        partial(plotting.plot_convergence, history),
        partial(plotting.plot_convergence, history, x="seconds"),
        partial(plotting.plot_population, history),
        partial(plotting.plot_clusters, model, FRAME),
        partial(plotting.plot_profiles, model),
        partial(plotting.plot_sizes, model),
    ]
    for plot in plots:
        for ax in (pyplot.figure().subplots(), None):
            drawn = draw(plot(ax=ax))
            assert ax is None or drawn is ax
            assert len(pyplot.get_fignums()) == 1
            pyplot.close("all")


def test_convergence_is_in_percent_and_ends_at_the_best():
    model = HGMeans(30, strategy="paper", **FAST).fit(FRAME)
    ax = draw(plotting.plot_convergence(model.history_))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("offspring made", "above the best found")
    assert ax.get_yscale() == "log"
    assert ax.get_yticklabels()[0].get_text() == "best"
    line = next(line for line in ax.lines if line.get_label() == "best so far")
    assert line.get_ydata()[-1] == ax.get_yticks()[0]
    assert plotting.plot_convergence(model.history_, x="seconds").get_xlabel() == "time (seconds)"


@pytest.mark.parametrize("plot", [plotting.plot_convergence, plotting.plot_population])
def test_searches_that_cannot_be_drawn_are_explained(plot):
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 9, axis=0)
    flat = HGMeans(2, engine="reference", **FAST).fit(X)
    equal = "Every solution was equally good,\nso there is no convergence curve."
    assert texts(plot(flat)) == [equal]
    assert texts(plot(History())) == ["The answer was computed exactly,\nwithout a search."]


@pytest.mark.parametrize("plot", [plotting.plot_convergence, plotting.plot_population])
def test_a_model_stands_for_its_history(model, plot):
    drawn, expected = plot(model), plot(model.history_)
    for line, twin in zip(drawn.lines, expected.lines, strict=True):
        assert_array_equal(line.get_xydata(), twin.get_xydata())


@pytest.mark.parametrize("name", ["convergence", "population", "profiles", "sizes", "clusters"])
def test_models_that_are_not_fitted(name):
    samples = [FRAME] if name == "clusters" else []
    with pytest.raises(NotFittedError):
        getattr(plotting, f"plot_{name}")(HGMeans(4), *samples)
    assert not pyplot.get_fignums()


def test_clusters_have_numbers_and_the_colours_of_the_sizes(model):
    ax = draw(plotting.plot_clusters(model, FRAME, columns=["height", "cost in $"]))
    assert sorted(texts(ax)) == ["0", "1", "2", "3"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", r"cost in \$")
    drawn = {dots.get_gid(): to_hex(dots.get_facecolor()[0]) for dots in ax.collections[:4]}
    assert drawn == {f"cluster-{i}": OKABE_ITO[i].lower() for i in range(4)}
    bars = draw(plotting.plot_sizes(model)).patches
    assert {bar.get_gid(): to_hex(bar.get_facecolor()) for bar in bars} == drawn


def test_sizes_from_the_largest_down():
    sizes, colors = np.array([0, 3, 1, 0]), np.arange(4)
    ax = draw(draw_sizes(pyplot.figure().subplots(), sizes, colors))
    assert [bar.get_height() for bar in ax.patches] == [3, 1, 0, 0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "0", "3"]
    assert all(tick == round(tick) for tick in ax.get_yticks())


def test_many_clusters_stay_readable(many):
    """200 clusters, 300 columns: numbers do not touch, and columns are chosen and counted."""
    model, samples = many
    ax = draw(plotting.plot_clusters(model, samples))
    boxes = [text.get_window_extent() for text in ax.texts]
    assert 5 < len(boxes) <= 200
    overlaps = [a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(overlaps)
    ax = draw(plotting.plot_profiles(model))
    assert len(ax.get_xticks()) == 24
    assert ax.get_title(loc="left") == "24 of 300 columns, the most telling first"
    assert draw(plotting.plot_sizes(model)).get_xlabel().startswith("200 clusters: from ")


def test_many_samples_are_thinned_out_and_that_is_said():
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    model = HGMeans(2, **{**FAST, "max_offspring": 1}).fit(X)
    ax = plotting.plot_clusters(model, X)
    assert sum(len(dots.get_offsets()) for dots in ax.collections[:2]) == 20_000
    assert ax.get_title(loc="right") == "20,000 of 30,000 samples shown"


def test_profiles_show_the_centres_in_units_of_the_data(model):
    """Columns have the names of the fit, which are no mathematics, or those that are given."""
    ax = draw(plotting.plot_profiles(model, feature_names=list("abcd")))
    assert {text.get_text() for text in ax.get_xticklabels()} == set("abcd")
    ax = draw(plotting.plot_profiles(model))
    shown = sorted(float(text) for text in texts(ax))
    assert_allclose(shown, np.sort(model.cluster_centers_.ravel()), rtol=0.01)
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert {r"\$x_1\$", "a name that is far to…"} <= set(names)


def test_one_column_and_one_cluster():
    x = np.random.default_rng(0).normal(size=(50, 1))
    one = HGMeans(1).fit(x)
    for plot in (plotting.plot_profiles, plotting.plot_sizes):
        draw(plot(one))
    assert draw(plotting.plot_clusters(one, x)).get_xlabel() == "x0"


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install '.\[plot\]'"):
        plotting.plot_sizes(model)


def test_importing_loads_neither_matplotlib_nor_jinja2():
    code = "import evomeans.plotting, evomeans.report, sys; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert "evomeans.plotting" in loaded
    assert not loaded & {"matplotlib", "jinja2", "numba", "sklearn.decomposition"}


@pytest.mark.parametrize(
    ("plot", "given", "text"),
    [
        (plotting.plot_convergence, KMeans(2, n_init=1).fit(FRAME), "KMeans keeps no history"),
        (plotting.plot_population, KMeans(2, n_init=1).fit(FRAME), "KMeans keeps no history"),
        (plotting.plot_convergence, FRAME, "A fitted estimator with centres is needed here"),
        (plotting.plot_sizes, [1, 2], "got list"),
    ],
)
def test_what_a_plot_needs_is_explained(plot, given, text):
    with pytest.raises(TypeError, match=text):
        plot(given)


def test_samples_of_another_shape_are_refused(model):
    with pytest.raises(ValueError, match="X must have 4 features"):
        plotting.plot_clusters(model, FRAME.to_numpy()[:, :-1])
    with pytest.raises(ValueError, match="labels must have 60 values"):
        plotting.plot_clusters(model, FRAME, labels=[0, 1])
    with pytest.raises(ValueError, match="must name all 4 columns, got 2 names"):
        plotting.plot_profiles(model, feature_names=["p", "q"])


def test_a_path_has_many_models_of_which_one_is_drawn():
    path = HGMeansPath((2, 3), random_state=0).fit(FRAME)
    for plot in (plotting.plot_sizes, plotting.plot_profiles):
        with pytest.raises(TypeError, match=r"pass one of them, such as path.at\(2\)"):
            plot(path)
        plot(path.at(2))


def history_of(*rows):
    """Make a history from (number, inertia, members of the population), a solution per second."""
    records, best = [], np.inf
    for seconds, (number, inertia, members) in enumerate(rows, start=1):
        best, size = min(best, inertia), len(members)
        record = OffspringRecord(number, inertia, best, 0.5, 3, float(seconds), size, True, False)
        record = replace(
            record,
            founder=number == 0,
            population_best=min(members),
            population_median=float(np.median(members)),
            population_worst=max(members),
            population_distinct=len(set(members)),
        )
        records.append(record)
    return History(records)


SEARCH = history_of(
    (0, 130, [130]),
    (0, 120, [130, 120]),
    (1, 110, [130, 120, 110]),
    (2, 125, [110, 120]),
    (3, 100, [110, 120, 100]),
    (4, 100, [110, 120, 100, 100]),
)


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
    data = convergence_data(history_of((0, 100 * (1 + 1e-12), [1]), (1, 100, [1])))
    assert_array_equal(data.gap, [0, 0])
    assert_array_equal(data.step_gap, [0, 0])


def test_an_inertia_of_zero_has_no_percent_above_it():
    data = convergence_data(history_of((0, 8, [1]), (1, 2, [1]), (2, 0, [1])))
    assert_allclose(data.gap, [100, 25, 0])
    assert data.unit == "% of the first inertia"


def test_long_searches_are_thinned_out_but_not_their_staircase():
    history = history_of(*[(i, 1000.0 - i, [1]) for i in range(900)])
    data = convergence_data(history, limit=50)
    assert len(data.x) == 50
    assert (data.x[0], data.x[-1]) == (0, 899)
    assert len(data.step_x) == 901


@pytest.mark.parametrize(
    ("gaps", "floor"), [([0.0], 0.1), ([30, 0], 10), ([1.5], 0.1), ([2.1, 400], 1), ([3e-6], 1e-6)]
)
def test_the_floor_is_clearly_below_all_gaps(gaps, floor):
    assert floor_below(np.array(gaps)) == pytest.approx(floor)


def test_one_solution_is_enough():
    history = history_of((0, 5, [5]))
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
