"""What travels between the search and the blocks: questions about solutions, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.frame import Frame
from evomeans.engines.protocol import FloatArray

NO_CENTERS: FloatArray = np.zeros((0, 0))


class Wanted(Enum):
    """What a block is to answer. Sums are added up over blocks, all else is kept apart.

    SUMS: (k, 2, d + 1) integers, the sums of the clusters. DISTANCES: the weighted sum of the
    distances to the own centres, to a power. DRAW: the sample at which that sum exceeds a limit.
    ROWS: samples at given positions. CENSUS: the inertia, and how many samples each centre has.
    ON_CENTERS: whether all samples sit on their centres. MEMBERS: the first sample of each cluster.
    """

    SUMS = "sums"
    DISTANCES = "distances"
    DRAW = "draw"
    ROWS = "rows"
    CENSUS = "census"
    ON_CENTERS = "on centers"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Question:
    """What the blocks are asked about one set of centres.

    Parameters
    ----------
    wanted : Wanted
    name : int
        Of the solution: blocks find the labels and bounds again that they had for it.
    centers : (k, d) array
        Where the centres are now.
    parent : int
        The name of a solution whose centres are mostly the same; −1 for none.
    gone : int
        A centre that is nowhere at present; −1 for none.
    power : {1, 2}
        Of distances.
    picks : mapping of int to sequence
        For DRAW and ROWS: in which blocks, and where in each. Other blocks are not concerned.
    """

    wanted: Wanted
    name: int = -1
    centers: FloatArray = field(default_factory=lambda: NO_CENTERS)
    parent: int = -1
    gone: int = -1
    power: int = 2
    picks: Mapping[int, Any] | None = None

    def concerns(self, block: int) -> bool:
        """Whether a block has anything to answer."""
        return self.picks is None or block in self.picks


@dataclass(frozen=True, slots=True)
class Ground:
    """What all blocks have in common.

    Parameters
    ----------
    token : str
        Names the data set.
    frame : Frame
        The coordinates of the engine.
    scales : (d + 1,) array
    limb : float
        Of the sums of all samples together, see :mod:`~evomeans.engines.cpu.sums`.
    """

    token: str
    frame: Frame
    scales: FloatArray
    limb: float


@dataclass(frozen=True, slots=True)
class Request:
    """Questions that are asked together.

    Parameters
    ----------
    ground : Ground
    questions : tuple of Question
    serial : int
        Counts the requests of a search.
    forget : tuple of int
        Names of solutions that nobody will ask about again.
    """

    ground: Ground
    questions: tuple[Question, ...]
    serial: int
    forget: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Size of the centres, which are most of it."""
        return sum(question.centers.nbytes for question in self.questions)


@dataclass(frozen=True, slots=True)
class Reply:
    """What one or several blocks answer.

    Parameters
    ----------
    answers : list
        One for each question: an array to be added up, or a dict of block to value.
    homes : dict of int to str
        Blocks that answered, and on which worker.
    missing : tuple of int
        Blocks that were asked for where they are not.
    unkept : tuple of int
        Blocks that answered, and for which there was no room after that.
    seconds : float
        Time that the work itself took.
    """

    answers: list[Any]
    homes: dict[int, str]
    missing: tuple[int, ...] = ()
    unkept: tuple[int, ...] = ()
    seconds: float = 0.0


def merge_replies(replies: list[Reply]) -> Reply:
    """Put replies together. Sums are integers: their total does not depend on any order."""
    first, *others = replies
    answers = list(first.answers)
    homes, missing, unkept = dict(first.homes), list(first.missing), list(first.unkept)
    seconds = first.seconds
    for reply in others:
        answers = [merge(one, two) for one, two in zip(answers, reply.answers, strict=True)]
        homes |= reply.homes
        missing += reply.missing
        unkept += reply.unkept
        seconds += reply.seconds
    return Reply(answers, homes, tuple(missing), tuple(unkept), seconds)


def merge(one: Any, two: Any) -> Any:
    """Put two answers to the same question together."""
    if isinstance(one, dict):
        return one | two
    total: NDArray[np.int64] = one + two
    return total


def no_answer(question: Question) -> Any:
    """Return what leaves the answers of others as they are."""
    if question.wanted is not Wanted.SUMS:
        return {}
    k, d = question.centers.shape
    return np.zeros((k, 2, d + 1), np.int64)
