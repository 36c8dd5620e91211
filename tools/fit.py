"""Fit a sparse model to a CSV file: choose the width and the penalty on held-out rows, report the error on test rows.

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

WIDTHS = (0.1, 0.3, 1.0, 3.0)  # times the default gamma


def main():
    args = arguments()
    X, y, names = read(args.csv, args.target)
    is_labels = y.dtype.kind == "U" or len(np.unique(y)) == 2
    loss = "logistic" if is_labels else "squared"
    train, test = split(len(y), args.test, args.seed)
    mean, sd = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(sd > 0, sd, 1)
    print(f"{args.csv.name}: {len(train)} training rows, {len(test)} test rows, {X.shape[1]} inputs, target {names[-1]}")

    start = time.perf_counter()
    curve, gamma, alpha = choose(X[train], y[train], loss, args)
    model = srf.sparse_rf(X[train], y[train], alpha=alpha, gamma=gamma, loss=loss, rng=args.seed, workers=-1)
    seconds = time.perf_counter() - start

    linear = baseline(X[train], y[train], X[test], y[test], is_labels)
    start = time.perf_counter()
    error = test_error(model, X[test], y[test])
    micros = (time.perf_counter() - start) / len(test) * 1e6
    what = "test error" if is_labels else "test RMSE"
    print(f"{what} {error:.4g}   (a linear model: {linear:.4g})")
    print(f"terms {len(model.features)} of {model.info.n_drawn} drawn   gamma {gamma:.3g}   alpha {alpha:.3g}")
    print(f"time {seconds:.1f} s, the whole search included   prediction {micros:.1f} microseconds a row")
    draw(args.picture, curve, model, X[test], y[test], (what, error, linear), names, is_labels)
    print(f"picture {args.picture}")
    if args.save:
        model.save(args.save)
        np.savez(args.save.with_suffix(".scaling.npz"), mean=mean, sd=sd)
        print(f"model {args.save}, the scaling of its inputs {args.save.with_suffix('.scaling.npz')}")


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
    y = columns.pop(at)
    names = header[:at] + header[at + 1 :] + [header[at]]
    return np.column_stack([numbers(c, n) for c, n in zip(columns, names, strict=False)]), maybe_numbers(y), names


def numbers(column, name):
    try:
        return column.astype(np.float64)
    except ValueError:
        raise SystemExit(f"column {name!r} holds words, not numbers; encode it first") from None


def maybe_numbers(y):
    try:
        return y.astype(np.float64)
    except ValueError:
        return y


def split(n, share, seed):
    """(rest, share) of the row numbers, at random."""
    order = np.random.default_rng(seed).permutation(n)
    held = round(n * share)
    return order[held:], order[:held]


def choose(X, y, loss, args):
    """The gamma and alpha of least error on a fifth of the training rows, and the curve of error against terms there."""
    fit, held = split(len(y), 0.2, args.seed + 1)
    default = srf.Fourier().resolve(X, np.random.default_rng(args.seed)).gamma
    best = np.inf
    for gamma in default * np.array(WIDTHS):
        path = srf.sparse_rf_path(
            X[fit], y[fit], gamma=gamma, loss=loss, n_components=3000, alpha_min_ratio=1e-4, rng=args.seed, workers=-1
        )
        errors = [test_error(model, X[held], y[held]) for model in path]
        if min(errors) < best:
            best = min(errors)
            curve = [len(model.features) for model in path], errors
            gamma_best, alpha_best = gamma, path[int(np.argmin(errors))].info.alpha
    return curve, float(gamma_best), alpha_best


def test_error(model, X, y):
    """Root mean squared error, or share of wrong labels."""
    p = model.predict(X, workers=-1)
    return np.sqrt(np.mean((p - y) ** 2)) if model.classes is None else np.mean(p != y)


def baseline(X, y, X_test, y_test, is_labels):
    """The error of a linear model, for comparison."""
    if is_labels:
        return test_error(srf.sparse_rf(X, y, alpha=1e-4, features=srf.Linear(), loss="logistic"), X_test, y_test)
    A = np.column_stack([np.ones(len(X)), X])
    w = np.linalg.lstsq(A, y, rcond=None)[0]
    return np.sqrt(np.mean((w[0] + X_test @ w[1:] - y_test) ** 2))


def draw(path, curve, model, X, y, result, names, is_labels):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    what, error, linear = result
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    left.plot(*curve, "o-", ms=4, label="sparserf, on held-out rows, along the penalty")
    left.plot(len(model.features), error, "*", ms=16, color="C3", label=f"chosen model, on test rows: {error:.3g}")
    left.axhline(linear, ls="--", color="gray", label=f"linear model, on test rows: {linear:.3g}")
    left.set(xlabel="terms in the model", ylabel=what.replace("test ", ""), xscale="symlog", title="Error against size")
    left.set_xlim(left=0)
    left.legend(frameon=False, fontsize=8, loc="upper right")
    f = model.decision_function(X)
    if is_labels and f.ndim == 1:
        for c in model.classes:
            right.hist(f[y == c], bins=40, alpha=0.6, label=str(c))
        right.set(xlabel="decision function", ylabel="test rows", title=f"{names[-1]}, by true class")
        right.legend(frameon=False)
    elif is_labels:
        right.imshow([[np.mean(model.predict(X)[y == a] == b) for b in model.classes] for a in model.classes])
        right.set(xlabel="predicted class", ylabel="true class", title=names[-1])
    else:
        right.plot(y, f, ".", ms=3, alpha=0.5)
        right.plot([y.min(), y.max()], [y.min(), y.max()], color="gray", lw=1)
        right.set(xlabel=f"true {names[-1]}", ylabel="predicted", title=f"Test rows, {len(model.features)} terms")
    fig.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
