"""What users may set of a path, checked and translated; ``parameters.py`` has what is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from evomeans.criteria import Criterion, find_criterion
from evomeans.estimators.parameters import (
    RandomSource,
    check_checkpoint,
    check_engine,
    check_int,
    check_optional_int,
    check_random_source,
    check_real,
    check_strategy,
    check_thread_count,
    shown,
)
from evomeans.path.record import PathObserver, PathPrinter
from evomeans.path.settings import PathSettings

Select = str | Criterion | Callable[[Mapping[str, Any]], int] | None


@dataclass(frozen=True)
class PathParameters:
    """The parameters of HGMeansPath as the fit uses them.

    Parameters
    ----------
    ks : sequence of int
        Ascending. It may be a range that is far too long, until it is compared with the samples.
    criteria : tuple of Criterion
        That of ``select`` among them.
    select : Criterion, callable or None
    settings : PathSettings
    engine : str
    n_threads : int
    random_source : int, Generator or RandomState
    checkpoint : Path, optional
    observers : tuple of callables
    """

    ks: Sequence[int]
    criteria: tuple[Criterion, ...]
    select: Any
    settings: PathSettings
    engine: str
    n_threads: int
    random_source: RandomSource
    checkpoint: Path | None
    observers: tuple[PathObserver, ...]


def check_path_parameters(estimator: Any) -> PathParameters:
    """Check all parameters of HGMeansPath for which no samples are needed."""
    ks = check_k_range(estimator.k_range)
    criteria, select = check_criteria(estimator.criteria, estimator.select, ks)
    return PathParameters(
        ks=ks,
        criteria=criteria,
        select=select,
        settings=check_path_settings(estimator),
        engine=check_engine(estimator.engine),
        n_threads=check_thread_count(estimator.n_jobs),
        random_source=check_random_source(estimator.random_state),
        checkpoint=check_checkpoint(estimator.checkpoint),
        observers=check_path_observers(estimator.observers, estimator.verbose),
    )


def check_path_settings(estimator: Any) -> PathSettings:
    """Turn the estimator's parameters into the settings of the search."""
    patience = check_optional_int("n_iter_no_change", estimator.n_iter_no_change)
    if patience is not None and patience < 1:
        raise ValueError(f"n_iter_no_change={patience} must be at least 1, or None.")
    own: dict[str, Any] = {}
    if patience is not None:
        own = {"patience": patience, "patience_per_cluster": 0.0}
    return PathSettings(
        strategy=check_strategy(estimator.strategy),
        confirmations=check_int("confirmations", estimator.confirmations, at_least=0),
        max_offspring=check_int("max_offspring", estimator.max_offspring, at_least=1),
        max_time=check_real("max_time", estimator.max_time),
        **own,
    )


def check_k_range(k_range: Any, name: str = "k_range") -> Sequence[int]:
    """Return numbers of clusters in ascending order.

    A pair is an inclusive range, an int K stands for 2 to K, and everything else is a collection of
    numbers. What is a range stays one, so that a slip of the finger does not fill the memory.
    """
    if isinstance(k_range, Integral) and not isinstance(k_range, bool):
        k_range = (2, k_range)
        if k_range[1] < 2:
            raise ValueError(f"{name}={k_range[1]} must be at least 2; it stands for 2 to {name}.")
    if isinstance(k_range, str) or not isinstance(k_range, Iterable):
        raise TypeError(
            f"{name} must be a pair (first, last), a list of ints or one int, got {shown(k_range)}."
        )
    is_pair = isinstance(k_range, tuple) and len(k_range) == 2
    if isinstance(k_range, range):
        ks: Sequence[int] = k_range if k_range.step > 0 else k_range[::-1]
    else:
        ks = [check_int(f"every number in {name}", _plain(k)) for k in k_range]
    if is_pair:
        if ks[0] > ks[1]:
            raise ValueError(
                f"{name}=({ks[0]}, {ks[1]}) is empty: the first number must not exceed the last."
            )
        ks = range(ks[0], ks[1] + 1)
    if not ks:
        raise ValueError(f"{name} is empty; give at least one number of clusters, as in (2, 20).")
    if not isinstance(ks, range):
        ks = tuple(sorted(set(ks)))
    if ks[0] < 1:
        raise ValueError(f"{name} has {ks[0]}; every number of clusters must be at least 1.")
    return ks


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def check_criteria(
    criteria: Any, select: Any, ks: Sequence[int]
) -> tuple[tuple[Criterion, ...], Any]:
    """Return the criteria to compute, that of ``select`` among them, and ``select`` itself."""
    if criteria is None:
        criteria = ()
    named = [criteria] if isinstance(criteria, str) or hasattr(criteria, "judge") else criteria
    if not isinstance(named, Iterable):
        raise TypeError(f"criteria must be a list of names or criteria, got {shown(criteria)}.")
    found = [find_criterion(one) for one in named]
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"criteria has {twice!r} twice; leave one of them out.")
    if isinstance(select, str) or hasattr(select, "judge"):
        select = next((one for one in found if one.name == select), None) or find_criterion(select)
        if select.name not in names:
            found.append(select)
        if ks[-1] == 1 and select.name not in DEFINED_AT_ONE:
            raise ValueError(
                f"select={select.name!r} is not defined for k=1, the only number in k_range; "
                f"add larger ones, or choose one of {', '.join(DEFINED_AT_ONE)}."
            )
    elif select is not None and not callable(select):
        raise TypeError(
            "select must be the name of a criterion, a callable that takes results_, or None, got "
            f"{shown(select)}."
        )
    return tuple(found), select


DEFINED_AT_ONE = ("bic", "jump")
"""Criteria that have a value for a single cluster, whatever comes after it."""


def check_path_observers(observers: Any, verbose: object) -> tuple[PathObserver, ...]:
    """Return all that watches the path: the user's observers and the printer of ``verbose``."""
    given = () if observers is None else observers
    if callable(given):
        given = (given,)
    if not isinstance(given, list | tuple) or not all(callable(one) for one in given):
        raise TypeError(
            f"observers must be None, a callable or a list of callables, got {shown(observers)}."
        )
    level = int(verbose) if isinstance(verbose, bool) else check_int("verbose", verbose, at_least=0)
    return (*given, PathPrinter(level)) if level else tuple(given)
