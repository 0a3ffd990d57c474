"""
Customer segments
=================

A shop has a table of customers and wants a handful of segments that people can talk about. How
many should there be, and what is each of them like? :class:`evomeans.HGMeansPath` clusters the
table for a whole range of k, and a report describes the result.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.preprocessing import StandardScaler

from evomeans import HGMeansPath, plotting

# %%
# The table is drawn here: 2,000 customers of five kinds, whose kinds we then forget. Each kind
# has typical values for the visits per month, the basket in euros, the share of items bought on
# offer and the age of the account in years.

rng = np.random.default_rng(0)
kinds = pd.DataFrame(
    {
        "visits": [12.0, 4.0, 2.0, 8.0, 1.0],
        "basket": [18.0, 95.0, 30.0, 45.0, 140.0],
        "on_offer": [0.25, 0.1, 0.7, 0.45, 0.05],
        "years": [6.0, 4.0, 1.0, 9.0, 2.0],
    }
)
kind = rng.choice(len(kinds), p=[0.3, 0.2, 0.25, 0.15, 0.1], size=2000)
spread = np.array([1.0, 8.0, 0.07, 0.9])
customers = kinds.iloc[kind].reset_index(drop=True) + spread * rng.normal(size=(2000, 4))
customers.head()

# %%
# The columns have different units, so they are standardised first. The path finds the best
# clustering for every k from 2 to 10, and each criterion suggests one of them.

scaler = StandardScaler().set_output(transform="pandas")
X = scaler.fit_transform(customers)
path = HGMeansPath((2, 10), random_state=0).fit(X)
print(path.suggestions_)
plotting.plot_path(path)
plt.show()

# %%
# Four criteria suggest five clusters and two suggest four, so we look at five. The profiles say
# what the segments are: rows are clusters, colours show how far a centre lies above or below the
# mean of all customers.

model = path.at(5)
ax = plotting.plot_profiles(model)
ax.set_title("Five segments, standardised columns")
plt.show()

# %%
# The report is one HTML file to pass on. With ``standardization`` it shows centres in the units
# of the table.

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder, "report.html")
    in_units = (scaler.mean_, scaler.scale_)
    model.report(X, page, title="Customers", units={"basket": "€"}, standardization=in_units)
    print(f"{page.name}: {page.stat().st_size / 1024:.0f} kB")
