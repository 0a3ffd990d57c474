"""certify: labels and centres from anywhere, statuses, words, files, limits and refusals."""

from __future__ import annotations

import os
import signal
import threading

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import evomeans
from evomeans.exact.proofs import InvalidProofError
from evomeans.search import StopReason


@pytest.fixture(scope="module", name="X")
def samples() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(14, 2)), rng.normal(size=(14, 2)) + 2.5])


@pytest.fixture(scope="module")
def certificate(X) -> evomeans.Certificate:
    return evomeans.HGMeans(3, random_state=0).fit(X).certify(X)


def test_a_model_is_proven_optimal(X, certificate) -> None:
    """The certificate says so, its proof can be checked, and the model keeps it until a refit."""
    model = evomeans.HGMeans(3, random_state=0).fit(X)
    assert not hasattr(model, "certificate_")
    found = model.certify(X)
    assert found is model.certificate_
    assert found.status == "optimal"
    assert found.is_optimal
    assert found.gap <= 1e-6
    assert found.upper_bound == pytest.approx(model.inertia_, rel=1e-9)
    assert found.lower_bound <= model.inertia_
    assert found.verify(X) == found.lower_bound
    assert "Proven optimal" in str(found)
    model.fit(X)
    assert not hasattr(model, "certificate_")


def test_the_proof_depends_neither_on_the_run_nor_on_threads(X, certificate) -> None:
    again = evomeans.HGMeans(3, random_state=1).fit(X).certify(X, n_jobs=3)
    assert again.lower_bound == certificate.lower_bound


def test_labels_and_centres_say_the_same(X, certificate) -> None:
    model = evomeans.HGMeans(3, random_state=0).fit(X)
    for clustering in (model.labels_, model.cluster_centers_, [f"c{one}" for one in model.labels_]):
        found = evomeans.certify(X, clustering)
        assert found.upper_bound == pytest.approx(certificate.upper_bound, rel=1e-12)
        assert found.status == "optimal"


def test_weights_sparse_and_float32_samples_are_understood(X) -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 4, len(X)).astype(float)
    model = evomeans.HGMeans(2, random_state=0).fit(X, sample_weight=weights)
    weighted = model.certify(X, weights)
    assert weighted.status == "optimal"
    repeated = np.repeat(X, weights.astype(int), axis=0)
    labels = np.repeat(model.labels_, weights.astype(int))
    assert evomeans.certify(repeated, labels).lower_bound == pytest.approx(
        weighted.lower_bound, rel=1e-6
    )
    assert evomeans.certify(csr_matrix(X), model.labels_).status == "optimal"
    assert evomeans.certify(X.astype(np.float32), model.labels_).status == "optimal"


def test_a_better_clustering_is_returned_and_taken(X, certificate) -> None:
    model = evomeans.HGMeans(3, random_state=0).fit(X)
    best = model.inertia_
    model.cluster_centers_ = X[:3].copy()
    found = model.certify(X, update=True)
    assert found.improved
    assert "better than the one that was given" in str(found)
    assert found.upper_bound == pytest.approx(certificate.upper_bound, rel=1e-6)
    assert model.inertia_ == pytest.approx(best, rel=1e-9)
    assert model.certificate_ is found


def test_the_model_file_keeps_the_figures(X, tmp_path) -> None:
    """Without the proof, which has a file of its own."""
    model = evomeans.HGMeans(3, random_state=0).fit(X)
    model.certify(X)
    model.save(tmp_path / "model.evomeans")
    loaded = evomeans.load(tmp_path / "model.evomeans").certificate_
    assert str(loaded) == str(model.certificate_)
    with pytest.raises(InvalidProofError, match="holds no proof"):
        loaded.verify(X)
    with pytest.raises(ValueError, match="keeps the figures only"):
        evomeans.save_certificate(loaded, tmp_path / "x")


@pytest.mark.parametrize(
    ("k", "labels"), [(1, np.zeros(28, int)), (28, np.arange(28)), (27, np.arange(28) % 27)]
)
def test_trivial_problems_are_proven_at_once(X, k, labels) -> None:
    found = evomeans.certify(X, labels, n_clusters=k)
    assert found.method == "direct"
    assert found.status == "optimal"


@pytest.mark.parametrize("method", ["relaxation", "separation", "parts", "direct"])
def test_a_cluster_for_every_sample_costs_nothing_by_any_method(X, method) -> None:
    """A bound for exactly k clusters would be false where fewer samples are distinct."""
    found = evomeans.certify(X[:5], [0, 0, 1, 1, 1], n_clusters=7, method=method)
    assert (found.lower_bound, found.upper_bound) == (0.0, 0.0)
    assert found.improved


