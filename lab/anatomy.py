"""A search with clocks in it: where the time of an offspring goes.

The loop itself is the library's. Its engine is wrapped to time ``refine``, and the breeding step to
time selection and crossover; what is left of an offspring's time is bookkeeping.

Relocation happens inside the kernel, out of reach of a clock in Python. So every tenth offspring is
refined twice more: once as it was, and once from the same parent with the relocated centre already
standing on the sample that the kernel draws for it. Both end in the same solution, and what the
first takes longer is the relocation: removing the centre, measuring the distances, the draw, and
the placing. Clocks stand still meanwhile, and distances computed then are not counted.

Clocks and probes make an offspring some 15 µs slower, which shows where it takes no more than a
hundred or so: :func:`bare_seconds` is the time of the same search without them.
"""

from __future__ import annotations

import gc
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from evomeans.engines import Order, Refinement, create_engine
from evomeans.engines.protocol import Way
from evomeans.engines.rules import split_mixture
from evomeans.engines.sampling import roulette
from evomeans.search import OffspringRecord, SearchResult, SearchSettings, genetic, solve
from evomeans.search.search import Search
from lab.measure import Samples, timed

# One in this many offspring is probed for the relocation.
PROBED = 10


@dataclass(frozen=True)
class Anatomy:
    """Where the CPU seconds of a search went.

    Parameters
    ----------
    building : float
        Making the engine.
    founding : float
        The initial population, and the offspring that were skipped.
    founder : float
        One K-means run of the initial population.
    crossover, relocation, kmeans, bookkeeping : float
        Of the offspring.
    offspring : int
        That were made, without skipped ones.
    iterations : float
        Of K-means, per offspring.
    avoided : float
        Share of the n·m distances per iteration that offspring did without.
    inertia : float
        Of the best solution.
    """

    building: float
    founding: float
    founder: float
    crossover: float
    relocation: float
    kmeans: float
    bookkeeping: float
    offspring: int
    iterations: float
    avoided: float
    inertia: float

    @property
    def whole(self) -> float:
        """CPU seconds of everything."""
        return self.building + self.founding + self.each * self.offspring

    @property
    def each(self) -> float:
        """CPU seconds of an offspring."""
        parts = self.crossover + self.relocation + self.kmeans + self.bookkeeping
        return parts / self.offspring


