"""K-means iterations on a GPU, side by side: plain PyTorch, flash-kmeans if there, evomeans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from evomeans.engines import Order
from evomeans.engines.gpu.batch import Batch, Lloyd
from evomeans.engines.gpu.engine import GpuEngine
from lab.mixtures import N_SAMPLES, gaussian_mixture

SHAPES = ((20, 20), (100, 100), (200, 500))
PROBLEMS = 32
ITERATIONS = 20
ROUNDS = 5


@dataclass(frozen=True)
class Ceilings:
    """What the device can do, measured.

    Parameters
    ----------
    product : float
        TFLOP/s of a half-precision matrix product.
    copy : float
        TB/s read and written by a copy.
    """

    product: float
    copy: float


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median time of some rounds on the device, after one to warm up."""
    times = []
    for nth in range(rounds + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        if nth:
            times.append(begin.elapsed_time(end) / 1e3)
    return float(np.median(times))


def measure_ceilings() -> Ceilings:
    """Multiply and copy large matrices."""
    size = 8192
    a = torch.randn((size, size), device="cuda").half()
    b = torch.randn((size, size), device="cuda").half()
    product = 2 * size**3 / seconds(lambda: a @ b, 20) / 1e12
    source = torch.randn(2**29, device="cuda")
    target = torch.empty_like(source)
    copied = 2 * source.numel() * 4
    return Ceilings(product, copied / seconds(lambda: target.copy_(source), 20) / 1e12)


def nearest(X: Any, centers: Any) -> Any:
    """Labels by brute force in double precision."""
    rows, centers = X.double(), centers.double()
    at_once = max(1, 2**27 // centers.numel())
    parts = [((p[:, None] - centers) ** 2).sum(dim=2).argmin(dim=1) for p in rows.split(at_once)]
    return torch.cat(parts)


def plain_torch(
    X: Any, centers: Any, iterations: int, rows_at_once: int = N_SAMPLES
) -> tuple[Any, Any]:
    """Lloyd's algorithm as one writes it down, in single precision."""
    ones = torch.ones(len(X), device=X.device)
    for _ in range(iterations):
        before, norms = centers, (centers * centers).sum(dim=1)
        scores = (torch.addmm(norms, part, centers.T, alpha=-2.0) for part in X.split(rows_at_once))
        labels = torch.cat([part.argmin(dim=1) for part in scores])
        sums = torch.zeros_like(centers).index_add_(0, labels, X)
        sizes = torch.zeros(len(centers), device=X.device).index_add_(0, labels, ones)
        centers = torch.where(sizes[:, None] > 0, sums / sizes[:, None].clamp(min=1.0), centers)
    return labels, before


def compare(m: int, d: int, ceilings: Ceilings) -> list[dict[str, Any]]:
    """Microseconds per iteration and problem, and how many labels are wrong, in per cent."""
    X = gaussian_mixture(N_SAMPLES, m, d, 0).X.astype(np.float32)
    rng = np.random.default_rng(0)
    starts = np.stack([X[rng.choice(len(X), m, replace=False)] for _ in range(PROBLEMS)])
    rows = [_plain(X, starts), *_flash(X, starts)]
    rows += [_ours(X, starts, ceilings), _ours(X.astype(np.float64), starts, ceilings)]
    plain = rows[0]["microseconds"]
    return [
        {"m": m, "d": d, **row, "times plain torch": plain / row["microseconds"]} for row in rows
    ]


def _row(method: str, duration: float, wrong: int, labels: int, **more: Any) -> dict[str, Any]:
    row = {"method": method, "microseconds": duration * 1e6, "wrong %": 100 * wrong / labels}
    return {**row, "TFLOP/s": "", "share of product": "", "doubtful %": "", **more}


def _plain(X: Any, starts: Any) -> dict[str, Any]:
    rows, centers = torch.tensor(X, device="cuda"), torch.tensor(starts, device="cuda")
    took = seconds(lambda: [plain_torch(rows, one, ITERATIONS) for one in centers[:8]])
    labels, final = plain_torch(rows, centers[0], ITERATIONS)
    wrong = int((labels != nearest(rows, final)).sum())
    return _row("plain torch, float32, one at a time", took / 8 / ITERATIONS, wrong, len(X))


def _flash(X: Any, starts: Any) -> list[dict[str, Any]]:
    try:
        from flash_kmeans import batch_kmeans_Euclid
    except ImportError:
        return []
    rows, found = torch.tensor(X, device="cuda"), []
    for count in (1, PROBLEMS):
        copies = rows.expand(count, *rows.shape).contiguous()
        centers = torch.tensor(starts[:count], device="cuda")

        def run(
            iterations: int = ITERATIONS, copies: Any = copies, centers: Any = centers
        ) -> tuple[Any, Any, int]:
            answer: tuple[Any, Any, int] = batch_kmeans_Euclid(
                copies, centers.shape[1], max_iters=iterations, tol=-1.0, init_centroids=centers
            )
            return answer

        took = seconds(run)
        # Its labels are those of the centres before the last update: one iteration fewer.
        labels = run()[0][0]
        wrong = int((labels != nearest(rows, run(ITERATIONS - 1)[1][0])).sum())
        name = f"flash-kmeans, float32, batch of {count}"
        found.append(_row(name, took / count / ITERATIONS, wrong, len(X)))
    return found


def _ours(X: Any, starts: Any, ceilings: Ceilings) -> dict[str, Any]:
    """Whole runs to the fixed point, divided by the iterations that they took."""
    engine = GpuEngine(X)
    m, n, d = starts.shape[1], engine.n_samples, engine.n_features
    batch = Batch(engine.samples, m, PROBLEMS)
    lloyd = Lloyd(engine.samples, batch)
    encoded = [engine.frame.encode(one.astype(np.float64)) for one in starts]

    def begin() -> None:
        batch.load(encoded)
        batch.activate(range(PROBLEMS))
        lloyd.ops.prepare(engine.samples, batch, PROBLEMS)

    def iterate() -> None:
        begin()
        lloyd.run(PROBLEMS)

    took = seconds(iterate)
    iterations = int(batch.n_iter.sum())
    wrong = sum(
        int((batch.labels[b] != nearest(engine.samples.rows, batch.centers[b])).sum())
        for b in range(0, PROBLEMS, 8)
    )
    batch.activate(range(PROBLEMS))
    lloyd.ops.propose(engine.samples, batch, PROBLEMS)
    doubtful = float(batch.counts[:, 0].float().mean()) / n

    def propose() -> None:
        lloyd.ops.propose(engine.samples, batch, PROBLEMS)
        batch.counts.zero_()

    rate = 2.0 * n * m * d * PROBLEMS / seconds(propose, 20) / 1e12
    return _row(
        f"evomeans, {X.dtype}, batch of {PROBLEMS}, exact",
        (took - seconds(begin)) / iterations,
        wrong,
        4 * n,
        **{
            "TFLOP/s": rate,
            "share of product": rate / ceilings.product,
            "doubtful %": 100 * doubtful,
        },
    )


def agree(m: int, d: int) -> float:
    """Return how far the GPU engine's inertia is from that of the CPU engine, relatively."""
    from evomeans.engines.cpu import CpuEngine

    X = gaussian_mixture(N_SAMPLES, m, d, 0).X
    gpu, cpu = GpuEngine(X), CpuEngine(X, searching=False)
    rng = np.random.default_rng(0)
    centers = gpu.frame.encode(X[rng.choice(len(X), m, replace=False)])
    (refined,) = gpu.refine([Order(centers)])
    labels, inertia = cpu.assign(refined.centers)
    assert np.array_equal(labels, gpu.assign(refined.centers)[0])
    return abs(refined.inertia - inertia) / inertia
