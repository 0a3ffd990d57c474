"""Compiled kernels that belong to no engine; importing this loads no compiler."""

# Up to this many centres are matched at the least cost, in cubic time, more of them by an auction.
MOST_MATCHED_EXACTLY = 512
# Up to this many clusters are merged by the costs of all pairs, more of them by lists of near ones.
MOST_COSTS = 512
