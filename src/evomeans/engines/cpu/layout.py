"""The arrays that kernels share, grouped by whom they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.lanes import WIDTH
from evomeans.engines.fixed_point import LIMBS

# Samples whose distances are summed together; the order of all floating-point sums over samples
# follows from it, so it must not depend on the number of threads.
CHUNK = 512
# Larger than any distance to a centre in the frame, where coordinates are below one, and those of
# centres to start from below a million.
FAR = np.float32(1e9)
# Larger than the square of any distance, NOWHERE included, in single precision.
ENDLESS = np.float32(1e37)
# The coordinates of a centre that is nowhere: so far that no gap outlasts its way there or back.
NOWHERE = 1e12
# Rows of ``Scratch.lanes``.
BEST, SECOND, NAMES = range(3)


def count_chunks(n_samples: int) -> int:
    """Return how many chunks the samples fill."""
    return -(-n_samples // CHUNK)


def count_tiles(n_samples: int) -> int:
    """Return how many tiles the samples fill."""
    return -(-n_samples // WIDTH)


class Samples(NamedTuple):
    """What never changes: the data, neighbours standing together in tiles of WIDTH.

    ``rows``: (n, d) float32 or float64, or :class:`~evomeans.engines.cpu.rows.SparseRows`, in the
    order of the tiles; ``order`` (n,) uint32: where each row stood in the user's data; ``places``
    (n,) uint32: where each of the user's rows stands now; ``weights`` (n,) float64 in the order of
    the tiles, or empty for equal weights.

    ``tiles`` (tiles * d, WIDTH) float32: the samples relative to the middle of their tile, a row
    for each feature; the last tile is filled up with copies of its last sample. ``middles``
    (tiles, d) float64; ``squares`` (tiles, WIDTH) float32: squared distances from the middle;
    ``radii`` (tiles,) float32: at least the largest distance. Sparse samples have no tiles, and
    the origin for a middle.

    ``weight_unit`` float: a power of two that brings the heaviest weight near one.

    ``roundoff`` float32: see :mod:`~evomeans.engines.cpu.scores`; ``scales`` (d + 1,) and ``limb``:
    see :mod:`~evomeans.engines.cpu.sums`.
    """

    rows: Any
    order: NDArray[np.uint32]
    places: NDArray[np.uint32]
    weights: NDArray[np.float64]
    tiles: NDArray[np.float32]
    middles: NDArray[np.float64]
    squares: NDArray[np.float32]
    radii: NDArray[np.float32]
    weight_unit: float
    roundoff: np.float32
    scales: NDArray[np.float64]
    limb: float


class State(NamedTuple):
    """What is known of the samples with respect to a set of centres.

    ``labels`` (tiles, WIDTH) unsigned integers: the closest centre of every sample;
    ``gaps`` (tiles, k) float32: by how much any sample of the tile that does not belong to a
    centre is farther from it than from its own, at least; ``present`` (tiles, k) uint8: 1 for the
    centres to which samples of the tile belong; ``spread`` (tiles,) float32: no sample of the tile
    is farther from its centre.
    """

    labels: NDArray[Any]
    gaps: NDArray[np.float32]
    present: NDArray[np.uint8]
    spread: NDArray[np.float32]

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int) -> State:
        """Make room for the state of all samples."""
        n_tiles = count_tiles(n_samples)
        return cls(
            np.empty((n_tiles, WIDTH), cls.label_type(n_clusters)),
            np.empty((n_tiles, n_clusters), np.float32),
            np.empty((n_tiles, n_clusters), np.uint8),
            np.empty(n_tiles, np.float32),
        )

    @staticmethod
    def label_type(n_clusters: int) -> type[np.unsignedinteger[Any]]:
        """Return the smallest type that holds the index of a centre, or k for none."""
        return np.uint16 if n_clusters < 2**16 else np.uint32

    @property
    def nbytes(self) -> int:
        """Memory that this takes."""
        return sum(array.nbytes for array in self)


class Centers(NamedTuple):
    """The current centres and how they have just moved.

    ``exact`` (k, d) float64, and ``before``, where they were; ``weights`` (k,) float64: of their
    clusters; ``sums`` (threads, k, 2, d + 1) int64, see :mod:`~evomeans.engines.cpu.sums`;
    ``touched`` (threads, ≥ k) uint8: 1 for clusters whose sums have changed since the centres were
    moved there; ``changed`` (k,) uint8: 1 for clusters that have changed since single samples were
    last moved; ``drift`` (k,) float32: at least how far every centre moved; ``approached`` (k,)
    float32: at least how far it moved towards samples that are not its own.
    """

    exact: NDArray[np.float64]
    before: NDArray[np.float64]
    weights: NDArray[np.float64]
    sums: NDArray[np.int64]
    touched: NDArray[np.uint8]
    changed: NDArray[np.uint8]
    drift: NDArray[np.float32]
    approached: NDArray[np.float32]

    @classmethod
    def allocate(cls, n_clusters: int, n_features: int, n_threads: int) -> Centers:
        """Make room for ``n_clusters`` centres."""
        return cls(
            np.zeros((n_clusters, n_features)),
            np.zeros((n_clusters, n_features)),
            np.zeros(n_clusters),
            np.zeros((n_threads, n_clusters, LIMBS, n_features + 1), np.int64),
            # Rows that threads write to are a cache line apart at least.
            np.zeros((n_threads, n_clusters + 64), np.uint8),
            np.zeros(n_clusters, np.uint8),
            np.zeros(n_clusters, np.float32),
            np.zeros(n_clusters, np.float32),
        )


class Scratch(NamedTuple):
    """Room to work in, one slice per thread, and the results of a refinement.

    Of the centres that a tile is compared with: ``chosen`` (threads, k) int32, which they are;
    ``offsets`` (threads, k, d) float32, −2 times their position relative to the middle; ``away``
    (threads, k) float32, their squared distance from it; ``products`` (threads, k) float64: for
    sparse samples instead of offsets, their scalar product with a sample; ``scores`` (threads, k,
    WIDTH) float32, see :mod:`~evomeans.engines.cpu.scores`. Of the samples of the tile: ``lanes``
    (threads, 3, WIDTH) float32, their lowest and second lowest score, and whose the lowest is.

    ``nearby`` (n,) float64: distances of the samples to their centres, and ``partial`` (chunks,)
    float64, their sums over chunks of the user's rows; ``totals`` (threads, 2, d + 1) int64, see
    :mod:`~evomeans.engines.cpu.sums`; ``farthest`` (threads, 16) float32: how far any centre of a
    thread's share has moved; of :mod:`~evomeans.engines.cpu.hartigan`: ``marks`` (n,) uint8, in the
    user's order, 1 for samples that may move, ``shares`` (threads, 2, k) float32, 1/W for clusters
    of weight W, and ``limits`` (threads, k) float32, gaps below which samples of a tile may move;
    ``counts`` (threads, 8) int64: distances computed; ``numbers`` (8,)
    float64: the results; ``barrier``: where threads meet.
    """

    chosen: NDArray[np.int32]
    offsets: NDArray[np.float32]
    away: NDArray[np.float32]
    products: NDArray[np.float64]
    scores: NDArray[np.float32]
    lanes: NDArray[np.float32]
    nearby: NDArray[np.float64]
    partial: NDArray[np.float64]
    totals: NDArray[np.int64]
    farthest: NDArray[np.float32]
    marks: NDArray[np.uint8]
    shares: NDArray[np.float32]
    limits: NDArray[np.float32]
    counts: NDArray[np.int64]
    numbers: NDArray[np.float64]
    barrier: NDArray[np.int64]

    @classmethod
    def allocate(
        cls,
        n_samples: int,
        n_clusters: int,
        n_features: int,
        n_threads: int,
        sparse: bool,
        barrier: NDArray[np.int64],
    ) -> Scratch:
        """Make room for refinements of one number of clusters."""
        offset = (n_threads, n_clusters, 0 if sparse else n_features)
        return cls(
            chosen=np.zeros((n_threads, n_clusters), np.int32),
            offsets=np.zeros(offset, np.float32),
            away=np.zeros((n_threads, n_clusters), np.float32),
            products=np.zeros((n_threads, n_clusters)),
            scores=aligned((n_threads, n_clusters, WIDTH), np.float32),
            lanes=aligned((n_threads, 3, WIDTH), np.float32),
            nearby=np.empty(n_samples),
            partial=np.empty(count_chunks(n_samples)),
            totals=np.zeros((n_threads, LIMBS, n_features + 1), np.int64),
            farthest=np.zeros((n_threads, 16), np.float32),
            marks=np.zeros(n_samples, np.uint8),
            shares=np.zeros((n_threads, 2, n_clusters), np.float32),
            limits=np.zeros((n_threads, n_clusters), np.float32),
            counts=np.zeros((n_threads, 8), np.int64),
            numbers=np.zeros(8),
            barrier=barrier,
        )


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Allocate zeros at an address that vector registers load without crossing cache lines."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    offset = -memory.ctypes.data % 64
    array: NDArray[Any] = memory[offset : offset + size].view(dtype).reshape(shape)
    return array
