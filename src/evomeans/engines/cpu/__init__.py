"""The CPU engine: K-means in Numba, with bounds that offspring inherit from their parents.

docs/background/cpu-engine.md explains the idea, with a picture and tables of what is valid when.
Files in the order to read them:

1. ``layout.py``: the arrays that kernels share; dense and sparse rows.
2. ``samples.py``, ``order.py``: from the user's data to tiles of 64 neighbours; with many samples
   in parallel, and late.
3. ``simd.py``: 64 numbers as one value, for vector registers.
4. ``assignment.py``: one assignment, from bounds to labels.
5. ``sums.py``: exact cluster sums.
6. ``threads.py``: how threads share the tiles and meet.
7. ``seeding.py``, ``rounds.py``, ``steps.py``: distances to the closest centre, draws by distance,
   k-means++, what takes its place where it would take long, and quick steps of K-means.
8. ``refine.py``: a whole refinement in one kernel, with momentum.
9. ``hartigan.py``: moves of single samples.
10. ``swaps/``: swaps of centres, followed locally.
11. ``offspring.py``: a whole offspring in one kernel, and the better parts of two solutions.
12. ``predict.py``: the closest centres by a matrix product, for ``engines/nearest.py``.
13. ``kernels.py``, ``workspace.py``, ``course.py``, ``memory.py``, ``engine.py``: types and
    addresses of kernels, calling them, the course of a refinement, kept solutions, and the engine.
"""

from evomeans.engines.cpu.engine import CpuEngine

__all__ = ["CpuEngine"]
