"""The command line, ``evomeans``.

Importing a command costs nothing: what is heavy (NumPy, polars, scikit-learn, Numba, rich) is
imported when a command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evomeans.wording import how_to_install

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process, and return its exit code."""
    try:
        import rich  # noqa: F401

        from evomeans.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("cyclopts", "rich"):
            raise
        print(
            f"evomeans: the command line needs {error.name}, which is not installed: "
            f"{how_to_install('cli')}.",
            file=sys.stderr,
        )
        return 1
    return run(sys.argv[1:] if arguments is None else list(arguments))
