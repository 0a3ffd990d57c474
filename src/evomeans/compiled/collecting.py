"""Cyclic garbage, and when not to look for it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep cyclic garbage for a while.

    The compiler makes millions of small objects, and to import it makes many as well. To look among
    them for garbage, again and again, takes a seventh of the time.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()
