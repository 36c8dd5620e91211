"""
A model that can be seen whole
==============================

The noise of an airfoil in a wind tunnel. With ``max_order=2`` no term sees more than two inputs, so that the model is a sum of
curves and surfaces, and all of it fits on a page.
"""

# %%

import pandas as pd

import sparserf as srf

table = pd.read_csv("../../tools/data/airfoil.csv")
X, y = table.drop(columns="sound_pressure_level"), table["sound_pressure_level"]

model = srf.sparse_rf(X, y, max_order=2, n_models=1, rng=0, workers=-1)
srf.plot.effects(model, X, n_panels=8)

# %%
# Beside the name of each part stands its covariance with f, over the variance of f. Ticks and points are rows: where there are
# none, trust nothing.
#
# Which inputs matter, in numbers: see :doc:`/interpreting` for what the columns mean.

print(model.summary(X, n_terms=3, rng=0))
