"""Plots of searches and clusters; they need matplotlib, the extra ``plot``.

Each function draws into the axes it is given, or into a new figure, and returns the axes.
"""

from evomeans.plotting.cluster_plots import plot_clusters, plot_profiles, plot_sizes
from evomeans.plotting.search_plots import plot_comparison, plot_convergence, plot_population

__all__ = [
    "plot_clusters",
    "plot_comparison",
    "plot_convergence",
    "plot_population",
    "plot_profiles",
    "plot_sizes",
]
