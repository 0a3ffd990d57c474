"""The list of the paper's data sets."""

from __future__ import annotations

import dataclasses
import re

import pytest

from lab.data import DATASETS, GROUPS, PARTIAL, MissingDataError, dataset_named
from lab.data.records import Source
from lab.data.registry import is_listed

# Table 1 of the paper: title, n, d and group.
TABLE_1 = """
German Towns 59 2 A1
Bavaria Postal 1 89 3 A1
Bavaria Postal 2 89 4 A1
Fisher's Iris Plant 150 4 A1
Liver Disorders 345 6 A2
Heart Disease 297 13 A2
Breast Cancer 683 9 A2
Pima Indians Diabetes 768 8 A2
Congressional Voting 435 16 A2
Ionosphere 351 34 A2
TSPLib1060 1060 2 B
TSPLib3038 3038 2 B
Image Segmentation 2310 19 B
Page Blocks 5473 10 B
Pendigit 10992 16 B
Letters 20000 16 B
D15112 15112 2 C
Pla85900 85900 2 C
EEG Eye State 14980 14 C
Shuttle Control 58000 9 C
Skin Segmentation 245057 3 C
KEGG Metabolic Relation 53413 20 C
3D Road Network 434874 3 C
Gas Sensor 13910 128 C
Online News Popularity 39644 58 C
Sensorless Drive Diagnosis 58509 48 C
Isolet 7797 617 C
MiniBooNE 130064 50 C
Gisette 13500 5000 C
"""
WITHOUT_DIGEST = {
    "kegg",
    "road3d",
    "gas_sensor",
    "online_news",
    "sensorless",
    "isolet",
    "miniboone",
    "gisette",
}


def test_it_is_table_1_of_the_paper():
    """29 data sets in its order, and 235 problems (section 4.3)."""
    rows = [f"{d.title} {d.n} {d.d} {d.group}" for d in DATASETS]
    assert rows == TABLE_1.strip().splitlines()
    assert sum(len(d.clusters) for d in DATASETS) == 235
    assert {d.group for d in DATASETS} == set(GROUPS)
    assert len({d.name for d in DATASETS}) == 29


def test_each_can_be_recognised():
    """By a digest, or else by what is published of it; digests are of different data."""
    assert {d.name for d in DATASETS if d.digest is None} == WITHOUT_DIGEST
    digests = [d.digest for d in DATASETS if d.digest]
    assert len(set(digests)) == len(digests) == 21
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    unchecked = {d.name for d in DATASETS if d.digest is None and d.value_of_2 is None}
    assert unchecked == {"kegg", "miniboone", "gisette"}


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda d: d.name)
def test_each_comes_from_somewhere(dataset):
    """With an address and a cleaner, or a reason why not; archives with names of files."""
    if dataset.name == "iris":
        assert dataset.source is None
        return
    assert isinstance(dataset.source, Source)
    assert dataset.source.url.startswith("https://")
    assert dataset.source.page.startswith("https://")
    assert bool(dataset.source.members) == dataset.source.url.endswith(".zip")
    assert (dataset.clean is None) == (dataset.missing is not None)
    assert dataset.is_downloadable == (dataset.name != "kegg")
    assert dataset.cleaning
    for known in [dataset.source.sha256, *(m.sha256 for m in dataset.source.members)]:
        assert known is None or re.fullmatch("[0-9a-f]{64}", known)


def test_records_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DATASETS[0].n = 60
    with pytest.raises(TypeError):
        GROUPS["A1"] = (2,)


def test_lookup():
    """Partial copies are no data sets of the paper; unknown names get the list."""
    assert dataset_named("iris").title == "Fisher's Iris Plant"
    assert is_listed("iris")
    assert PARTIAL
    for name in PARTIAL:
        assert not is_listed(name)
        with pytest.raises(MissingDataError, match=f"{name} is an incomplete or altered copy"):
            dataset_named(name)
    with pytest.raises(MissingDataError, match=r"no data set 'irs'; those of .* german_towns, "):
        dataset_named("irs")