def test_one_column_is_proven_by_its_dynamic_program(X) -> None:
    found = evomeans.certify(X[:, :1], np.arange(28) % 4)
    assert (found.method, found.status, found.improved) == ("direct", "optimal", True)


def test_time_that_is_up_leaves_a_bound() -> None:
    X = np.random.default_rng(0).normal(size=(120, 6))
    labels = evomeans.HGMeans.fast(6, random_state=0).fit(X).labels_
    found = evomeans.certify(X, labels, max_time=1e-3)
    assert found.status == "bounded"
    assert 0 <= found.lower_bound < found.upper_bound
    assert "Proven within" in str(found)


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="needs signals")
def test_ctrl_c_leaves_a_bound() -> None:
    X = np.random.default_rng(0).normal(size=(150, 6))
    labels = evomeans.HGMeans.fast(8, random_state=0).fit(X).labels_
    evomeans.certify(X[:20], np.arange(20) % 2, max_time=0.01)  # compiles
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(RuntimeWarning, match="certify was interrupted"):
        found = evomeans.certify(X, labels, max_time=60)
    assert found.seconds < 50
    assert (found.status, found.stop_reason) == ("bounded", "interrupted")


def test_progress_is_told(X, capsys) -> None:
    heard: list[tuple[float, float, int]] = []
    found = evomeans.certify(
        X, np.arange(28) % 3, progress=lambda *bounds: heard.append(bounds), verbose=1
    )
    assert heard
    assert all(lower <= upper for lower, upper, _ in heard)
    assert heard[-1][1] >= found.upper_bound * (1 - 1e-9)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"clustering": np.zeros(5, int)}, "one label per sample"),
        ({"verbose": "yes"}, "verbose must be an int, got"),
        ({"clustering": np.zeros((2, 3))}, "for centres"),
        ({"max_time": 0}, "max_time=0 must be a positive number"),
        ({"gap": 0}, "gap=0 must be at least 1e-9"),
        ({"method": "magic"}, "method='magic' must be one of"),
        ({"part_size": 1}, "part_size=1"),
        ({"n_clusters": 1}, "less than the 2 clusters"),
        ({"method": "parts"}, "parts"),
        ({"method": "direct"}, "method='direct' is for one cluster"),
    ],
)
def test_bad_arguments_get_one_clear_sentence(X, arguments, text) -> None:
    given = {"clustering": np.r_[np.zeros(27, int), 1], **arguments}
    with pytest.raises((TypeError, ValueError), match=text):
        evomeans.certify(X, **given)


@pytest.mark.parametrize("unit", [1e-170, 1e160])
def test_an_inertia_that_underflows_or_overflows_is_refused(X, unit) -> None:
    """Never called optimal because both bounds are written as 0."""
    with pytest.raises(ValueError, match="cannot be written in float64"):
        evomeans.certify(unit * X, np.arange(28) % 3)


def test_exact_kmeans_proves_what_it_finds(X) -> None:
    model = evomeans.ExactKMeans(3, random_state=0).fit(X)
    assert model.stop_reason_ == StopReason.PROVEN_OPTIMAL
    assert model.gap_ <= 1e-6
    assert model.lower_bound_ <= model.inertia_ * (1 + 1e-12)
    assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("max_time", [0.2, 0.002])
def test_exact_kmeans_says_what_is_left(max_time) -> None:
    """And nothing else: the search has half of the time, of which the user need not know."""
    X = np.random.default_rng(0).normal(size=(150, 6))
    model = evomeans.ExactKMeans(8, max_time=max_time, random_state=0).fit(X)
    assert model.stop_reason_ == StopReason.MAX_TIME
    assert 0 < model.gap_ <= 1


@pytest.fixture
def many(monkeypatch) -> tuple[np.ndarray, np.ndarray]:
    """Return samples that are split into eight parts."""
    monkeypatch.setattr("evomeans.exact.parts.PART_SIZES", (20, 20))
    rng = np.random.default_rng(3)
    X = rng.normal(size=(160, 2)) + 4 * (np.arange(160) % 2)[:, None]
    return X, evomeans.HGMeans(2, random_state=0).fit(X).labels_


@pytest.mark.slow
def test_parts_give_the_same_bound_in_any_number_of_processes(many) -> None:
    X, labels = many
    one, two = (evomeans.certify(X, labels, method="parts", n_jobs=jobs) for jobs in (1, 2))
    assert one.method == "parts"
    assert one.lower_bound == two.lower_bound
    assert 0.8 * one.upper_bound < one.lower_bound < one.upper_bound
    assert one.verify(X) == one.lower_bound


@pytest.mark.slow
def test_parts_go_to_a_dask_cluster(many) -> None:
    """By way of joblib, on a cluster within this process."""
    distributed = pytest.importorskip("distributed")
    X, labels = many
    alone = evomeans.certify(X, labels, method="parts")
    with (
        distributed.Client(
            processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
        ),
        joblib.parallel_config(backend="dask"),
    ):
        found = evomeans.certify(X, labels, method="parts", n_jobs=2)
    assert found.lower_bound == alone.lower_bound


