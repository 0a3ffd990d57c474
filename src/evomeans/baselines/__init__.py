"""Baselines: the methods that HG-means is compared with, as estimators on the same engines.

Each follows the publication named in its docstring and has the interface of KMeans. All of them run
K-means by the same kernels as :class:`~evomeans.HGMeans`, so that a comparison shows the search and
not the speed of an inner loop.
"""

from __future__ import annotations

from evomeans.baselines.big_means import BigMeans
from evomeans.baselines.breathing import BreathingKMeans
from evomeans.baselines.drs_means import DRSMeans
from evomeans.baselines.flspp import FLSpp
from evomeans.baselines.global_kmeans import GlobalKMeans
from evomeans.baselines.global_kmeans_pp import GlobalKMeansPP
from evomeans.baselines.mdeclust import MDEClust
from evomeans.baselines.modified_global_kmeans import (
    ModifiedGlobalKMeans,
    MultiStartModifiedGlobalKMeans,
)
from evomeans.baselines.multi_start import MultiStartKMeans
from evomeans.baselines.nonsmooth import MSDCA, DCClust, DCDBundle, LMBMClust
from evomeans.baselines.random_swap import RandomSwap
from evomeans.baselines.recombinator import RecombinatorKMeans
from evomeans.baselines.saga import SAGA
from evomeans.baselines.smartigan import Smartigan

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
