"""ConstrainedHGMeans heeds its constraints, and finds the best clusters that do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import evomeans
from constraint_oracles import best_constrained
from evomeans import ConstrainedHGMeans, HGMeans
from evomeans.engines.constrained import engine as constrained_engine
from evomeans.engines.constrained.links import InfeasibleError, Links, contract, group_samples
from evomeans.engines.protocol import LocalSearch, Order

QUICK = {"n_jobs": 1, "random_state": 0}
TINY = {**QUICK, "min_population": 2, "max_population": 3, "max_offspring": 2}


def blobs(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 6.0 * rng.integers(0, 2, size=(n, 2))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sizes_hold_in_200_random_problems():
    """Whatever the samples, duplicates included, every cluster is within its limits."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        k = int(rng.integers(1, min(n, 6) + 1))
        X = rng.normal(size=(n, int(rng.integers(1, 4))))
        if seed % 4 == 0:
            X = np.round(X)
        sizes = rng.multinomial(n, rng.dirichlet(np.ones(k)))
        slack = rng.integers(0, 3, (2, k))
        low, high = np.maximum(sizes - slack[0], 0), sizes + slack[1]
        if seed % 3 == 0:
            low, high = np.full(k, low.min()), np.full(k, high.max())
        quick = {**QUICK, "min_population": 1, "max_population": 2, "max_offspring": 1}
        strategy = "paper" if seed % 5 else "deep"
        model = ConstrainedHGMeans(k, size_min=low, size_max=high, strategy=strategy, **quick)
        labels = model.fit_predict(X)
        counts = np.bincount(labels, minlength=k)
        assert (counts >= low).all(), seed
        assert (counts <= high).all(), seed


@pytest.mark.parametrize("n_pairs", [0, 25])
def test_must_links_alone_are_the_contracted_problem_to_the_last_bit(n_pairs):
    """Groups become weighted samples of a plain HGMeans, which it is without any links."""
    X = blobs(80)
    weights = np.random.default_rng(1).random(80)
    pairs = np.random.default_rng(2).integers(0, 80, (n_pairs, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    groups = contract(X, weights, group_samples(80, pairs))
    plain = HGMeans.fast(5, **QUICK).fit(groups.points, sample_weight=groups.weights)
    model = ConstrainedHGMeans.fast(5, **QUICK)
    model.fit(X, sample_weight=weights, must_link=pairs)
    assert model.cluster_centers_.tobytes() == plain.cluster_centers_.tobytes()
    assert_array_equal(model.labels_, plain.labels_[groups.of_sample])
    squares = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    assert model.inertia_ == pytest.approx(weights @ squares)
    assert model.history_[-1].best == pytest.approx(model.inertia_)


def test_contraction_keeps_weights_and_moments():
    """The mean of a group is weighted; single samples are kept bit by bit."""
    X, weights = blobs(6), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 5.0])
    groups = contract(X, weights, np.array([0, 0, 1, 2, 2, 3]))
    assert_allclose(groups.points[0], (X[0] + 2 * X[1]) / 3)
    assert_allclose(groups.points[2], (X[3] + X[4]) / 2)
    assert groups.points[1].tobytes() == X[2].tobytes()
    assert_array_equal(groups.weights, [3.0, 3.0, 0.0, 5.0])
    assert_array_equal(groups.counts, [2, 1, 2, 1])


