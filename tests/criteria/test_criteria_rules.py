"""Rules on curves whose answer is plain."""

from __future__ import annotations

import numpy as np
import pytest

from evomeans.criteria import (
    CRITERIA,
    Gap,
    Instability,
    PredictionStrength,
    Silhouette,
    find_criterion,
)
from evomeans.criteria.base import (
    first_at_most,
    first_within_error,
    knee,
    largest,
    last_at_least,
    last_of_a_run,
    smallest,
    within_error_of_first_maximum,
)

KS = np.array([2, 3, 4, 5, 6])
NAN = np.nan


def values(*numbers):
    return np.array(numbers, dtype=float)


def test_extremes_ignore_what_is_not_defined():
    assert largest(KS, values(NAN, 1, 3, 3, 2)) == 4
    assert smallest(KS, values(NAN, 4, 1, 3, NAN)) == 4
    assert largest(KS, values(*[NAN] * 5)) is None
    assert largest(KS, values(1, 2, np.inf, 3, 4)) == 4


def test_limits():
    assert first_at_most(KS, values(50, 12, 10, 3, NAN), 10) == 4
    assert first_at_most(KS, values(50, 12, 11, 30, NAN), 10) is None
    assert last_at_least(KS, values(0.9, 0.2, 0.8, 0.1, NAN), 0.8) == 4
    assert last_at_least(KS, values(0, 0, 0, 0, 0), 0.8) is None
    assert last_of_a_run(KS, values(1, NAN, 1, 0.9, 1), 1.0) == 4
    assert last_of_a_run(KS, values(0.5, 1, 1, 1, 1), 1.0) is None


def test_both_rules_of_the_gap():
    """Tibshirani's looks one k ahead, the other one back from the first maximum."""
    gaps, errors = values(1.0, 2.0, 3.0, 2.9, 3.5), values(0.1, 0.1, 0.1, 0.1, 0.1)
    assert first_within_error(KS, gaps, errors) == 4
    assert within_error_of_first_maximum(KS, gaps, errors) == 4
    near = values(1.0, 2.95, 3.0, 2.0, 1.0)
    assert first_within_error(KS, near, errors) == 3
    assert within_error_of_first_maximum(KS, near, errors) == 3
    rising = values(1, 2, 3, 4, 5)
    assert first_within_error(KS, rising, errors) is None
    assert within_error_of_first_maximum(KS, rising, errors) == 6


def test_knee():
    assert knee(KS, values(100, 40, 10, 8, 6)) == 4
    assert knee(KS[:2], values(2, 1)) is None
    assert knee(KS, values(1, 1, 1, 1, 1)) is None


def test_every_criterion_is_found_by_its_name():
    for name, kind in CRITERIA.items():
        assert find_criterion(name) == kind()
        assert isinstance(kind.rule, str)
        assert kind.title


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gap(n_references=0), "n_references=0"),
        (lambda: Gap(choose_by="best"), "choose_by='best' must be one of tibshirani"),
        (lambda: PredictionStrength(n_divisions=0), "n_divisions=0"),
        (lambda: Instability(n_pairs=0), "n_pairs=0"),
        (lambda: Silhouette(sample_size=1), "sample_size=1"),
        (lambda: find_criterion("elbows"), "criterion 'elbows' is unknown; it must be one of cal"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_other_things_are_no_criteria():
    with pytest.raises(TypeError, match="a criterion must be one of"):
        find_criterion(3)
