"""The GPU engine: batches of solutions refined together, in PyTorch and Triton.

Nothing is imported here, so that a missing package can be reported before it is needed.
"""
