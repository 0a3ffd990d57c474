"""The charts of the report as inline SVG; all colours come from the style sheet."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evomeans.plotting.cluster_data import room_for_labels
from evomeans.report.svg import Scale, coordinate, round_ticks, shortened, tag, tick_text, words
from evomeans.report.theme import LEVELS
from evomeans.wording import percent_text

WIDTH = 560
# Room for the largest text of the narrow screen.
LEFT, RIGHT, TOP, BOTTOM = 72, 14, 40, 58


def convergence_chart(course: Mapping[str, Any], x_name: str) -> str:
    """Draw the solutions made and the best so far, in percent above the best found."""
    height, floor = 350, course["floor"]
    top = max([*course["gap"], *course["step_gap"], 10 * floor])
    x = Scale(0, max(course["x"][-1], course["step_x"][-1]) or 1, LEFT, WIDTH - RIGHT)
    y = Scale(floor, top * 1.3, height - BOTTOM - 8, TOP, log=True)

    def place(when: float, gap: float) -> str:
        return f"{coordinate(x(when))} {coordinate(y(max(gap, floor)))}"

    solutions = zip(course["x"], course["gap"], strict=True)
    dots = "".join(f"M{place(*solution)}h0" for solution in solutions)
    steps = list(zip(course["step_x"], course["step_gap"], strict=True))
    line = f"M{place(*steps[0])}" + "".join(
        f"H{coordinate(x(when))}V{coordinate(y(max(gap, floor)))}" for when, gap in steps[1:]
    )
    found = next(step for step in steps if step[1] <= steps[-1][1])
    return _picture(
        height,
        f"Best inertia so far by {x_name}, in {course['unit']}",
        _decades(y, floor, top, height),
        _x_axis(x, height, x_name),
        _y_name(course["unit"]),
        tag("path", d=dots, class_="dots"),
        tag("path", d=line, class_="line"),
        tag("circle", cx=x(found[0]), cy=y(max(found[1], floor)), r=5.5, class_="mark"),
    )


def _decades(y: Scale, floor: float, top: float, height: float) -> str:
    """Ticks at powers of ten, the lowest of which is the best found itself."""
    first, last = round(math.log10(floor)) + 1, math.floor(math.log10(top))
    exponents = list(range(first, last + 1))
    exponents = exponents[:: max(1, -(-len(exponents) // 6))]
    ticks = [(10.0**e, f"{10.0**e:,.{max(0, -e)}f} %") for e in exponents]
    return "".join(_y_tick(y(value), text) for value, text in [(floor, "best"), *ticks])


def scatter_chart(projection: Mapping[str, Any], clusters: Sequence[Mapping[str, Any]]) -> str:
    """Draw samples in the plane, one path per cluster, and the numbers of the clusters."""
    height = 480
    (x_low, x_high), (y_low, y_high) = projection["view"]
    x = Scale(x_low, x_high, LEFT, WIDTH - RIGHT)
    y = Scale(y_low, y_high, height - BOTTOM, TOP)
    dots: dict[int, list[str]] = defaultdict(list)
    for a, b, label in zip(*projection["points"], projection["labels"], strict=True):
        if x_low <= a <= x_high and y_low <= b <= y_high:
            dots[label].append(f"M{coordinate(x(a))} {coordinate(y(b))}h0")
    size = "small" if len(projection["labels"]) > 1200 else None
    paths = [
        tag("path", d="".join(dots[i]), class_=f"c c{clusters[i]['color']}", data_cluster=str(i))
        for i in sorted(dots)
    ]
    return _picture(
        height,
        "Samples by cluster on " + " and ".join(projection["axis_names"]),
        _y_axis(y),
        _x_axis(x, height, projection["axis_names"][0]),
        _y_name(projection["axis_names"][1]),
        tag("g", *paths, class_=f"points {size or ''}".rstrip()),
        _badges(projection, clusters, x, y),
    )


def _badges(
    projection: Mapping[str, Any], clusters: Sequence[Mapping[str, Any]], x: Scale, y: Scale
) -> str:
    """Write numbers on the centres that have room, largest clusters first; mark the others."""
    places = np.array([[x(a), y(b)] for a, b in zip(*projection["centers"], strict=True)])
    numbered = room_for_labels(places, (29, 21), np.array([c["size"] for c in clusters]))
    marks = []
    for i in sorted(range(len(clusters)), key=lambda i: numbered[i]):
        across, down = places[i]
        width = 12 + 7.5 * len(str(i))
        shape = (
            tag("rect", x=across - width / 2, y=down - 9.5, width=width, height=19, rx=9.5)
            + tag("text", words(str(i)), x=across, y=down + 4.5)
            if numbered[i]
            else tag("circle", cx=across, cy=down, r=3)
        )
        name = tag("title", words(f"cluster {i}: {clusters[i]['size']:,} samples"))
        kind = f"c badge c{clusters[i]['color']}"
        marks.append(tag("g", name, shape, class_=kind, data_cluster=str(i)))
    return "".join(marks)


def size_chart(clusters: Sequence[Mapping[str, Any]]) -> str:
    """Draw each cluster's share of the samples as a bar, and of the inertia as a diamond."""
    height, k = 480, len(clusters)
    total = sum(cluster["size"] for cluster in clusters) or 1
    shares = [cluster["size"] / total for cluster in clusters]
    top = 100 * max([*shares, *(cluster["inertia_share"] for cluster in clusters)])
    y = Scale(0, top * 1.04 or 1, height - BOTTOM, TOP)
    step = (WIDTH - RIGHT - LEFT - 6) / k
    order = sorted(range(k), key=lambda i: -shares[i])
    bars = [
        _size_bar(i, clusters[i], shares[i], LEFT + 6 + (place + 0.5) * step, step, y)
        for place, i in enumerate(order)
    ]
    name = "cluster, largest first" if step >= 14 else f"{k} clusters, largest first"
    return _picture(
        height,
        "Share of the samples and of the inertia by cluster",
        _y_axis(y, " %"),
        tag("text", words(name), x=(LEFT + WIDTH - RIGHT) / 2, y=height - 10, class_="name middle"),
        _y_name("share of the samples, and of the inertia"),
        *bars,
    )


