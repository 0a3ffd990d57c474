"""Compiled kernels that belong to no engine: matching, Ward's method, rows of arrays.

Importing this loads no compiler.
"""

# Up to this many centres are matched at the least cost, in cubic time: 0.04 s, and nine times as
# long for twice as many. More of them are matched by an auction (kernels/matching.py).
MOST_MATCHED_EXACTLY = 512
