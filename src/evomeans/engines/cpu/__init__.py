"""The CPU engine: K-means in Numba, with bounds that offspring inherit from their parents.

docs/background/cpu-engine.md explains the idea, with a picture, a glossary and tables of what is
valid when.
Files in the order to read them:

1. ``layout.py``: the arrays that kernels share.
2. ``samples.py``, ``order.py``, ``buckets.py``, ``deferred.py``: from the user's data to tiles of
   64 neighbours; with many samples in parallel, and late.
3. ``lanes.py``: 64 numbers as one value, for vector registers.
4. ``gaps.py``: the bounds, and how they shrink when centres move.
5. ``scores.py``: comparing a tile with a few centres in single precision.
6. ``reassign.py``: one assignment, from bounds to labels.
7. ``rows.py``, ``sums.py``: dense and sparse rows; exact cluster sums.
8. ``threads.py``: how threads share the tiles and meet.
9. ``roulette.py``: distances to the own centre, their sum, and draws by distance.
10. ``refine.py``, ``inheriting.py``, ``momentum.py``: a whole refinement in one kernel.
11. ``hartigan.py``: moves of single samples.
12. ``means.py``, ``clusters.py``, ``moving.py``, ``halving.py``, ``choices.py``, ``settling.py``,
    ``swaps.py``: swaps of centres, followed locally.
13. ``parts.py``, ``offspring.py``: the better parts of two solutions; a whole offspring in one
    kernel.
14. ``seeding.py``, ``losses.py``, ``reductions.py``: k-means++, and questions of other methods.
15. ``choose.py``: the closest centres by a matrix product, for ``engines/scoring.py``.
16. ``calling.py``, ``room.py``, ``refining.py``, ``memory.py``, ``engine.py``: addresses of
    kernels, calling them, the course of a refinement, kept solutions, the engine itself.
"""

from evomeans.engines.cpu.engine import CpuEngine

__all__ = ["CpuEngine"]
