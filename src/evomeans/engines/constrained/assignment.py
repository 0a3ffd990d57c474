"""Samples assigned to given centres within size limits."""

from __future__ import annotations

import numpy as np

from evomeans.engines.constrained.heaps import Heaps
from evomeans.engines.constrained.links import FloatArray, Integers
from evomeans.engines.constrained.transport import Flow, transport
from evomeans.engines.protocol import Labels


def assign_within(costs: FloatArray, low: Integers, high: Integers) -> Labels:
    """Assign samples at the least total cost; the limits must leave an assignment.

    Parameters
    ----------
    costs : (n, k) array
        What each sample costs in each cluster.
    low, high : (k,) arrays
        How many samples clusters must and may have.
    """
    n, k = costs.shape
    labels = np.empty(n, np.int64)
    transport(
        np.ascontiguousarray(costs),
        np.arange(n),
        low,
        np.minimum(high, n),
        labels,
        Flow.allocate(k),
        Heaps.allocate(n, k),
    )
    return labels.astype(np.int32)
