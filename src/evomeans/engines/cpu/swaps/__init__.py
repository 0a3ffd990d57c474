"""Swaps of centres on the CPU: clusters that change sample by sample, with an undo log.

Files in the order to read them: ``lists.py`` (the members of clusters, means that follow every
sample, and the undo log), ``moves.py`` (samples that move), ``search.py`` (what to swap, and
whether to keep it).
"""
