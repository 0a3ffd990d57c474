"""The arrays that kernels share, grouped by owner, and access to dense and sparse rows.

docs/background/cpu-engine.md shows them in a picture.
In all shapes, n is the number of samples, d of features, k of clusters.

Kernels are written once. They access samples only through functions made by :func:`by_row_type`.
Numba compiles the variant for the type of ``rows``: an (n, d) array, or :class:`SparseRows`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from evomeans.compiled.bundle import BundleType, bundle
from evomeans.compiled.jit import REORDER, jit
from evomeans.engines.cpu.simd import WIDTH
from evomeans.engines.frame import LIMBS
from evomeans.kernels.vectors import squared_difference
from evomeans.typing import FloatArray, Index, Integers, SingleArray

if TYPE_CHECKING:
    from evomeans.engines.cpu.refine import MomentumState
    from evomeans.engines.cpu.swaps.lists import Clusters, UndoLog

# User rows whose distances are summed together. The order of all floating-point sums over samples
# follows from it, so it must not depend on the number of threads.
CHUNK = 512
# Larger than any distance to a centre in the frame: coordinates of samples are below one there, and
# those of initial centres below a million.
FAR = np.float32(1e9)
# Larger than any squared distance in single precision, including those to NOWHERE.
ENDLESS = np.float32(1e37)
# Coordinates of a centre that is taken away: no gap is as large as the distance to there.
NOWHERE = 1e12
# Single-precision results may be off by a few units of 2⁻²⁴. Upper bounds are multiplied by MORE,
# lower bounds by LESS, which covers a little more than that.
PAD = np.float32(2.0**-21)
MORE = np.float32(1.0) + PAD
LESS = np.float32(1.0) - PAD
NOTHING = np.float32(0.0)
# Rows of ``Scratch.lanes``, one value per sample of a tile: the lowest score, the second lowest,
# and the centre with the lowest (as float32); for single moves, see ``hartigan.py``, the factor
# W/(W − w) of the own cluster, and the weight.
BEST, SECOND, CLOSEST, FACTOR, WEIGHT = range(5)


class Outcome(NamedTuple):
    """What a run says of itself.

    * ``inertia``: sum of squared distances, in the frame; infinite if it was given up.
    * ``iterations``: assignments that it made.
    * ``swaps_kept``: how many; −1 if it tried none.
    * ``unswapped``: sum of squared distances before the swaps.
    * ``n_empty``: clusters without weight.
    * ``made_by``: how an offspring was made.
    """

    inertia: float
    iterations: int
    swaps_kept: int
    unswapped: float
    n_empty: int
    made_by: int


OUTCOME: Any = np.dtype([(name, kind) for name, kind in get_type_hints(Outcome).items()])
"""The same as kernels write it."""


def count_tiles(n_samples: int) -> int:
    """Return how many tiles the samples fill."""
    return -(-n_samples // WIDTH)


@bundle
class Samples(NamedTuple):
    """The data. It never changes.

    Tiles are runs of WIDTH neighbouring rows. A *place* is a row number in the order of the tiles.

    * ``rows``: the samples by place, an (n, d) array or :class:`SparseRows`.
    * ``order`` (n,): the user's row at each place.
    * ``places`` (n,): the place of each of the user's rows.
    * ``weights`` (n,) by place; empty for equal weights.
    * ``tiles`` (tiles · d, WIDTH): samples minus the middle of their tile, one row per feature. The
      last tile is filled up with copies of its last sample. Empty for sparse samples.
    * ``middles`` (tiles, d): mean of each tile. Empty for sparse samples, whose middle is the
      origin.
    * ``squares`` (tiles, WIDTH): squared distances from the middle.
    * ``radii`` (tiles,): upper bound of the distances from the middle.
    * ``weight_unit``: power of two that brings the heaviest weight near one.
    * ``roundoff``: factor of the error of a score, see :mod:`~evomeans.engines.cpu.assignment`.
    * ``scales`` (d + 1,) and ``limb``: see :mod:`~evomeans.engines.cpu.sums`.
    * ``on_sphere``: 1.0 if samples and centres have length one, or 0.0.
    """

    rows: Any
    order: NDArray[np.uint32]
    places: NDArray[np.uint32]
    weights: FloatArray
    tiles: SingleArray
    middles: FloatArray
    squares: SingleArray
    radii: SingleArray
    weight_unit: float
    roundoff: np.float32
    scales: FloatArray
    limb: float
    on_sphere: float


@bundle
class State(NamedTuple):
    """What is known of the samples with respect to a set of centres.

    docs/background/cpu-engine.md says which centres these are after each stage.

    * ``labels`` (tiles, WIDTH): the cluster of every sample; k for none.
    * ``gaps`` (tiles, k): lower bound of ‖x − c_j‖ − ‖x − c_x‖ over the samples x of a tile that
      belong to another centre c_x than c_j.
    * ``present`` (tiles, k): 1 if samples of the tile belong to the centre, else 0.
    * ``spread`` (tiles,): upper bound of ‖x − c_x‖ over the samples of a tile.
    """

    labels: NDArray[Any]
    gaps: SingleArray
    present: NDArray[np.uint8]
    spread: SingleArray

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int) -> State:
        """Allocate the state of all samples; its contents are undefined."""
        n_tiles = count_tiles(n_samples)
        labels = np.empty((n_tiles, WIDTH), cls.label_type(n_clusters))
        gaps, spread = np.empty((n_tiles, n_clusters), np.float32), np.empty(n_tiles, np.float32)
        return cls(labels, gaps, np.empty((n_tiles, n_clusters), np.uint8), spread)

    @staticmethod
    def label_type(n_clusters: int) -> type[np.unsignedinteger[Any]]:
        """Return the smallest type that holds the index of a centre, or k for none."""
        return np.uint16 if n_clusters < 2**16 else np.uint32

    @classmethod
    def size(cls, n_samples: int, n_clusters: int) -> int:
        """Return how many bytes :meth:`allocate` takes."""
        per_tile = WIDTH * np.dtype(cls.label_type(n_clusters)).itemsize + 5 * n_clusters + 4
        return count_tiles(n_samples) * per_tile

    @property
    def nbytes(self) -> int:
        """Memory that this takes."""
        return self.labels.nbytes + self.gaps.nbytes + self.present.nbytes + self.spread.nbytes


@bundle
class Solution(NamedTuple):
    """The end of a refinement, from which its offspring begin.

    * ``state``: of the samples, true for the centres.
    * ``centers`` (k, d).
    * ``weights`` (k,): total weight of each cluster.
    * ``sums`` (k, 2, d + 1): cluster sums, see :mod:`~evomeans.engines.cpu.sums`.
    """

    state: State
    centers: FloatArray
    weights: FloatArray
    sums: NDArray[np.int64]

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int, n_features: int) -> Solution:
        """Allocate a solution; its contents are undefined."""
        centers, weights = np.empty((n_clusters, n_features)), np.empty(n_clusters)
        sums = np.empty((n_clusters, LIMBS, n_features + 1), np.int64)
        return cls(State.allocate(n_samples, n_clusters), centers, weights, sums)

    @property
    def nbytes(self) -> int:
        """Memory that this takes."""
        own = self.centers.nbytes + self.weights.nbytes + self.sums.nbytes
        return self.state.nbytes + own


@bundle
class Centers(NamedTuple):
    """The centres, and how they have just moved.

    * ``target`` (k, d): where they are to go.
    * ``exact`` (k, d): where they are.
    * ``before`` (k, d): where those that moved came from.
    * ``weights`` (k,): total weight of each cluster when its centre was last moved to the mean.
    * ``masses`` (k,): by what single moves weigh the clusters: the same; on the sphere, the lengths
      of the sums of their samples.
    * ``sums`` (threads, k, 2, d + 1): cluster sums, see :mod:`~evomeans.engines.cpu.sums`. Each
      thread has its own; their total counts.
    * ``touched`` (threads, ≥ k): 1 for clusters whose sums have changed since their centre was
      moved to the mean.
    * ``changed`` (k,): 1 for clusters that have changed since the last pass of single moves.
    * ``drift`` (k,): upper bound of how far each centre moved.
    * ``approached`` (k,): upper bound of how much nearer each centre came to a sample of another
      cluster: the drift, but zero for a centre that was taken away.
    """

    target: FloatArray
    exact: FloatArray
    before: FloatArray
    weights: FloatArray
    masses: FloatArray
    sums: NDArray[np.int64]
    touched: NDArray[np.uint8]
    changed: NDArray[np.uint8]
    drift: SingleArray
    approached: SingleArray

    @classmethod
    def allocate(cls, target: FloatArray, n_threads: int) -> Centers:
        """Allocate centres that are to go to ``target``."""
        n_clusters, n_features = target.shape
        return cls(
            target,
            np.zeros((n_clusters, n_features)),
            np.zeros((n_clusters, n_features)),
            np.zeros(n_clusters),
            np.zeros(n_clusters),
            np.zeros((n_threads, n_clusters, LIMBS, n_features + 1), np.int64),
            # Rows that different threads write are at least a cache line apart.
            np.zeros((n_threads, n_clusters + 64), np.uint8),
            np.zeros(n_clusters, np.uint8),
            np.zeros(n_clusters, np.float32),
            np.zeros(n_clusters, np.float32),
        )


@bundle
class Scratch(NamedTuple):
    """Working memory of the threads, and the results of a refinement.

    For the tile in hand, written and read by one thread:

    * ``chosen`` (threads, k): the centres that it is compared with.
    * ``offsets`` (threads, k, d) and ``away`` (threads, k): −2 (c − middle) and ‖c − middle‖² of
      each. From ``locate_center``, for ``score`` and its error.
    * ``products`` (threads, k): scalar products of a sparse sample with centres, within ``score``.
    * ``scores`` (threads, k, WIDTH): from ``score``.
    * ``lanes`` (threads, 5, WIDTH): BEST, SECOND and CLOSEST from ``find_lowest``; FACTOR and
      WEIGHT from ``weigh_lanes``.
    * ``shares`` (threads, 2, k): upper bounds of 1/W. From ``set_shares``.
    * ``gap_limits`` (threads, k): samples of the tile may move to centres with gaps below these.
      From ``find_rivals``, for ``choose_targets``.

    For all threads, which meet between writing and reading:

    * ``nearby`` (n,): weighted distances to the own centre, by place, and ``partial`` (chunks,):
      their sums over chunks of the user's rows. From ``seeding.py``.
    * ``totals`` (threads, 2, d + 1): sums of one cluster, within ``update_center``.
    * ``largest_move`` (threads, 16): how far any centre of a thread's share moved, in column 0.
    * ``marks`` (n,): 1 for samples that may gain by a single move, by user row. From ``confirm``,
      for ``visit``, which leaves zeros.
    * ``counts`` (threads, 8): distances computed, in column PAIRS.
    * ``outcome`` (1,): an OUTCOME.
    * ``barrier``: where threads meet, see :mod:`~evomeans.engines.cpu.threads`.
    """

    chosen: NDArray[np.int32]
    offsets: SingleArray
    away: SingleArray
    products: FloatArray
    scores: SingleArray
    lanes: SingleArray
    shares: SingleArray
    gap_limits: SingleArray
    nearby: FloatArray
    partial: FloatArray
    totals: NDArray[np.int64]
    largest_move: SingleArray
    marks: NDArray[np.uint8]
    counts: NDArray[np.int64]
    outcome: NDArray[Any]
    barrier: NDArray[np.int64]

    @classmethod
    def allocate(
        cls, samples: Samples, n_clusters: int, n_features: int, n_threads: int, barrier: Integers
    ) -> Scratch:
        """Allocate working memory for refinements with one number of clusters."""
        n_samples, is_sparse = len(samples.order), isinstance(samples.rows, SparseRows)
        offset = (n_threads, n_clusters, 0 if is_sparse else n_features)
        return cls(
            chosen=np.zeros((n_threads, n_clusters), np.int32),
            offsets=np.zeros(offset, np.float32),
            away=np.zeros((n_threads, n_clusters), np.float32),
            products=np.zeros((n_threads, n_clusters)),
            scores=aligned((n_threads, n_clusters, WIDTH), np.float32),
            lanes=aligned((n_threads, 5, WIDTH), np.float32),
            shares=np.zeros((n_threads, 2, n_clusters), np.float32),
            gap_limits=np.zeros((n_threads, n_clusters), np.float32),
            nearby=np.empty(n_samples),
            partial=np.empty(-(-n_samples // CHUNK)),
            totals=np.zeros((n_threads, LIMBS, n_features + 1), np.int64),
            largest_move=np.zeros((n_threads, 16), np.float32),
            marks=np.zeros(n_samples, np.uint8),
            counts=np.zeros((n_threads, 8), np.int64),
            outcome=np.zeros(1, OUTCOME),
            barrier=barrier,
        )


@bundle
class WorkArrays(NamedTuple):
    """All that a refinement works with, besides the solutions.

    ``record`` (1,) says what to do, see :data:`~evomeans.engines.cpu.kernels.RECORD`. ``clusters``
    and ``undo`` are for swaps, ``momentum`` for momentum; else they are not read.
    """

    samples: Samples
    centers: Centers
    scratch: Scratch
    clusters: Clusters
    undo: UndoLog
    momentum: MomentumState
    record: NDArray[Any]


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Allocate zeros at an address that vector registers load without crossing cache lines."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    offset = -memory.ctypes.data % 64
    array: NDArray[Any] = memory[offset : offset + size].view(dtype).reshape(shape)
    return array


Rows = NDArray[np.floating[Any]]

# Below this share of ‖x‖² + ‖c‖², their sum − 2x·c has lost too many digits: use the direct form.
CANCELLED_SHARE = 1e-3


@bundle
class SparseRows(NamedTuple):
    """Rows in CSR format, with what their distances to the centres need.

    * ``starts`` (n + 1,): where each row begins in the next two.
    * ``columns`` and ``values`` (nnz,): the stored entries.
    * ``squares`` (n,): squared norms of the rows.
    * ``center_squares`` (k,): squared norms of the current centres.
    * ``by_feature`` (d, k): their coordinates. :func:`remember_center` keeps both up to date.
    """

    starts: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[Any]
    squares: NDArray[np.float64]
    center_squares: NDArray[np.float64]
    by_feature: NDArray[np.float64]


def by_row_type(
    *,
    dense: Callable[..., Any],
    sparse: Callable[..., Any],
    fastmath: frozenset[str] = frozenset(),
    inline: bool = True,
) -> Callable[..., Any]:
    """Combine two functions into a kernel, by the type of ``rows`` or of those of ``samples``."""
    names = list(inspect.signature(dense).parameters)

    def choose(*types: Any) -> Callable[..., Any]:
        if "rows" in names:
            rows = types[names.index("rows")]
        else:
            rows = types[names.index("samples")].types[0]
        return sparse if isinstance(rows, BundleType) else dense

    return jit(fastmath=fastmath, inline=inline, choose=choose)(dense)


@jit
def copy_row(source: NDArray[Any], i: Index, target: NDArray[Any], j: Index) -> None:
    """Set row ``j`` of a matrix to row ``i`` of another one."""
    for t in range(source.shape[1]):
        target[j, t] = source[i, t]


@jit
def weight_of(samples: Samples, i: Index) -> float:
    """Return the weight of a sample."""
    return samples.weights[i] if samples.weights.shape[0] else 1.0


def _squared_distance_dense(rows: Rows, i: int, centers: FloatArray, j: int) -> float:
    """‖rows[i] − centers[j]‖² in double precision, to a relative error of about 1e-13.

    The last bits may depend on the kernel it is compiled into, so close calls have one place.
    """
    return squared_difference(rows, i, centers, j)


def _squared_distance_sparse(rows: SparseRows, i: int, centers: FloatArray, j: int) -> float:
    norms = rows.squares[i] + rows.center_squares[j]
    square = norms - 2.0 * product(rows, i, centers, j)
    if square > CANCELLED_SHARE * norms:
        return square
    total, p, end = 0.0, rows.starts[i], rows.starts[i + 1]
    for t in range(centers.shape[1]):
        difference = -centers[j, t]
        if p < end and rows.columns[p] == t:
            difference += rows.values[p]
            p += 1
        total += difference * difference
    return total


squared_distance = by_row_type(
    dense=_squared_distance_dense, sparse=_squared_distance_sparse, fastmath=REORDER
)


@jit(fastmath=REORDER)
def product(rows: SparseRows, i: int, centers: FloatArray, j: int) -> float:
    """Scalar product of a sparse row with a centre."""
    total = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.values[p] * centers[j, rows.columns[p]]
    return total


def _remember_center_dense(rows: Rows, centers: FloatArray, j: int) -> None:
    """Update what the rows keep of centre ``j`` after it has moved; dense rows keep nothing."""


def _remember_center_sparse(rows: SparseRows, centers: FloatArray, j: int) -> None:
    total = 0.0
    for t in range(centers.shape[1]):
        rows.by_feature[t, j] = centers[j, t]
        total += centers[j, t] * centers[j, t]
    rows.center_squares[j] = total


remember_center = by_row_type(dense=_remember_center_dense, sparse=_remember_center_sparse)


def _write_row_dense(rows: Rows, i: int, centers: FloatArray, j: int) -> None:
    """Set centre ``j`` to sample ``i``."""
    copy_row(rows, i, centers, j)


def _write_row_sparse(rows: SparseRows, i: int, centers: FloatArray, j: int) -> None:
    for t in range(centers.shape[1]):
        centers[j, t] = 0.0
    for p in range(rows.starts[i], rows.starts[i + 1]):
        centers[j, rows.columns[p]] = rows.values[p]


write_row = by_row_type(dense=_write_row_dense, sparse=_write_row_sparse)
