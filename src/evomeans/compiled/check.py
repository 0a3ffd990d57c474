"""Whether the compiler layer fits the Numba that is installed.

It relies on names, and on layouts of memory, that Numba does not document. With another Numba than
those it was tried with, kernels could crash the process or compute something else. So before the
first kernel, versions and layouts are compared, and small kernels are tried. If anything differs,
kernels are compiled the plain way, with one warning and the same results.
"""

from __future__ import annotations

import os
from functools import cache

import numba

from evomeans.compiled import numba_private
from evomeans.compiled.cache import warn_once

# As in pyproject.toml: from the first on, below the second.
TESTED = (0, 66), (0, 69)


@cache
def is_trusted() -> bool:
    """Whether kernels are compiled by the layer of our own. Decided once in a process."""
    if os.environ.get("EVOMEANS_COMPILER") == "plain":
        return False
    reason = objection()
    if reason is not None:
        low, high = (".".join(map(str, version)) for version in TESTED)
        warn_once(
            f"Kernels are compiled the plain way: the results are the same, but it takes minutes, "
            f"in every process. {reason} Install numba>={low},<{high}."
        )
    return reason is None


def objection() -> str | None:
    """Return what speaks against the layer of our own, if anything does."""
    if not TESTED[0] <= numba.version_info.short < TESTED[1]:
        return f"evomeans was not tried with Numba {numba.__version__}."
    if numba_private.MISSING is not None:
        return f"Numba {numba.__version__} lacks a name: {numba_private.MISSING}."
    # Imported here: there is nothing to try where a name is missing.
    from evomeans.compiled import trial

    return trial.objection()
