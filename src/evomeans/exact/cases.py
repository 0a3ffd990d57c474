"""Proofs by cases: their steps, the check that they hold, and the search for them.

A proof is a list of steps, in the order in which a reader takes them. A step treats one case and

* ends it: its bound is that of the multipliers of the step, or of a step before it ("end");
* fixes what the multipliers of the step justify, and continues ("fix");
* or splits it into two cases: two groups in different clusters, or in the same one ("split").

`relaxation` and `plane_proof` know what a case is, and what multipliers prove about it. The check,
`CasesProof`, trusts nothing else; how the steps were found plays no role.
"""

from __future__ import annotations

import heapq
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from evomeans.exact.points import SMALLEST_INERTIA, WeightedPoints, outward
from evomeans.exact.proofs import InvalidProofError, Proof
from evomeans.typing import Integers

LARGEST_CUTOFF = 1e290
"""Coordinates and weights are small in the units of the points, and so are inertias."""
MOST_BYTES, MOST_DEPTH = 2**30, 64
"""Of the cases that are open at the same time; and how many may be as large as the whole."""
LEAST_IMPROVEMENT = 1e-9
"""Relative; a clustering replaces the known one if it is better by this much."""

Pair = tuple[int, int]


class StepKind(IntEnum):
    """What a step does."""

    END = 0
    FIX = 1
    SPLIT = 2


@dataclass(frozen=True)
class ProofStep:
    """One step of a proof."""

    kind: StepKind
    multipliers: Any = None
    """Of the relaxation; or prices of the groups of the case, in the units of the points, without
    their own scatters. Splits need none, nor does the end of a case that is decided."""
    pair: Pair = (-1, -1)
    """The groups, in the plane points, on which a split is made; the case "apart" comes first."""


@dataclass(frozen=True)
class CasesProof(Proof):
    """A proof that no clustering into k clusters costs less than a bound.

    A case is a part of all clusterings, which knows how many ``n_bytes`` it takes. Subclasses say
    what steps mean, and refuse those that compiled code must not see.
    """

    cutoff: float
    """In the units of the points. Steps that fix only speak of clusterings cheaper than this."""
    steps: tuple[ProofStep, ...]

    @property
    def n_nodes(self) -> int:
        """Cases in the tree."""
        return 1 + 2 * sum(step.kind is StepKind.SPLIT for step in self.steps)

    @abstractmethod
    def whole(self, points: WeightedPoints, k: int) -> Any:
        """Return the case of all clusterings; refuse points that the proof cannot be about."""

    @abstractmethod
    def bound(self, case: Any, multipliers: Any) -> tuple[float, Any]:
        """Return what multipliers prove about a case, and what `fixed` needs to know of it."""

    @abstractmethod
    def fixed(self, case: Any, multipliers: Any, found: Any) -> Any:
        """Return a case without clusterings that are too costly; None if all of them are."""

    @abstractmethod
    def split(self, case: Any, pair: Pair) -> tuple[Any, Any] | None:
        """Return the cases in which a pair is apart and together; None for an impossible pair."""

    @staticmethod
    @abstractmethod
    def end(case: Any, known: float) -> float:
        """Return the bound of a case that is not split, infinity if it has no clustering."""

    def _bound(self, points: WeightedPoints, k: int) -> float:
        # Multiples of a larger cutoff would overflow.
        if not 0 <= self.cutoff <= LARGEST_CUTOFF:
            raise InvalidProofError(f"The proof speaks of the impossible inertia {self.cutoff!r}.")
        # Comparisons with a tiny cutoff might be those of underflow.
        if self.cutoff < SMALLEST_INERTIA:
            return 0.0
        return outward(points, self._least(self.whole(points, k)))

    def _least(self, root: Any) -> float:
        """Return the least bound of all cases, or the cutoff if that is less."""
        # A case that is None has no clustering cheaper than the cutoff.
        open_cases: list[tuple[Any, float]] = [(root, 0.0)]
        lower = self.cutoff
        for step in self.steps:
            if not open_cases:
                raise InvalidProofError("The proof has steps after its last case.")
            case, known = open_cases.pop()
            if step.kind is StepKind.FIX and step.multipliers is None:
                raise InvalidProofError(
                    "A step fixes pairs or groups without prices or multipliers."
                )
            if step.multipliers is not None and case is not None:
                bound, found = self.bound(case, step.multipliers)
                known = max(known, bound)
                if step.kind is StepKind.FIX:
                    case = self.fixed(case, step.multipliers, found)
            if step.kind is StepKind.FIX:
                open_cases.append((case, known))
            elif step.kind is StepKind.SPLIT:
                halves = (None, None) if case is None else self.split(case, step.pair)
                if halves is None:
                    raise InvalidProofError(f"The proof splits on the impossible pair {step.pair}.")
                apart, together = halves
                open_cases += [(together, known), (apart, known)]
                n_bytes = sum(0 if one is None else one.n_bytes for one, _ in open_cases)
                # No search leaves as many cases open.
                if n_bytes > max(MOST_BYTES, MOST_DEPTH * root.n_bytes):
                    raise InvalidProofError(
                        "The proof splits into more cases than memory should hold."
                    )
            elif case is not None:
                lower = min(lower, self.end(case, known))
        if open_cases:
            raise InvalidProofError("The proof ends before its last case.")
        return lower


