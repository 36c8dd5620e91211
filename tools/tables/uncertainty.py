"""Intervals on ten real sets beside LightGBM's quantile regression, and probabilities of classifiers before and after.

    python tools/tables/uncertainty.py --data DIR                     # the tables of docs/uncertainty.md
    python tools/tables/uncertainty.py --data DIR --sets ccpp adult   # of some sets

DIR holds NAME.npz with X (or a CSR matrix's data, indices, indptr, shape) and y. Minutes, of at most 2,000 training rows.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import sparserf as srf

SETS = ["galaxy", "airfoil", "music", "telemonitor", "ccpp", "cpu_act", "house_16h", "kin40k", "protein", "kegg"]
CLASSIFIED = ["adult", "ijcnn1", "news", "pcmac"]
COVERAGE, SPLITS = 0.9, 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=[*SETS, *CLASSIFIED])
    parser.add_argument("--rows", type=int, default=2000, help="most training rows (default 2000)")
    args = parser.parse_args()
    print("| set | rows, tested | split: held | width | score | one width | CV+: held | width | score", end="")
    print(" | trees: held | width | score |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in (name for name in args.sets if name not in CLASSIFIED):
        print(interval_row(name, *split(args.data / f"{name}.npz", args.rows)), flush=True)
    print("\n| set | loss | log loss: as it is | calibrated | error of probabilities: as it is | calibrated |")
    print("|---|---|---|---|---|---|")
    for name in (name for name in args.sets if name in CLASSIFIED):
        for loss in ("logistic", "squared_hinge"):
            print(probability_row(name, loss, *split(args.data / f"{name}.npz", args.rows)), flush=True)


def split(path, most):
    """Rows to train and to test, at most so many of each."""
    z = np.load(path)
    X = z["X"] if "X" in z.files else sp.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    y, order = z["y"], np.random.default_rng(0).permutation(len(z["y"]))
    n = min(most, 2 * len(y) // 3)
    train, test = order[:n], order[n : n + 4000]
    return X[train], y[train], X[test], y[test]


def interval_row(name, X, y, X_test, y_test):
    fit = remembering(partial(srf.sparse_rf, n_models=1))

    def ours(seed, **how):
        return srf.intervals(fit, X, y, coverage=COVERAGE, rng=seed, **how).predict(X_test)

    def of(*several):
        return np.mean([figures(*ends, y_test, y.std()) for ends in several], axis=0)

    split = of(*(ours(seed) for seed in range(SPLITS)))
    one_width = of(*(ours(seed, adaptive=False) for seed in range(SPLITS)))
    cells = [*split, one_width[-1], *of(ours(0, method="cv+")), *of(quantile_trees(X, y, X_test))]
    return " | ".join([f"| {name}", f"{len(y)}, {len(y_test)}", *(f"{cell:.3f}" for cell in cells)]) + " |"


def remembering(function):
    """The function, whose fits to the same rows with the same seed are made once."""
    made = {}

    def fit(X, y, rng):
        key = y.tobytes(), rng
        made[key] = made.get(key) or function(X, y, rng=rng)
        return made[key]

    return fit


def figures(lower, upper, y, unit):
    """The share held, and mean width and interval score in standard deviations of y."""
    outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    score = np.mean(upper - lower + 2 / (1 - COVERAGE) * outside) / unit
    return np.mean(outside == 0), np.mean(upper - lower) / unit, score


def quantile_trees(X, y, X_test):
    """Two boosted models of the quantiles, each with as many trees as predict a fifth of the rows best."""
    import lightgbm

    held = np.arange(len(y)) % 5 == 0
    ends = []
    for quantile in ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2):
        model = lightgbm.LGBMRegressor(
            objective="quantile", alpha=quantile, n_estimators=2000, learning_rate=0.05, random_state=0, verbose=-1
        )
        stop = lightgbm.early_stopping(50, verbose=False)
        model.fit(X[~held], y[~held], eval_set=[(X[held], y[held])], callbacks=[stop])
        ends.append(model.predict(X_test))
    return np.minimum(*ends), np.maximum(*ends)


def probability_row(name, loss, X, y, X_test, y_test):
    fit = partial(srf.sparse_rf, loss=loss, n_models=1)
    calibrated = srf.calibrated(fit, X, y, rng=0)
    raw = ("", "") if loss != "logistic" else errors(fit(X, y, rng=0), X_test, y_test)
    cells = zip(raw, errors(calibrated, X_test, y_test), strict=True)
    return " | ".join([f"| {name}", loss, *(cell or "none" for pair in cells for cell in pair)]) + " |"


def errors(model, X, y):
    """(mean log loss, expected calibration error: of ten groups of rows, |mean probability - share of the class|)."""
    p, label = model.predict_proba(X)[:, 1].astype(np.float64), y == model.classes[1]
    loss = -np.mean(np.log(np.clip(np.where(label, p, 1 - p), 1e-15, 1)))
    groups = np.array_split(np.argsort(p), 10)
    off = sum(len(some) * abs(p[some].mean() - label[some].mean()) for some in groups) / len(p)
    return f"{loss:.4f}", f"{off:.4f}"


if __name__ == "__main__":
    main()
