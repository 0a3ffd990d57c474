"""The self-adaptive genetic algorithm of Kivijärvi, Fränti and Nevalainen (2003)."""

from evomeans.baselines.saga.estimator import SAGA
from evomeans.baselines.saga.parameters import ParameterSet

__all__ = ["SAGA", "ParameterSet"]
