"""Docstrings name what a class or function adds, and are complete for its users."""

from __future__ import annotations

import inspect
import re
from dataclasses import KW_ONLY, dataclass

import evomeans
from evomeans.docstrings import completed, described_like


class Thing:
    """Is somewhere.

    Attributes
    ----------
    place_ : str
        Where it is.
    """


class Vehicle(Thing):
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
    moved_ : float
        How far.
    """

    wheels: int
    _: KW_ONLY
    speed: float

    def move(self, goal: str, by: float = 1.0, *, low: int = 0, high: int = 9) -> str:
        """Go somewhere.

        Parameters
        ----------
        goal : str
            Where to.
        low, high : int
            The gears.

        Returns
        -------
        str
            Where it is.

        Notes
        -----
        It may take long.
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
    assert completed(Car, root=Thing) == inspect.cleandoc(
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
        moved_ : float
            How far.

        place_ : str
            Where it is.

        Notes
        -----
        The name is short.
        """
    )


def test_positional_parameters_come_first() -> None:
    @dataclass
    class Named(Vehicle):
        """Has a name.

        Parameters
        ----------
        name : str
            Its name.
        """

        name: str
        _: KW_ONLY

    assert re.findall(r"^(\w+) :", completed(Named, root=Thing), re.MULTILINE)[:3] == [
        *("wheels", "name", "speed")
    ]


def test_entries_of_several_paragraphs_stay_whole() -> None:
    assert "    How many.\n\n    - 2 fall over.\n\nspeed" in completed(Vehicle, root=Vehicle)


def test_a_class_without_docstring_gets_the_sections_of_its_bases() -> None:
    """Also where Python has removed them all, as with -OO."""
    bare = type("Bare", (Car,), {})
    assert completed(bare, root=Thing).startswith("Parameters\n----------\nwheels : int\n    Four")
    assert completed(bare, root=bare) == ""


def test_a_function_takes_over_the_entries_that_it_leaves_out() -> None:
    @described_like(Vehicle.move)
    def race(high: int, fuel: str, low: int, goal: str) -> None:
        """Go fast.

        Parameters
        ----------
        fuel : str
            What it burns.

        Examples
        --------
        None.
        """

    assert race.__doc__ == inspect.cleandoc(
        """Go fast.

        Parameters
        ----------
        fuel : str
            What it burns.
        low, high : int
            The gears.
        goal : str
            Where to.

        Returns
        -------
        str
            Where it is.

        Examples
        --------
        None.
        """
    )


def parameters_of(estimator: type) -> set[str]:
    return set(inspect.signature(estimator).parameters)


def test_an_estimator_speaks_of_its_own_parameters_only() -> None:
    """Entries that are inherited could name parameters that only others have."""
    everything = [getattr(evomeans, name) for name in evomeans.__all__]
    estimators = [one for one in everything if inspect.isclass(one) and hasattr(one, "fit")]
    known = set().union(*map(parameters_of, estimators))
    for one in estimators:
        named = known & set(re.findall(r"``(\w+)``", inspect.getdoc(one) or ""))
        assert named <= parameters_of(one), one.__name__
    assert len(estimators) > 5
