"""``python -m evomeans`` is the command ``evomeans``."""

from __future__ import annotations

import sys

from evomeans.cli import main

if __name__ == "__main__":
    sys.exit(main())
