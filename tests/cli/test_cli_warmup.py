"""``evomeans warmup`` knows what all models call."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("dask")
# In a process of its own: others may have compiled kernels for types that no model uses.
SCRIPT = """
import gc, warnings
import dask.array as da
import numpy as np
from scipy.sparse import csr_array
from evomeans import HGMeans
from evomeans.cli.info import needed_calls
from evomeans.compiled.kernel import Kernel

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(80, 3))
kind = {kind!r}
if kind == "csr":
    X = csr_array(X)
else:
    X = X.astype(kind)
    HGMeans(3, max_offspring=3).fit(da.from_array(X, chunks=(40, 3)))
    HGMeans(3).fit(X[:, :1])
model = HGMeans(3, max_offspring=9).fit(X)
model = HGMeans(3, strategy="paper", max_offspring=3).fit(X)
many = np.random.default_rng(1).normal(size=(9000, 3))
many = csr_array(many) if kind == "csr" else many.astype(kind)
model.predict(many), model.transform(many), model.score(many)
needed = {{(one.kernel, one.kernel.types_of(one.arguments)) for one in needed_calls()}}
kernels = [one for one in gc.get_objects() if isinstance(one, Kernel)]
called = {{(kernel, types) for kernel in kernels for types in kernel.overloads}}
assert len(called) > 5
print(*(f"{{kernel.__name__}}: {{types}}" for kernel, types in called - needed), sep="\\n", end="")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float64", "float32", "csr"])
def test_warmup_compiles_what_fits_and_predictions_call(kind) -> None:
    """After it, neither Dask, one column nor many rows have anything to compile."""
    command = [sys.executable, "-c", SCRIPT.format(kind=kind)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
