"""The best k-means clustering instead of a lucky one."""
