"""List the benchmarks."""

from __future__ import annotations

TEXT = """\
Benchmarks; the folder with the data sets is taken from EVOMEANS_DATA.

  python -m benchmarks.quality   how deep the search gets, beside the authors' program
  python -m benchmarks.kmeans    one K-means run beside scikit-learn's, both single-threaded
  python -m benchmarks.offspring what an offspring costs, in units of a scikit-learn run
  python -m benchmarks.line      one dimension solved exactly, beside KMeans
  python -m benchmarks.first_use import, first fit ever, first fit of later processes

Each explains itself with --help."""

if __name__ == "__main__":
    print(TEXT)