# ---- the search ----------------------------------------------------------------------------------

Progress = Callable[[float, float, int], object]
"""Called with the lower bound and the upper bound in units of the data, and the nodes so far."""


Result = TypeVar("Result")


def untold(*_: object) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Limits:
    """When to stop: within a relative gap, at the end of the time, or if a person wants it to end.

    A benchmark may have a ``clock`` that counts the seconds of the processor.
    """

    gap: float = 1e-6
    max_time: float = 60.0
    interrupted: Callable[[], bool] = lambda: False
    progress: Progress = untold
    clock: Callable[[], float] = time.monotonic
    start: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.start):
            object.__setattr__(self, "start", self.clock())

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.start

    @property
    def seconds_left(self) -> float:
        """Seconds until ``max_time``."""
        return self.max_time - self.seconds

    def expired(self) -> bool:
        """Whether to end with the best bound so far."""
        return self.interrupted() or self.seconds_left <= 0


def side_by_side(
    pool: Executor | None, function: Callable[..., Result], calls: Iterable[tuple[Any, ...]]
) -> list[Result]:
    """Call a function with each of the arguments, in threads if there are any; in order.

    Threads do not change the result. Functions that run in a thread must not use the threads.
    """
    run = map if pool is None else pool.map
    return list(run(lambda arguments: function(*arguments), calls))


@dataclass
class Node:
    """A case that was worked on."""

    case: Any  # after fixing
    start: Any  # where the work on the cases begins that it is split into
    bound: float  # proven, for the computed costs; at least that of the case it was split from
    steps: list[ProofStep] = field(default_factory=list)
    better: Integers | None = None  # labels of a clustering that is better than the known one
    is_last: bool = False  # cannot be split: once it has the lowest bound, the tree's cannot rise
    Y: Any = None  # the matrix that the relaxation came to
    pair: Pair | None = None
    children: tuple[Node, Node] | None = None


