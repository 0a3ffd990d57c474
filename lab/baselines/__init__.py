"""Baselines: the methods that HG-means is compared with, as estimators on the same engines.

Each follows the publication named in its docstring and has the interface of KMeans. All of them run
K-means by the same kernels as :class:`~evomeans.HGMeans`, so that a comparison shows the search and
not the speed of an inner loop.
"""

from __future__ import annotations

from lab.baselines.big_means import BigMeans
from lab.baselines.breathing import BreathingKMeans
from lab.baselines.drs_means import DRSMeans
from lab.baselines.flspp import FLSpp
from lab.baselines.global_kmeans import GlobalKMeans
from lab.baselines.global_kmeans_pp import GlobalKMeansPP
from lab.baselines.mdeclust import MDEClust
from lab.baselines.modified_global_kmeans import (
    ModifiedGlobalKMeans,
    MultiStartModifiedGlobalKMeans,
)
from lab.baselines.multi_start import MultiStartKMeans
from lab.baselines.nonsmooth import MSDCA, DCClust, DCDBundle, LMBMClust
from lab.baselines.random_swap import RandomSwap
from lab.baselines.recombinator import RecombinatorKMeans
from lab.baselines.saga import SAGA
from lab.baselines.smartigan import Smartigan

__all__ = [
    "MSDCA",
    "SAGA",
    "BigMeans",
    "BreathingKMeans",
    "DCClust",
    "DCDBundle",
    "DRSMeans",
    "FLSpp",
    "GlobalKMeans",
    "GlobalKMeansPP",
    "LMBMClust",
    "MDEClust",
    "ModifiedGlobalKMeans",
    "MultiStartKMeans",
    "MultiStartModifiedGlobalKMeans",
    "RandomSwap",
    "RecombinatorKMeans",
    "Smartigan",
]
