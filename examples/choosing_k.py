"""The pictures of docs/choosing-k.md: a path over k for the iris data.

Run ``python examples/choosing_k.py [FOLDER]``; it writes path.png and clustergram.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from sklearn.datasets import load_iris

from evomeans import HGMeansPath, plotting
from evomeans.criteria import DEFAULT_CRITERIA, Gap


def main(folder: Path) -> None:
    """Fit the path and draw it."""
    matplotlib.use("Agg")
    X = load_iris().data
    path = HGMeansPath((2, 10), criteria=[*DEFAULT_CRITERIA, Gap()], random_state=0).fit(X)
    for name, k in path.suggestions_.items():
        print(f"{name:24s}{k}")
    plotting.plot_path(path).savefig(folder / "path.png", dpi=110)
    figure = plotting.plot_clustergram(path, X).get_figure(root=True)
    assert figure is not None
    figure.savefig(folder / "clustergram.png", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
