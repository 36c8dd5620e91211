"""
A table as it comes: words, gaps, odd units
===========================================

Categories and missing cells need no step of your own: a data frame goes in as it is, into the fit and into ``predict``.
"""

# %%
# A table of flats, made here, with what real tables have: words, empty cells, a wild cell.

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

# %%
# Half of the rows are for training. Prices are positive and vary by factors, which is what the gamma loss is for.

train, test = flats[: n // 2], flats[n // 2 :]
model = srf.sparse_rf(train, price[: n // 2], loss="gamma", n_models=1, rng=0, workers=-1)
error = abs(model.predict(test) / price[n // 2 :] - 1)
whole = test.notna().all(axis=1)
print(f"{len(model.features)} terms")
print(f"typical error where nothing is missing: {error[whole].median():.1%}")
print(f"elsewhere: {error[~whole].median():.1%}")

# %%
# Terms name the columns that they see.

print(*[name for name in model.features.names() if "inputs" not in name][:6], sep="\n")

# %%
# What the inputs are worth, by their Shapley values.

print(model.summary(test, n_terms=0, rng=0))

# %%
# And what they do, in functions of one and two of them.

srf.plot.effects(model, test, n_panels=4)
