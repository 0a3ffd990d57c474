"""All experiments, in the order of the paper, and then past it."""

from __future__ import annotations

from benchmarks.paper.ablation import ABLATION, EQUAL_TIME
from benchmarks.paper.anytime import ANYTIME
from benchmarks.paper.comparison import COMPARISON
from benchmarks.paper.early import EARLY
from benchmarks.paper.experiment import Experiment
from benchmarks.paper.pace import PACE
from benchmarks.paper.readings import READINGS_EXPERIMENT
from benchmarks.paper.reliability import RELIABILITY
from benchmarks.paper.scalability import SCALABILITY
from benchmarks.paper.sensitivity import POPULATION, TERMINATION
from benchmarks.paper.validity import VALIDITY

EXPERIMENTS: tuple[Experiment, ...] = (
    COMPARISON,
    POPULATION,
    TERMINATION,
    SCALABILITY,
    VALIDITY,
    ANYTIME,
    EARLY,
    RELIABILITY,
    READINGS_EXPERIMENT,
    EQUAL_TIME,
    ABLATION,
    PACE,
)
