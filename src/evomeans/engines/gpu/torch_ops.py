"""The steps of the engine in plain PyTorch: for the CPU, and the oracle of the Triton kernels.

Every function works on the active solutions of a batch. The names, arguments and results are those
of :mod:`evomeans.engines.gpu.triton_ops`.
"""

from __future__ import annotations

from typing import Any

import torch

from evomeans.engines.gpu.batch import BEYOND, Batch
from evomeans.engines.gpu.samples import (
    CENTER_TERMS,
    LENGTH,
    REST,
    SECOND,
    DeviceSamples,
    doubt,
    split,
)

# Distances in double precision are computed for this many numbers at a time.
NUMBERS_AT_ONCE = 2**22
DOUBTFUL, CHANGED = 0, 1


def propose(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Give samples the label of their nearest centre, or note them as doubtful.

    ``labels``, ``changed`` and ``former`` are renewed for the samples that are not doubtful.
    """
    k, n = batch.k, samples.count
    for b in _active(batch):
        products = samples.planes[:n].float() @ batch.planes[b, :k].float().T
        scores = batch.squares[b, :k] - 2.0 * products
        best = scores.min(dim=1)
        second = scores.scatter(1, best.indices[:, None], torch.inf).amin(dim=1)
        allowed = doubt(samples.spans[:, :n], batch.reach[b], samples.width)
        certain = second - best.values > allowed
        _relabel(batch, b, torch.nonzero(certain)[:, 0], best.indices[certain].int())
        doubtful = torch.nonzero(~certain)[:, 0]
        batch.doubtful[b, : len(doubtful)] = doubtful.int()
        batch.counts[b, DOUBTFUL] = len(doubtful)


def decide(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Give doubtful samples the label of their nearest centre, by Σ(x−c)² in double precision."""
    for b in _active(batch):
        doubtful = batch.doubtful[b, : int(batch.counts[b, DOUBTFUL])].long()
        at_once = max(1, NUMBERS_AT_ONCE // (batch.k * samples.n_features))
        for part in doubtful.split(at_once):
            differences = samples.rows[part].double()[:, None, :] - batch.centers[b]
            squares = differences.square().sum(dim=2)
            if batch.excluded[b] >= 0:
                squares[:, batch.excluded[b]] = torch.inf
            _relabel(batch, b, part, squares.argmin(dim=1).int())


def update(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Bring the sums up to date with the labels that changed."""
    for b in _active(batch):
        count = int(batch.counts[b, CHANGED])
        changed = batch.changed[b, :count].long()
        former = batch.former[b, :count].long()
        terms = fixed_point_terms(samples, changed)
        batch.sums[b].index_add_(0, batch.labels[b, changed].long(), terms)
        had = former >= 0
        batch.sums[b].index_add_(0, former[had], -terms[had])


def move(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Put the centres of clusters that weigh anything onto their means; see whether any moved."""
    for b in _active(batch):
        totals = batch.sums[b].double()
        numbers = totals[:, 0] + totals[:, 1] / samples.limb
        weights = numbers[:, -1] / samples.scales[-1]
        batch.cluster_weights[b] = weights
        present = weights > 0.0
        means = numbers[present, :-1] / (samples.scales[:-1] * weights[present, None])
        batch.moved[b] = bool((means != batch.centers[b, present]).any())
        batch.centers[b, present] = means
    prepare(samples, batch, bound)


def prepare(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Split centres into half-precision terms, measure them, and leave out the excluded ones."""
    k, d = batch.k, samples.n_features
    for b in _active(batch):
        values = (batch.centers[b] - samples.middle) * samples.factor
        halves, rest = split(values, samples.terms)
        for place, term in enumerate(CENTER_TERMS[samples.terms]):
            batch.planes[b, :k, place * d : (place + 1) * d] = halves[term]
        squares = values.square().sum(dim=1)
        batch.squares[b, :k] = squares.float()
        batch.reach[b, LENGTH] = squares.max().sqrt()
        batch.reach[b, REST] = rest.norm(dim=1).max()
        if samples.terms == 2:
            batch.reach[b, SECOND] = halves[1].double().norm(dim=1).max()
        if batch.excluded[b] >= 0:
            batch.squares[b, batch.excluded[b]] = BEYOND


def tally(batch: Batch) -> None:
    """Count an iteration; solutions whose centres stand still are active no longer."""
    active = _active(batch)
    batch.n_iter[active] += 1
    left = [b for b in active if batch.moved[b]]
    batch.activate(left)


def measure(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Weighted distances, or squares, of the samples to their own centres, and their sums."""
    for b in _active(batch):
        at_once = max(1, NUMBERS_AT_ONCE // samples.n_features)
        for part in torch.arange(samples.count, device=batch.device).split(at_once):
            own = batch.centers[b, batch.labels[b, part].long()]
            batch.nearby[b, part] = (samples.rows[part].double() - own).square().sum(dim=1)
        if batch.power[b] == 1:
            batch.nearby[b].sqrt_()
        if samples.weights is not None:
            batch.nearby[b] *= samples.weights
        batch.totals[b] = batch.nearby[b].sum()


def draw(samples: DeviceSamples, batch: Batch, bound: int) -> None:
    """Draw a sample by its share of the distances that were measured."""
    for b in _active(batch):
        batch.drawn[b] = batch.fallback[b]
        drawable = torch.nonzero(batch.nearby[b])[:, 0]
        if len(drawable):
            cumulated = batch.nearby[b].cumsum(dim=0)
            target = batch.quantile[b] * cumulated[-1]
            found = torch.searchsorted(cumulated, target, right=True)
            batch.drawn[b] = torch.minimum(found, drawable[-1])


def fixed_point_terms(samples: DeviceSamples, which: Any) -> Any:
    """Return what rows and their weights add to the sums: two limbs, shape (rows, 2, d + 1)."""
    ones = torch.ones((len(which), 1), dtype=torch.float64, device=which.device)
    terms = torch.cat([samples.rows[which].double(), ones], dim=1)
    if samples.weights is not None:
        terms *= samples.weights[which, None]
    terms *= samples.scales
    upper = terms.floor()
    return torch.stack([upper, (terms - upper) * samples.limb], dim=1).long()


def _relabel(batch: Batch, b: int, which: Any, labels: Any) -> None:
    """Set labels and note the samples for which that is a change."""
    former = batch.labels[b, which]
    differs = former != labels
    begin = int(batch.counts[b, CHANGED])
    end = begin + int(differs.sum())
    batch.changed[b, begin:end] = which[differs].int()
    batch.former[b, begin:end] = former[differs]
    batch.counts[b, CHANGED] = end
    batch.labels[b, which] = labels


def _active(batch: Batch) -> list[int]:
    active: list[int] = batch.active[: int(batch.n_active)].tolist()
    return active
