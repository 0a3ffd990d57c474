"""Figures that the text of the paper repeats, or that its tables sum up themselves."""

from collections import Counter
from statistics import fmean

import pytest

from lab.data import DATASETS
from lab.mixtures import SETUPS
from lab.paper.printed import printed, printed_table

# Rows of averages at the end of Tables 2 and 3.
AVERAGES_2 = {
    "K-means": 294.07,
    "K-means x5000": 60.81,
    "K-means++": 10.46,
    "K-means++ x5000": 1.00,
    "GKM": 2.42,
    "SAGA": 4.33,
    "MGKM": 1.71,
    "MS-MGKM": 0.11,
    "HG-means": -0.40,
}
AVERAGES_3 = {
    "K-means": 110088.99,
    "K-means x5000": 24.94,
    "K-means++": 11.96,
    "K-means++ x5000": -0.14,
    "GKM": 0.52,
    "SAGA": 0.37,
    "LMBM-Clust": 1.05,
    "MS-MGKM": 0.51,
    "DCClust": 0.49,
    "MS-DCA": 0.40,
    "DCD-Bundle": 0.59,
    "HG-means": -0.26,
}


@pytest.mark.parametrize(("method", "average"), AVERAGES_2.items())
def test_table_2_has_the_averages_that_it_prints(method, average):
    gaps = [row["gap"] for row in printed_table(2) if row["method"] == method]
    assert len(gaps) == 16
    assert fmean(gaps) == pytest.approx(average, abs=0.011)


@pytest.mark.parametrize(("method", "average"), AVERAGES_3.items())
def test_table_3_has_the_averages_that_it_prints(method, average):
    # Its averages are over the eight data sets that all methods have.
    counts = Counter(row["dataset"] for row in printed_table(3))
    common = {dataset for dataset, count in counts.items() if count == len(AVERAGES_3)}
    gaps = [
        row["gap"]
        for row in printed_table(3)
        if row["method"] == method and row["dataset"] in common
    ]
    assert len(gaps) == 8
    assert fmean(gaps) == pytest.approx(average, abs=0.011)


def test_tables_2_and_3_cover_the_29_data_sets():
    names = {row["dataset"] for number in (2, 3) for row in printed_table(number)}
    assert names == {dataset.name for dataset in DATASETS}


def test_the_fast_setting_is_as_deep_as_the_text_says():
    # It quotes the average over the eight data sets that all methods have.
    common = (
        "d15112",
        "pla85900",
        "eeg_eye_state",
        "shuttle",
        "skin",
        "kegg",
        "road3d",
        "gas_sensor",
    )
    gaps = [row["gap"] for row in printed_table(7) if row["dataset"] in common]
    assert len(gaps) == 8 * 7
    assert fmean(gaps) == pytest.approx(-0.25, abs=0.01)


def test_table_6_averages_to_what_table_3_says():
    large = {dataset.name for dataset in DATASETS if dataset.group == "C"}
    for name in large:
        gaps = [row["gap"] for row in printed_table(6) if row["dataset"] == name]
        assert len(gaps) == 7
        assert fmean(gaps) == pytest.approx(
            printed(3, "gap", dataset=name, method="HG-means"), abs=0.012
        )


def test_table_8_has_the_time_of_all_mixtures_that_is_quoted():
    rows = [row for row in printed_table(8) if row["method"] == "HG-means"]
    assert [(row["m"], row["d"]) for row in rows] == list(SETUPS)
    assert sum(row["seconds"] for row in rows) == pytest.approx(402_567, abs=20)


def test_table_9_has_the_averages_that_the_text_quotes_for_500_dimensions():
    own = [row for row in printed_table(9) if row["d"] == 500 and row["method"] == "HG-means"]
    assert fmean(row["crand"] for row in own) == pytest.approx(0.99, abs=0.005)
    assert fmean(row["ci"] for row in own) == 1.75


def test_a_figure_that_is_not_printed_is_none():
    assert printed(3, "gap", dataset="gisette", method="SAGA") is None


def test_an_unknown_table_is_an_error():
    with pytest.raises(ValueError, match="Table 1"):
        printed_table(1)
