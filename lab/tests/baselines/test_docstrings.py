"""Docstrings name what a class adds, and are complete for its users."""

from __future__ import annotations

import inspect
import re

import pytest
from baseline_methods import METHODS
from sklearn.base import clone

from evomeans.estimators.fitted import completed
from lab import baselines


class Vehicle:
    """Moves.

    Parameters
    ----------
    wheels : int
        How many.

        - 2 fall over.
    speed : float
        How fast.

    Attributes
    ----------
    place_ : str
        Where it is.
    """


class Car(Vehicle):
    """Moves people.

    With a motor.

    Parameters
    ----------
    wheels : int
        Four.
    doors, seats : int
        At least one.

    Notes
    -----
    The name is short.
    """


def test_inherited_entries_come_first_and_own_texts_replace_them() -> None:
    assert completed(Car, root=Vehicle) == inspect.cleandoc(
        """Moves people.

        With a motor.

        Parameters
        ----------
        wheels : int
            Four.

        speed : float
            How fast.

        doors, seats : int
            At least one.

        Attributes
        ----------
        place_ : str
            Where it is.

        Notes
        -----
        The name is short.
        """
    )


def test_entries_of_several_paragraphs_stay_whole() -> None:
    assert completed(Vehicle, root=Vehicle) == inspect.cleandoc(Vehicle.__doc__).replace(
        "over.\nspeed", "over.\n\nspeed"
    )


def test_a_class_without_docstring_gets_the_sections_of_its_bases() -> None:
    """Also where Python has removed them all, as with -OO."""
    bare = type("Bare", (Car,), {})
    assert completed(bare, root=Vehicle).startswith(
        "Parameters\n----------\nwheels : int\n    Four"
    )
    assert completed(bare, root=bare) == ""


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
