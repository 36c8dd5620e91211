"""
A model that can be seen whole
==============================

This example draws a whole model, of the noise of an airfoil in a wind tunnel. With ``max_order=2``
no term depends on more than two inputs, so that the model is a sum of curves and surfaces, and
nearly all of it fits on a page.
"""

# %%
# Save the table, :download:`airfoil.csv <../../tools/data/airfoil.csv>`, beside this program.

import pandas as pd

import sparserf as srf

table = pd.read_csv("airfoil.csv")
X, y = table.drop(columns="sound_pressure_level"), table["sound_pressure_level"]

model = srf.sparse_rf(X, y, max_order=2, rng=0, workers=-1)
srf.plot.effects(model, X)

# %% Beside the name of an input stands its share of all that the model does, alone and together
# with others. It is a share of the mean sizes of Shapley values, the same number as in the summary.
# Grey steps and points are rows: do not trust a curve where it is dotted, or a surface where it is
# grey.
# The summary says in numbers which inputs matter; :doc:`/interpreting` says what its columns mean.

print(model.summary(X, n_terms=3, rng=0))
