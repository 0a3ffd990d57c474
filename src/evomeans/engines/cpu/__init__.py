"""The CPU engine: K-means with inherited bounds, in Numba."""
