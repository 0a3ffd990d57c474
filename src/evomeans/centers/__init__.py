"""What can be said of clusters from their centres and weights alone, without any sample.

The search is written in NumPy; what would take it longer than an engine takes for a refinement is
compiled, and stands here.
"""
