"""Fit a sparse model to a CSV file, and the same in fewer terms; report the errors on test rows.

    python tools/fit.py tools/data/ccpp.csv
    python tools/fit.py mine.csv --target price --save model.npz

The file has a header and numbers; the target is the last column unless named. A target of words, or of two values,
is classified.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import sparserf as srf

SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)  # terms of the models in fewer terms


def main():
    args = arguments()
    X, y, names = read(args.csv, args.target)
    is_labels = y.dtype.kind == "U" or len(np.unique(y)) == 2
    order, held = np.random.default_rng(args.seed).permutation(len(y)), round(len(y) * args.test)
    train, test = order[held:], order[:held]
    print(f"{args.csv.name}: {len(train)} training rows, {len(test)} test rows, {X.shape[1]} inputs, target {names[-1]}")

    start = time.perf_counter()
    model = srf.sparse_rf(X[train], y[train], loss="logistic" if is_labels else "squared", rng=args.seed, workers=-1)
    seconds = time.perf_counter() - start

    linear = baseline(X[train], y[train], X[test], y[test], is_labels)
    start = time.perf_counter()
    error, micros = test_error(model, X[test], y[test]), (time.perf_counter() - start) / len(test) * 1e6
    sizes = [size for size in SIZES if size < len(model.features)]
    smaller = [srf.prune(model, X[train], max_terms=size, tol=0, workers=-1) for size in sizes]
    curve = [*sizes, len(model.features)], [*(test_error(one, X[test], y[test]) for one in smaller), error]

    what = "test error" if is_labels else "test RMSE"
    print(f"{what} {error:.4g}   (a linear model: {linear:.4g})")
    print(f"terms {len(model.features)} of {model.info.n_drawn} drawn   alpha {model.info.alpha:.3g}")
    print(f"time {seconds:.1f} s, the whole search included   prediction {micros:.1f} microseconds a row")
    draw(args.picture, curve, model, X[test], y[test], (what, error, linear), names, is_labels)
    print(f"picture {args.picture}")
    if args.save:
        model.save(args.save)
        print(f"model {args.save}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--target", help="name of the target column (default: the last)")
    parser.add_argument("--test", type=float, default=0.25, help="share of the rows kept for the test (default 0.25)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("sparserf-fit.png"))
    parser.add_argument("--save", type=Path, help="write the model here, as .npz")
    return parser.parse_args()


def read(path, target):
    """X, y and the names of the columns, the target's last."""
    with open(path, newline="") as file:
        header, *rows = [row for row in csv.reader(file) if row]
    if target is not None and target not in header:
        raise SystemExit(f"no column {target!r} in {path}; there are {', '.join(header)}")
    at = header.index(target) if target else len(header) - 1
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    y, names = numbers(columns.pop(at)), header[:at] + header[at + 1 :] + [header[at]]
    return np.column_stack([numbers(c, n) for c, n in zip(columns, names, strict=False)]), y, names


def numbers(column, name=None):
    """The column as numbers; words, of the target, as they are."""
    try:
        return column.astype(np.float64)
    except ValueError:
        if name is None:
            return column
        raise SystemExit(f"column {name!r} holds words, not numbers; encode it first") from None


def test_error(model, X, y):
    """Root mean squared error, or share of wrong labels."""
    p = model.predict(X, workers=-1)
    return np.sqrt(np.mean((p - y) ** 2)) if model.classes is None else np.mean(p != y)


def baseline(X, y, X_test, y_test, is_labels):
    """The error of a linear model, for comparison."""
    if is_labels:
        mean, sd = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-300)
        model = srf.drp((X - mean) / sd, y, alpha=1e-4, loss="logistic")
        return test_error(model, (X_test - mean) / sd, y_test)
    w = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0]
    return np.sqrt(np.mean((w[0] + X_test @ w[1:] - y_test) ** 2))


def draw(path, curve, model, X, y, result, names, is_labels):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    (what, error, linear), f = result, model.predict(X)
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    left.plot(*curve, "o-", ms=4, label="the same in fewer terms, on test rows")
    left.plot(len(model.features), error, "*", ms=16, color="C3", label=f"sparserf, on test rows: {error:.3g}")
    left.axhline(linear, ls="--", color="gray", label=f"linear model, on test rows: {linear:.3g}")
    left.set(xlabel="terms", ylabel=what.replace("test ", ""), xscale="symlog", xlim=(0, None), title="Error against size")
    left.legend(frameon=False, fontsize=8, loc="best")
    if is_labels:
        right.imshow([[np.mean(f[y == a] == b) for b in model.classes] for a in model.classes])
        right.set(xlabel="predicted class", ylabel="true class", title=names[-1])
    else:
        right.plot(y, f, ".", ms=3, alpha=0.5)
        right.plot([y.min(), y.max()], [y.min(), y.max()], color="gray", lw=1)
        right.set(xlabel=f"true {names[-1]}", ylabel="predicted", title=f"Test rows, {len(model.features)} terms")
    fig.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
