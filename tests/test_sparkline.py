"""The picture of a history in a notebook."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from evomeans import HGMeans, History, OffspringRecord
from evomeans.search.history import HIGH, WIDE, bars_svg, convergence_html


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
    """A line of text says what was found."""
    html = history_of(4.0, 6.0, 3.0, 2.0, 5.0)._repr_html_()
    assert "4 offspring in 1 s: best inertia 2, 50 % below the first solution" in html
    path = line_of(html)
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
    """The estimator keeps the view of scikit-learn."""
    model = HGMeans(2).fit([[0.0], [1.0], [5.0]])
    html = model.history_._repr_html_()
    assert "No search" in html
    assert "<svg" not in html
    assert "HGMeans" in HGMeans(3)._repr_html_()
    assert "sk-estimator" in model._repr_html_()


def test_a_long_search_has_a_small_picture() -> None:
    """Only improvements are drawn, not each of 20,000 solutions; its text is escaped."""
    html = convergence_html([3.0] * 10_000 + [2.0] * 10_000, "<b>&")
    assert len(html) < 1000
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html


def test_bars_are_as_high_as_their_numbers() -> None:
    picture = ElementTree.fromstring(bars_svg([2, 0, 4], "a <b>"))
    assert picture.get("aria-label") == "a <b>"
    tops = re.findall(r"V([\d.]+)", picture.findall("path")[1].get("d"))
    heights = [HIGH - float(top) for top in tops]
    assert heights == [(HIGH - 4) / 2, 0, HIGH - 4]
    places = [float(x) for x in re.findall(r"M([\d.]+)", picture.findall("path")[1].get("d"))]
    assert 0 < places[0] < places[1] < places[2] < WIDE
    assert bars_svg([], "nothing")
    assert bars_svg([0], "zero")
