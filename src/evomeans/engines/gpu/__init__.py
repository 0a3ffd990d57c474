"""The GPU engine: batches of solutions refined together, in PyTorch and Triton.

Nothing is imported here, so that what is missing can be named before it is missed.
"""
