"""Compiled kernels that belong to no engine: matching, Ward's method, rows of arrays.

Here stands how many clusters are crossed by which of them. Importing this loads no compiler.
"""

# Up to this many centres are matched at the least cost, in cubic time: 0.04 s, and nine times as
# long for twice as many. More of them are matched by an auction (kernels/matching.py).
MOST_EXACT = 512
# The costs of merging any two of up to this many clusters are kept. Of more, only those of near
# ones are (kernels/ward.py).
MOST_KEPT = 2048
