"""Whether K-means can still come as deep as it has to.

Let mⱼ be the mean of the samples that are closest to centre cⱼ, and Wⱼ their weight. Then

    Σ w‖x − c‖² = Σ w‖x‖² − Σ Wⱼ(2cⱼ·mⱼ − ‖cⱼ‖²).

The first sum is the same for all solutions. The second, what the centres *explain*, is known after
every assignment, on every engine, and tells how deep they are. What K-means gains gets less and
less, so it is hopeless to go on if even several times as much as it gained in the second half of
its iterations would not be enough.
"""

from __future__ import annotations

import numpy as np

from evomeans.engines.protocol import FloatArray

# Iterations before a run is judged; and how many times as much as it gained lately it may gain.
EARLIEST, MOST_GAIN = 10, 2.0


class Outlook:
    """Follows one run of K-means.

    Parameters
    ----------
    least_explained : float
        What it has to explain in the end, see :class:`~evomeans.engines.protocol.Start`.
    """

    def __init__(self, least_explained: float) -> None:
        self._least = least_explained
        self._explained: list[float] = []

    def is_hopeless(self, centers: FloatArray, means: FloatArray, weights: FloatArray) -> bool:
        """Look at the clusters of the present centres; say whether to give up.

        Parameters
        ----------
        centers, means : (k, d) arrays
            Both in the frame.
        weights : (k,) array
            Of the clusters.
        """
        if not self._least:
            return False
        # Summed one by one, because the CPU engine does the same in a kernel.
        each = np.cumsum(centers * (2.0 * means - centers), axis=1)[:, -1]
        return self.is_too_little(float(np.cumsum(weights * each)[-1]))

    def is_too_little(self, explained: float) -> bool:
        """Note what the present centres explain; say whether to give up."""
        if not self._least:
            return False
        self._explained.append(explained)
        n_steps = len(self._explained)
        if n_steps < EARLIEST:
            return False
        gained = max(0.0, explained - self._explained[n_steps // 2 - 1])
        return explained + MOST_GAIN * gained < self._least
