"""List the benchmarks."""

from __future__ import annotations

TEXT = """\
Benchmarks; the folder with the data sets is taken from EVOMEANS_DATA.

  python -m benchmarks.speed     what an offspring costs, and whole runs beside the authors' program
  python -m benchmarks.scaling   how the cost of an offspring grows with m, n and d
  python -m benchmarks.kmeans    one K-means run beside scikit-learn's, both single-threaded
  python -m benchmarks.levers    what each lever of the engine brings
  python -m benchmarks.memory    the peak of a large fit, and what is kept of a solution
  python -m benchmarks.quality   how deep the search gets, beside the authors' program
  python -m benchmarks.line      one dimension solved exactly, beside KMeans
  python -m benchmarks.distributed  the Dask engine: speed, overhead, memory, many workers
  python -m benchmarks.first_use import, first fit ever, first fit of later processes

Each explains itself with --help."""

if __name__ == "__main__":
    print(TEXT)
