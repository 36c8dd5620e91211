"""
How few terms are enough?
=========================

This example makes a model smaller step by step and measures what that costs. It predicts a power
plant's output from temperature, vacuum, pressure and humidity. ``sparse_rf`` chooses everything,
also the number of terms; ``prune`` then makes models of fewer terms, whose
predictions stay as near as they can.
"""

# %%
# The whole model
# ---------------
# The model is fitted to 2,000 of the rows, and its error measured on 1,000 others. Save the table,
# :download:`ccpp.csv <../../tools/data/ccpp.csv>`, beside this program.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sparserf as srf

# hours of the same vacuum go together: here the model is for the same plant
warnings.simplefilter("ignore", srf.GroupedRowsWarning)

table = pd.read_csv("ccpp.csv")
train, test = table[:2000], table[-1000:]
X, y = train.drop(columns="power"), train["power"]
X_test, y_test = test.drop(columns="power"), test["power"]


def error(model):
    return np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))


model = srf.sparse_rf(X, y, rng=0, workers=-1)
print(f"{len(model.features)} terms, an error of {error(model):.2f} MW")

# %%
# The same in fewer terms
# -----------------------
# ``max_terms`` says how many terms a model may have. The dashed line is the error of a linear model
# of the four inputs.

sizes = [2, 5, 10, 20, 50]
smaller = [
    srf.prune(model, X, max_terms=size, tol=0, workers=-1) for size in sizes
]

linear = error(srf.drp(X, y, alpha=1e-9, scale=None))

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(sizes, [error(one) for one in smaller], "o-", label="pruned")
ax.plot(
    len(model.features),
    error(model),
    "*",
    ms=14,
    color="C3",
    label="the model itself",
)
ax.axhline(linear, ls="--", color="gray", label="a linear model")
ax.set(xscale="log", xlabel="terms", ylabel="error on test rows, MW")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)

# %%
# What a term is
# --------------
# A model of five terms is short enough to read.

print(smaller[1].formula())
