"""The criteria of a path: the evidence they read, and the k that is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from evomeans.criteria import Evidence
from evomeans.criteria.base import Budget
from evomeans.engines import Engine, is_dask
from evomeans.estimators.parameters import check_int
from evomeans.estimators.path_solving import PathInterruptedError, PathParameters, PathSearch
from evomeans.estimators.solution import FinalSolution
from evomeans.metrics.sums import ClusterSums, checked_weights, cluster_sums
from evomeans.path.state import PathState
from evomeans.typing import FloatArray

# Makes the samples that criteria are confined to differ from all that is drawn elsewhere.
SAMPLING = 3


@dataclass(frozen=True)
class InMemory:
    """Samples in memory, dense or sparse."""

    X: Any
    sample_weight: FloatArray | None

    def sums(self, centers: Mapping[int, FloatArray], budget: Budget) -> dict[int, ClusterSums]:
        """Sum up over the samples of each cluster, or over as many of them as there is time for."""
        weights = checked_weights(self.sample_weight, self.X.shape[0])
        counted = np.flatnonzero(weights)

        def of_some(n_samples: int) -> dict[int, ClusterSums]:
            X, own = self.X, weights
            if n_samples < len(counted):
                rng = np.random.default_rng([SAMPLING, n_samples])
                rows = counted[np.sort(rng.choice(len(counted), n_samples, replace=False))]
                X, own = X[rows], weights[rows]
            return {
                k: cluster_sums(X, np.asarray(one, np.float64), own) for k, one in centers.items()
            }

        return of_some(budget.affords(of_some, len(counted)))

    def in_memory(self, purpose: str) -> tuple[Any, FloatArray | None]:
        """Return them."""
        return self.X, self.sample_weight


@dataclass(frozen=True)
class InDask:
    """Samples that stay with Dask; sums are made block by block."""

    X: Any
    sample_weight: Any

    def sums(self, centers: Mapping[int, FloatArray], budget: Budget) -> dict[int, ClusterSums]:
        """Sum up over the samples of each cluster, each block where it is; all, in any case."""
        return {k: self._sums_of(one) for k, one in centers.items()}

    def _sums_of(self, centers: FloatArray) -> ClusterSums:
        import dask

        places = np.asarray(centers, np.float64)
        blocks = self.X.to_delayed().ravel()
        weights = [None] * len(blocks)
        if self.sample_weight is not None:
            weights = self.sample_weight.to_delayed().ravel()
        parts = [
            dask.delayed(_block_sums)(block, places, own)
            for block, own in zip(blocks, weights, strict=True)
        ]
        total: ClusterSums = reduce(add, dask.compute(*parts))
        return total

    def in_memory(self, purpose: str) -> tuple[Any, FloatArray | None]:
        """Say that there is no such thing."""
        raise ValueError(
            f"{purpose} needs the samples in memory, and X is a Dask collection. Leave this "
            "criterion out, or pass X.compute()."
        )


def _block_sums(block: Any, centers: FloatArray, weights: FloatArray | None) -> ClusterSums:
    own = np.ones(len(block)) if weights is None else np.asarray(weights, np.float64)
    return cluster_sums(np.asarray(block), centers, own)


def samples_of(X: Any, sample_weight: Any) -> InMemory | InDask:
    """Return samples for criteria."""
    return InDask(X, sample_weight) if is_dask(X) else InMemory(X, sample_weight)


def collect_evidence(
    search: PathSearch,
    engine: Engine,
    state: PathState,
    solutions: Mapping[int, FinalSolution],
    deadline: float | None,
) -> Evidence:
    """Gather what criteria may look at."""
    ks = sorted(solutions)
    entries = {k: state.entries[k] for k in ks}

    def search_others(X: Any, weights: FloatArray | None, wanted: Any, number: int) -> Any:
        return search.of_others(X, weights, wanted, [*state.entropy, 1, number, X.shape[0]])

    return Evidence(
        k_values=np.array(ks),
        inertias=np.array([solutions[k].inertia for k in ks]),
        centers={k: solutions[k].centers for k in ks},
        labels=lambda k: solutions[k].labels,
        cluster_weights={k: entries[k].best.cluster_weights for k in ks},
        n_samples=engine.total_weight,
        n_features=search.X.shape[1],
        samples=samples_of(search.X, search.sample_weight),
        search=search_others,
        populations={
            k: [one[0].centers for one in (entry.up, entry.down) if one]
            for k, entry in entries.items()
        },
        seed=state.entropy[0],
        budget=Budget(deadline),
    )


def judge_all(
    parameters: PathParameters, evidence: Evidence, state: PathState, known: list[int]
) -> tuple[dict[str, Any], dict[str, int | None], list[str]]:
    """Return results and suggestions, and the criteria that were interrupted."""
    places = np.searchsorted(evidence.k_values, known)
    entries = [state.entries[k] for k in known]
    tolerance = parameters.settings.tolerance
    results: dict[str, Any] = {
        "k": np.array(known),
        "inertia": evidence.inertias[places],
        "n_rediscoveries": np.array(
            [one.n_agreeing(tolerance) - 1 if one.up else 0 for one in entries]
        ),
        "n_solutions": np.array([one.n_solutions for one in entries]),
    }
    suggestions: dict[str, int | None] = {}
    left_out: list[str] = []
    for criterion in parameters.criteria:
        try:
            verdict = criterion.judge(evidence, np.array(known))
        except PathInterruptedError:
            left_out.append(criterion.name)
            continue
        results[criterion.name] = verdict.values[places]
        results |= {name: values[places] for name, values in verdict.extra.items()}
        suggestions[criterion.name] = verdict.choice
    return results, suggestions, left_out


def choose_k(
    parameters: PathParameters,
    results: Mapping[str, Any],
    suggestions: Mapping[str, int | None],
    known: list[int],
) -> int | None:
    """Return the number of clusters that ``select`` chooses."""
    select = parameters.select
    if select is None:
        return None
    if hasattr(select, "judge"):
        return suggestions.get(select.name)
    choice = check_int("the value that select returns", select(results))
    if choice not in known:
        raise ValueError(
            f"select returned k={choice}, which is not on the path: it has k from {known[0]} to "
            f"{known[-1]}."
        )
    return choice
