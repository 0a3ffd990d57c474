"""Draw one offspring step by step, and the populations of a search, for the user guide.

Run it with ``make picture``. All that is drawn is computed here, by the library's own operators and
searches. The offspring is a chosen one, for most bring nothing: it is the first of those that make
up for what both parents lack and to which every step contributes. Both searches have the seed of
the example in docs/guide/how-sure.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from sklearn.datasets import load_diabetes

from evomeans import HGMeans
from evomeans.engines import Order, create_engine
from evomeans.engines.protocol import LocalSearch
from evomeans.search import Individual
from evomeans.search.crossover import Breeding, squared_matching_crossover
from evomeans.search.population import different_parents, inherited_alpha

IMAGES = Path(__file__).resolve().parents[1] / "images"

# Okabe and Ito's colours, which stay apart for colour-blind readers; the markers differ as well.
INK, TEXT, LINE = "#1b1f24", "#4a5058", "#d5d9de"
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"

MOVES, STILL = LocalSearch(single_moves=True), LocalSearch(max_iter=0)
N_CLOUDS = 13
N_FOUNDERS = 20
N_CLUSTERS = 60
"""Of the second picture: so many that populations differ, so few that they also agree."""
N_SHOWN = 8
"""Populations of the default search in the second picture; later ones would hide each other."""


# One offspring, step by step.


class Step(NamedTuple):
    """Centres in units of the data, and their inertia."""

    centers: np.ndarray
    inertia: float


@dataclass(frozen=True)
class Way:
    """What became of one offspring."""

    parents: tuple[Step, Step]
    child: Step
    relocated: Step
    removed: int
    refined: Step
    moved: np.ndarray
    """Samples that changed their cluster against K-means."""
    after_kmeans: float
    """The inertia before they did."""


def make_clouds(seed: int = 17) -> tuple[np.ndarray, np.ndarray]:
    """Make round Gaussian clouds of unequal size and spread, their middles well apart.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The samples.
    cloud : ndarray of shape (n_samples,)
        The cloud each sample was drawn from.
    """
    rng = np.random.default_rng(seed)
    middles: list[np.ndarray] = []
    while len(middles) < N_CLOUDS:
        candidate = rng.uniform((0.0, 0.0), (11.0, 5.4))
        if all(np.hypot(*(candidate - middle)) > 1.45 for middle in middles):
            middles.append(candidate)
    sizes = np.exp(rng.uniform(np.log(12), np.log(70), N_CLOUDS)).astype(int)
    cloud = np.repeat(np.arange(N_CLOUDS), sizes)
    spread = rng.uniform(0.26, 0.42, N_CLOUDS)[cloud, None]
    return np.array(middles)[cloud] + spread * rng.standard_normal((len(cloud), 2)), cloud


def ways(X: np.ndarray, rng: np.random.Generator) -> Iterator[Way]:
    """Breed one offspring after the other from the same founders."""
    engine = create_engine("cpu", X, None)

    def step(start: Order) -> Step:
        refined = engine.refine([start])[0]
        return Step(engine.frame.decode(refined.centers), refined.inertia)

    founders = []
    for _ in range(N_FOUNDERS):
        start = Order(engine.seed(rng.random(N_CLOUDS)), rng.random(), power=2, local_search=MOVES)
        refined = engine.refine([start])[0]
        founders.append(
            Individual(refined.centers, refined.inertia, refined.cluster_weights, start.alpha)
        )
    while True:
        first, second = different_parents(founders, rng.random(4).tolist())
        child = squared_matching_crossover(
            first, second, Breeding(engine, rng.random(N_CLOUDS), 0.5)
        )
        removed = int(rng.integers(N_CLOUDS))
        alpha = inherited_alpha(first.alpha, second.alpha, rng.random())
        mutation = {"alpha": alpha, "quantile": rng.random(), "removed": removed, "power": 2}
        plain = step(Order(child.centers, **mutation))
        refined = step(Order(child.centers, **mutation, local_search=MOVES))
        before, after = (engine.assign(engine.frame.encode(s.centers))[0] for s in (plain, refined))
        yield Way(
            parents=tuple(Step(engine.frame.decode(p.centers), p.inertia) for p in (first, second)),
            child=step(Order(child.centers, local_search=STILL)),
            relocated=step(Order(child.centers, **mutation, local_search=STILL)),
            removed=removed,
            refined=refined,
            moved=before != after,
            after_kmeans=plain.inertia,
        )


def clouds_without(centers: np.ndarray, means: np.ndarray) -> set[int]:
    """Tell which clouds are the closest one of no centre."""
    squares = ((centers[:, None, :] - means) ** 2).sum(axis=2)
    return set(range(len(means))) - set(squares.argmin(axis=1).tolist())


def is_telling(way: Way, means: np.ndarray) -> bool:
    """Whether the parents lack a cloud each, not the same, and every step does its part."""
    lacking = [clouds_without(step.centers, means) for step in (*way.parents, way.child)]
    return (
        all(len(clouds) == 1 for clouds in lacking)
        and lacking[0] != lacking[1]
        and not clouds_without(way.relocated.centers, means)
        and not clouds_without(way.refined.centers, means)
        and bool(way.moved.any())
    )


@dataclass(frozen=True)
class Style:
    """How the centres of one kind look."""

    meaning: str
    marker: str
    size: int
    color: str


BOTH = Style("centre in both parents, or at the end", "o", 130, INK)
FIRST = Style("in the first only", "^", 220, BLUE)
SECOND = Style("in the second only", "s", 150, VERMILION)
PLACED = Style("relocated centre", "D", 150, GREEN)
# Centres of the two parents that are no farther apart count as the same one.
SAME = 0.12
# Width of a panel by its height.
PANEL = 1.7


def draw_step() -> Figure:
    """Show the way of one offspring from its parents into the population."""
    X, cloud = make_clouds()
    means = np.array([X[cloud == c].mean(axis=0) for c in range(N_CLOUDS)])
    way = next(way for way in ways(X, np.random.default_rng(0)) if is_telling(way, means))
    figure = Figure(figsize=(16, 12.2), dpi=100)
    panels = figure.subplots(2, 2).ravel()
    middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2 + 0.4
    width, height = max(half[0] / PANEL, half[1]) * np.array([PANEL, 1.0])
    for axes in panels:
        axes.scatter(*X.T, s=26, color="#bcc3cb", linewidths=0)
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.set_xlim(middle[0] - width, middle[0] + width)
        axes.set_ylim(middle[1] - height, middle[1] + height)
        axes.spines[:].set_color(LINE)
    draw_parents(panels[0], way.parents, means)
    draw_child(panels[1], way, range(N_CLOUDS))
    encircle(panels[1], way.child, means, INK)
    draw_child(panels[2], way, [j for j in range(N_CLOUDS) if j != way.removed])
    draw_relocation(panels[2], way)
    draw_refined(panels[3], way, X)

    first, second = way.parents
    n_moved = np.count_nonzero(way.moved)
    samples = "one sample" if n_moved == 1 else f"{n_moved} samples"
    texts = (
        ("Two parents", f"inertia {first.inertia:.1f} and {second.inertia:.1f}"),
        ("Crossover", f"one centre of each pair, inertia {way.child.inertia:.1f}"),
        ("Relocation", f"of one centre, inertia {way.relocated.inertia:.1f}"),
        (
            "K-means, then single moves",
            f"inertia {way.after_kmeans:.2f}, with {samples} moved {way.refined.inertia:.2f}",
        ),
    )
    for number, (axes, (name, result)) in enumerate(zip(panels, texts, strict=True), start=1):
        place = {"transform": axes.transAxes}
        axes.text(0, 1.105, f"{number}  {name}", size=26, weight="bold", color=INK, **place)
        axes.text(0, 1.03, result, size=20, color=TEXT, **place)
    add_legend(figure)
    figure.subplots_adjust(
        left=0.012, right=0.988, top=0.922, bottom=0.1, wspace=0.03, hspace=0.215
    )
    return figure


def draw_parents(axes: Axes, parents: tuple[Step, Step], means: np.ndarray) -> None:
    """Draw the centres of both, and around a cloud that one of them lacks a ring in its colour."""
    # The first parent last: its triangles cover less.
    for own, other, style in zip(parents[::-1], parents, (SECOND, FIRST), strict=True):
        both = near(own.centers, other.centers)
        put(axes, own.centers[~both], style)
        put(axes, own.centers[both], BOTH)
        encircle(axes, own, means, style.color)


def draw_child(axes: Axes, way: Way, shown: Sequence[int]) -> None:
    """Draw centres of the child as they are drawn in its parents."""
    centers = way.child.centers[list(shown)]
    first, second = (near(centers, parent.centers) for parent in way.parents)
    put(axes, centers[first & second], BOTH)
    put(axes, centers[first & ~second], FIRST)
    put(axes, centers[second & ~first], SECOND)


def draw_relocation(axes: Axes, way: Way) -> None:
    """Draw an arrow from where the centre was removed to where it was put."""
    old, new = way.child.centers[way.removed], way.relocated.centers[way.removed]
    arrow = {
        "arrowstyle": "-|>,head_width=0.5,head_length=0.9",
        "color": GREEN,
        "linewidth": 2.6,
        "shrinkA": 8,
        "shrinkB": 9,
        "connectionstyle": "arc3,rad=-0.18",
    }
    axes.annotate("", new, old, arrowprops=arrow)
    axes.scatter(*old, s=150, facecolors="white", edgecolors=GREEN, linewidths=2.2, zorder=3)
    put(axes, new[None], PLACED)


def draw_refined(axes: Axes, way: Way, X: np.ndarray) -> None:
    """Draw the centres with the way that they came, and the samples that moved."""
    both_ends = np.stack([way.relocated.centers, way.refined.centers])
    axes.plot(*both_ends.transpose(2, 0, 1), color=INK, linewidth=2.4, solid_capstyle="round")
    put(axes, way.refined.centers, BOTH)
    axes.scatter(*X[way.moved].T, s=26, color=GREEN, linewidths=0, zorder=4)
    ring = {"facecolors": "none", "edgecolors": GREEN, "linewidths": 2.4}
    axes.scatter(*X[way.moved].T, s=200, zorder=4, **ring)


def encircle(axes: Axes, step: Step, means: np.ndarray, color: str) -> None:
    """Draw a ring around every cloud without a centre."""
    for lacking in clouds_without(step.centers, means):
        axes.add_patch(
            Circle(means[lacking], 0.95, fill=False, color=color, linestyle=(0, (4, 3)), lw=2.4)
        )


def add_legend(figure: Figure) -> None:
    """Say what the marks mean, in two rows."""
    symbol = {"linestyle": "", "markersize": 13}
    handles = [
        Line2D([], [], marker=style.marker, color=style.color, label=style.meaning, **symbol)
        for style in (BOTH, FIRST, SECOND, PLACED)
    ]
    ring = {"markerfacecolor": "none", "markeredgewidth": 2.4}
    dashed = Line2D([], [], color=INK, linestyle=(0, (2.2, 1.6)), lw=2.4)
    dashed.set_label("cloud without a centre")
    moved = Line2D([], [], marker="o", color=GREEN, label="sample that moved", **symbol, **ring)
    # Column by column.
    entries = [handles[0], handles[3], handles[1], dashed, handles[2], moved]
    figure.legend(
        handles=entries,
        loc="lower center",
        ncols=3,
        frameon=False,
        fontsize=20,
        handlelength=1.4,
        handletextpad=0.5,
        columnspacing=2.2,
    )


def near(centers: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell which centres stand where one of the others does."""
    squares = ((centers[:, None, :] - others) ** 2).sum(axis=2)
    return squares.min(axis=1) < SAME**2


