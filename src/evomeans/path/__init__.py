"""A path over the number of clusters: searches that learn from their neighbours."""
