"""K-means under constraints: clusters of limited sizes, samples kept together or apart.

Reading order: ``links.py`` (what the constraints are), ``engine.py`` (the local search),
``placing.py`` with ``transport.py`` and ``heaps.py``, ``moves.py`` (its steps), and
``feasibility.py`` (proofs, and what greedy placing cannot do).
"""
