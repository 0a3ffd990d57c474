"""Estimators: scikit-learn on the outside, a search on an engine on the inside.

What loads Numba is imported by the functions that need it, so that importing evomeans is fast.
"""
