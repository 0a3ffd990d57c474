"""Plots of searches and clusters; they need matplotlib, the extra ``plot``.

Each function draws into the axes it is given, or into a new figure, and returns the axes.
"""

from evomeans.plotting.cluster_plots import plot_clusters, plot_profiles, plot_sizes
from evomeans.plotting.path_plots import plot_clustergram, plot_path, plot_silhouette
from evomeans.plotting.search_plots import plot_convergence, plot_population

__all__ = [
    "plot_clustergram",
    "plot_clusters",
    "plot_convergence",
    "plot_path",
    "plot_population",
    "plot_profiles",
    "plot_silhouette",
    "plot_sizes",
]
