"""Which kernels only the baselines call, so that they can be compiled before."""

from __future__ import annotations

from typing import Any

import numpy as np

from evomeans.compiled.ready import Call
from evomeans.engines.cpu.kernels import blank_samples
from evomeans.engines.cpu.workspace import Workspace
from evomeans.engines.frame import is_sparse
from lab.baselines.engines.foresight import Foresight, foresee, set_squares_to
from lab.baselines.engines.losses import find_two_closest
from lab.baselines.engines.pooling import PoolMemory, draw_from_pool
from lab.baselines.engines.reductions import OwnDistances, PointScratch, attract
from lab.baselines.engines.thresholds import gather, visit_all


def kernel_calls_for(X: Any) -> list[Call]:
    """Return the calls, with arguments of the right types and next to no size.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        The samples. Only their types matter.
    """
    workspace = Workspace(blank_samples(X), 1, 1, 1)
    samples, centers, scratch, target = (
        workspace.samples,
        workspace.centers,
        workspace.scratch,
        workspace.target,
    )
    one, grid = np.zeros(1), np.zeros((1, 1))
    labels, index = np.zeros(1, np.int32), np.zeros(1, int)
    closest = labels, labels, one, one
    pool = PoolMemory.allocate(1, 1)
    foresight = samples, *closest, one, index, index, Foresight.allocate(1, 1)
    moved = samples, workspace.swapped, samples.order, 1.0, one, target
    found = [
        Call(find_two_closest, (samples, centers.exact, scratch, *closest, 0, 1), 1.2),
        Call(set_squares_to, (samples, target, one), 0.3),
        Call(foresee, foresight, 1.5),
        Call(draw_from_pool, (samples, grid, one, grid, index, pool), 1.5),
        Call(gather, (samples, workspace.swapped, target), 0.6),
        Call(visit_all, moved, 1.2),
    ]
    if not is_sparse(X):
        own, memory = OwnDistances.of(one), PointScratch.allocate(1, 1)
        points = samples, own, grid, True, True, one, one, grid, memory, 0, 1
        found.append(Call(attract, points, 2.0))
    return found
