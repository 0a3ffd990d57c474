"""Measurements of evomeans, to be repeated by anyone: ``python -m lab`` lists them."""
