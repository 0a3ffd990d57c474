"""The colours of the page, for light and for dark surroundings."""

from __future__ import annotations

from evomeans.plotting.palette import OKABE_ITO, ink_on

INKS = {
    "page": ("#ffffff", "#14171b"),
    "card": ("#f6f7f9", "#1c2026"),
    "line": ("#dfe3e8", "#323840"),
    "ink": ("#1b1f24", "#e8eaed"),
    "muted": ("#59616b", "#a3abb5"),
    "accent": ("#0072B2", "#56B4E9"),
    "mark": ("#D55E00", "#F28B3C"),
    "dots": ("#8b939d", "#7d8691"),
}
"""Name of a CSS variable, and its value in light and in dark."""

# Okabe and Ito's colours; the dark ones are lifted where they would drown in a dark page.
CLUSTERS_DARK = (
    "#2F92DB",
    "#E69F00",
    "#14B386",
    "#EE7429",
    "#9CD6F7",
    "#DB8EB9",
    "#A9AFB7",
    "#F0E442",
)

# From far below the mean over the mean to far above it.
LEVELS = 13
DIVERGING = (("#0a5c8f", "#f3f3f1", "#b84d00"), ("#4fb0ec", "#272c33", "#f58a3c"))


def theme_css() -> str:
    """Return the variables as CSS: light, dark if the system is or the reader says so, print."""
    light, dark = _variables(0), _variables(1)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}\n"
        f":root[data-theme=light]{{color-scheme:light;{light}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media print{{:root,:root[data-theme]{{color-scheme:light;{light}}}}}\n"
        + "".join(f".c{i}{{--c:var(--c{i});--on:var(--on{i})}}" for i in range(len(OKABE_ITO)))
        + "".join(f".l{i}{{fill:var(--l{i})}}" for i in range(LEVELS))
    )


def _variables(theme: int) -> str:
    clusters = (OKABE_ITO, CLUSTERS_DARK)[theme]
    values = {name: pair[theme] for name, pair in INKS.items()}
    values |= {f"c{i}": color for i, color in enumerate(clusters)}
    values |= {f"on{i}": ink_on(color) for i, color in enumerate(clusters)}
    values |= {f"l{i}": color for i, color in enumerate(level_colors(DIVERGING[theme]))}
    return ";".join(f"--{name}:{value}" for name, value in values.items())


def level_colors(ends: tuple[str, str, str]) -> list[str]:
    """Mix the colours of the levels from a low, a middle and a high one."""
    low, middle, high = ends
    half = LEVELS // 2
    below = [mixed(low, middle, i / half) for i in range(half)]
    above = [mixed(middle, high, i / half) for i in range(1, half + 1)]
    return [*below, middle, *above]


def mixed(first: str, second: str, part: float) -> str:
    """Mix two colours."""
    pairs = ((int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in pairs)
