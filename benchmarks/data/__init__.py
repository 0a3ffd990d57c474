"""The data of the paper: which data sets there are, where they come from, and how to load them."""

from __future__ import annotations

from benchmarks.data.errors import (
    DataError,
    DownloadError,
    MissingDataError,
    WrongContentsError,
    exit_on_data_errors,
)
from benchmarks.data.loading import (
    Place,
    available,
    fetch,
    is_available,
    load,
    load_labelled,
    places,
)
from benchmarks.data.records import GROUPS, Dataset
from benchmarks.data.reference import ReferenceRun, reference_runs
from benchmarks.data.registry import DATASETS, PARTIAL, dataset_named

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
