"""
What a dictionary that learns is worth
======================================

This example compares features that are learned with features that are only drawn. The papers draw
features from one distribution, whose width you must know, until good ones come. ``features="auto"``
draws near the features that the fit has accepted so far. Here both look at the same number of
draws.
"""

# %% There are ten inputs. The target varies along two directions in them, which neither of the fits
# is told.

import matplotlib.pyplot as plt
import numpy as np

import sparserf as srf

rng = np.random.default_rng(0)
directions = rng.standard_normal((10, 2)) / np.sqrt(10)


def rows(n):
    X = rng.standard_normal((n, 10))
    z = X @ directions
    return X, np.sin(2 * z[:, 0]) + np.cos(2 * z[:, 1])


(X, y), (X_test, y_test) = rows(2000), rows(2000)


def error(features, n_components):
    how = {
        "alpha": 0.003,
        "n_components": n_components,
        "tol": 0.01,
        "rng": 0,
        "workers": -1,
    }
    model = srf.sparse_rf(X, y, features=features, **how)
    return np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test)


draws = [1000, 2000, 4000, 8000, 16000]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(
    draws,
    [error("gaussian", n) for n in draws],
    "o-",
    label="fixed draws: features='gaussian'",
)
ax.plot(
    draws,
    [error("auto", n) for n in draws],
    "o-",
    label="draws that learn: features='auto'",
)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="features drawn",
    ylabel="error / variance, on test rows",
)
ax.legend(frameon=False)

# %%
# :doc:`/learning` says how features are learned, and which of the paper's guarantees still hold.
