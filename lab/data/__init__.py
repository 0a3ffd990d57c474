"""The data of the paper: which data sets there are, where they come from, and how to load them."""

from __future__ import annotations

from lab.data.errors import (
    DataError,
    DownloadError,
    MissingDataError,
    WrongContentsError,
    exit_on_data_errors,
)
from lab.data.loading import (
    Place,
    available,
    fetch,
    is_available,
    load,
    load_labelled,
    places,
)
from lab.data.records import GROUPS, Dataset
from lab.data.reference import ReferenceRun, reference_runs
from lab.data.registry import DATASETS, PARTIAL, dataset_named

__all__ = [
    "DATASETS",
    "GROUPS",
    "PARTIAL",
    "DataError",
    "Dataset",
    "DownloadError",
    "MissingDataError",
    "Place",
    "ReferenceRun",
    "WrongContentsError",
    "available",
    "dataset_named",
    "exit_on_data_errors",
    "fetch",
    "is_available",
    "load",
    "load_labelled",
    "places",
    "reference_runs",
]
