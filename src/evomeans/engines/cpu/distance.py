"""The Euclidean distance of a sample and a centre."""

from __future__ import annotations

from typing import Any

from evomeans.engines.cpu.jit import jit


@jit(reorder=True)
def squared_distance(rows: Any, i: int, centers: Any, j: int) -> float:
    """‖rows[i] − centers[j]‖² in double precision.

    Its last bits may depend on the kernel it is compiled into. Where results hang on a comparison,
    the kernels leave a margin for that and pass close calls on to one single place.
    """
    total = 0.0
    for t in range(rows.shape[1]):
        difference = rows[i, t] - centers[j, t]
        total += difference * difference
    return total
