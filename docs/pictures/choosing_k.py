"""The pictures of docs/guide/choosing-k.md: a path over k for the iris data.

Run it with ``make picture``; it writes path.png and clustergram.png.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
from sklearn.datasets import load_iris

from evomeans import HGMeansPath, plotting
from evomeans.criteria import DEFAULT_CRITERIA, Gap, Silhouette

IMAGES = Path(__file__).resolve().parents[1] / "images"


def main() -> None:
    """Fit the path and draw it."""
    matplotlib.use("Agg")
    X = load_iris().data
    # Nine panels, in three full rows.
    criteria = [*DEFAULT_CRITERIA, Silhouette(), Gap()]
    path = HGMeansPath((2, 10), criteria=criteria, random_state=0).fit(X)
    for name, k in path.suggestions_.items():
        print(f"{name:24s}{k}")
    plotting.plot_path(path).savefig(IMAGES / "path.png", dpi=110)
    figure = plotting.plot_clustergram(path, X).get_figure(root=True)
    assert figure is not None
    figure.savefig(IMAGES / "clustergram.png", dpi=110)


if __name__ == "__main__":
    main()
