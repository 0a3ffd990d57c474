"""The parameters that every candidate carries, inherits and passes on."""

from __future__ import annotations

from dataclasses import dataclass, fields

from evomeans.typing import FloatArray
from lab.baselines.saga.crossovers import CROSSOVERS

METHODS = tuple(CROSSOVERS)
# Ψ, the probability that an inherited parameter is drawn anew.
RENEWAL = 0.05


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """How a candidate was made: γ, ψ and ν of the publication."""

    crossover: str
    """The crossover γ, a key of :data:`~lab.baselines.saga.crossovers.CROSSOVERS`."""
    mutation_probability: float
    """Probability ψ, from 0 to 1, that a random centre is put onto a random sample."""
    noise_range: float
    """The largest noise ν, from 0 to 1, that is added to the coordinates of the centres, in
    standard deviations of the feature. It fades in the course of the search."""

    @classmethod
    def drawn(cls, uniforms: FloatArray) -> ParameterSet:
        """Make a parameter set from three uniform numbers."""
        method, probability, noise = uniforms.tolist()
        return cls(METHODS[int(method * len(METHODS))], probability, noise)


def inherited_parameters(
    first: ParameterSet, second: ParameterSet, uniforms: FloatArray
) -> ParameterSet:
    """Take each parameter from a random parent; with probability Ψ, draw it anew instead.

    The rows of ``uniforms`` choose the parents, decide on renewal, and become new values.
    """
    new = ParameterSet.drawn(uniforms[2])
    values = [
        getattr(new if chance < RENEWAL else first if coin < 0.5 else second, parameter.name)
        for parameter, coin, chance in zip(
            fields(ParameterSet), *uniforms[:2].tolist(), strict=True
        )
    ]
    return ParameterSet(*values)
