"""The self-adaptive genetic algorithm of Kivijärvi, Fränti and Nevalainen (2003)."""

from lab.baselines.saga.estimator import SAGA
from lab.baselines.saga.parameters import ParameterSet

__all__ = ["SAGA", "ParameterSet"]
