"""The eigen-decompositions of a proof on a GPU, by PyTorch.

Only the search for multipliers uses them. The inequality that counts is evaluated on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from evomeans.exact.projection import move_down, projected_values
from evomeans.typing import FloatArray


class TorchProjector:
    """Like :class:`~evomeans.exact.projection.CpuProjector`, always in double precision.

    Parameters
    ----------
    v : (n,) array
        The vector û.
    k : int
        Number of clusters.
    device : torch.device
    """

    def __init__(self, v: FloatArray, k: int, device: Any) -> None:
        self._v, self._k, self._device = v, k, device
        self._vv = np.outer(v, v)
        self.fine = True
        self.rank = len(v)

    def project(self, A: FloatArray, size: float) -> FloatArray:
        """Return the projection of A, whose norm is ``size``; A is overwritten."""
        move_down(A, self._v, size)
        found, Q = self._decomposed(torch.linalg.eigh, A)
        values = projected_values(found.cpu().numpy(), self._k - 1)
        used = int(np.argmax(values > 0))
        self.rank = len(values) - used
        Q = Q[:, used:]
        scaled = Q * torch.from_numpy(values[used:]).to(self._device)
        Y: FloatArray = (scaled @ Q.T).cpu().numpy()
        Y += self._vv
        return Y

    def lowest_sum(self, A: FloatArray, count: int) -> float:
        """Return the sum of the lowest eigenvalues of A."""
        return float(self._decomposed(torch.linalg.eigvalsh, A)[:count].sum())

    def _decomposed(self, function: Any, A: FloatArray) -> Any:
        try:
            return function(torch.from_numpy(A).to(self._device))
        except torch.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(str(error)) from error
