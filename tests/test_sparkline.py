"""The picture of a history in a notebook."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from evomeans import HGMeans, History, OffspringRecord
from evomeans.search.history import HIGH, WIDE, line_svg


def history_of(*inertias: float) -> History:
    return History(
        [
            OffspringRecord(i, inertia, min(inertias[: i + 1]), 0.5, 3, i / 4, 5, True, False)
            for i, inertia in enumerate(inertias)
        ]
    )


def line_of(html: str) -> str:
    return ElementTree.fromstring(html).findall("svg/path")[1].get("d")


def test_a_falling_line_from_top_left_to_bottom_right() -> None:
    path = line_of(history_of(4.0, 6.0, 3.0, 2.0, 5.0)._repr_html_())
    assert path.startswith("M1 3.0H")
    assert path.endswith(f"V{HIGH - 3:.1f}H{WIDE - 1}")
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path)]
    assert heights == sorted(heights)
    assert len(heights) == 2


@pytest.mark.parametrize("inertias", [(1.0,), (1.0, 1.0, 2.0), (0.0,), (3.0, 0.0)])
def test_searches_with_little_to_show(inertias) -> None:
    html = history_of(*inertias)._repr_html_()
    assert "nan" not in html
    assert "inf" not in line_of(html)


def test_an_empty_history_says_so() -> None:
    html = HGMeans(2).fit([[0.0], [1.0], [5.0]]).history_._repr_html_()
    assert "History(empty)" in html
    assert "<svg" not in html


def test_a_long_search_has_a_small_picture() -> None:
    """Only improvements are drawn, not each of 20,000 solutions."""
    assert len(line_svg([3.0] * 10_000 + [2.0] * 10_000)) < 1000


def test_the_estimator_keeps_the_view_of_scikit_learn() -> None:
    assert "HGMeans" in HGMeans(3)._repr_html_()
    assert "sk-estimator" in HGMeans(3).fit([[0.0], [1.0], [5.0]])._repr_html_()
