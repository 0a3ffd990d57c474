"""What a newcomer waits for: the import, the first fit ever, and the first fit of later processes.

Run with ``python -m benchmarks.first_use``. Every line is a process of its own; the first fit
compiles into an empty cache, the second finds it filled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

PROCESS = """
import time
began = time.perf_counter()
import sklearn.cluster
peer = time.perf_counter()
from evomeans import HGMeans
ours = time.perf_counter()
import numpy as np
X = np.random.default_rng(0).normal(size=(1000, 10))
cpu = time.process_time()
HGMeans(8, random_state=0, max_offspring=50).fit(X)
done, cpu = time.perf_counter(), time.process_time() - cpu
print(f"import of scikit-learn {peer - began:.2f} s, of evomeans beyond it {ours - peer:.2f} s, "
      f"fit of 1,000 x 10 {done - ours:.2f} s ({cpu:.2f} s CPU)")
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for turn in ("first process", "later process"):
            print(f"{turn}: ", end="", flush=True)
            subprocess.run([sys.executable, "-c", PROCESS], env=environment, check=True)


if __name__ == "__main__":
    main()
