"""Clustering by nonsmooth optimisation: one incremental frame, four local solvers."""

from lab.baselines.nonsmooth.estimators import MSDCA, DCClust, DCDBundle, LMBMClust

__all__ = ["MSDCA", "DCClust", "DCDBundle", "LMBMClust"]
