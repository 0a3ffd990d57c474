"""Small rules that every engine follows. Plain scalar Python: the CPU kernels compile these too."""

from __future__ import annotations

GOLDEN_RATIO = 0.6180339887498949

# Lloyd's iterations cannot cycle in exact arithmetic. Rounding could make two labels change places
# for ever; nothing real ever took a tenth of this.
MAX_ITERATIONS = 20_000

# Mean squared distance, per feature and in the frame, of samples that equal their centre up to the
# rounding of a mean.
ROUNDING = 4e-32
# Repairs of one start, per cluster. A repair that does its job is not repeated; the limit only
# matters for samples so close to each other that rounding puts them into one place.
MAX_REPAIRS = 4


def split_mixture(alpha: float, quantile: float) -> tuple[bool, float]:
    """Decide which part of the mixture (1−α)·wᵢ/Σw + α·wᵢδᵢ/Σwδ a uniform number falls into.

    Drawing the part first and the sample then is the same distribution as drawing from the sum,
    but the first part needs no distances.

    Returns
    -------
    by_distance : bool
        Whether the sample is to be drawn by wᵢδᵢ instead of wᵢ.
    quantile : float
        The uniform number in [0, 1) left for that draw.
    """
    uniform_part = 1.0 - alpha
    if quantile < uniform_part:
        return False, quantile / uniform_part
    return True, (quantile - uniform_part) / alpha


def repair_draw(alpha: float, quantile: float, repair: int) -> tuple[float, float]:
    """Return α and the uniform number for the ``repair``-th (1, 2, …) empty cluster of a start.

    The uniform numbers advance by the golden ratio: each is uniform if the first is, and clusters
    repaired together land apart. The first repair draws from the mixture as the paper says; later
    ones only by distance, which surely fills the cluster, so that repairs come to an end.
    """
    return (alpha if repair == 1 else 1.0), (quantile + repair * GOLDEN_RATIO) % 1.0


def is_rounding(inertia: float, total_weight: float, n_features: int) -> bool:
    """Whether every sample sits on a centre already, and the inertia is but rounding.

    Then an empty cluster cannot be helped: there are fewer distinct samples than clusters.
    """
    return inertia <= ROUNDING * n_features * total_weight
