"""Solvers that prove the optimum where the problem is easy enough."""

from evomeans.exact.line import LineClustering, cluster_line

__all__ = ["LineClustering", "cluster_line"]