def _size_bar(
    number: int, cluster: Mapping[str, Any], share: float, middle: float, step: float, y: Scale
) -> str:
    width = min(46.0, step * (0.78 if step >= 8 else 1.0))
    top, bottom = y(100 * share), y(0)
    told = f"cluster {number}: {cluster['size']:,} samples ({percent_text(share)}), "
    told += f"{percent_text(cluster['inertia_share'])} of the inertia"
    bar = tag("rect", x=middle - width / 2, y=top, width=width, height=bottom - top, class_="bar")
    radius = max(1.4, min(5.0, step * 0.3))
    diamond = _diamond(middle, y(100 * cluster["inertia_share"]), radius)
    kind = "tick middle" if step >= 26 else "tick middle dense"
    return tag(
        "g",
        tag("title", words(told)),
        bar,
        tag("path", d=diamond, class_="diamond"),
        tag("text", words(str(number)), x=middle, y=bottom + 18, class_=kind) if step >= 14 else "",
        class_=f"c c{cluster['color']}",
        data_cluster=str(number),
    )


def _diamond(x: float, y: float, r: float) -> str:
    a, b, c = coordinate(x), coordinate(y - r), coordinate(r)
    return f"M{a} {b}l{c} {c}l-{c} {c}l-{c} -{c}z"


def heat_map(profiles: Mapping[str, Any]) -> str:
    """Draw the standardised centres as cells; the attributes tell the page where they are."""
    rows, columns = len(profiles["clusters"]), len(profiles["columns"])
    height = min(24.0, max(4.5, 720 / rows))
    numbered = height >= 10
    left, top, right = (46.0 if numbered else 14.0), 128.0, 90.0
    width = min(64.0, (1120.0 - left - right) / max(1, columns))
    gap = 1.0 if numbered else 0.0
    across = Scale(0, max(1, columns), left, left + width * max(1, columns))
    down = Scale(0, rows, top, top + height * rows)
    size = {"width": width - gap, "height": height - gap}
    total_width, total_height = left + columns * width + right, top + rows * height + 4
    return tag(
        "svg",
        *(_column_name(name, across(j + 0.5), top) for j, name in enumerate(profiles["columns"])),
        *(
            tag("text", words(str(cluster)), x=left - 8, y=down(i + 0.5) + 4, class_="tick end")
            for i, cluster in enumerate(profiles["clusters"])
            if numbered
        ),
        _heat_cells(profiles, across, down, gap),
        tag("rect", class_="cursor", visibility="hidden", **size),
        class_="heat",
        viewBox=f"0 0 {coordinate(total_width)} {coordinate(total_height)}",
        width=total_width,
        role="img",
        aria_label="Standardised centres: clusters in rows, columns of the table in columns",
        data_left=left,
        data_top=top,
        data_cell=f"{width:.3f}",
        data_row=f"{height:.3f}",
    )


