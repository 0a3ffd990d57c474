"""K-means under constraints: clusters of limited sizes, samples kept together or apart.

Reading order: ``links.py`` (what the constraints are), ``engine.py`` (the local search),
``placing.py``, ``transport.py`` with ``heaps.py``, ``moves.py``, ``exchanges.py`` (its steps), and
``feasibility.py`` with ``program.py`` (proofs, and what greedy placing cannot do).
"""
