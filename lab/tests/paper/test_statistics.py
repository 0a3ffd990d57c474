import numpy as np
import pytest
from scipy import stats

from lab.paper.statistics import correlation, fit_power_law, rank_correlation, wilcoxon


def test_wilcoxon_is_scipys_on_the_differences():
    rng = np.random.default_rng(0)
    ours, theirs = rng.random(30), rng.random(30) + 0.2
    assert wilcoxon(ours - theirs) == stats.wilcoxon(ours, theirs).pvalue


def test_wilcoxon_of_equal_pairs_shows_no_difference():
    assert wilcoxon([0.0, 0.0]) == 1.0


def test_wilcoxon_of_nothing_is_undefined():
    assert np.isnan(wilcoxon([]))


def test_correlation_of_a_line_is_one_and_of_a_constant_undefined():
    assert correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1.0)
    assert np.isnan(correlation([1, 2, 3], [5, 5, 5]))


def test_rank_correlation_is_spearmans():
    x, y = [3.0, 1.0, 4.0, 1.0, 5.0], [2.0, 7.0, 1.0, 8.0, 2.0]
    assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert np.isnan(rank_correlation(x, [1.0] * 5))


def test_a_power_law_in_two_variables_is_recovered():
    n, d = np.array([10.0, 20, 50, 80, 100]), np.array([2.0, 9, 3, 5, 4])
    law = fit_power_law(3 * n**1.2 * d**0.7, n, d)
    assert law.factor == pytest.approx(3)
    assert law.exponents == pytest.approx((1.2, 0.7))
    assert law.r_squared == pytest.approx(1)


def test_too_few_points_for_a_power_law_are_refused():
    with pytest.raises(ValueError, match="2 points cannot fit a power law in 2 variables"):
        fit_power_law([1.0, 2.0], [1.0, 2.0], [3.0, 4.0])
