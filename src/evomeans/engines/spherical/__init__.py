"""Spherical k-means: samples and centres are directions, compared by their cosine."""
