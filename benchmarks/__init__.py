"""Measurements of evomeans, to be repeated by anyone: ``python -m benchmarks`` lists them."""
