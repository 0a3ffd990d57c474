"""K-means under constraints: clusters of limited sizes, samples kept together or apart.

Reading order: ``links.py`` (what the constraints are), ``engine.py`` (placing items, and the local
search), ``transport.py`` and ``moves.py`` (its steps), and ``feasibility.py`` (proofs, and what
greedy placing cannot do).
"""