@dataclass(eq=False)
class CaseTree(ABC):
    """A search tree over the clusterings of some points: the lowest bound is split first.

    There are more than k points. The ``cutoff`` is the inertia of the known clustering, in the
    units of the points; one that is too high gives a valid proof, too. The labels become those of
    the best clustering that was found, which the search looks for if it is ``improving``. Cases
    that are worked on side by side may exceed ``max_nodes``.
    """

    proof_type: ClassVar[type[CasesProof]]
    side_by_side = 1  # cases that are split at a time, whatever the number of threads
    share_of_gap = 1.0  # that the search may leave, of the gap that is asked for

    points: WeightedPoints
    k: int
    cutoff: float
    labels: Integers | None
    limits: Limits
    improving: bool = True
    max_nodes: int = 10**9
    pool: Executor | None = None
    n_nodes: int = field(default=0, init=False)
    _better: Integers | None = field(default=None, init=False)

    def prove(self) -> Any:
        """Search until the bound meets the cutoff, time is up, or nothing is left to split."""
        root = None
        while True:
            root = self._grow(root)
            proof = self.proof_type(self.cutoff, tuple(steps_of(root)))
            if self._better is None:
                return proof
            self.labels, self._better = self._better, None
            better = self.points.inertia(self.labels)
            if self.limits.expired() or better < SMALLEST_INERTIA:
                return proof
            # All that was deduced spoke of the former cutoff; a lower one deduces more.
            self.cutoff = better

    @abstractmethod
    def _root(self, former: Node | None) -> tuple[Any, Any]:
        """Return the case of all clusterings, and where to start; there may be a former root."""

    @abstractmethod
    def _worked(self, case: Any, start: Any, inherited: float, is_root: bool = False) -> Node:
        """Search for multipliers, and note the steps that prove what was found."""

    @abstractmethod
    def _undecided(self, node: Node) -> Pair | None:
        """Return the pair on which to split a case; None if there is none."""

    @abstractmethod
    def _halves(self, node: Node, pair: Pair) -> list[tuple[Any, Any]]:
        """Return the cases in which a pair is apart and together, and where to start in them."""

    @property
    def _goal(self) -> float:
        return self.cutoff * (1 - self.share_of_gap * self.limits.gap)

    def _grow(self, former: Node | None) -> Node:
        root = self._worked(*self._root(former), 0.0, is_root=True)
        self._count([root])
        heap = [(root.bound, 0, root)]
        while heap and self._better is None:
            self._tell(heap[0][0])
            nodes: list[Node] = []
            while len(nodes) < self.side_by_side and heap and not heap[0][2].is_last:
                is_full = self.n_nodes >= self.max_nodes
                if heap[0][0] >= self._goal or self.limits.expired() or is_full:
                    break
                nodes.append(heapq.heappop(heap)[2])
            pairs = [pair for pair in map(self._undecided, nodes) if pair is not None]
            if not nodes or len(pairs) < len(nodes):
                break
            first = self.n_nodes
            for number, child in enumerate(self._split(nodes, pairs), first):
                heapq.heappush(heap, (child.bound, number, child))
        return root

    def _split(self, nodes: list[Node], pairs: list[Pair]) -> list[Node]:
        """Split cases, and work on all that come from them side by side."""
        calls = []
        for node, pair in zip(nodes, pairs, strict=True):
            node.pair = pair
            calls += [(*half, node.bound) for half in self._halves(node, pair)]
        children = side_by_side(self.pool, self._worked, calls)
        self._count(children)
        for node, apart, together in zip(nodes, children[::2], children[1::2], strict=True):
            node.children = apart, together
        return children

    def _count(self, nodes: list[Node]) -> None:
        """Count cases, and keep the best of the clusterings that they found."""
        self.n_nodes += len(nodes)
        known = math.inf if self._better is None else self.points.inertia(self._better)
        for node in nodes:
            if node.better is not None and self.points.inertia(node.better) < known:
                self._better, known = node.better, self.points.inertia(node.better)

    def _if_better(self, labels: Integers | None) -> Integers | None:
        """Return labels if they are better than the known clustering."""
        if labels is None or self.points.inertia(labels) >= self.cutoff * (1 - LEAST_IMPROVEMENT):
            return None
        return labels

    def _tell(self, lower: float) -> None:
        points = self.points
        self.limits.progress(
            points.in_data_units(min(max(lower, 0.0), self.cutoff)),
            points.in_data_units(self.cutoff),
            self.n_nodes,
        )


def steps_of(root: Node) -> list[ProofStep]:
    """List the steps of a tree, the case "apart" before the case "together"."""
    steps: list[ProofStep] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.children is None or node.pair is None:
            steps += node.steps
            continue
        # The multipliers at the end of a split case no longer matter, unless its bound is needed.
        steps += node.steps[:-1]
        steps.append(ProofStep(StepKind.SPLIT, node.steps[-1].multipliers, node.pair))
        pending += [node.children[1], node.children[0]]
    return steps
