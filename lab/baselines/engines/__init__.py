"""The engines on which the baselines run: those of the package, and what only baselines ask."""

from __future__ import annotations

from typing import Any

from evomeans.typing import FloatArray
from lab.baselines.engine import ENGINES, BaselineEngine


def create_engine(
    name: str, X: Any, sample_weight: FloatArray | None, **options: Any
) -> BaselineEngine:
    """Build an engine over validated samples, see :func:`evomeans.engines.create_engine`.

    Parameters
    ----------
    name : {"auto", "cpu", "reference"}
    X, sample_weight, **options
        As there.
    """
    if name not in ENGINES:
        raise ValueError(f"engine={name!r} must be one of {', '.join(ENGINES)}.")
    if name == "reference":
        from lab.baselines.engines.reference import BaselineReferenceEngine

        options = {key: options[key] for key in options.keys() & {"frame"}}
        return BaselineReferenceEngine(X, sample_weight, **options)
    from lab.baselines.engines.cpu import BaselineCpuEngine

    return BaselineCpuEngine(X, sample_weight, **options)
