"""The colours of the page, for light and for dark surroundings."""

from __future__ import annotations

from evomeans.plotting.palette import DIFFERENCES, FAINT, INK, MUTED, OKABE_ITO, PAPER, diverging

# Okabe and Ito's colours, made lighter where they would drown in a dark page.
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
DIFFERENCES_DARK = diverging("#4fb0ec", "#272c33", "#f58a3c")

COLORS = {
    "page": (PAPER, "#14171b"),
    "card": ("#f6f7f9", "#1c2026"),
    "line": (FAINT, "#323840"),
    "ink": (INK, "#e8eaed"),
    "muted": (MUTED, "#a3abb5"),
    **{f"c{i}": pair for i, pair in enumerate(zip(OKABE_ITO, CLUSTERS_DARK, strict=True))},
    **{f"l{i}": pair for i, pair in enumerate(zip(DIFFERENCES, DIFFERENCES_DARK, strict=True))},
}
"""Name of a CSS variable, and its value in light and in dark."""

VARIABLES = {light.lower(): f"var(--{name})" for name, (light, _) in COLORS.items()}
"""What stands for a colour of the plots, so that they follow the page."""


def theme_css() -> str:
    """Return the colours as CSS: those of the system, of the reader's choice, light on paper."""
    values = "".join(f"--{name}:light-dark({a},{b});" for name, (a, b) in COLORS.items())
    return (
        f":root{{color-scheme:light dark;{values}}}\n"
        ":root[data-theme=light]{color-scheme:light}\n"
        ":root[data-theme=dark]{color-scheme:dark}\n"
        "@media print{:root,:root[data-theme]{color-scheme:light}}\n"
        + "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(len(OKABE_ITO)))
    )
