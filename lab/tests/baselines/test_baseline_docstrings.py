"""Docstrings of baselines are complete."""

from __future__ import annotations

import inspect
import re

import pytest
from baseline_methods import METHODS
from sklearn.base import clone

from lab import baselines


def documented(cls: type, section: str) -> list[str]:
    """Return the names in a section of a docstring, in order."""
    underlined = f"{section}\n{'-' * len(section)}\n"
    body = re.split(r"\n\n.*\n---", cls.__doc__.split(underlined)[1])[0]
    return ", ".join(re.findall(r"^(\S.*) : ", body, re.MULTILINE)).split(", ")


@pytest.mark.parametrize("name", baselines.__all__)
def test_every_parameter_is_documented_in_the_order_of_the_signature(name) -> None:
    cls = getattr(baselines, name)
    assert documented(cls, "Parameters") == list(inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", METHODS)
def test_every_fitted_attribute_is_documented(name) -> None:
    model = clone(METHODS[name]).fit([[float(i), float(i % 3)] for i in range(10)])
    fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    assert sorted(documented(type(model), "Attributes")) == sorted(
        fitted | {"feature_names_in_", "certificate_"}
    )
    assert "See Also" in type(model).__doc__


@pytest.mark.parametrize("name", baselines.__all__)
def test_only_the_number_of_clusters_is_positional(name) -> None:
    cls = getattr(baselines, name)
    first, *others = inspect.signature(cls).parameters.values()
    assert (first.name, first.default) == ("n_clusters", 8)
    assert {other.kind for other in others} == {inspect.Parameter.KEYWORD_ONLY}