def test_links_from_classes_are_never_violated():
    """Many cannot-links in one component, some of them with sizes."""
    rng = np.random.default_rng(0)
    X, classes = blobs(100), rng.integers(0, 4, 100)
    pairs = rng.integers(0, 100, (120, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    for limits in ({}, {"size_min": 10, "size_max": 40}):
        model = ConstrainedHGMeans(4, **limits, **TINY)
        model.fit(X, must_link=pairs[same], cannot_link=pairs[~same])
        assert model.n_violations_ == 0
        labels = model.labels_
        assert (labels[pairs[same][:, 0]] == labels[pairs[same][:, 1]]).all()
        assert (labels[pairs[~same][:, 0]] != labels[pairs[~same][:, 1]]).all()


def test_penalties_decide_whether_a_pair_is_heeded():
    """A cheap pair is not, a dear one is, and an infinite one must be."""
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    for penalty, heeded in ((0.001, False), (1e6, True)):
        model = ConstrainedHGMeans(2, penalty=penalty, **TINY).fit(X, cannot_link=[(0, 1)])
        assert (model.labels_[0] != model.labels_[1]) == heeded
        assert model.n_violations_ == (not heeded)
        assert model.penalty_ == (0.0 if heeded else penalty)
    own = ConstrainedHGMeans(2, **TINY).fit(X, cannot_link=[(0, 1, 0.001), (2, 3, np.inf)])
    assert own.labels_[2] != own.labels_[3]
    assert own.labels_[0] == own.labels_[1]


def test_limits_belong_to_their_clusters():
    """Cluster j has limit j, and the large cluster got the large limit."""
    X = np.concatenate([np.zeros((10, 1)), np.ones((30, 1)), 3 * np.ones((20, 1))])
    X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    model = ConstrainedHGMeans(3, size_min=[20, 10, 30], size_max=[20, 10, 30], **TINY).fit(X)
    assert_array_equal(np.bincount(model.labels_), [20, 10, 30])
    assert_allclose(model.cluster_centers_.ravel(), [3.0, 0.0, 1.0], atol=0.05)


def test_predict_is_nearest_centre_or_fills_sizes():
    """New samples need not heed the limits, unless that is asked for."""
    X = blobs(60)
    model = ConstrainedHGMeans(3, size_min="balanced", **TINY).fit(X)
    assert_array_equal(np.bincount(model.labels_), [20, 20, 20])
    distances = model.transform(X)
    assert_array_equal(model.predict(X), distances.argmin(axis=1))
    filled = model.predict(X[:31], fill_sizes=True)
    assert sorted(np.bincount(filled)) == [10, 10, 11]
    assert_array_equal(model.predict(X, fill_sizes=True), model.labels_)
    fixed = ConstrainedHGMeans(3, size_max=20, **TINY).fit(X)
    with pytest.raises(ValueError, match="3 clusters of size_max hold 60 samples, and X has 61"):
        fixed.predict(np.vstack([X, X[:1]]), fill_sizes=True)


@pytest.mark.parametrize(
    ("limits", "links", "text"),
    [
        ({"size_max": 2}, {}, "3 clusters of size_max hold 6 samples, and X has 12"),
        ({"size_min": 5}, {}, "3 clusters of size_min need 15 samples, and X has 12"),
        (
            {"size_min": [4, 1, 1], "size_max": [3, 9, 9]},
            {},
            "size_min=4 is larger than size_max=3",
        ),
        (
            {},
            {"must_link": [(0, 5), (5, 7)], "cannot_link": [(7, 0)]},
            "samples 7 and 0 apart, but must_link joins them: 7 - 5 - 0",
        ),
        ({}, {"cannot_link": [(4, 4)]}, "samples 4 and 4 apart, but they are the same"),
        (
            {},
            {"cannot_link": [(i, j) for i in (1, 3, 8, 9) for j in (1, 3, 8, 9) if i < j]},
            r"keeps 4 samples apart from each other \(1, 3, 8, 9\), and there are only 3 clusters",
        ),
        (
            # A wheel with five spokes needs four colours, and has no clique of four.
            {},
            {"cannot_link": [(i, (i + 1) % 5) for i in range(5)] + [(i, 5) for i in range(5)]},
            r"3 clusters are too few .* among 6 samples \(0, 1, 2, 3, 4, 5\)",
        ),
        (
            {"size_max": 4},
            {"must_link": [(0, 1), (1, 2), (2, 3), (3, 4)]},
            r"must_link joins 5 samples \(0, 1, 2, 3, 4\), and no cluster may have more than",
        ),
        (
            {"size_max": 4},
            {"must_link": [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8), (9, 10), (10, 11)]},
            "must_link joins groups of 3, 3, 3, 3 samples, and no assignment satisfies all links",
        ),
    ],
)
def test_constraints_that_cannot_be_met_are_named(limits, links, text):
    """Proven, and with the samples to blame."""
    model = ConstrainedHGMeans(3, **limits, **TINY)
    with pytest.raises(InfeasibleError, match=text):
        model.fit(blobs(12), **links)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize(
    ("parameters", "links", "error", "text"),
    [
        ({"size_max": 2.5}, {}, TypeError, "size_max must be None, 'balanced', an int, or 3 ints"),
        ({"size_max": "equal"}, {}, TypeError, "got 'equal' of type str"),
        ({"size_min": -1}, {}, ValueError, "size_min=-1 must not be negative"),
        ({"size_min": [1, 2]}, {}, ValueError, r"size_min has the shape \(2,\)"),
        ({"size_min": 2, "size_max": "balanced"}, {}, ValueError, "size_min=2 contradicts"),
        ({"penalty": 0}, {}, ValueError, "penalty=0 must be positive"),
        ({"penalty": "much"}, {}, TypeError, "penalty must be a number"),
        ({}, {"must_link": [(0, 12)]}, ValueError, "names the sample 12 in row 0; samples are"),
        ({}, {"must_link": [(0, 1.5)]}, ValueError, "names the sample 1.5"),
        ({}, {"cannot_link": [0, 1]}, ValueError, r"cannot_link has the shape \(2,\)"),
        ({}, {"cannot_link": "pairs"}, TypeError, "cannot_link must be pairs"),
        ({}, {"cannot_link": [(0, 1, -2)]}, ValueError, "penalty -2.0 in row 0"),
    ],
)
def test_errors_name_what_came(parameters, links, error, text):
    """One sentence for each mistake."""
    with pytest.raises(error, match=text):
        ConstrainedHGMeans(3, **parameters, **TINY).fit(blobs(12), **links)


def test_a_checkpoint_continues_with_the_same_bits_and_refuses_other_links(tmp_path):
    """Labels of solutions are part of it."""
    X, links = blobs(60), {"cannot_link": [(0, 1), (1, 2), (2, 0)]}
    whole = ConstrainedHGMeans(4, size_max=20, max_offspring=20, **QUICK).fit(X, **links)
    path = tmp_path / "search.checkpoint"
    first = ConstrainedHGMeans(4, size_max=20, max_offspring=5, checkpoint=path, **QUICK)
    first.fit(X, **links)
    first.set_params(max_offspring=20).fit(X, **links)
    assert first.cluster_centers_.tobytes() == whole.cluster_centers_.tobytes()
    assert_array_equal(first.labels_, whole.labels_)
    with pytest.raises(evomeans.CheckpointError, match="links differs"):
        first.fit(X, cannot_link=[(0, 1)])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("X", "low", "high", "must", "penalty", "optimum"),
    [
        ([0, 2, 0, 0], [1, 0, 2], [1, 1, 3], [(3, 1)], 2.33, 2.0),
        ([0, 0, 0, 2, 2, 0], [2, 3], [2, 4], [(2, 4), (2, 4)], 2.16, 4.0),
    ],
)
def test_penalties_and_limits_to_which_no_start_on_samples_leads(
    X, low, high, must, penalty, optimum
):
    """A pair is together in a cluster whose centre is between all samples; most seeds find it."""
    found = []
    for seed in range(6):
        model = ConstrainedHGMeans(len(low), size_min=low, size_max=high, penalty=penalty)
        model.set_params(n_jobs=1, random_state=seed).fit(np.reshape(X, (-1, 1)), must_link=must)
        found.append(model.inertia_ + model.penalty_)
    assert np.sum(np.isclose(found, optimum)) >= 4


