"""Complete numpydoc for classes that document only what they add to their base classes."""

from __future__ import annotations

import re
from inspect import cleandoc

INHERITED = ("Parameters", "Attributes")


def completed(cls: type, root: type) -> str:
    """Return the docstring of ``cls`` with the entries of its base classes, up to ``root``.

    The entries of Parameters and Attributes appear in the order of inheritance, which for the
    fields of dataclasses is the order of the signature. Where a class documents a name again, its
    own text replaces the inherited one.
    """
    lineage = [base for base in reversed(cls.__mro__) if issubclass(base, root)]
    summary, own = _sections(cls.__doc__)
    inherited = {title: _merged_entries(lineage, title) for title in INHERITED}
    sections = {**inherited, **{title: own[title] for title in own if title not in INHERITED}}
    texts = [f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items() if body]
    return "\n\n".join(filter(None, [summary, *texts]))


def _merged_entries(lineage: list[type], title: str) -> str:
    entries: dict[str, str] = {}
    for cls in lineage:
        body = _sections(cls.__doc__)[1].get(title, "")
        # An entry begins with a line that is not indented: "name : type".
        for entry in re.split(r"\n+(?=\S)", body):
            entries[entry.partition(" :")[0]] = entry
    return "\n\n".join(filter(None, entries.values()))


def _sections(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a docstring into its summary and its sections by title."""
    summary, *parts = re.split(r"^(\S.*)\n-{3,}\n", cleandoc(docstring or ""), flags=re.MULTILINE)
    bodies = [body.strip() for body in parts[1::2]]
    return summary.strip(), dict(zip(parts[::2], bodies, strict=True))
