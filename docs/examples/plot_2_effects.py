"""
A model that can be seen whole
==============================

The noise of an airfoil in a wind tunnel. With ``max_order=2`` no term sees more than two inputs, so that the model is a sum of
curves and surfaces, and nearly all of it fits on a page.
"""

# %%
# The table: :download:`airfoil.csv <../../tools/data/airfoil.csv>`, to be saved beside this program.

import pandas as pd

import sparserf as srf

table = pd.read_csv("airfoil.csv")
X, y = table.drop(columns="sound_pressure_level"), table["sound_pressure_level"]

model = srf.sparse_rf(X, y, max_order=2, n_models=1, rng=0, workers=-1)
srf.plot.effects(model, X)

# %%
# Beside the name of an input stands its share of all that the model does, by Shapley values, alone and together with others:
# the number that the summary has. Ticks and points are rows: where there are none, trust nothing.
#
# Which inputs matter, in numbers: see :doc:`/interpreting` for what the columns mean.

print(model.summary(X, n_terms=3, rng=0))
