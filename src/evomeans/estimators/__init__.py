"""Estimators: scikit-learn on the outside, a search on an engine on the inside."""