def put(axes: Axes, centers: np.ndarray, style: Style) -> None:
    """Draw centres of one kind."""
    axes.scatter(
        *centers.T,
        s=style.size,
        marker=style.marker,
        color=style.color,
        edgecolors="white",
        linewidths=1.5,
        zorder=3,
    )


# The populations of a search.

# Percent.
ROUNDING = 1e-7


@dataclass(frozen=True)
class Curve:
    """The best solution of a population as it continues: gap in percent to the best of all."""

    number: np.ndarray
    gap: np.ndarray
    is_combined: bool

    @property
    def finds_best(self) -> bool:
        """Whether it ends with the best of all, up to rounding."""
        return bool(self.gap[-1] < ROUNDING)


def curves(model: HGMeans, best: float) -> list[Curve]:
    """Return one curve for each population; one that combines two begins with the better one."""
    columns = ("number", "population_best", "population", "founder")
    numbers, inertias, populations, founders = map(model.history_.column, columns)
    found = []
    for population in np.unique(populations):
        part = populations == population
        gap = 100 * (np.minimum.accumulate(inertias[part]) / best - 1)
        found.append(Curve(numbers[part], gap, is_combined=not founders[part].any()))
    return found


def draw_populations() -> Figure:
    """Show the populations of a default search, next to the only one of the paper's search."""
    X = load_diabetes().data
    deep, paper = (
        HGMeans(N_CLUSTERS, strategy=strategy, random_state=8).fit(X)
        for strategy in ("deep", "paper")
    )
    best = min(deep.inertia_, paper.inertia_)
    figure = Figure(figsize=(16, 8.2), dpi=100)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(5, 3))
    left.set_yscale("symlog", linthresh=0.01, linscale=0.6)
    left.set(ylim=(-0.007, 40), yticks=(0, 0.01, 0.1, 1, 10))
    left.set_yticklabels(["0", "0.01", "0.1", "1", "10 %"])
    left.yaxis.minorticks_off()
    shown = [curves(model, best)[:N_SHOWN] for model in (deep, paper)]
    for axes, populations in zip((left, right), shown, strict=True):
        last = populations[-1].number[-1]
        axes.set_xlim(-0.02 * last, 1.015 * last)
        axes.set_xticks(range(0, last, 1000))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y", color=LINE, linewidth=1)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=19, labelcolor=TEXT, pad=8)
        axes.set_axisbelow(True)
        draw_curves(axes, populations)
        axes.set_xlabel("offspring", size=20, color=TEXT, labelpad=8)
    left.set_ylabel("inertia above the best of all", size=20, color=TEXT, labelpad=10)
    begun = [curve for curve in shown[0] if not curve.is_combined]
    agreeing = sum(curve.finds_best for curve in begun)
    found = f"{len(begun)} independent populations, {agreeing} of which found the same best"
    texts = (
        (left, 'strategy="deep"', found),
        (right, 'strategy="paper"', "one population"),
    )
    for axes, name, result in texts:
        axes.text(0, 1.1, name, size=25, weight="bold", color=INK, transform=axes.transAxes)
        axes.text(0, 1.03, result, size=20, color=TEXT, transform=axes.transAxes)
    figure.subplots_adjust(left=0.09, right=0.97, top=0.85, bottom=0.115, wspace=0.06)
    return figure