def test_a_noisy_population_of_copies_settles():
    """No founder begins where none has begun, so the patience has nothing to be divided by."""
    limits = {"size_min": [1, 1, 1, 1], "size_max": [2, 2, 2, 2]}
    model = ConstrainedHGMeans(4, penalty=5.868700155595297, n_jobs=1, random_state=1006, **limits)
    X = [[2.0], [0.0], [1.0], [0.0], [1.0]]
    model.fit(X, must_link=[(0, 1), (4, 3)], cannot_link=[(4, 0), (3, 1), (0, 4)])
    weights, must, cannot = np.ones(5), [(0, 1), (4, 3)], [(4, 0), (3, 1), (0, 4)]
    expected = best_constrained(np.array(X), weights, 4, 1, 2, must, cannot, model.penalty)
    assert model.inertia_ + model.penalty_ == pytest.approx(expected)


@pytest.mark.parametrize("step", ["place_bound", "exchange_items"])
def test_placing_and_exchanges_end_as_soon_as_nobody_waits_for_them(monkeypatch, step) -> None:
    X = blobs()
    cannot = np.random.default_rng(1).permutation(120)[:60].reshape(-1, 2)
    links = Links(np.empty((0, 2), np.int64), np.empty(0), cannot, np.full(30, np.inf))
    groups = contract(X, np.ones(120), np.arange(120))
    low, high = np.full(6, 15), np.full(6, 25)
    engine = constrained_engine.ConstrainedEngine(groups, links, low, high)
    order = Order(engine.rows(np.arange(6)), local_search=LocalSearch(single_moves=True))
    do, changed = getattr(constrained_engine, step), []

    def abandoned(items, clusters, *arguments):
        before = clusters.labels.copy()
        engine.abandon(True)
        result = do(items, clusters, *arguments)
        changed.append((clusters.labels != before).any())
        return result

    monkeypatch.setattr(constrained_engine, step, abandoned)
    (stopped,) = engine.refine([order])
    assert not stopped.is_complete
    assert changed == [False]


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("seed", range(4))
def test_samples_that_must_stay_together_can_be_fewer_groups_than_clusters(seed):
    """Two groups, and three clusters, of which two have to be empty."""
    X = np.array([[-0.9, 1.0], [-0.6, -0.7], [-1.3, 0.6]])
    model = ConstrainedHGMeans(3, size_min=[0, 3, 0], size_max=[0, 4, 0], random_state=seed)
    model.fit(X, must_link=[(1, 2)])
    assert_array_equal(model.labels_, [1, 1, 1])
    assert model.inertia_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum())
