"""A process that helps another to compile; see :mod:`evomeans.compiled.ready`."""

from __future__ import annotations

import pickle
import sys


def main() -> None:
    """Do the jobs on standard input that no other process has claimed."""
    for job in pickle.load(sys.stdin.buffer):
        job.kernel.compile_unless_claimed(job.types)


if __name__ == "__main__":
    main()