def _heat_cells(profiles: Mapping[str, Any], across: Scale, down: Scale, gap: float) -> str:
    """Draw one path per level of colour, so that thousands of cells stay small."""
    reach = heat_reach(profiles)
    width, height = coordinate(across(1) - across(0) - gap), coordinate(down(1) - down(0) - gap)
    cells: dict[int, list[str]] = defaultdict(list)
    for i, row in enumerate(profiles["values"]):
        for j, value in enumerate(row):
            corner = f"M{coordinate(across(j))} {coordinate(down(i))}"
            cells[level(value, reach)].append(f"{corner}h{width}v{height}h-{width}z")
    return "".join(tag("path", d="".join(cells[i]), class_=f"l{i}") for i in sorted(cells))


def _column_name(name: str, middle: float, top: float) -> str:
    place = f"translate({coordinate(middle + 3)} {coordinate(top - 8)}) rotate(-50)"
    full, short = tag("title", words(name)), words(shortened(name, 18))
    return tag("text", full, short, class_="tick", transform=place)


def heat_reach(profiles: Mapping[str, Any]) -> float:
    """Return the difference at which the colours are full: the largest, but from 1 to 3."""
    largest = max((abs(value) for row in profiles["values"] for value in row), default=0.0)
    return float(min(3.0, max(1.0, largest)))


def level(value: float, reach: float) -> int:
    """Return which of the levels of colour a value has."""
    half = LEVELS // 2
    return half + round(half * max(-1.0, min(1.0, value / reach)))


def heat_legend(reach: float) -> str:
    """Draw the levels of colour and what they mean."""
    cells = [
        tag("rect", x=46 + 16 * i, y=4, width=16, height=12, class_=f"l{i}") for i in range(LEVELS)
    ]
    ends = [
        tag("text", words(f"−{reach:.1f} σ"), x=40, y=14, class_="tick end"),
        tag("text", words(f"+{reach:.1f} σ"), x=52 + 16 * LEVELS, y=14, class_="tick"),
    ]
    return tag(
        "svg",
        *cells,
        *ends,
        viewBox="0 0 310 20",
        width=310,
        class_="legend",
        role="img",
        aria_label=f"from minus {reach:.1f} to plus {reach:.1f} standard deviations",
    )


def share_bar(share: float, largest: float, color: int) -> str:
    """Draw a small bar for a cell of a table."""
    width = 64 * share / largest if largest > 0 else 0.0
    return tag(
        "svg",
        tag("rect", width=max(0.5, width), height=8, rx=1.5),
        class_=f"share c{color}",
        viewBox="0 0 64 8",
        aria_hidden="true",
    )


def _picture(height: float, label: str, *parts: str) -> str:
    return tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=label, class_="chart"
    )


def _x_axis(x: Scale, height: float, name: str) -> str:
    ticks = round_ticks(x.low, x.high)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    texts = [
        tag(
            "text",
            words(tick_text(value, step)),
            x=x(value),
            y=height - BOTTOM + 20,
            class_="tick middle",
        )
        for value in ticks
    ]
    middle = (x.start + x.end) / 2
    called = tag(
        "text",
        tag("title", words(name)),
        words(shortened(name, 52)),
        x=middle,
        y=height - 10,
        class_="name middle",
    )
    base = tag("path", d=f"M{LEFT} {height - BOTTOM}H{WIDTH - RIGHT}", class_="axis")
    return base + "".join(texts) + called


def _y_axis(y: Scale, unit: str = "") -> str:
    ticks = round_ticks(y.low, y.high)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    return "".join(_y_tick(y(value), tick_text(value, step) + unit) for value in ticks)


def _y_tick(place: float, text: str) -> str:
    rule = tag("path", d=f"M{LEFT} {coordinate(place)}H{WIDTH - RIGHT}", class_="grid")
    return rule + tag("text", words(text), x=LEFT - 8, y=place + 4, class_="tick end")


def _y_name(name: str) -> str:
    """Write the name of the vertical axis above it, where nobody has to turn their head."""
    return tag(
        "text", tag("title", words(name)), words(shortened(name, 58)), x=2, y=16, class_="name"
    )
