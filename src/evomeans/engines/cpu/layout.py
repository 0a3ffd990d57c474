"""The arrays that kernels share, grouped by whom they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evomeans.engines.cpu.sums import LIMBS
from evomeans.engines.cpu.tile import RANKS, WIDTH, name_bits

# Rows whose distances are summed together; the order of all floating-point sums over samples
# follows from it, so it must not depend on the number of threads.
CHUNK = 512


def count_chunks(n_samples: int) -> int:
    """Return how many chunks the samples fill."""
    return -(-n_samples // CHUNK)


class Samples(NamedTuple):
    """What never changes: the data.

    ``rows``: (n, d) float32 or float64, or :class:`~evomeans.engines.cpu.rows.SparseRows`;
    ``norms`` (n,) float32: absolute errors of distances in tiles are below 8 units of these;
    ``roundoff`` float32: relative errors are below this; ``weights`` (n,) float64, or empty for
    equal weights;
    ``scales`` (d + 1,) and ``limb``, see :mod:`~evomeans.engines.cpu.sums`.
    """

    rows: Any
    norms: NDArray[np.float32]
    roundoff: np.float32
    weights: NDArray[np.float64]
    scales: NDArray[np.float64]
    limb: float

    @property
    def squared_norms(self) -> NDArray[np.float64]:
        """‖x‖² of every sample; computed anew each time, for it is hardly ever needed."""
        if hasattr(self.rows, "squares"):
            return np.asarray(self.rows.squares)
        return self.norms.astype(np.float64) ** 2


class State(NamedTuple):
    """What is known of every sample with respect to a set of centres, in 20 bytes.

    ``names`` (n, 4) uint16: the closest centre (the label) and three runners-up; ``upper`` (n,)
    float32, at least the distance to the closest; ``near`` (n,) float32, at most the distance to
    any runner-up; ``far`` (n,) float32, at most the distance to any of the other centres.
    """

    names: NDArray[Any]
    upper: NDArray[np.float32]
    near: NDArray[np.float32]
    far: NDArray[np.float32]

    @classmethod
    def allocate(cls, n_samples: int, n_clusters: int) -> State:
        """Make room for the state of all samples."""
        return cls(
            np.empty((n_samples, RANKS - 1), cls.name_type(n_clusters)),
            np.empty(n_samples, np.float32),
            np.empty(n_samples, np.float32),
            np.empty(n_samples, np.float32),
        )

    @staticmethod
    def name_type(n_clusters: int) -> type[np.unsignedinteger[Any]]:
        """Return the smallest type that holds the index of a centre."""
        return np.uint16 if n_clusters < 2**16 else np.uint32

    @property
    def nbytes(self) -> int:
        """Memory that this takes."""
        return sum(array.nbytes for array in self)


class Centers(NamedTuple):
    """The current centres and how they have just moved. Index k stands for no centre.

    ``exact`` (k + 1, d) float64, and ``before``, where they were; ``copy``, as ranking samples
    wants them; ``weights`` (k,) float64 cluster weights; ``sums`` (threads, k, d + 1, 2) int64;
    ``drift``, ``own_drift``, ``reach``, ``others`` (k + 1,) float32 and ``movers`` (k,) int32, see
    :mod:`~evomeans.engines.cpu.moves`.
    """

    exact: NDArray[np.float64]
    before: NDArray[np.float64]
    copy: NDArray[Any]
    weights: NDArray[np.float64]
    sums: NDArray[np.int64]
    drift: NDArray[np.float32]
    own_drift: NDArray[np.float32]
    reach: NDArray[np.float32]
    others: NDArray[np.float32]
    movers: NDArray[np.int32]

    @classmethod
    def allocate(cls, n_clusters: int, n_features: int, n_threads: int, sparse: bool) -> Centers:
        """Make room for ``n_clusters`` centres."""
        rows = (n_clusters + 1, n_features)
        return cls(
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows[::-1]) if sparse else aligned(rows, np.float32),
            np.zeros(n_clusters),
            np.zeros((n_threads, n_clusters, n_features + 1, LIMBS), np.int64),
            np.zeros(n_clusters + 1, np.float32),
            np.zeros(n_clusters + 1, np.float32),
            np.zeros(n_clusters + 1, np.float32),
            np.zeros(n_clusters + 1, np.float32),
            np.zeros(n_clusters, np.int32),
        )


class Scratch(NamedTuple):
    """Room to work in, one slice per thread, and the results of a refinement.

    ``tiles`` (threads, d, WIDTH) float32, for sparse rows (threads, 1, k) float64; ``keys``
    (threads, 6 * WIDTH) int32, the same memory as ``key_squares`` in float32, whose last sixth is
    ``squares``; ``name_bits``, see :mod:`~evomeans.engines.cpu.tile`; ``active`` and ``pending``
    (n,) uint32: samples to be looked at; ``beyond`` (n,) float32, see
    :mod:`~evomeans.engines.cpu.bounds`; ``nearby`` (n,) float64 and ``partial`` (chunks,) float64:
    own distances and their sums; ``counts`` (threads, 8) int64: distances computed; ``numbers``
    (8,) float64: what the threads have to know; ``barrier``.
    """

    tiles: NDArray[Any]
    keys: NDArray[np.int32]
    key_squares: NDArray[np.float32]
    squares: NDArray[np.float32]
    name_bits: int
    active: NDArray[np.uint32]
    pending: NDArray[np.uint32]
    beyond: NDArray[np.float32]
    nearby: NDArray[np.float64]
    partial: NDArray[np.float64]
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
        keys = aligned((n_threads, (RANKS + 1) * WIDTH), np.int32)
        tile = (1, n_clusters) if sparse else (n_features, WIDTH)
        return cls(
            tiles=aligned((n_threads, *tile), np.float64 if sparse else np.float32),
            keys=keys,
            key_squares=keys.view(np.float32),
            squares=keys.view(np.float32)[:, RANKS * WIDTH :],
            name_bits=name_bits(n_clusters),
            active=np.empty(n_samples, np.uint32),
            pending=np.empty(n_samples, np.uint32),
            beyond=np.empty(n_samples, np.float32),
            nearby=np.empty(n_samples),
            partial=np.empty(count_chunks(n_samples)),
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
