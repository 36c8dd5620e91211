"""
A table as it comes: words, gaps, odd units
===========================================

This example fits a data frame with categories and missing cells as it is: neither the fit nor
``predict`` needs a step that prepares it.
"""

# %% The table of flats is made here, with what real tables have: words, empty cells and a cell with
# an absurd number.

import numpy as np
import pandas as pd

import sparserf as srf

rng = np.random.default_rng(0)
n = 1500
flats = pd.DataFrame(
    {
        "area": rng.gamma(6, 14, n),  # m²
        "year": rng.integers(1900, 2021, n).astype(float),
        "city": rng.choice(["Rome", "Oslo", "Lima"], n),
        "floor": rng.integers(0, 9, n).astype(float),
    }
)
a_metre = flats["city"].map({"Rome": 3.1, "Oslo": 4.4, "Lima": 1.6})
fashion = 1 + 0.3 * np.cos((flats["year"] - 1900) / 25)
price = a_metre * flats["area"] * fashion * rng.lognormal(0, 0.05, n)
flats.loc[rng.random(n) < 0.1, "year"] = np.nan
flats.loc[rng.random(n) < 0.1, "city"] = None
flats.loc[7, "area"] = 99999.0
flats.head()

# %% Half of the rows are for training. The gamma loss is for targets that are positive and vary by
# factors, as prices do.

train, test = flats[: n // 2], flats[n // 2 :]
model = srf.sparse_rf(train, price[: n // 2], loss="gamma", rng=0, workers=-1)
error = abs(model.predict(test) / price[n // 2 :] - 1)
whole = test.notna().all(axis=1)
print(f"{len(model.features)} terms")
print(f"typical error where nothing is missing: {error[whole].median():.1%}")
print(f"elsewhere: {error[~whole].median():.1%}")

# %%
# The name of a term says which columns it depends on.

print(
    *[name for name in model.features.names() if "inputs" not in name][:6],
    sep="\n",
)

# %%
# The summary says how much each input matters, by its Shapley values.

print(model.summary(test, n_terms=0, rng=0))

# %%
# The picture shows what the inputs do, in functions of one and two of them.

srf.plot.effects(model, test, n_panels=4)
