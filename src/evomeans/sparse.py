"""Sparse matrices of others, whose structure compiled code can rely on."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_csr(X: Any) -> Any:
    """Return a sparse matrix of two dimensions as CSR, if its structure is sound.

    SciPy checks matrices when they are made. What is written into their arrays afterwards goes
    unchecked into compiled code, where a column number out of range reads or writes foreign memory.
    A ValueError says what is wrong. The matrix that is passed stays as it is.
    """
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; expected (n_samples, n_features).")
    if X.format in ("csr", "csc", "bsr"):
        # A new one around the same arrays: checking can cut off what is unused, and the old one may
        # remember an order that its arrays do not have any more.
        X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        X.check_format(full_check=True)
    elif X.format == "coo":
        for numbers, count in ((X.row, X.shape[0]), (X.col, X.shape[1])):
            if len(numbers) != len(X.data):
                raise ValueError(f"{len(numbers)} row or column numbers for {len(X.data)} values.")
            if len(numbers) and not (np.min(numbers) >= 0 and np.max(numbers) < count):
                raise ValueError(f"row or column numbers are not all within 0 and {count - 1}.")
    rows = X.tocsr()
    # Other formats are not checked before.
    rows.check_format(full_check=True)
    return rows
