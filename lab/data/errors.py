"""Errors of data sets, and how a program ends with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class DataError(Exception):
    """A data set is not available, or is not what it should be; the text says what to do."""


class MissingDataError(DataError):
    """No copy is available, and none can be downloaded."""


class DownloadError(DataError):
    """A file did not arrive."""


class WrongContentsError(DataError):
    """Something arrived, or lies in a folder, that is not the data set."""


@contextmanager
def exit_on_data_errors() -> Iterator[None]:
    """End a program with the message alone: its user needs no traceback to find a file."""
    try:
        yield
    except DataError as error:
        raise SystemExit(f"error: {error}") from error
