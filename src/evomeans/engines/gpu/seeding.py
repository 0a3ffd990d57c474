"""k-means++ on the device: the centres of several founders at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# Chances of rows are integers below this, which add up to the same in any order.
LARGEST_CHANCE = 2.0**40
# In the frame, squares below this are rounding in single precision.
NO_DISTANCE = 1e-20
# Steps between two looks at whether the centres are still wanted.
STEPS_AT_ONCE = 256


class Seeding:
    """Draws of all founders among the same rows, one centre after the other.

    * ``rows`` (s, d): where to draw from, float32.
    * ``quantiles`` (f, k, t): uniform numbers of f founders, for t candidates of each centre.
    """

    def __init__(self, rows: Any, quantiles: Any) -> None:
        self.rows, self.quantiles = rows, quantiles
        self.norms = rows.square().sum(dim=1)
        n_founders, k, _ = quantiles.shape
        self.chosen = torch.zeros((n_founders, k), dtype=torch.int64, device=rows.device)
        # The first centres have no distances to be drawn by.
        self.chosen[:, 0] = (quantiles[:, 0, 0] * len(rows)).long()
        self.nearest = self._squares(self.chosen[:, 0])
        self.place = torch.ones(1, dtype=torch.int64, device=rows.device)

    def run(self, check: Callable[[], None]) -> Any:
        """Return the rows that were chosen, (f, k). ``check`` raises an error to end it."""
        step, n_steps = self._step, self.chosen.shape[1] - 1
        if self.rows.is_cuda and n_steps > STEPS_AT_ONCE:
            step()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._step()
            step, n_steps = graph.replay, n_steps - 1
        for nth in range(n_steps):
            if nth % STEPS_AT_ONCE == 0:
                check()
            step()
        return self.chosen

    def _squares(self, places: Any) -> Any:
        """Return the squared distances of all rows from some of them."""
        squares = torch.addmm(self.norms, self.rows[places], self.rows.T, alpha=-2.0)
        return squares.add_(self.norms[places, None]).clamp_(min=0.0)

    def _step(self) -> None:
        """Draw candidates of the next centre by their distances, and take the best."""
        scale = LARGEST_CHANCE / self.nearest.amax(dim=1, keepdim=True).clamp(min=NO_DISTANCE)
        chances = (self.nearest * scale).long().cumsum(dim=1)
        numbers = self.quantiles.index_select(1, self.place)[:, 0]
        wanted = (numbers * chances[:, -1:]).long()
        drawn = torch.searchsorted(chances, wanted, right=True).clamp_(max=len(self.rows) - 1)
        squares = self._squares(drawn.flatten()).view(*drawn.shape, -1)
        closer = torch.minimum(self.nearest[:, None], squares)
        best = closer.sum(dim=2).argmin(dim=1, keepdim=True)
        self.nearest.copy_(closer.take_along_dim(best[:, :, None], dim=1)[:, 0])
        self.chosen.index_copy_(1, self.place, drawn.take_along_dim(best, dim=1))
        self.place += 1
