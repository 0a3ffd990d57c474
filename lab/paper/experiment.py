"""Experiments: a plan of tasks, the rows that a task gives, and a page about the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

Row = dict[str, Any]


class Size(StrEnum):
    """How much of an experiment is run."""

    SMOKE = "smoke"
    SMALL = "small"
    PAPER = "paper"


class Task(Protocol):
    """One piece of work for one process. It is sent to that process, so it must be picklable."""

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from all other tasks of the experiment."""
        ...

    def run(self) -> list[Row]:
        """Do the work, and return a row of results for each run it contains."""
        ...


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Parameters
    ----------
    name : str
        Of its files and on the command line.
    title : str
        One line on what it shows.
    plan : callable
        From the size to all tasks. Tasks on data that is not available are left out and named.
    render : callable
        From all rows, the size and the folder to the text of the page in Markdown; figures go into
        the folder.
    """

    name: str
    title: str
    plan: Callable[[Size], Plan]
    render: Callable[[Sequence[Row], Size, Path], str]


@dataclass(frozen=True)
class Plan:
    """What is to be run, and what cannot be.

    Parameters
    ----------
    tasks : sequence of Task
        In the order in which they are begun; the longest first keeps all processes busy.
    missing : sequence of str
        Data sets of the paper that are not available.
    """

    tasks: Sequence[Task]
    missing: Sequence[str] = ()
