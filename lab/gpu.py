"""The GPU engine on the mixtures of section 4.5, beside the paper, other programs and the CPU.

  python -m lab gpu fits         whole fits of the twenty mixtures, some seeds each
  python -m lab gpu iterations   one K-means iteration beside plain PyTorch and flash-kmeans
  python -m lab gpu large        1,000,000 x 100, m = 100: time and memory
  python -m lab gpu small        from which size on a GPU wins over the CPU engine
  python -m lab gpu batch        rounds of 32 against rounds of 1, equally many offspring
  python -m lab gpu codebooks    1,000,000 x 128, thousands of clusters: inertia over time, beside
                                 25 iterations of flash-kmeans, fastkmeans and plain PyTorch

It needs the extra gpu and an NVIDIA GPU; batch --engine cpu runs anywhere and needs the data sets
in the folder EVOMEANS_DATA. Tables are printed, and kept in lab/results/gpu-*.csv.
"""

from __future__ import annotations

import csv
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from evomeans import HGMeans
from evomeans.engines import Engine, create_engine
from evomeans.metrics import centroid_index
from evomeans.search import DEEP, STRATEGIES, SearchSettings, Strategy, solve
from evomeans.search.crossover import merging_crossover
from evomeans.typing import FloatArray
from lab.measure import RESULTS, parser_for
from lab.mixtures import N_SAMPLES, SETUPS, gaussian_mixture, overlapping_mixture

# The paper's Tables 8 and 9 for HG-means: seconds, adjusted Rand index and centroid index.
PAPER = dict(
    zip(
        SETUPS,
        [
            *((1085.40, 0.72, 0), (1308.96, 0.98, 0), (553.25, 1.00, 0)),
            *((1505.16, 1.00, 0), (2563.73, 1.00, 0), (3189.56, 0.59, 0)),
            *((4307.12, 0.94, 0), (2934.41, 1.00, 0), (9629.09, 1.00, 0)),
            *((18360.24, 1.00, 0), (13529.09, 0.49, 0), (10344.57, 0.91, 0)),
            *((6728.71, 0.99, 1), (20499.22, 0.99, 1), (38217.57, 0.98, 2)),
            *((38126.21, 0.41, 6), (28513.22, 0.87, 0), (39980.98, 0.96, 5)),
            *((67745.79, 0.99, 3), (93444.51, 0.98, 5)),
        ],
        strict=True,
    )
)
# Problems on which rounds of 1 and of 32 are compared, and how many offspring they get.
COMPARED = ("pendigit:20", "letters:50", "tsplib3038:50", "image_segmentation:25", "ionosphere:20")
OFFSPRING = 1500

# Numbers of samples for which the engines are compared.
SIZES = (200, 500, 1_000, 3_000, 10_000, 30_000, 100_000)

Row = Mapping[str, Any]

