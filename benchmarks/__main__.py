"""List the benchmarks, or run the default one."""

from __future__ import annotations

TEXT = """\
Benchmarks; the folder with the data sets is taken from EVOMEANS_DATA.

  python -m benchmarks.quality   how deep the search gets, beside the authors' program
  python -m benchmarks.kmeans    one K-means run beside scikit-learn's, both single-threaded

Each explains itself with --help."""

if __name__ == "__main__":
    print(TEXT)
