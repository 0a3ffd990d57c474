"""Would other shares of the operators pay? The deep strategy with more or less of each.

``python -m lab.shares`` gives the deep strategy and its variants the CPU time that the
strategy of the paper takes to its own end, on the set-ups that are hard in that time. Gaps are to
the lowest value known. The p-value is that of the Wilcoxon test of the paired gaps of a variant and
of the deep strategy. Rows are kept as in ``lab.rivals``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evomeans.search import DEEP, SearchSettings
from lab.data import exit_on_data_errors
from lab.variants import VariantsTask, compare

SETUPS = (
    *("liver:100", "liver:50", "liver:40", "pima:100", "pima:50", "ionosphere:30"),
    *("ionosphere:20", "tsplib3038:100", "image_segmentation:100"),
)


@dataclass(frozen=True)
class SharesTask(VariantsTask):
    """Run the deep strategy with other shares."""

    def variants(self) -> Mapping[str, SearchSettings]:
        """Return the variants; in each, one number is another."""
        parts, merging, matching = DEEP.crossovers

        def deep(**changed: Any) -> SearchSettings:
            return SearchSettings(strategy=replace(DEEP, name="other shares", **changed))

        def crossing(*crossovers: Any) -> SearchSettings:
            return deep(crossovers=(*crossovers, matching))

        def population(least: int, most: int) -> SearchSettings:
            return replace(deep(), min_population=least, max_population=most)

        def patience(factor: float) -> SearchSettings:
            most, per_cluster = DEEP.patience, DEEP.patience_per_cluster
            return deep(patience=round(factor * most), patience_per_cluster=factor * per_cluster)

        return {
            "half the swaps": deep(swaps=0.5 * DEEP.swaps),
            "twice the swaps": deep(swaps=2.0 * DEEP.swaps),
            "parts tried for all": crossing(replace(parts, share=1.0), merging),
            "no merging": crossing(parts),
            "merging for half": crossing(parts, replace(merging, share=0.5)),
            "lag 1": deep(lag=1),
            "population 5 to 10": population(5, 10),
            "population 15 to 30": population(15, 30),
            "half the patience": patience(0.5),
            "twice the patience": patience(2.0),
        }


def main() -> None:
    compare(SharesTask, "shares.csv", SETUPS, 1.0, __doc__)


if __name__ == "__main__":
    with exit_on_data_errors():
        main()
