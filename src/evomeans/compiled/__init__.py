"""Compiled kernels that belong to no engine, and how every kernel is compiled and cached."""
