"""
Segments of a table
===================

A table has a row for each of 178 wines and 13 columns of measurements. How many kinds of wine are
there, and what is each of them like? :class:`evomeans.HGMeansPath` clusters the table for a whole
range of k, and a report describes the result.
"""

import tempfile
from pathlib import Path

from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from evomeans import HGMeansPath, plotting

wines = load_wine(as_frame=True).data.rename(
    columns={"od280/od315_of_diluted_wines": "od280/od315"}
)
wines.describe().loc[["mean", "std"]].T.round(2)

# %%
# The columns have different units, so they are standardised first. The path finds the best
# clustering for every k from 2 to 10, and each criterion suggests one of them.

scaler = StandardScaler().set_output(transform="pandas")
X = scaler.fit_transform(wines)
path = HGMeansPath((2, 10), random_state=0).fit(X)
print("chosen:", path.best_k_)
plotting.plot_path(path)
plt.show()

# %%
# The default criterion, the simplified silhouette, chooses three clusters. The wines do come from
# three growers, whom the search does not know. The adjusted Rand index between growers and
# clusters would be 1 if they were the same, and about 0 for random labels.

model = path.best_estimator_
print(f"{adjusted_rand_score(load_wine().target, model.labels_):.2f}")

# %%
# The profiles say what the segments are. Rows are clusters, and colours show how far a centre is
# above or below the mean of all wines.

ax = plotting.plot_profiles(model)
ax.set_title("Three kinds of wine, standardised columns")
plt.show()

# %%
# The report is one HTML file to pass on. With ``standardization`` it shows centres in the units
# of the table.

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder, "report.html")
    model.report(X, page, title="Wines", standardization=(scaler.mean_, scaler.scale_))
    print(f"{page.name}: {page.stat().st_size / 1024:.0f} kB")
