"""Command lines to copy, as the shell of the system wants them."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable

# No name in a message is longer.
LONGEST = 1000


def join(words: Iterable[str]) -> str:
    """Return the command line of some words."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def quote(word: str) -> str:
    """Return a word as it must be typed; an ellipsis if nobody could type or copy it."""
    return join([word]) if word.isprintable() and len(word) <= LONGEST else "…"
