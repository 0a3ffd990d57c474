"""ExactKMeans: search, prove, and split cases until both meet or time is up."""

from __future__ import annotations

import time
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from evomeans.docstrings import described_like
from evomeans.estimators.certifying import check_limits, check_method, dense_samples
from evomeans.estimators.fitted import FittedCenters
from evomeans.estimators.hgmeans import HGMeans
from evomeans.estimators.validation import features_of
from evomeans.search import History

if TYPE_CHECKING:
    from evomeans.exact.certificate import Certificate


@dataclass(eq=False, repr=False)
class ExactKMeans(FittedCenters):
    """K-means clustering with a proof of optimality, or a bound on its distance from the optimum.

    :class:`HGMeans` finds a clustering, which is nearly always optimal already. Then a lower bound
    for all clusterings is raised, and the problem is split into cases, until the bound meets the
    inertia or time is up. A better clustering found along the way replaces the first one.

    Parameters
    ----------
    max_time : float, default=300
        Stop after this many seconds, with the best clustering and the best bound so far. The search
        gets half of it at most.

    gap : float, default=1e-6
        The proof is done when the bound is within this share of the inertia. The clustering counts
        as optimal when it is within one millionth.

    method : {"auto", "direct", "separation", "relaxation", "plane", "parts"}, default="auto"
        How to prove it; see :func:`evomeans.certify`.

    engine : {"auto", "cpu", "reference"}, default="auto"
        What runs the search; see :class:`HGMeans`.

    n_jobs : int, default=None
        Threads of the search, and parts that are proven at a time.

    random_state : int, RandomState, Generator or None, default=None
        An int makes the search reproducible.

    verbose : int, default=0
        1 prints a line now and then.

    Attributes
    ----------
    certificate_ : Certificate
        What was proven; ``print`` it for a sentence.

    lower_bound_ : float
        No clustering into ``n_clusters`` clusters has a lower inertia.

    gap_ : float
        Upper bound on the relative gap, (inertia − lower bound) / inertia.

    stop_reason_ : str
        "proven_optimal", or what ended the proof before: "gap_reached" if ``gap`` is larger than
        one millionth, "max_time", "interrupted", or "exhausted" if the method cannot do better.
        ``gap_`` is what is left then.

    n_iter_ : int
        Offspring of the search.

    history_ : History
        One record for each solution of the search.

    See Also
    --------
    HGMeans : The search without the proof, for data of any size.

    Notes
    -----
    Up to 150 samples take seconds, 350 samples up to some minutes; more samples, or more than ten
    clusters, often leave a gap. Well-separated clusters are proven for any number of samples, and a
    single column is solved exactly.

    Examples
    --------
    >>> from evomeans import ExactKMeans
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> model = ExactKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.inertia_, str(model.stop_reason_)
    (16.0, 'proven_optimal')
    """

    n_clusters: int = 8
    _: KW_ONLY
    max_time: float = 300.0
    gap: float = 1e-6
    method: str = "auto"
    engine: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    n_iter_: int = field(init=False)
    history_: History = field(init=False)
    stop_reason_: str = field(init=False)
    lower_bound_: float = field(init=False)
    gap_: float = field(init=False)

    @described_like(FittedCenters.fit)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of ``X`` and prove that they are optimal."""
        start = time.monotonic()
        seconds, gap = check_limits(self.max_time, self.gap)
        check_method(self.method)
        with warnings.catch_warnings():
            # It is for the proof to say what is left, and in the time that the user gave.
            warnings.filterwarnings("ignore", "max_time=.* before the first offspring")
            search = HGMeans(
                self.n_clusters,
                max_time=seconds / 2,
                engine=self.engine,
                n_jobs=self.n_jobs,
                random_state=self.random_state,
                verbose=self.verbose,
            ).fit(X, sample_weight=sample_weight)
        dense_samples(X)
        self._keep_features(features_of(search), search._frame)
        for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_", "history_"):
            setattr(self, name, getattr(search, name))
        certificate = self._proven(X, sample_weight, seconds - (time.monotonic() - start), gap)
        self.lower_bound_, self.gap_ = certificate.lower_bound, certificate.gap
        self.stop_reason_ = certificate.stop_reason
        return self

    def _proven(self, X: Any, sample_weight: Any, seconds: float, gap: float) -> Certificate:
        """Prove as much as possible; where that would be next to nothing, the fit is not lost."""
        from evomeans.exact.parts import UselessError

        options: dict[str, Any] = {"gap": gap, "n_jobs": self.n_jobs, "verbose": self.verbose}
        options["max_time"] = max(seconds, 0.001)
        try:
            return self.certify(X, sample_weight, method=self.method, update=True, **options)
        except UselessError as error:
            warnings.warn(f"{error} The clustering is kept.", UserWarning, stacklevel=3)
            return self.certify(X, sample_weight, method="separation", **options)
