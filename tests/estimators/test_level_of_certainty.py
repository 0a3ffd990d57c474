"""``certainty_`` of fitted models, and the level of certainty at which a search ends."""

from __future__ import annotations

import dataclasses
import math
from unittest import mock

import numpy as np
import pytest
from sklearn.datasets import load_iris

import evomeans
from evomeans import HGMeans

X = load_iris().data


def fitted(k=10, **parameters) -> HGMeans:
    return HGMeans(k, **{"random_state": 0, **parameters}).fit(X)


def test_a_search_ends_at_the_level_that_was_asked_for() -> None:
    model = fitted()
    assert model.stop_reason_ == "agreement"
    assert 0.95 <= model.certainty_ < 1.0


def test_a_higher_level_takes_longer_and_changes_nothing_before() -> None:
    short, long = fitted(certainty=0.0), fitted(certainty=0.99)
    assert short.n_rediscoveries_ < long.n_rediscoveries_
    assert short.certainty_ < 0.99 <= long.certainty_
    made = len(short.history_)
    ours, theirs = (model.history_.column("inertia") for model in (short, long))
    assert len(theirs) > made
    np.testing.assert_array_equal(ours, theirs[:made])


def test_a_level_that_is_never_reached_does_not_keep_a_search_from_ending() -> None:
    model = fitted(2, certainty=1.0)
    assert model.stop_reason_ == "agreement"
    assert model.n_rediscoveries_ >= 49


def test_a_search_that_was_cut_short_is_less_certain() -> None:
    assert fitted(30, max_offspring=20).certainty_ < fitted(30).certainty_
    assert 0.0 < HGMeans.fast(30, random_state=0).fit(X).certainty_ < 1.0


def test_what_is_proven_is_certain() -> None:
    assert HGMeans(3).fit(X[:, :1]).certainty_ == 1.0
    model = HGMeans(3, random_state=0).fit(X)
    assert model.certainty_ < 1.0
    assert model.certify(X).is_optimal
    assert model.certainty_ == 1.0


def test_a_proof_that_another_clustering_is_better_says_so() -> None:
    """It was called certain, because the better clustering was proven."""
    model = HGMeans(3, max_offspring=1, random_state=0).fit(X)
    model._take(X, None, np.arange(len(X)) % 3)
    worse = model.inertia_ = 2.0 * model.inertia_
    certificate = HGMeans(3, random_state=0).fit(X).certify(X)
    better = dataclasses.replace(certificate, improved=True)
    with mock.patch("evomeans.estimators.certifying.certify", return_value=better):
        assert model.certify(X, update=False).is_optimal
        assert (model.inertia_, model.certainty_) == (worse, 0.0)
        model.certify(X, update=True)
    assert model.certainty_ == 1.0
    assert model.inertia_ == pytest.approx(certificate.upper_bound)


def test_a_checkpoint_continues_to_a_higher_level(tmp_path) -> None:
    path = tmp_path / "search.checkpoint"
    first = fitted(certainty=0.0, checkpoint=path)
    again = fitted(certainty=0.99, checkpoint=path)
    assert again.n_iter_ >= first.n_iter_
    assert again.certainty_ == fitted(certainty=0.99).certainty_ >= 0.99


@pytest.mark.parametrize("strategy", ["deep", "paper"])
def test_a_file_keeps_it(tmp_path, strategy) -> None:
    model = fitted(certainty=0.9, strategy=strategy)
    model.save(tmp_path / "model.evomeans")
    loaded = evomeans.load(tmp_path / "model.evomeans")
    np.testing.assert_equal(loaded.certainty_, model.certainty_)
    assert math.isnan(loaded.certainty_) == (strategy == "paper")
    assert loaded.certainty == 0.9
