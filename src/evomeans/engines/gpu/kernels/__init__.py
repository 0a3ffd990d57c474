"""Triton kernels, one step per file."""