def draw_curves(axes: Axes, populations: Sequence[Curve]) -> None:
    """Draw the curves of a search, and say how each ends."""
    finds = 0
    # The ground of the words covers the lines that they would cross.
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
    words = {"textcoords": "offset points", "size": 20, "bbox": ground}
    for number, curve in enumerate(populations, start=1):
        color = BLUE if curve.finds_best else VERMILION
        axes.step(curve.number, curve.gap, where="post", color=color, linewidth=3)
        end, gap = curve.number[-1], curve.gap[-1]
        if curve.is_combined:
            # Above its line: the words about the two that it combines are below.
            place = {"ha": "right", "va": "bottom", "color": color}
            axes.annotate(f"{number}: combined", (end, gap), (0, 7), **place, **words)
            continue
        if curve.finds_best:
            finds += 1
            text = "best of all" if finds == 1 else "found again"
            reached = curve.number[curve.gap < ROUNDING][0]
            axes.plot(reached, 0, marker="o", color=color, markersize=14)
        else:
            text = f"+{gap:.2g} %"
        ends = {"ha": "right", "va": "top", "weight": "bold", "color": color}
        axes.annotate(text, (end, gap), (0, -10), **ends, **words)
        if len(populations) > 1:
            begin = (curve.number[0], curve.gap[0])
            axes.annotate(f"{number}", begin, (0, 7), ha="center", color=TEXT, **words)


def main() -> None:
    """Draw both pictures and write the PNGs."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, draw in (("search-step", draw_step), ("search-populations", draw_populations)):
        draw().savefig(IMAGES / f"{name}.png", metadata={"Software": None})
        print(f"{name}.png")


if __name__ == "__main__":
    main()
