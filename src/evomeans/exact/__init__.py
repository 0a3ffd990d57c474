"""Solvers that prove the optimum where the problem is easy enough."""

from evomeans.exact.line import LineClustering, cluster_line, cluster_line_path

__all__ = ["LineClustering", "cluster_line", "cluster_line_path"]
