"""Records of data sets: where their files are, how they are cleaned and recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lab.data.cleaning import Cleaner

GROUPS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "A1": (2, 3, 4, 5, 6, 7, 8, 9, 10),
        "A2": (2, 5, 10, 15, 20, 25, 30, 40, 50),
        "B": (2, 10, 20, 30, 40, 50, 60, 80, 100),
        "C": (2, 3, 5, 10, 15, 20, 25),
    }
)
"""The numbers of clusters m that each group is solved for."""


@dataclass(frozen=True)
class Member:
    """A file in an archive.

    Parameters
    ----------
    path : str
        In the archive; one that ends in ``.gz`` or ``.Z`` is decompressed.
    sha256 : str or None
        Of the decompressed file, if it is known.
    """

    path: str
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """Where the files of a data set can be downloaded.

    Parameters
    ----------
    page : str
        Address of the description.
    url : str
        Address of the file.
    members : tuple of Member
        The files in the archive that make up the data set, in order; none if the file is all.
    sha256 : str or None
        Of the file at ``url``, if it is known.
    """

    page: str
    url: str
    members: tuple[Member, ...] = ()
    sha256: str | None = None


@dataclass(frozen=True)
class Dataset:
    """A data set of the paper.

    Parameters
    ----------
    name : str
        In file names and on the command line.
    title : str
        As the paper prints it.
    n, d : int
        Numbers of samples and of features.
    group : {"A1", "A2", "B", "C"}
    cleaning : str
        What is done to the files, in words.
    source : Source or None
        None if nobody offers the files.
    clean : callable or None
        What is done to the files; None if that is not known.
    shipped : bool
        Whether the repository has it in ``lab/data``.
    value_of_2 : float or None
        A published objective for m = 2, where no digest is known.
    missing : str or None
        Why it cannot be made, even with the files available.
    digest : str or None
        SHA-256 of the sorted rows (:func:`lab.data.verification.digest`), if known.
    """

    name: str
    title: str
    n: int
    d: int
    group: str
    cleaning: str
    source: Source | None = None
    clean: Cleaner | None = None
    shipped: bool = False
    value_of_2: float | None = None
    missing: str | None = None
    digest: str | None = None

    @property
    def clusters(self) -> tuple[int, ...]:
        """The numbers of clusters m that the paper solves it for."""
        return GROUPS[self.group]

    @property
    def is_downloadable(self) -> bool:
        """Whether there is something to download, and it is known what to do with it."""
        return self.source is not None and self.clean is not None
