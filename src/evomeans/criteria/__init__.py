"""Criteria that suggest a number of clusters: a value for each k, and a rule that chooses one."""

from __future__ import annotations

from collections.abc import Mapping

from evomeans.criteria.base import Criterion, Evidence, Verdict
from evomeans.criteria.kinds import (
    BIC,
    Agreement,
    CalinskiHarabasz,
    DaviesBouldin,
    Elbow,
    Gap,
    Hartigan,
    Instability,
    Jump,
    KrzanowskiLai,
    PredictionStrength,
    Silhouette,
    SimplifiedSilhouette,
)

__all__ = [
    "BIC",
    "CRITERIA",
    "DEFAULT_CRITERIA",
    "DEFAULT_SELECT",
    "Agreement",
    "CalinskiHarabasz",
    "Criterion",
    "DaviesBouldin",
    "Elbow",
    "Evidence",
    "Gap",
    "Hartigan",
    "Instability",
    "Jump",
    "KrzanowskiLai",
    "PredictionStrength",
    "Silhouette",
    "SimplifiedSilhouette",
    "Verdict",
    "find_criterion",
]

CRITERIA: Mapping[str, type[Criterion]] = {
    kind.name: kind
    for kind in (
        *(CalinskiHarabasz, BIC, SimplifiedSilhouette, Silhouette, DaviesBouldin, Jump, Hartigan),
        *(KrzanowskiLai, Gap, PredictionStrength, Instability, Agreement, Elbow),
    )
}
"""All criteria, in the order in which they are shown."""

DEFAULT_CRITERIA = (
    *("calinski_harabasz", "bic", "simplified_silhouette", "davies_bouldin"),
    *("jump", "hartigan", "krzanowski_lai", "agreement"),
)
"""Those that cost next to nothing."""

DEFAULT_SELECT = "simplified_silhouette"
"""docs/laboratory/criteria.md has the measurement behind this choice."""


def find_criterion(name: object) -> Criterion:
    """Return the criterion of this name, or the one that was passed in."""
    if isinstance(name, str):
        if name in CRITERIA:
            return CRITERIA[name]()
        raise ValueError(f"criterion {name!r} is unknown; it must be one of {', '.join(CRITERIA)}.")
    if callable(getattr(name, "judge", None)) and isinstance(getattr(name, "name", None), str):
        found: Criterion = name  # type: ignore[assignment]
        return found
    raise TypeError(
        f"a criterion must be one of {', '.join(CRITERIA)}, or an object with name, title and "
        f"judge; got {type(name).__name__}."
    )
