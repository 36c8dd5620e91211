"""
Intervals and quantiles
=======================

This example shows how sure a prediction is, in two ways. ``intervals`` gives two ends between which
new targets lie as often as asked; the quantile loss fits one curve to each level.
"""

# %%
# The data have noise that grows with x.

import matplotlib.pyplot as plt
import numpy as np

import sparserf as srf

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (1500, 1))
y = np.sin(2 * X[:, 0]) + (
    0.1 + 0.15 * (X[:, 0] + 3) / 2
) * rng.standard_normal(1500)
grid = np.linspace(-3, 3, 300)[:, None]


def fit(X, y, **how):
    return srf.sparse_rf(X, y, workers=-1, **how)


bands = srf.intervals(fit, X, y, coverage=0.9, rng=0)
lower, upper = bands.predict(grid)
low = fit(X, y, loss=srf.losses.Quantile(level=0.05), rng=0).predict(grid)
high = fit(X, y, loss=srf.losses.Quantile(level=0.95), rng=0).predict(grid)

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), sharey=True, layout="constrained"
)
left.fill_between(grid[:, 0], lower, upper, alpha=0.4)
left.set(title="intervals that hold 0.9", xlabel="x")
right.fill_between(grid[:, 0], low, high, alpha=0.4)
right.set(title="quantiles 0.05 and 0.95", xlabel="x")
for ax in (left, right):
    ax.plot(X[:, 0], y, ".", ms=2, color="gray")

# %%
# How often does the target lie between the ends, on rows that neither of the two was fitted to?

X_new = rng.uniform(-3, 3, (5000, 1))
y_new = np.sin(2 * X_new[:, 0]) + (
    0.1 + 0.15 * (X_new[:, 0] + 3) / 2
) * rng.standard_normal(5000)
lower, upper = bands.predict(X_new)
print(f"intervals: {np.mean((lower <= y_new) & (y_new <= upper)):.3f}")
print(bands.guarantee)