class Stopwatch:
    """CPU seconds, less those during which the watch stood still."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._stood_still = 0.0

    def now(self) -> float:
        """CPU seconds so far."""
        return time.process_time() - self._stood_still

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Leave out what is done in here."""
        began = time.process_time()
        yield
        self._stood_still += time.process_time() - began

    def on(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a clock around it that adds to ``spent[name]``."""

        def watched(*arguments: Any) -> Any:
            began = self.now()
            outcome = function(*arguments)
            self.spent[name] += self.now() - began
            return outcome

        return watched


class WatchedEngine:
    """An engine that notes how long its refinements take, and probes some for the relocation.

    Parameters
    ----------
    engine : CpuEngine
        Does the work.
    watch : Stopwatch
        Times ``founder`` and ``refine``; stands still during probes.
    probe : bool
        Whether to probe at all.

    Attributes
    ----------
    relocating, placed : float
        CPU seconds of the probed refinements, with and without the relocation.
    compared_by_probes : int
        Distances that probes computed.
    """

    def __init__(self, engine: Any, watch: Stopwatch, probe: bool = True) -> None:
        self.engine = engine
        self.watch = watch
        self.probe = probe
        self.relocating = self.placed = 0.0
        self.compared_by_probes = 0
        self._found = watch.on("founder", engine.refine)
        self._refine = watch.on("refine", engine.refine)
        self._refined = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def offspring(self, order: Order, ways: Sequence[Way]) -> None:
        """Let offspring be made step by step, so that each step can be timed."""

    def refine(self, starts: Sequence[Order]) -> list[Refinement]:
        """Refine as the engine does."""
        if starts[0].removed < 0:
            return self._found(starts)
        refinements = self._refine(starts)
        self._refined += 1
        if self.probe and self._refined % PROBED == 0:
            with self.watch.standing_still():
                self._probe(starts[0])
        return refinements

    def _probe(self, start: Order) -> None:
        compared = self.engine.comparisons
        pair = [start, relocated_start(self.engine, start)]
        # In turns, for the second of a pair finds its data in the cache.
        turn = 1 if self._refined % (2 * PROBED) else -1
        outcomes = [timed(partial(self.engine.refine, [each])) for each in pair[::turn]]
        ((relocated,), relocating), ((straight,), placed) = outcomes[::turn]
        # A draw on the edge between two samples may round to the other one: no pair then.
        if math.isclose(relocated.inertia, straight.inertia, rel_tol=1e-12):
            self.relocating += relocating
            self.placed += placed
        self.compared_by_probes += self.engine.comparisons - compared

    @property
    def relocation_share(self) -> float:
        """Share of the relocation in a refinement."""
        return max(0.0, 1.0 - self.placed / self.relocating) if self.relocating else 0.0


def relocated_start(engine: Any, start: Order) -> Order:
    """Return the start with its removed centre on the sample that the engine would draw."""
    by_distance, quantile = split_mixture(start.alpha, start.quantile)
    if by_distance:
        distances = engine.distances(start.centers)
        distances[:, start.removed] = np.inf
        drawn = roulette(distances.min(axis=1) ** start.power, np.array([quantile]))[0]
        quantile = (drawn + 0.5) / engine.n_samples
    centers = start.centers.copy()
    centers[start.removed] = engine.samples_at(np.array([quantile]))[0]
    return replace(start, centers=centers, removed=-1)


class Dissection:
    """Reads the clocks when the offspring that count begin, and when the search is over.

    Parameters
    ----------
    engine : WatchedEngine
    skip : int
        Offspring that do not count yet.
    """

    def __init__(self, engine: WatchedEngine, skip: int) -> None:
        self.engine = engine
        self.skip = skip
        self.counting = self._read()

    def __call__(self, record: OffspringRecord) -> None:
        """Observe a search: what has been spent so far belongs to the beginning."""
        if record.number <= self.skip:
            self.counting = self._read()

    def _read(self) -> dict[str, float]:
        watch, engine = self.engine.watch, self.engine
        readings = {name: watch.spent[name] for name in ("crossover", "refine")}
        compared = engine.comparisons - engine.compared_by_probes
        return {**readings, "compared": compared, "now": watch.now()}

    def anatomy(self, result: SearchResult, m: int, began: float, ready: float) -> Anatomy:
        """Sum up a search whose engine was made from ``began`` to ``ready``."""
        ended = self._read()
        spent = {name: ended[name] - self.counting[name] for name in ended}
        records = [record for record in result.history if record.number > self.skip]
        founders = sum(record.number == 0 for record in result.history)
        iterations = sum(record.n_iter for record in records)
        relocation = spent["refine"] * self.engine.relocation_share
        return Anatomy(
            building=ready - began,
            founding=self.counting["now"] - ready,
            founder=self.engine.watch.spent["founder"] / founders,
            crossover=spent["crossover"],
            relocation=relocation,
            kmeans=spent["refine"] - relocation,
            bookkeeping=spent["now"] - spent["crossover"] - spent["refine"],
            offspring=len(records),
            iterations=iterations / len(records),
            avoided=1.0 - spent["compared"] / (iterations * self.engine.n_samples * m),
            inertia=result.best.inertia,
        )


def dissect(
    X: Samples,
    m: int,
    settings: SearchSettings,
    seed: int = 0,
    *,
    skip: int = 0,
    probe: bool = True,
    adapt: Callable[[Any], Any] = lambda engine: engine,
) -> Anatomy:
    """Run a search on one thread and tell where its time went.

    Parameters
    ----------
    X : (n, d) array
    m : int
        Number of clusters.
    settings : SearchSettings
    seed : int
    skip : int
        The first offspring, up to this number, are counted with the initial population.
    probe : bool
        False to leave the relocation in K-means.
    adapt : callable
        Makes another engine of the CPU engine, which the search then uses.
    """
    warm_up(X, m)
    watch = Stopwatch()
    began = watch.now()
    engine = WatchedEngine(adapt(create_engine("cpu", X, None)), watch, probe)
    ready = watch.now()
    dissection = Dissection(engine, skip)
    with (
        patch.object(Search, "select", watch.on("crossover", Search.select)),
        patch.object(genetic, "cross_over", watch.on("crossover", genetic.cross_over)),
    ):
        rng = np.random.default_rng(seed)
        result = solve(engine, m, settings, rng, observers=[dissection])
        return dissection.anatomy(result, m, began, ready)


def bare_seconds(X: Samples, m: int, settings: SearchSettings, seed: int = 0) -> float:
    """CPU seconds of a whole search on one thread with no clocks in it."""

    def search() -> SearchResult:
        engine = create_engine("cpu", X, None)
        return solve(engine, m, settings, np.random.default_rng(seed))

    warm_up(X, m)
    return timed(search)[1]


def warm_up(X: Samples, m: int) -> None:
    """Compile all that a search on such samples needs, and tidy up.

    What the compiler leaves behind takes the garbage collector a tenth of a second to look through,
    as long as hundreds of offspring on small data: it is told to let that be.
    """
    few = X[: max(1000, 4 * m)]
    engine = create_engine("cpu", few, None)
    settings = SearchSettings(2, 2, max_offspring=20)
    engine.distances(solve(engine, m, settings, np.random.default_rng(0)).best.centers)
    gc.collect()
    gc.freeze()


def gain_from_threads(X: Samples, m: int, settings: SearchSettings, turns: int = 2) -> float:
    """How many times faster a search is with two threads, by wall time.

    Only the search: the engines are made before. One and two threads take turns, and the best
    time of each counts. Their results have to be the same to the last bit.
    """
    engines = {n_jobs: create_engine("cpu", X, None, n_jobs=n_jobs) for n_jobs in (1, 2)}
    for engine in engines.values():
        solve(engine, m, SearchSettings(2, 2, max_offspring=2), np.random.default_rng(0))
    best = dict.fromkeys(engines, math.inf)
    found = set()
    for _ in range(turns):
        for n_jobs, engine in engines.items():
            search = partial(solve, engine, m, settings, np.random.default_rng(0))
            result, seconds = timed(search, time.perf_counter)
            best[n_jobs] = min(best[n_jobs], seconds)
            found.add(result.best.centers.tobytes())
    if len(found) > 1:
        raise SystemExit(f"m={m}: two threads found another solution than one.")
    return best[1] / best[2]
