"""Print the lowest versions that pyproject.toml declares, as constraints for pip.

``python .ci/lowest.py [EXTRA or GROUP ...]`` reads the dependencies, and those of the named extras
and dependency groups.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<lowest>[\w.]+)")


def requirements(settings: dict[str, Any], names: list[str]) -> Iterator[str]:
    """Yield what the package requires, and what extras and groups do."""
    project, groups = settings["project"], settings["dependency-groups"]
    yield from project["dependencies"]
    for name in names:
        for one in project["optional-dependencies"].get(name) or groups[name]:
            if isinstance(one, str):
                yield one


def constraints(required: Iterator[str]) -> list[str]:
    """Return every requirement with a lowest version as just that version."""
    found = filter(None, map(REQUIREMENT.match, required))
    return sorted({f"{one['name']}=={one['lowest']}" for one in found})


if __name__ == "__main__":
    file = Path(__file__).parents[1] / "pyproject.toml"
    settings = tomllib.loads(file.read_text(encoding="utf-8"))
    print("\n".join(constraints(requirements(settings, sys.argv[1:]))))
