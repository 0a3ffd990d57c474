"""Entries of docstrings that are written once, for all classes and functions that share them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

INHERITED = ("Parameters", "Attributes")


def completed(cls: type, root: type) -> str:
    """Return the docstring of ``cls`` with the entries of its base classes, up to ``root``.

    The entries of Parameters and Attributes appear in the order of inheritance, which for the
    fields of dataclasses is the order of the signature: positional parameters come first. The
    entries of ``root`` come last. Where a class documents a name again, its own text replaces the
    inherited one.
    """
    lineage = [base for base in reversed(cls.__mro__) if issubclass(base, root)]
    summary, own = _sections(cls.__doc__)
    sections = {}
    for title in INHERITED:
        entries: dict[str, str] = {}
        for base in lineage:
            entries |= _entries(base, title)
        first = [name for base in lineage for name in _positional(base)]
        last = [name for name in _entries(root, title) if name not in first]
        names = sorted(entries, key=lambda name: (name not in first) + (name in last))
        sections[title] = "\n\n".join(entries[name] for name in names)
    return _joined(summary, own | sections, first=INHERITED)


def described_like(source: Any) -> Callable[[Function], Function]:
    """Document parameters as another function does, unless the docstring does it: a decorator.

    The entries have the order of the signature. What is returned is inherited in the same way.
    """

    def complete(function: Function) -> Function:
        summary, own = _sections(function.__doc__)
        entries = _entries(source, "Parameters") | _entries(function, "Parameters")
        # An entry may be about several parameters: "low, high : float".
        by_first = {re.split(r"\W+", name.strip("*"))[0]: entries[name] for name in entries}
        names = inspect.signature(function).parameters
        own["Parameters"] = "\n".join(by_first[name] for name in names if name in by_first)
        own.setdefault("Returns", _sections(source.__doc__)[1].get("Returns", ""))
        function.__doc__ = _joined(summary, own, first=("Parameters", "Returns"))
        return function

    return complete


def _positional(cls: type) -> list[str]:
    """Return the fields of a dataclass before its mark of those that are keyword-only."""
    names = list(inspect.get_annotations(cls))
    return names[: names.index("_")] if "_" in names else []


def _entries(documented: Any, title: str) -> dict[str, str]:
    """Return the entries of a section by name; each begins with a line "name : type"."""
    body = _sections(documented.__doc__)[1].get(title, "")
    entries = [entry for entry in re.split(r"\n+(?=\S)", body) if entry]
    return {entry.partition(" :")[0].partition("\n")[0]: entry for entry in entries}


def _sections(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a docstring into its summary and its sections by title."""
    text = inspect.cleandoc(docstring or "")
    summary, *parts = re.split(r"^(\S.*)\n-{3,}\n", text, flags=re.MULTILINE)
    bodies = [body.strip() for body in parts[1::2]]
    return summary.strip(), dict(zip(parts[::2], bodies, strict=True))


def _joined(summary: str, sections: dict[str, str], first: tuple[str, ...]) -> str:
    """Put a docstring together again, without sections that are empty."""
    titles = dict.fromkeys((*first, *sections))
    kept = [title for title in titles if sections.get(title)]
    texts = [f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in kept]
    return "\n\n".join(filter(None, [summary, *texts]))
