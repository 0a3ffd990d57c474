"""
A local search of your own
==========================

An engine turns an :class:`evomeans.engines.Order` into a :class:`evomeans.engines.Refinement`. To
try another local search, subclass an engine, change what ``refine`` returns, and pass the engine to
:func:`evomeans.search.solve`.
"""

from dataclasses import replace

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from evomeans.engines.cpu import CpuEngine
from evomeans.search import PAPER, SearchSettings, solve

# %%
# This local search shakes the centres of every solution a little, runs K-means again, and keeps the
# better result. All random numbers derive from that of the order, so a search is reproducible with
# any number of threads.


class ShakingEngine(CpuEngine):
    """K-means, and K-means again from shaken centres."""

    def offspring(self, order, ways):
        """Leave crossovers to the search: so all solutions come to ``refine``."""

    def refine(self, orders):
        """Keep the better one of two refinements."""
        refined = super().refine(orders)
        shaken = [self.shake(*pair) for pair in zip(orders, refined)]
        again = super().refine(shaken)
        return [min(pair, key=lambda one: one.inertia) for pair in zip(refined, again)]

    def shake(self, order, refinement):
        """Return an order to refine shaken centres."""
        rng = np.random.default_rng(int(order.quantile * 2**53))
        noise = rng.normal(scale=0.3 * refinement.centers.std(), size=refinement.centers.shape)
        centers = refinement.centers + noise
        return replace(order, centers=centers, removed=-1, parent=refinement.handle)


# %%
# Both searches have the paper's strategy, the same random numbers and the same number of offspring.

X = load_digits().data
settings = SearchSettings(max_offspring=200, strategy=PAPER)
fig, ax = plt.subplots(figsize=(8, 4.2))
for engine, color in ((CpuEngine, "0.6"), (ShakingEngine, "#D55E00")):
    result = solve(engine(X), 30, settings, np.random.default_rng(0))
    ax.plot(result.history.column("best"), color=color, label=engine.__name__)
ax.set(xlabel="solutions made", ylabel="best inertia")
ax.set_title("Digits, k = 30, the paper's strategy with two local searches", loc="left")
ax.legend(frameon=False)
plt.show()
