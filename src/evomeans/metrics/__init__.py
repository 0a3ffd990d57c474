"""How good clusterings are, how far two are apart, and how many clusters there are.

All functions also accept labels, centres or inertias from other software. docs/guide/choosing-k.md
says how to read them.
"""

from evomeans.metrics.agreement import centroid_index, clustering_instability, prediction_strength
from evomeans.metrics.compactness import (
    bic_score,
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_samples,
    silhouette_score,
    simplified_silhouette_samples,
    simplified_silhouette_score,
)
from evomeans.metrics.curves import (
    gap_statistic,
    hartigan_statistic,
    jump_statistic,
    krzanowski_lai_index,
)

__all__ = [
    "bic_score",
    "calinski_harabasz_score",
    "centroid_index",
    "clustering_instability",
    "davies_bouldin_score",
    "gap_statistic",
    "hartigan_statistic",
    "jump_statistic",
    "krzanowski_lai_index",
    "prediction_strength",
    "silhouette_samples",
    "silhouette_score",
    "simplified_silhouette_samples",
    "simplified_silhouette_score",
]
