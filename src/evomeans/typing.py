"""Types of arrays, named once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SingleArray = NDArray[np.float32]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]
Labels = NDArray[np.int32]
Flags = NDArray[np.bool_]
Index = int | np.integer[Any]
