"""Draw the layers of the package for docs/development/index.md.

Run it with ``make picture``. A box is a folder of ``src/evomeans``, or the packages it needs.
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
        (("cpu", "Numba", 1), ("gpu", "PyTorch, Triton", 1), ("dask", "blocks on workers", 1)),
    ),
    (
        "#eceff2",
        "what all build on",
        (
            ("exact", "proofs", 1),
            ("compiled", "kernels, cache", 1),
            ("criteria, metrics", "how many, how good", 1),
        ),
    ),
)
LEFT, WIDTH, HEIGHT, SPACE = 2.6, 9.0, 0.9, 0.28


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


def main() -> None:
    """Draw the picture and write it."""
    figure = Figure(figsize=(9.6, 5.9), dpi=110)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    draw_layers(axes)
    axes.set(xlim=(-0.15, LEFT + WIDTH + 0.15), ylim=(-5 * (HEIGHT + SPACE) - 0.2, HEIGHT + 0.2))
    axes.set_axis_off()
    figure.savefig(TARGET, metadata={"Software": None})
    print(TARGET.name)


if __name__ == "__main__":
    main()
