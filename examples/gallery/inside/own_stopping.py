"""
A stopping rule of your own
===========================

An observer sees every solution of a search, and ends the search by returning ``True``. A
:class:`evomeans.search.SearchObserver` also sees how the search begins, each new best solution,
populations that have converged, and the end.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from evomeans import HGMeans
from evomeans.search import SearchObserver

# %%
# This rule ends a search when the last hundred solutions have lowered the inertia by less than a
# hundredth of a percent.


class Stagnation(SearchObserver):
    """Ends a search whose best inertia hardly falls any more."""

    def __init__(self, n_solutions=100, least_gain=1e-4):
        self.n_solutions = n_solutions
        self.least_gain = least_gain

    def on_start(self, state):
        """Forget other searches."""
        self.bests = []
        self.converged = 0

    def on_solution(self, record):
        """Return whether the gain of the last solutions is too small."""
        self.bests.append(record.best)
        if len(self.bests) <= self.n_solutions:
            return False
        return record.best > self.bests[-1 - self.n_solutions] * (1.0 - self.least_gain)

    def on_settled(self, population):
        """Count the populations that have converged."""
        self.converged += 1


# %%
# The rule is one of several: the search still ends by its own criteria if they come first.
# ``stop_reason_`` says which it was.

rule = Stagnation()
model = HGMeans(30, observers=rule, random_state=0).fit(load_digits().data)
print(f"{model.stop_reason_} after {len(rule.bests)} solutions, {rule.converged} populations")

fig, ax = plt.subplots(figsize=(8, 4.2))
ax.plot(rule.bests, color="#0072B2")
ax.axvspan(len(rule.bests) - 1 - rule.n_solutions, len(rule.bests) - 1, color="0.92")
ax.set(xlabel="solutions made", ylabel="best inertia")
ax.set_title("Digits, k = 30: the window without a gain ends the search", loc="left")
plt.show()
