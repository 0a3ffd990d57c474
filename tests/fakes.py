"""Collaborators that do what a test tells them: an engine, a clock and a source of randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evomeans.engines.frame import Frame
from evomeans.engines.protocol import Ability, Engine, Handle, Order, Refinement, require_abilities
from evomeans.typing import Flags, FloatArray


@dataclass
class ScriptedClock:
    """Shows ``now``; time passes only when a test or the scripted engine says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class ScriptedEngine(Engine):
    """Answers the starts it gets with prescribed refinements, and remembers them.

    Parameters
    ----------
    script : iterable of float or Refinement
        The answers in order. A number is the inertia of a refinement that shares neither centres
        nor cluster weights with any other (see :func:`refinement`). Asking for more fails.
    batch : int
        What the search sees as ``batch``.
    n_samples : int
        What the search sees as ``n_samples``.
    abilities : frozenset of Ability
        What the search sees as such. Asking for more fails.
    parts : callable, optional
        Called with the centres of two solutions; its answer is that of ``better_parts``. By default
        they have nothing to offer to each other.
    clock : ScriptedClock, optional
        Moves on by ``seconds`` with every refinement.
    during : dict of int to callable
        Called while the refinement with that number (0, 1, …) is made.
    """

    script: Iterable[float | Refinement]
    batch: int = 1
    n_samples: int = 100
    abilities: frozenset[Ability] = frozenset(Ability)
    parts: Callable[[FloatArray, FloatArray], tuple[Flags, Flags] | None] = lambda *_: None
    clock: ScriptedClock | None = None
    seconds: float = 1.0
    during: Mapping[int, Callable[[], object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.frame = Frame(np.zeros(1), 0)
        self.total_weight = float(self.n_samples)
        self.starts: list[Order] = []
        self.calls: list[int] = []
        self.sampled: list[FloatArray] = []
        self.seeded: list[FloatArray] = []
        self.compared: list[tuple[Handle | None, Handle | None]] = []
        self.answers: list[Refinement] = []
        self._script = iter(self.script)

    def samples_at(self, quantiles: FloatArray) -> FloatArray:
        """One feature, whose value is the quantile itself."""
        self.sampled.append(np.array(quantiles))
        return np.array(quantiles)[:, None]

    def seed(self, quantiles: FloatArray) -> FloatArray:
        """Likewise, but negative."""
        assert Ability.SEEDING in self.abilities
        self.seeded.append(np.array(quantiles))
        return -np.array(quantiles)[:, None]

    def better_parts(
        self,
        first: FloatArray,
        second: FloatArray,
        first_handle: Handle | None = None,
        second_handle: Handle | None = None,
    ) -> tuple[Flags, Flags] | None:
        """As prescribed; the handles are remembered."""
        assert Ability.PARTS in self.abilities
        self.compared.append((first_handle, second_handle))
        return self.parts(first, second)

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        self.calls.append(len(starts))
        return [self._refine(start) for start in starts]

    def _refine(self, start: Order) -> Refinement:
        require_abilities([start], self.abilities, "scripted")
        number = len(self.starts)
        self.starts.append(start)
        if number in self.during:
            self.during[number]()
        if self.clock is not None:
            self.clock.now += self.seconds
        answer = next(self._script, None)
        assert answer is not None, f"refinement {number} was asked for, but is not in the script"
        if not isinstance(answer, Refinement):
            answer = refinement(answer, number, k=len(start.centers))
        self.answers.append(answer)
        return answer

    def assign(self, centers: FloatArray) -> tuple[NDArray[np.int32], float]:
        raise AssertionError("the search does not ask for labels")

    def distances(self, centers: FloatArray) -> FloatArray:
        raise AssertionError("the search does not ask for distances")


def refinement(inertia: float, number: int, *, k: int = 2, weights: ArrayLike | None = None):
    """Refinement with centres ``10·number + 0, 1, …``, weights and a handle of its own."""
    centers = 10.0 * number + np.arange(float(k))[:, None]
    cluster_weights = (
        np.full(k, 1.0 + number / 1000) if weights is None else np.asarray(weights, float)
    )
    return Refinement(centers, float(inertia), cluster_weights, number + 1, f"handle {number}")


def breeding(
    *,
    coins: ArrayLike,
    first: tuple[float, float] = (0.0, 0.0),
    second: tuple[float, float] = (0.0, 0.0),
    step: float = 0.5,
    removed: float = 0.0,
    quantile: float = 0.5,
) -> list[float]:
    """Return the uniform numbers of one offspring in the order in which the search draws them."""
    return [*np.asarray(coins, float).tolist(), *first, *second, step, removed, quantile]


class ScriptedRandom(np.random.Generator):
    """Hands out prescribed uniform numbers, one list per call; everything else is ordinary.

    Parameters
    ----------
    uniforms : iterable of sequences and numbers
        The answers to ``random(size)``; each must have the size that is asked for, and be a number
        where none is. When they are used up, ordinary random numbers follow.
    seed : int
    """

    def __init__(self, uniforms: Iterable[Sequence[float] | float] = (), seed: int = 0) -> None:
        super().__init__(np.random.PCG64(seed))
        self._uniforms = iter(list(uniforms))

    def random(self, size=None, dtype=np.float64, out=None):  # type: ignore[no-untyped-def]
        scripted = next(self._uniforms, None)
        if scripted is None:
            return super().random(size, dtype, out)
        wanted, given = () if size is None else (size,), np.shape(scripted)
        assert given == wanted, f"uniform numbers of shape {wanted} wanted, {given} scripted"
        return scripted if size is None else np.array(scripted, dtype)
