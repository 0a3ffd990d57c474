"""All experiments, in the order of the paper, and then past it."""

from __future__ import annotations

from lab.paper.ablation import ABLATION, EQUAL_TIME
from lab.paper.anytime import ANYTIME
from lab.paper.comparison import COMPARISON
from lab.paper.early import EARLY
from lab.paper.experiment import Experiment
from lab.paper.pace import PACE
from lab.paper.readings import READINGS_EXPERIMENT
from lab.paper.reliability import RELIABILITY
from lab.paper.scalability import SCALABILITY
from lab.paper.sensitivity import POPULATION, TERMINATION
from lab.paper.validity import VALIDITY

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
