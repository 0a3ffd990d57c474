"""The steps of the engine as Triton kernels.

:mod:`~evomeans.engines.gpu.torch_ops` says what they do. ``bound`` is the largest number of
solutions that may be active: kernels are launched for so many.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from evomeans.engines.gpu.batch import BEYOND, TILE, Batch
from evomeans.engines.gpu.kernels.assignment import decide_kernel, propose_kernel
from evomeans.engines.gpu.kernels.centers import (
    centers_kernel,
    draw_kernel,
    measure_kernel,
    tally_kernel,
    total_kernel,
    update_kernel,
)
from evomeans.engines.gpu.samples import (
    ADDITION,
    FLOOR,
    LARGEST_HALF,
    MARGIN,
    PACKING,
    ROUNDING,
    DeviceSamples,
)

# Programs share the doubtful samples of a solution, or those that changed their label. There is one
# for every SAMPLES_PER_PROGRAM samples: at least FEWEST_PROGRAMS for a solution, and beyond that no
# more than MOST_PROGRAMS for all.
FEWEST_PROGRAMS, MOST_PROGRAMS, SAMPLES_PER_PROGRAM = 64, 2048, 1024
# The arrays of a batch that go together, in the order in which kernels take them.
ACTIVE = attrgetter("active", "n_active")
LABELLING = attrgetter("labels", "doubtful", "limits", "changed", "former", "counts")


def propose(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Give samples the label of their nearest centre, or note them as doubtful."""
    k_padded = batch.planes.shape[1]
    tile_rows, tile_centers = 128, min(128, k_padded)
    grid = (-(-samples.count // tile_rows) * bound,)
    tiles = {"ROWS": tile_rows, "CENTERS": tile_centers, "STEP": _plane_step(samples)}
    rounding = ROUNDING + tile_centers * PACKING
    bounds = {"ADDITION": ADDITION, "ROUNDING": rounding, "MARGIN": MARGIN, "FLOOR": FLOOR}
    planes = samples.planes, samples.spans, batch.planes, batch.squares, batch.reach
    counts = samples.count, samples.planes.shape[0], bound
    shape = {"K": k_padded, "D": samples.width, "num_warps": 4, "num_stages": 3}
    arrays = *planes, *ACTIVE(batch), *LABELLING(batch)
    propose_kernel[grid](*arrays, *counts, **bounds, **tiles, **shape)


def decide(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Give doubtful samples the label of their nearest centre, in double precision."""
    k_padded, programs = batch.planes.shape[1], programs_for(samples.count, bound)
    tiles = {"ROWS": 16, "CENTERS": min(128, k_padded), "STEP": _plane_step(samples)}
    points = samples.rows, batch.centers, samples.planes, batch.planes, batch.squares
    sizes = samples.n_features, batch.k, k_padded, samples.width, programs
    arrays = *points, *ACTIVE(batch), *LABELLING(batch), samples.count, bound
    decide_kernel[(programs * bound,)](*arrays, *sizes, **tiles, num_warps=4, num_stages=3)


def update(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Bring the sums up to date with the labels that changed."""
    step = min(256, _power_of_two(samples.n_features + 1))
    programs = programs_for(samples.count, bound)
    changes = batch.labels, batch.changed, batch.former, batch.counts, batch.reach, batch.sums
    numbers = samples.count, bound, samples.limb
    sizes = {"k": batch.k, "d": samples.n_features, "programs": programs}
    tiles = {"WEIGHTED": samples.weights is not None, "ROWS": max(1, 512 // step), "STEP": step}
    arrays = samples.rows, _weights(samples), samples.scales, *changes, *ACTIVE(batch)
    update_kernel[(programs * bound,)](*arrays, *numbers, **sizes, **tiles, num_warps=4)


def move(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Put the centres of clusters that weigh anything onto their means; see whether any moved."""
    _centers(samples, batch, bound, from_sums=True)


def prepare(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Split centres into half-precision terms, measure them, and leave out the excluded ones."""
    batch.reach.zero_()
    _centers(samples, batch, bound, from_sums=False)


def _centers(samples: DeviceSamples, batch: Batch, bound: int, *, from_sums: bool) -> None:
    clusters = batch.sums, samples.scales, samples.middle, batch.centers, batch.cluster_weights
    measured = batch.planes, batch.squares, batch.reach, batch.excluded, batch.moved
    arrays = *clusters, *measured, *ACTIVE(batch)
    numbers = bound, 1.0 / samples.limb, samples.factor
    sizes = {"k": batch.k, "d": samples.n_features, "K": batch.planes.shape[1], "D": samples.width}
    centers_kernel[(batch.k * bound,)](
        *arrays,
        *numbers,
        **sizes,
        TERMS=samples.terms,
        FROM_SUMS=from_sums,
        LARGEST_HALF=LARGEST_HALF,
        BEYOND=BEYOND,
        STEP=min(512, max(32, _power_of_two(samples.n_features))),
        num_warps=4 if samples.n_features > 64 else 1,
    )


def tally(batch: Batch) -> None:
    """Count an iteration; solutions whose centres stand still are active no longer."""
    arrays = *ACTIVE(batch), batch.moved, batch.counts, batch.n_iter
    tally_kernel[(1,)](*arrays, SOLUTIONS=_power_of_two(batch.capacity), num_warps=1)


def measure(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Weighted distances, or squares, of the samples to their own centres, and their sums."""
    n_tiles = batch.partial.shape[1]
    step = min(64, max(16, _power_of_two(samples.n_features)))
    points = samples.rows, _weights(samples), batch.centers, batch.labels
    found = batch.power, batch.nearby, batch.partial, *ACTIVE(batch)
    sizes = {"k": batch.k, "d": samples.n_features, "WEIGHTED": samples.weights is not None}
    tiles = {"TILE": TILE, "ROWS": 2048 // step, "STEP": step}
    measure_kernel[(n_tiles * bound,)](
        *points, *found, samples.count, n_tiles, bound, **sizes, **tiles, num_warps=4
    )
    sums = batch.partial, batch.totals, *ACTIVE(batch)
    total_kernel[(bound,)](*sums, n_tiles, TILES=1024, num_warps=4)


def draw(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Draw a sample by its share of the distances that were measured."""
    shares = batch.nearby, batch.partial, batch.totals
    draws = batch.quantile, batch.fallback, batch.drawn, *ACTIVE(batch)
    counts = samples.count, batch.partial.shape[1]
    draw_kernel[(bound,)](*shares, *draws, *counts, TILES=1024, TILE=TILE, num_warps=4)


def programs_for(n_samples: int, bound: int) -> int:
    """Return how many programs share the samples of one of ``bound`` solutions."""
    worthwhile = min(MOST_PROGRAMS // bound, n_samples // SAMPLES_PER_PROGRAM)
    return max(FEWEST_PROGRAMS, worthwhile)


def _plane_step(samples: DeviceSamples) -> int:
    """Columns of the planes that are multiplied at a time."""
    return 64 if samples.width % 64 == 0 else 32


def _weights(samples: DeviceSamples) -> Any:
    """Weights, or anything of their type where there are none."""
    return samples.scales if samples.weights is None else samples.weights


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
