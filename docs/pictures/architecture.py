"""Draw the layers of the package for docs/development/index.md.

Run it with ``make picture``. A box is a folder of ``src/evomeans``, of its ``engines``, or the
laboratory.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from evomeans.plotting.axes import INK, MUTED

TARGET = Path(__file__).resolve().parents[1] / "images" / "architecture.png"

# Rows from the top: the colour of a row, its meaning, and its boxes (name, what it does, width).
ROWS = (
    (
        "#fde8d8",
        "what people see",
        (("cli", "tables, runs", 1), ("report", "one HTML page", 1), ("plotting", "pictures", 1)),
    ),
    (
        "#e3f1fa",
        "what Python calls",
        (
            ("estimators", "HGMeans and the other models", 2),
            ("criteria", "which k", 1),
            ("storage", "files", 1),
        ),
    ),
    (
        "#e0f3ec",
        "what searches",
        (("path", "a range of k", 1), ("search", "sees centres, never samples", 2)),
    ),
    ("#fff3cd", "the protocol", (("engines.protocol", "Order in, Refinement out", 3),)),
    (
        "#ece6f6",
        "what holds samples",
        (
            ("cpu", "Numba", 1),
            ("gpu", "PyTorch, Triton", 1),
            ("dask", "blocks", 1),
            ("models", "limits, cosines, outliers", 1.3),
            ("reference", "NumPy, the oracle", 1.1),
        ),
    ),
    (
        "#f7e8ee",
        "what computes",
        (
            ("kernels", "matching, merging", 1),
            ("exact", "proofs", 1),
            ("metrics", "how good, how alike", 1),
        ),
    ),
    ("#eceff2", "what compiles", (("compiled", "kernels to machine code, and its cache", 3),)),
)
LABORATORY = ("lab", ("baselines", "the paper", "benchmarks", "data sets", "results"))
LEFT, WIDTH, HEIGHT, SPACE = 2.6, 9.6, 0.9, 0.28
BESIDE, LAB_WIDTH = 0.75, 1.75
BOTTOM = -(len(ROWS) - 1) * (HEIGHT + SPACE)


def draw_box(axes: Axes, place: tuple[float, float], width: float, texts: tuple[str, str]) -> None:
    """Draw one box with its name and what it does."""
    x, y = place
    box = FancyBboxPatch(
        (x + 0.12, y + 0.12),
        width - 0.24,
        HEIGHT - 0.24,
        boxstyle="round,pad=0.08",
        facecolor="white",
        edgecolor=MUTED,
        linewidth=1,
    )
    axes.add_patch(box)
    name, text = texts
    axes.text(x + width / 2, y + 0.57, name, ha="center", va="center", color=INK, weight="bold")
    axes.text(x + width / 2, y + 0.29, text, ha="center", va="center", color=MUTED, size=9)


def draw_layers(axes: Axes) -> None:
    """Draw the rows from top to bottom, with an arrow between them."""
    for number, (color, meaning, boxes) in enumerate(ROWS):
        y = -number * (HEIGHT + SPACE)
        ground = FancyBboxPatch(
            (0, y), LEFT + WIDTH, HEIGHT, boxstyle="round,pad=0.05", facecolor=color, linewidth=0
        )
        axes.add_patch(ground)
        axes.text(0.15, y + HEIGHT / 2, meaning, va="center", color=INK, size=11)
        unit = WIDTH / sum(width for *_, width in boxes)
        x = LEFT
        for name, text, width in boxes:
            draw_box(axes, (x, y), width * unit, (name, text))
            x += width * unit
        if number:
            axes.annotate(
                "",
                (LEFT + WIDTH / 2, y + HEIGHT + 0.02),
                (LEFT + WIDTH / 2, y + HEIGHT + SPACE - 0.02),
                arrowprops={"arrowstyle": "-|>", "color": MUTED},
            )


def draw_laboratory(axes: Axes) -> None:
    """Draw the laboratory beside the package, which it uses."""
    x, middle = LEFT + WIDTH + BESIDE, (BOTTOM + HEIGHT) / 2
    box = FancyBboxPatch(
        (x, BOTTOM),
        LAB_WIDTH,
        HEIGHT - BOTTOM,
        boxstyle="round,pad=0.05",
        facecolor="white",
        edgecolor=MUTED,
        linestyle="--",
    )
    axes.add_patch(box)
    name, texts = LABORATORY
    center = x + LAB_WIDTH / 2
    axes.text(center, middle + 1.3, name, ha="center", va="center", color=INK, weight="bold")
    for number, text in enumerate(texts):
        axes.text(
            center, middle + 0.8 - 0.4 * number, text, ha="center", va="center", color=MUTED, size=9
        )
    arrow = {"arrowstyle": "-|>", "color": MUTED}
    axes.annotate("", (LEFT + WIDTH + 0.1, middle), (x - 0.08, middle), arrowprops=arrow)


def main() -> None:
    """Draw the picture and write it."""
    figure = Figure(figsize=(11.6, 6.8), dpi=110)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    draw_layers(axes)
    draw_laboratory(axes)
    right = LEFT + WIDTH + BESIDE + LAB_WIDTH
    axes.set(xlim=(-0.15, right + 0.15), ylim=(BOTTOM - 0.2, HEIGHT + 0.2))
    axes.set_axis_off()
    figure.savefig(TARGET, metadata={"Software": None})
    print(TARGET.name)


if __name__ == "__main__":
    main()
