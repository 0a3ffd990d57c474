"""The systems that HG-means is compared with, as estimators on the same engines.

Each is built from its authors' publication, named in its docstring, with KMeans' interface. All of
them run K-means by the same kernels as :class:`~evomeans.HGMeans`, so that what a comparison shows
is the search and not the speed of somebody's inner loop.
"""
