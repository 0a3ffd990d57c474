"""Criteria by name."""

from __future__ import annotations

from collections.abc import Mapping

from evomeans.criteria.base import Criterion
from evomeans.criteria.free import (
    BIC,
    CalinskiHarabasz,
    DaviesBouldin,
    Elbow,
    Hartigan,
    Jump,
    KrzanowskiLai,
    SimplifiedSilhouette,
)
from evomeans.criteria.populations import Agreement
from evomeans.criteria.reference import Gap
from evomeans.criteria.resampling import Instability, PredictionStrength
from evomeans.criteria.silhouette import Silhouette

CRITERIA: Mapping[str, type[Criterion]] = {
    kind.name: kind
    for kind in (
        CalinskiHarabasz,
        BIC,
        SimplifiedSilhouette,
        Silhouette,
        DaviesBouldin,
        Jump,
        Hartigan,
        KrzanowskiLai,
        Gap,
        PredictionStrength,
        Instability,
        Agreement,
        Elbow,
    )
}
"""All criteria, in the order in which they are shown."""

DEFAULT_CRITERIA = (
    *("calinski_harabasz", "bic", "simplified_silhouette", "davies_bouldin"),
    *("jump", "hartigan", "krzanowski_lai", "agreement"),
)
"""Those that cost next to nothing."""

DEFAULT_SELECT = "simplified_silhouette"
"""docs/guide/choosing-k.md has the measurement that speaks for it."""


def find_criterion(name: object) -> Criterion:
    """Return the criterion of this name, or the one that was passed in."""
    if isinstance(name, str):
        if name in CRITERIA:
            return CRITERIA[name]()
        raise ValueError(f"criterion {name!r} is unknown; it must be one of {', '.join(CRITERIA)}.")
    if isinstance(name, tuple(CRITERIA.values())):
        found: Criterion = name  # type: ignore[assignment]
        return found
    if callable(getattr(name, "judge", None)) and isinstance(getattr(name, "name", None), str):
        own: Criterion = name  # type: ignore[assignment]
        return own
    raise TypeError(
        f"a criterion must be one of {', '.join(CRITERIA)}, or an object with name, title, rule "
        f"and judge; got {type(name).__name__}."
    )
