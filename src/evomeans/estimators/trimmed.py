"""TrimmedHGMeans: k-means that leaves the farthest samples out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from evomeans.estimators.parameters import Parameters, shown
from evomeans.estimators.searching import Model
from evomeans.estimators.solution import FinalSolution, Task, encode_centers, lexicographic
from evomeans.search import Individual
from evomeans.search.settings import MODELS
from evomeans.typing import FloatArray


@dataclass(eq=False, repr=False, kw_only=True)
class TrimmedHGMeans(Model):
    """Trimmed k-means: outliers are left out of the objective, with the search of HGMeans.

    The ``n_outliers`` samples that are farthest from their centres are excluded from the objective
    and do not influence the centres [1]_, [2]_. They are not known beforehand: the search
    finds the centres and the samples to leave out together.

    Parameters
    ----------
    n_outliers : int or float, default=0.05
        How many samples to leave out: an int is a number of samples, a float below 1 a share of
        them. With weights, a sample of weight 2 counts like two samples, and one may be left out in
        part.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Cluster means without the outliers, in lexicographic order.

    labels_ : ndarray of shape (n_samples,), dtype int32
        The closest centre of each sample, and -1 for outliers. :meth:`predict` returns the closest
        centre of every sample.

    inertia_ : float
        Sum of the squared distances of all but the outliers to their closest centre, times their
        weights.

    n_outliers_ : float
        The weight that was left out; without weights, the number of samples.

    radius_ : float
        The largest distance of a sample that counts to its centre.

    References
    ----------
    .. [1] Cuesta-Albertos, J. A., Gordaliza, A. and Matrán, C. (1997). "Trimmed k-means: an attempt
       to robustify quantizers". The Annals of Statistics 25, 553-576.
    .. [2] Chawla, S. and Gionis, A. (2013). "k-means--: A unified approach to clustering and
       outlier detection". SIAM International Conference on Data Mining, 189-197.

    Examples
    --------
    >>> import numpy as np
    >>> from evomeans import TrimmedHGMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [500.0]])
    >>> model = TrimmedHGMeans(2, n_outliers=1, random_state=0).fit(X)
    >>> model.labels_
    array([ 0,  0,  0,  1,  1, -1], dtype=int32)
    >>> model.cluster_centers_.ravel(), model.inertia_
    (array([ 1. , 10.5]), 2.5)
    """

    n_outliers: float = 0.05
    n_outliers_: float = field(init=False)
    radius_: float = field(init=False)
    _fitted_numbers: ClassVar[tuple[str, ...]] = ("n_outliers", "radius")
    _predicts_closest: ClassVar[bool] = True

    def _pose(
        self, X: Any, sample_weight: FloatArray | None, parameters: Parameters, **constraints: Any
    ) -> Task:
        self._refuse(X)
        trimmed = check_outliers(self.n_outliers, X.shape[0], sample_weight, parameters.n_clusters)
        from evomeans.engines.trimmed import TrimmedEngine, kernel_calls

        return Task(
            partial(TrimmedEngine, X, sample_weight, trimmed, n_jobs=parameters.n_threads),
            partial(settled, X.dtype),
            X,
            sample_weight,
            kernel_calls=kernel_calls,
            strategy=MODELS,
            identity={"model": "trimmed", "n_outliers": repr(trimmed)},
        )


def check_outliers(
    n_outliers: Any, n_samples: int, sample_weight: FloatArray | None, n_clusters: int
) -> float:
    """Return the weight to leave out."""
    if isinstance(n_outliers, bool) or not isinstance(n_outliers, Real):
        raise TypeError(f"n_outliers must be an int or a float, got {shown(n_outliers)}.")
    total = float(n_samples if sample_weight is None else sample_weight.sum())
    if not isinstance(n_outliers, Integral):
        if not 0.0 <= float(n_outliers) < 1.0:
            raise ValueError(
                f"n_outliers={n_outliers} must be a share of at least 0 and below 1, or an int, "
                "which is a number of samples."
            )
        trimmed = float(n_outliers) * total
        is_whole = sample_weight is None or bool((sample_weight == np.floor(sample_weight)).all())
        # 0.29 * 100 is a little less than 29.
        trimmed = float(np.floor(trimmed * (1.0 + 1e-12))) if is_whole else trimmed
    elif n_outliers < 0:
        raise ValueError(f"n_outliers={n_outliers} must not be negative.")
    else:
        trimmed = float(n_outliers)
    if sample_weight is None and n_samples - trimmed < n_clusters:
        raise ValueError(
            f"n_outliers={n_outliers} leaves {n_samples - trimmed:g} samples of {n_samples}, and "
            f"n_clusters={n_clusters}. Lower one of the two."
        )
    if trimmed >= total:
        raise ValueError(
            f"n_outliers={n_outliers} must be below the total weight of the samples, {total:g}."
        )
    return trimmed


def settled(dtype: Any, engine: Any, best: Individual, is_final: bool) -> FinalSolution:
    """Round and order the centres; label the samples by them, and trim once more."""
    rounded = lexicographic(engine.frame.decode(best.centers).astype(dtype))
    found = engine.trim(encode_centers(engine.frame, rounded))
    labels = found.labels_with_outliers(engine.weights)
    sizes = np.bincount(found.labels, found.kept, len(rounded))
    counted = found.squares[found.kept > 0.0]
    fitted = {
        "n_outliers_": float(engine.trimmed),
        "radius_": float(np.ldexp(np.sqrt(counted.max()), -engine.frame.exponent)),
    }
    inertia = engine.in_data_units(found.objective)
    return FinalSolution(rounded, labels, inertia, int(np.count_nonzero(sizes)), fitted)