def test_exact_kmeans_keeps_the_clustering_where_a_proof_is_useless(monkeypatch) -> None:
    """An outlier of its own cluster cannot be in all parts; the fit says so and is not lost."""
    monkeypatch.setattr("evomeans.exact.certify.MOST_POINTS", 10)
    monkeypatch.setattr("evomeans.exact.parts.MOST_POINTS", 10)
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[0] = 12.0
    with pytest.warns(UserWarning, match="fewer than the 6 parts.*The clustering is kept"):
        model = evomeans.ExactKMeans(3, max_time=5, random_state=0).fit(X)
    assert model.stop_reason_ == "exhausted"
    assert 0 <= model.lower_bound_ < model.inertia_


OTHER_MODELS = [
    evomeans.SphericalHGMeans(3, random_state=0),
    evomeans.TrimmedHGMeans(3, n_outliers=3, random_state=0),
]


@pytest.mark.parametrize("model", OTHER_MODELS, ids=lambda model: type(model).__name__)
def test_models_with_another_objective_are_refused(X, model) -> None:
    """Plain k-means was proven, and called their optimum."""
    model.fit(X)
    inertia, labels = model.inertia_, model.labels_
    for update in (False, True):
        with pytest.raises(TypeError, match="cannot be certified: proofs are about the inertia"):
            model.certify(X, update=update)
    assert not hasattr(model, "certificate_")
    assert model.inertia_ == inertia
    assert model.labels_ is labels


@pytest.mark.parametrize("update", [False, True])
def test_a_constrained_model_gets_a_bound_and_stays_as_it_is(update, tmp_path) -> None:
    """Its labels were replaced by others that violate the constraints."""
    X = np.random.default_rng(0).normal(size=(25, 3))
    model = evomeans.ConstrainedHGMeans(3, size_max="balanced", random_state=0).fit(X)
    before, inertia = model.labels_.copy(), model.inertia_
    plain = evomeans.HGMeans(3, random_state=0).fit(X).certify(X)
    found = model.certify(X, update=update)
    assert (found.status, found.constrained, found.improved) == ("bounded", True, False)
    assert found.lower_bound == pytest.approx(plain.lower_bound, rel=1e-5)
    assert found.upper_bound == pytest.approx(inertia, rel=1e-12)
    assert np.array_equal(found.labels, before)
    assert np.array_equal(model.labels_, before)
    assert model.inertia_ == inertia
    assert "3 clusters, with or without constraints, has an inertia below" in str(found)
    assert found.verify(X) == found.lower_bound
    evomeans.save_certificate(found, tmp_path / "proof.evomeans")
    assert str(evomeans.load_certificate(tmp_path / "proof.evomeans")) == str(found)


def test_constraints_that_the_optimum_satisfies_do_not_keep_it_from_being_proven(X) -> None:
    best = evomeans.HGMeans(3, random_state=0).fit(X)
    together = np.flatnonzero(best.labels_ == 0)[:2]
    model = evomeans.ConstrainedHGMeans(3, random_state=0).fit(X, must_link=[together])
    found = model.certify(X)
    assert found.is_optimal
    assert ": no clustering into 3 clusters, with or without constraints, has" in str(found)


def test_a_clustering_that_pays_penalties_is_not_called_optimal(X) -> None:
    """Its inertia is the lowest there is, and another one may cost less with its penalties."""
    best = evomeans.HGMeans(3, random_state=0).fit(X)
    pair = [np.flatnonzero(best.labels_ == label)[0] for label in (0, 1)]
    model = evomeans.ConstrainedHGMeans(3, penalty=1e-3, random_state=0).fit(X, must_link=[pair])
    assert model.penalty_ > 0
    found = model.certify(X)
    assert found is model.certificate_
    assert (found.status, found.is_optimal) == ("bounded", False)
    assert found.gap <= 1e-6
    assert found.lower_bound <= model.inertia_ + model.penalty_
    assert found.verify(X) == found.lower_bound


def test_a_constrained_model_is_certified_for_the_samples_of_its_fit(X) -> None:
    model = evomeans.ConstrainedHGMeans(3, size_max="balanced", random_state=0).fit(X)
    for other, weights in ((X[:-1], None), (2 * X, None), (X, np.arange(1.0, 29.0))):
        with pytest.raises(ValueError, match="not those of the fit"):
            model.certify(other, weights)


def test_a_certificate_of_a_path_is_that_of_one_of_its_models(X) -> None:
    path = evomeans.HGMeansPath((2, 4), random_state=0).fit(X)
    assert path.at(3).certify(X).is_optimal
