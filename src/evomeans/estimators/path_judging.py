"""What the criteria of a path say of its solutions, and which number of clusters is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evomeans.criteria import Evidence
from evomeans.engines import Engine
from evomeans.engines.protocol import FloatArray
from evomeans.estimators.parameters import check_int
from evomeans.estimators.path_parameters import PathParameters
from evomeans.estimators.path_samples import samples_of
from evomeans.estimators.path_solving import PathInterruptedError, search_others
from evomeans.estimators.solution import Solution
from evomeans.path.state import PathState
from evomeans.search.interrupts import DeferredInterrupt


def collect_evidence(
    parameters: PathParameters,
    engine: Engine,
    X: Any,
    sample_weight: FloatArray | None,
    state: PathState,
    solutions: Mapping[int, Solution],
    interrupt: DeferredInterrupt,
) -> Evidence:
    """Gather what criteria may look at."""
    ks = sorted(solutions)
    entries = {k: state.entries[k] for k in ks}

    def search(others: Any, weights: FloatArray | None, wanted: Any, number: int) -> Any:
        entropy = [*state.entropy, 1, number, others.shape[0]]
        return search_others(
            others,
            weights,
            wanted,
            entropy,
            parameters.engine,
            parameters.n_threads,
            parameters.settings,
            interrupt,
        )

    return Evidence(
        k_values=np.array(ks),
        inertias=np.array([solutions[k].inertia for k in ks]),
        centers={k: solutions[k].centers for k in ks},
        labels=lambda k: solutions[k].labels,
        cluster_weights={k: entries[k].best.cluster_weights for k in ks},
        n_samples=engine.total_weight,
        n_features=X.shape[1],
        samples=samples_of(X, sample_weight),
        search=search,
        populations={
            k: [one[0].centers for one in (entry.up, entry.down) if one]
            for k, entry in entries.items()
        },
        seed=state.entropy[0],
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
    choice = check_int("the value that select returns", _plain(select(results)))
    if choice not in known:
        raise ValueError(
            f"select returned k={choice}, which is not on the path: it has k from {known[0]} to "
            f"{known[-1]}."
        )
    return choice


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value
