"""The default call with other losses against LightGBM's of the same objective, tuned a little.

    python tools/tables/losses.py [--rows 4000] [--sets airfoil,ccpp] [losses]

Half of the rows, at most so many, are for training; the rest, at most so many, for testing. LightGBM: the best of eight
settings on a tenth of the training rows, with early stopping, fitted again to all of them with as many trees. Half of Poisson's
and of the gamma deviance, the pinball loss, and for Huber's the mean absolute error, on the test rows. Data: the folder
SPARSERF_DATA.
"""

import argparse
import os
import time
import warnings
from itertools import product
from pathlib import Path

import lightgbm
import numpy as np

import sparserf as srf

DATA = Path(os.environ.get("SPARSERF_DATA", "data"))
SETS = {
    "poisson": ("cpu_act", "house_16h", "housing", "telemonitor", "friedman counts", "rare counts"),
    "gamma": ("cpu_act", "house_16h", "housing", "telemonitor", "friedman gamma"),
    "quantile 0.9": ("cpu_act", "house_16h", "ccpp", "airfoil", "telemonitor", "protein"),
    "quantile 0.1": ("cpu_act", "house_16h", "ccpp", "airfoil", "telemonitor", "protein"),
    "quantile 0.5": ("cpu_act", "house_16h", "ccpp", "airfoil", "telemonitor", "protein"),
    "huber": ("cpu_act", "house_16h", "ccpp", "airfoil", "telemonitor", "protein"),
}
GRID = list(product((7, 31), (5, 20), (0.7, 1.0)))


def synthetic(name, rng, n=8000):
    X = rng.random((n, 10))
    f = np.sin(np.pi * X[:, 0] * X[:, 1]) + 2 * (X[:, 2] - 0.5) ** 2 + X[:, 3] + 0.5 * X[:, 4]
    if name == "friedman gamma":
        return X, 100 * np.exp(f) * rng.gamma(4, 0.25, n)
    return X, rng.poisson((0.05 if name == "rare counts" else 3.0) * np.exp(f)).astype(float)


def data(name, loss, most, seed=0):
    rng = np.random.default_rng(seed)
    if name.split()[0] in ("friedman", "rare"):
        X, y = synthetic(name, rng)
    else:
        file = np.load(DATA / f"{name}.npz")
        X, y = file["X"].astype(float), file["y"]
    if loss == "gamma":
        y = np.maximum(y, y[y > 0].min())
    order = rng.permutation(len(X))
    n = min(most, len(X) // 2)
    return X[order[:n]], y[order[:n]], X[order[n : n + most]], y[order[n : n + most]]


def value(loss, prediction, y):
    """The loss in the mean."""
    if loss == "poisson":
        return np.mean(prediction - y + y * np.log(np.where(y > 0, y, 1) / prediction))
    if loss == "gamma":
        return np.mean(y / prediction - 1 - np.log(y / prediction))
    if loss == "huber":
        return np.mean(np.abs(prediction - y))
    level = float(loss.split()[1])
    return np.mean(np.maximum(level * (y - prediction), (1 - level) * (prediction - y)))


def trees(loss, X, y, x):
    name, _, level = loss.partition(" ")
    held = np.random.default_rng(1).permutation(len(X)) < len(X) // 10
    best = None
    for leaves, smallest, share in GRID:
        how = {"objective": name, "num_leaves": leaves, "min_data_in_leaf": smallest, "feature_fraction": share, "verbose": -1}
        how |= {"learning_rate": 0.05, "num_threads": 1, "seed": 0} | ({"alpha": float(level)} if level else {})
        if name == "huber":
            how["alpha"] = srf.losses.Huber().of_target(y, np.ones(len(y))).delta
        train, test = (lightgbm.Dataset(X[some], y[some]) for some in (~held, held))
        stop = lightgbm.early_stopping(50, verbose=False)
        fit = lightgbm.train(how, train, 2000, valid_sets=[test], callbacks=[stop])
        reached = value(loss, fit.predict(X[held]), y[held])
        if best is None or reached < best[0]:
            best = reached, how, fit.best_iteration
    return lightgbm.train(best[1], lightgbm.Dataset(X, y), max(1, int(best[2] / 0.9))).predict(x)


def ours(loss, X, y, x):
    name, _, level = loss.partition(" ")
    model = srf.sparse_rf(X, y, loss=srf.losses.Quantile(level=float(level)) if level else name, rng=0)
    return model.predict(x), len(model.features)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("losses", nargs="*", default=list(SETS))
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--sets", default="")
    asked = parser.parse_args()
    print("| loss | data | rows | sparse_rf | LightGBM | ratio | terms | CPU s, sparse_rf | CPU s, LightGBM |")
    print("|---|---|---|---|---|---|---|---|---|")
    for loss in asked.losses:
        ratios = []
        for name in asked.sets.split(",") if asked.sets else SETS[loss]:
            X, y, x, truth = data(name, loss, asked.rows)
            start = time.process_time()
            f, terms = ours(loss, X, y, x)
            middle = time.process_time()
            g = trees(loss, X, y, x)
            end = time.process_time()
            a, b = value(loss, f, truth), value(loss, g, truth)
            ratios.append(a / b)
            print(f"| {loss} | {name} | {len(X)} | {a:.4g} | {b:.4g} | {a / b:.3f} | {terms} | {middle - start:.1f} "
                  f"| {end - middle:.1f} |", flush=True)  # fmt: skip
        print(f"| {loss} | geometric mean | | | | **{np.exp(np.mean(np.log(ratios))):.3f}** | | | |", flush=True)


if __name__ == "__main__":
    main()
