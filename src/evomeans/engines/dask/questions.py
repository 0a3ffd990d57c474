"""What travels between the search and the blocks: questions about solutions, and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

import numpy as np

from evomeans.engines.frame import Frame
from evomeans.engines.protocol import FloatArray
from evomeans.engines.sampling import Drawing

Wanted = Literal["sums", "distances", "draw", "rows", "sample", "census", "on_centers", "members"]
"""What a block is to answer. Sums are added up over blocks, all else is kept apart.

sums: (k, 2, d + 1) integers, the sums of the clusters. distances: the weighted sum of the distances
to the own centres, to a power. draw: the sample at which that sum exceeds a limit. rows: samples at
given positions. sample: samples that are drawn as :mod:`~evomeans.engines.sampling` says, and their
weights. census: the inertia, and how many samples each centre has, and of which weight. on_centers:
whether all samples sit on their centres. members: the first sample of each cluster.
"""


@dataclass(frozen=True, slots=True)
class BlockSampling:
    """How samples are drawn from all blocks.

    ``total_weight`` is that of all blocks, and ``firsts`` has the number of each one's first row.
    """

    drawing: Drawing
    total_weight: float
    firsts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Question:
    """What the blocks are asked about one set of centres, shape (k, d)."""

    wanted: Wanted
    name: int = -1
    """Of the solution: blocks find the labels and bounds again that they had for it."""
    centers: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    parent: int = -1
    """The name of a solution whose centres are mostly the same; −1 for none."""
    gone: int = -1
    """A centre that is nowhere at present; −1 for none."""
    power: int = 2
    """Of distances, 1 or 2."""
    picks: Mapping[int, Any] | None = None
    """For draws and rows: in which blocks, and where in each. Other blocks are not concerned."""

    sampling: BlockSampling | None = None
    """How samples are drawn."""

    def concerns(self, block: int) -> bool:
        """Whether a block has anything to answer."""
        return self.picks is None or block in self.picks


@dataclass(frozen=True, slots=True)
class Ground:
    """What all blocks have in common."""

    token: str
    """Names the data set."""
    frame: Frame
    scales: FloatArray
    limb: float
    """Both of the sums of all samples together, see :mod:`~evomeans.engines.cpu.sums`."""


@dataclass(frozen=True, slots=True)
class Request:
    """Questions that are asked together."""

    ground: Ground
    questions: Sequence[Question]
    serial: int
    """Counts the requests of a search."""
    forget: frozenset[int]
    """Names of solutions that no later question is about."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one or several blocks answer."""

    answers: list[Any]
    """For each question an array to be added up, or a dict of block to value. Empty if no block
    answers."""
    homes: dict[int, tuple[str, bool]]
    """Blocks that answer, the worker of each, and whether it keeps the block."""


def merge_replies(replies: Iterable[Reply]) -> Reply:
    """Put replies together. Sums are integers: their total does not depend on any order."""
    replies = [reply for reply in replies if reply.homes]
    answers = zip(*(reply.answers for reply in replies), strict=True)
    homes = {block: home for reply in replies for block, home in reply.homes.items()}
    return Reply([reduce(_merge, those) for those in answers], homes)


def _merge(one: Any, two: Any) -> Any:
    return one | two if isinstance(one, dict) else one + two