TABLES = ("fits", "iterations", "large", "small", "batch", "codebooks")
# Of codebooks: rows and features; when to look at the inertia; and what is compared.
N_VECTORS, N_FEATURES = 1_000_000, 128
SECONDS = (1.0, 2.0, 4.0, 6.0, 12.0, 30.0)
VARIANTS: tuple[Strategy, ...] = (
    DEEP,
    replace(DEEP, name="k-means++ first", founding=DEEP.founding[::-1]),
    replace(DEEP, name="populations of 20", noisy_founders=20),
    replace(DEEP.without(merging_crossover), name="matching"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_for("gpu", __doc__)
    parser.add_argument("what", choices=list(TABLES))
    parser.add_argument("--seeds", type=int, default=3, help="runs of each problem (3)")
    parser.add_argument("--setups", default="", help="only these mixtures: 20x20,200x500")
    parser.add_argument("--sizes", default="", help="for small: only these n: 200,1000")
    parser.add_argument("--engine", default="gpu", help="for batch: gpu (rounds of 32) or cpu (1)")
    parser.add_argument("--clusters", default="1024,4096,16384", help="for codebooks")
    parser.add_argument("--seconds", type=float, default=12.0, help="for codebooks: max_time (12)")
    parser.add_argument("--variants", action="store_true", help="for codebooks: other settings too")
    parser.add_argument("--strategy", choices=list(STRATEGIES), default="paper", help="for fits")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the .csv files")
    options = parser.parse_args(arguments)
    if options.strategy != "paper" and options.what != "fits":
        parser.error(f"--strategy is for fits; {options.what} measures the paper's.")
    print(described_machine(options.engine))
    if options.what == "fits":
        chosen = [tuple(map(int, one.split("x"))) for one in options.setups.split(",") if one]
        setups = [s for s in SETUPS if not chosen or s in chosen]
        rows = fits(setups, options.seeds, options.strategy)
    elif options.what == "batch":
        rows = batch(options.engine, options.seeds)
    elif options.what == "small":
        rows = small([int(n) for n in options.sizes.split(",") if n] or SIZES)
    elif options.what == "codebooks":
        clusters = [int(k) for k in options.clusters.split(",")]
        rows = codebooks(clusters, options.seconds, VARIANTS if options.variants else VARIANTS[:1])
    else:
        rows = iterations() if options.what == "iterations" else large()
    name = f"gpu-{options.what}" + (f"-{options.engine}" if options.what == "batch" else "")
    if options.strategy != "paper":
        name += f"-{options.strategy}"
    write(options.output / f"{name}.csv", show(rows))


def described_machine(engine: str = "gpu") -> str:
    """Device and versions."""
    import scipy

    text = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    text += f", Python {platform.python_version()}"
    text += f", numpy {np.__version__}, scipy {scipy.__version__}"
    if engine == "cpu":
        return text
    import torch
    import triton

    name = torch.cuda.get_device_name()
    return f"{name}, torch {torch.__version__}, triton {triton.__version__}; {text}"


def fits(setups: Sequence[tuple[int, ...]], n_seeds: int, strategy: str = "paper") -> Iterator[Row]:
    """Fit every mixture with some seeds, standard setting; kernels are compiled before."""
    for m, d in setups:
        mixture = gaussian_mixture(N_SAMPLES, m, d, 0)
        HGMeans(m, strategy=strategy, engine="gpu", random_state=0, max_offspring=64).fit(mixture.X)
        seconds, rand, index = PAPER[m, d]
        for seed in range(n_seeds):
            model, took = fit(mixture.X, m, seed, strategy)
            yield {
                "m": m,
                "d": d,
                "seed": seed,
                "fit s": took,
                "paper s": seconds,
                "times faster": seconds / took,
                "objective": model.inertia_,
                "Rand": adjusted_rand_score(mixture.labels, model.labels_),
                "paper Rand": rand,
                "CI": centroid_index(model.cluster_centers_, mixture.means),
                "paper CI": index,
                "offspring": model.n_iter_,
                "iterations each": model.history_.column("n_iter").mean(),
                "stop": str(model.stop_reason_),
            }


def fit(X: Any, m: int, seed: int, strategy: str = "paper") -> tuple[HGMeans, float]:
    """Fit and take the time, validation and transfers included."""
    began = time.perf_counter()
    model = HGMeans(m, strategy=strategy, engine="gpu", random_state=seed).fit(X)
    return model, time.perf_counter() - began


def iterations() -> Iterator[Row]:
    """One K-means iteration, update included, per problem of a batch."""
    from lab.gpu_iterations import SHAPES, agree, compare, measure_ceilings

    ceilings = measure_ceilings()
    print(
        f"ceilings measured: half-precision product {ceilings.product:.0f} TFLOP/s, "
        f"copy {ceilings.copy:.2f} TB/s"
    )
    for m, d in SHAPES:
        yield from compare(m, d, ceilings)
    for m, d in SHAPES:
        print(f"inertia beside the CPU engine's, m={m} d={d}: differs by {agree(m, d):.1e}")


def large() -> Iterator[Row]:
    """Fit a million samples, in single precision."""
    import torch

    n, m, d = 1_000_000, 100, 100
    X = gaussian_mixture(n, m, d, 0).X.astype(np.float32)
    HGMeans(m, strategy="paper", engine="gpu", random_state=0, max_offspring=32).fit(X)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model, took = fit(X, m, 0)
    yield {
        "n": n,
        "m": m,
        "d": d,
        "fit s": took,
        "offspring": model.n_iter_,
        "iterations each": model.history_.column("n_iter").mean(),
        "objective": model.inertia_,
        "peak GiB on the device": torch.cuda.max_memory_allocated() / 2**30,
        "stop": str(model.stop_reason_),
    }


def small(sizes: Sequence[int]) -> Iterator[Row]:
    """Milliseconds per offspring of the GPU engine and of the CPU engine, by size."""
    threads = os.cpu_count() or 1
    for m, d in ((10, 5), (20, 20), (100, 20), (100, 100)):
        for n in sizes:
            X = gaussian_mixture(n, m, d, 0).X
            row = {"n": n, "m": m, "d": d, "nmd": n * m * d}
            engines = {
                "gpu": create_engine("gpu", X, None),
                "cpu, 1 thread": create_engine("cpu", X, None),
                f"cpu, {threads} threads": create_engine("cpu", X, None, n_jobs=threads),
            }
            for name, engine in engines.items():
                row[name] = 1e3 * per_offspring(engine, m, 320 if name == "gpu" else 96)
            yield {**row, "gpu wins by": row["cpu, 1 thread"] / row["gpu"]}


def per_offspring(engine: Engine, m: int, count: int) -> float:
    """Seconds per solution of a short search, its second one."""
    settings = SearchSettings(max_offspring=count, patience=count)
    solve(engine, m, SearchSettings(2, 2, max_offspring=1), np.random.default_rng(0))
    began = time.perf_counter()
    solve(engine, m, settings, np.random.default_rng(0))
    return (time.perf_counter() - began) / (count + settings.max_population)


def batch(engine_name: str, n_seeds: int) -> Iterator[Row]:
    """Compare searches of equally many offspring, in the rounds that an engine likes."""
    settings = SearchSettings(max_offspring=OFFSPRING, patience=OFFSPRING)
    for setup in COMPARED:
        name, m = setup.split(":")
        with np.load(Path(os.environ["EVOMEANS_DATA"]) / f"{name}.npz") as stored:
            X = np.ascontiguousarray(stored["X"], dtype=np.float64)
        engine = create_engine(engine_name, X, None)
        values = [
            solve(engine, int(m), settings, np.random.default_rng(seed)).best.inertia
            for seed in range(n_seeds)
        ]
        yield {
            "problem": setup,
            "rounds of": engine.batch,
            "seeds": n_seeds,
            "offspring": OFFSPRING,
            "mean objective": float(np.mean(values)),
            "lowest": min(values),
            "highest": max(values),
        }


def codebooks(
    clusters: Sequence[int], seconds: float, variants: Sequence[Strategy]
) -> Iterator[Row]:
    """Return what a search has after so many seconds of ``fit``, in per cent of the best rival."""
    X = overlapping_mixture(N_VECTORS, N_FEATURES)
    for k in clusters:
        # Kernels are compiled before.
        HGMeans(k, engine="gpu", n_jobs=-1, random_state=1, max_offspring=1).fit(X)
        engine = create_engine("gpu", X, None, searching=False)
        rivals: list[tuple[str, float, float]] = []
        for name, rival in CODEBOOK_RIVALS.items():
            try:
                centers, took = rival(X, k)
            except ImportError as error:
                print(f"{name} is not installed ({error})")
                continue
            rivals.append((name, engine.assign(engine.frame.encode(centers))[1], took))
        lowest = min(value for _, value, _ in rivals)
        for name, value, took in rivals:
            yield codebook_row(k, f"{name}, 25 iterations", lowest, [took], [value], 0)
        for strategy in variants:
            model = HGMeans(
                k, engine="gpu", n_jobs=-1, random_state=0, max_time=seconds, strategy=strategy
            ).fit(X)
            times, best = (model.history_.column(one) for one in ("seconds", "best"))
            yield codebook_row(k, strategy.name, lowest, times, best, model.n_iter_)


def flash_codebook(X: Any, k: int) -> tuple[FloatArray, float]:
    """Return the centres of flash-kmeans, and its seconds with the rows on the device."""
    import torch
    from flash_kmeans import batch_kmeans_Euclid

    rows = torch.from_numpy(X).cuda()[None]
    for _ in range(2):
        # The first time it compiles.
        torch.manual_seed(0)
        torch.cuda.synchronize()
        began = time.perf_counter()
        _, centers, _ = batch_kmeans_Euclid(rows, k, max_iters=25, tol=-1.0)
        torch.cuda.synchronize()
        took = time.perf_counter() - began
    return centers[0].double().cpu().numpy(), took


def fast_codebook(X: Any, k: int) -> tuple[FloatArray, float]:
    """Return the centres of fastkmeans with all rows, and its seconds with the transfer."""
    from fastkmeans import FastKMeans

    for _ in range(2):
        model = FastKMeans(X.shape[1], k, niter=25, seed=0, max_points_per_centroid=None)
        began = time.perf_counter()
        model.train(X)
        took = time.perf_counter() - began
    return np.asarray(model.centroids, np.float64), took


def plain_codebook(X: Any, k: int) -> tuple[FloatArray, float]:
    """Return the centres of plain PyTorch from random rows, and its seconds with the transfer."""
    import torch

    from lab.gpu_iterations import plain_torch

    chosen = torch.from_numpy(np.random.default_rng(0).choice(len(X), k, replace=False))
    torch.cuda.synchronize()
    began = time.perf_counter()
    rows = torch.from_numpy(X).cuda()
    _, centers = plain_torch(rows, rows[chosen.cuda()], 25, rows_at_once=2**16)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    return centers.double().cpu().numpy(), took


CODEBOOK_RIVALS = {
    "flash-kmeans": flash_codebook,
    "fastkmeans": fast_codebook,
    "plain torch": plain_codebook,
}


def codebook_row(
    k: int, name: str, rival: float, times: Sequence[float], best: Sequence[float], offspring: int
) -> Row:
    """Describe a search: its first answer, and how far from the rival it is at some times."""
    row: dict[str, Any] = {"k": k, "program": name, "first s": times[0], "first": best[0]}
    row |= {"first %": 100.0 * (best[0] / rival - 1.0)}
    for limit in SECONDS:
        known = [value for second, value in zip(times, best, strict=True) if second <= limit]
        row[f"{limit:g} s %"] = 100.0 * (known[-1] / rival - 1.0) if known else float("nan")
    return {**row, "last": best[-1], "solutions": len(times), "offspring": offspring}


def show(rows: Iterator[Row]) -> list[Row]:
    """Print rows as they come, and return them."""
    shown: list[Row] = []
    for row in rows:
        texts = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values()]
        if not shown:
            widths = [max(len(key), len(text) + 3) for key, text in zip(row, texts, strict=True)]
            print("  ".join(key.rjust(width) for key, width in zip(row, widths, strict=True)))
        print("  ".join(text.rjust(w) for text, w in zip(texts, widths, strict=True)), flush=True)
        shown.append(row)
    return shown


def write(path: Path, rows: Sequence[Row]) -> None:
    """Keep the rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
