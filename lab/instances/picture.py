"""The picture of the page: which instances are proven, which are open, and how far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.instances import library
from lab.instances.library import DataFile, Instance

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "instances.svg"
PLACES = {**{k: k - 2 for k in range(2, 51)}, 60: 50, 80: 52, 100: 54}
"""The column of each number of clusters; the last ones are apart, to make room for their names."""
CELL, LEFT, TOP, BELOW = 14, 250, 30, 60
PROVEN_COLOUR, OPEN_COLOUR = "#1b7837", "#d9d9d9"
GAPS = ((1e-6, "#7fbf7b"), (1e-4, "#fee391"), (1e-3, "#fe9929"), (float("inf"), "#cc4c02"))
"""The largest gap of each colour."""
LEGEND = (
    (PROVEN_COLOUR, "proven, with certificate"),
    (GAPS[0][1], "gap ≤ 0.0001 %, no certificate"),
    (GAPS[1][1], "≤ 0.01 %"),
    (GAPS[2][1], "≤ 0.1 %"),
    (GAPS[3][1], "larger"),
    (OPEN_COLOUR, "open, no bound"),
)


def colour(instance: Instance) -> str:
    """Return the colour of an instance."""
    if instance.status == library.PROVEN:
        return PROVEN_COLOUR
    if instance.gap is None:
        return OPEN_COLOUR
    gap = instance.gap
    return next(name for largest, name in GAPS if gap <= largest)


def picture(files: Sequence[DataFile]) -> str:
    """Draw a row per data set and a column per number of clusters, as SVG."""
    width = LEFT + CELL * (max(PLACES.values()) + 1) + 20
    height = TOP + CELL * len(files) + BELOW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        "<title>Instances that are proven, bounded and open</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for k, column in PLACES.items():
        if k == 2 or k % 5 == 0:
            x = LEFT + CELL * column + CELL / 2
            lines.append(f'<text x="{x}" y="{TOP - 8}" text-anchor="middle">{k}</text>')
    for row, data in enumerate(files):
        y = TOP + CELL * row
        size = f"{data.title} ({data.samples:,} × {data.features})"
        text = size.replace("&", "&amp;").replace("<", "&lt;")
        lines.append(f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{text}</text>')
        for k, one in data.instances.items():
            if k in PLACES:
                x = LEFT + CELL * PLACES[k]
                box = f'x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}"'
                lines.append(f'<rect {box} fill="{colour(one)}"/>')
    lines.append(f'<text x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end">k =</text>')
    y, x = height - 32, 20
    for shade, label in LEGEND:
        lines.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{shade}"/>')
        lines.append(f'<text x="{x + 18}" y="{y + 10}">{label}</text>')
        x += 44 + 7 * len(label)
    return "\n".join([*lines, "</svg>", ""])
