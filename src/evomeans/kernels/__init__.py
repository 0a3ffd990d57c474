"""Compiled kernels that belong to no engine: matching, Ward's method, rows of arrays."""
