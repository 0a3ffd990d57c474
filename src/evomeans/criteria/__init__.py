"""Criteria that suggest how many clusters there are; each is a value with a rule of its own."""

from evomeans.criteria.base import Criterion, Evidence, Verdict
from evomeans.criteria.free import (
    BIC,
    CalinskiHarabasz,
    DaviesBouldin,
    Elbow,
    Hartigan,
    Jump,
    KrzanowskiLai,
    SimplifiedSilhouette,
)
from evomeans.criteria.populations import Agreement
from evomeans.criteria.reference import Gap
from evomeans.criteria.registry import CRITERIA, DEFAULT_CRITERIA, DEFAULT_SELECT, find_criterion
from evomeans.criteria.resampling import Instability, PredictionStrength
from evomeans.criteria.silhouette import Silhouette

__all__ = [
    "BIC",
    "CRITERIA",
    "DEFAULT_CRITERIA",
    "DEFAULT_SELECT",
    "Agreement",
    "CalinskiHarabasz",
    "Criterion",
    "DaviesBouldin",
    "Elbow",
    "Evidence",
    "Gap",
    "Hartigan",
    "Instability",
    "Jump",
    "KrzanowskiLai",
    "PredictionStrength",
    "Silhouette",
    "SimplifiedSilhouette",
    "Verdict",
    "find_criterion",
]
