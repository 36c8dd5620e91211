"""Draw and measure what docs/interpreting.md shows: explanations of default models of the data in tools/data.

python tools/interpret.py            # pictures and printed outputs, minutes
python tools/interpret.py shapley    # Shapley values against a generic permutation sampler
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pandas as pd

import sparserf as srf

ROOT = Path(__file__).parents[1]


def data(name):
    table = pd.read_csv(ROOT / f"tools/data/{name}.csv")
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy(float)


def main():
    X, y = data("airfoil")
    model = srf.sparse_rf(X, y, rng=0, n_models=1, workers=-1)
    print(model.summary(X, n_terms=5, rng=0), "\n")
    srf.plot.effects(model, X).savefig(ROOT / "docs/pictures/airfoil_effects.png", dpi=90)
    for order in 1, 2:
        fitted = srf.sparse_rf(X, y, rng=0, n_models=1, max_order=order, workers=-1)
        print(f"max_order={order}: {fitted}, validation loss {fitted.info.validation_loss:.3g}")
        srf.plot.effects(fitted, X, n_panels=8).savefig(ROOT / f"docs/pictures/airfoil_order{order}.png", dpi=90)
    print(f"no limit: {model}, validation loss {model.info.validation_loss:.3g}")
    X, y = data("ccpp")
    small = srf.prune(srf.sparse_rf(X, y, rng=0, n_models=1, workers=-1), X, max_terms=8)
    print(small.formula(n_terms=4), "\n")


def sampler(f, X, background, n_permutations, rng):
    """Shapley values of any function: along an order, rows of the background become the rows, input by input."""
    total = np.zeros(X.shape)
    for _ in range(n_permutations):
        mixed = background[rng.integers(0, len(background), len(X))].copy()
        last = f(mixed)
        for j in rng.permutation(X.shape[1]):
            mixed[:, j] = X[:, j]
            last, before = f(mixed), last
            total[:, j] += last - before
    return total / n_permutations


def race(name, max_terms=200, n_rows=1000, n_background=200):
    """Times at equal error: the sampler's falls with the root of its orders, so one timing tells that of any number."""
    X, y = data(name)
    model = srf.sparse_rf(X.to_numpy(), y, rng=0, n_models=1, max_terms=max_terms, workers=-1)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X))
    X, B = X.to_numpy()[rows[:n_rows]], X.to_numpy()[rows[-n_background:]]
    reference = model.shapley(X, B, n_permutations=256, rng=1)
    start = time.perf_counter()
    values = model.shapley(X, B, rng=0)
    ours = time.perf_counter() - start
    error = np.sqrt(np.mean((values - reference) ** 2))
    n = 20
    start = time.perf_counter()
    sampled = sampler(model.predict, X, B, n, rng)
    its = time.perf_counter() - start
    its_error = np.sqrt(np.mean((sampled - reference) ** 2))
    size = reference.std()
    print(f"{name}: {model}, {n_rows} rows, {n_background} of the background")
    print(f"  by terms: {ours:.2f} s, error {error / size:.1e} of the values' spread")
    print(f"  sampler, {n} orders: {its:.1f} s, error {its_error / size:.1e}")
    for goal in (error / size, 0.01, 0.001):
        if goal > 1e-10:
            needed = its * (its_error / size / goal) ** 2
            print(f"  sampler to an error of {goal:.1e}: {needed:.0f} s, {needed / ours:.0f} times as long")


if __name__ == "__main__":
    if sys.argv[1:] == ["shapley"]:
        for name in "ccpp", "airfoil", "telemonitor":
            race(name)
    else:
        main()
