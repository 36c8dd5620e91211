"""Fit a sparse model to a CSV file, the same in fewer terms, and ten rules to read; report the
errors on test rows.

    python tools/fit.py tools/data/ccpp.csv
    python tools/fit.py mine.csv --target price --save model.npz

The file has a header. Cells may be numbers, words, or missing: empty, NA, nan, null, none or a
question mark. The target is the last column unless named; rows without it are left out. A target of
words, or of two values, is classified; others are with --loss multinomial; quantile, poisson,
tweedie and gamma are for numbers. Each line begins with the seconds since the start.
"""

import argparse
import csv
import re
import time
import warnings
from pathlib import Path

import numpy as np

import sparserf as srf
from sparserf.losses import PROBABILISTIC

SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)  # terms of the models in fewer terms
MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
START = time.perf_counter()


def main():
    args = arguments()
    # The rows to test are drawn at random, as those that are held out.
    warnings.simplefilter("ignore", srf.GroupedRowsWarning)
    say(f"reads {Path(args.csv).name}")
    X, y, words, target, names = read(args.csv, args.target)
    loss = args.loss or loss_for(y)
    is_labels = loss in PROBABILISTIC or loss == "squared_hinge"
    kind = f"{len(np.unique(y))} classes" if is_labels else "numbers"
    n_missing = sum(cell is None for row in X for cell in row)
    say(
        f"{len(y)} rows; {X.shape[1]} inputs, {len(words)} of words; {n_missing} missing cells; "
        f"{target}: {kind}, loss {loss}"
    )
    order, held = np.random.default_rng(args.seed).permutation(len(y)), round(len(y) * args.test)
    train, test = order[held:], order[:held]
    how = {"loss": loss, "rng": args.seed, "workers": -1, "categorical": words or None}

    say(f"fits sparse_rf to {len(train)} rows")
    start = time.perf_counter()
    model = srf.sparse_rf(X[train], y[train], **how)
    seconds = time.perf_counter() - start
    say("fits ten rules of at most two columns, and a linear model, to compare with")
    rules = srf.sparse_rf(
        X[train], y[train], features=srf.Rules(), max_terms=10, max_order=2, **how
    )
    of_rules = test_error(rules, X[test], y[test])
    linear = linear_error(X, y, train, test, how)
    start = time.perf_counter()
    error, micros = (
        test_error(model, X[test], y[test]),
        (time.perf_counter() - start) / len(test) * 1e6,
    )
    sizes = [size for size in SIZES if size < len(model.features)]
    say(f"fits the same in {', '.join(map(str, sizes)) or 'no fewer'} terms")
    smaller = [srf.prune(model, X[train], max_terms=size, tol=0, workers=-1) for size in sizes]
    curve = (
        [*sizes, len(model.features)],
        [*(test_error(one, X[test], y[test]) for one in smaller), error],
    )
    what = "share of wrong labels" if is_labels else "test RMSE"
    say(f"draws {args.picture}")
    draw(args.picture, curve, rules, X[train], names, (what, error, of_rules, linear))
    if args.save:
        say(f"writes {args.save}")
        model.save(args.save)

    print(f"\n{what} {error:.4g}   (ten rules: {of_rules:.4g}, a linear model: {linear:.4g})")
    print(
        f"terms {len(model.features)}   time {seconds:.1f} s, and for "
        f"a prediction {micros:.1f} microseconds\n"
    )
    print(re.sub(r"\bx(\d+)\b", lambda found: names[int(found[1])], rules.formula()))


def say(line):
    print(f"{time.perf_counter() - START:6.1f} s  {line}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("csv", type=Path)
    parser.add_argument("--target", help="name of the target column (default: the last)")
    parser.add_argument(
        "--loss",
        help="any of sparse_rf (default: squared, of two classes logistic, of more multinomial)",
    )
    parser.add_argument(
        "--test",
        type=float,
        default=0.25,
        help="share of the rows kept for the test (default 0.25)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--picture", type=Path, help="draw here (default: the name of the file, and _fit.png)"
    )
    parser.add_argument("--save", type=Path, help="write the model here, as .npz")
    args = parser.parse_args()
    args.picture = args.picture or Path(f"{args.csv.stem}_fit.png")
    return args


def read(path, target):
    """(X, y, indices of columns of words, the name of the target, those of the inputs): cells
    as numbers, words, or None where missing."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise SystemExit(f"{path} cannot be read: {error.strerror}") from None
    if target is not None and target not in header:
        raise SystemExit(f"no column {target!r} in {path}; there are {', '.join(header)}")
    wrong = next((k for k, row in enumerate(rows, 2) if len(row) != len(header)), None)
    if wrong is not None:
        raise SystemExit(
            f"row {wrong} of {path} has {len(rows[wrong - 2])} cells, the header has {len(header)}"
        )
    at = header.index(target) if target else len(header) - 1
    rows = [row for row in rows if not is_missing(row[at])]
    columns = [cells(column) for column in zip(*rows, strict=True)]
    y = np.array(columns.pop(at))
    words = [k for k, column in enumerate(columns) if any(isinstance(cell, str) for cell in column)]
    return np.array(columns, object).T, y, words, header.pop(at), header


def is_missing(cell):
    return cell.strip().lower() in MISSING


def cells(column):
    """A column of numbers where all that is there is one, else of words; None where a cell is
    missing."""
    there = [None if is_missing(cell) else cell.strip() for cell in column]
    try:
        return [None if cell is None else float(cell) for cell in there]
    except ValueError:
        return there


def loss_for(y):
    n_values = len(np.unique(y))
    if y.dtype.kind == "U" or n_values == 2:
        return "multinomial" if n_values > 2 else "logistic"
    return "squared"


def test_error(model, X, y):
    """Root mean squared error, or share of wrong labels."""
    p = model.predict(X, workers=-1)
    return np.sqrt(np.mean((p - y) ** 2)) if model.classes is None else np.mean(p != y)


def linear_error(X, y, train, test, how):
    """Of least squares, or of a linear classifier."""
    if how["loss"] == "squared":
        how = {key: how[key] for key in ("rng", "workers", "categorical")}
        linear = srf.drp(X[train], y[train], alpha=1e-6, scale=None, **how)
    else:
        linear = srf.sparse_rf(X[train], y[train], features=srf.Linear(), **how)
    return test_error(linear, X[test], y[test])


def draw(path, curve, rules, X, names, result):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    what, error, of_rules, linear = result
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(13, 4), layout="constrained", width_ratios=(1, 1.2)
    )
    output = rules.classes[-1] if np.ndim(rules.intercept) else None
    srf.plot.rules(rules, X, names=names, output=output, ax=left)
    right.plot(*curve, "o-", ms=4, label="sparse_rf(X, y), in all its terms and in fewer")
    right.plot(curve[0][-1], error, "*", ms=16, color="C0")
    right.plot(len(rules.features), of_rules, "o", ms=8, color="C2", label="ten rules")
    right.axhline(linear, ls="--", color="gray", label="a linear model")
    right.set(xlabel="terms", ylabel=f"{what.removeprefix('test ')} on test rows", xscale="log")
    right.margins(0.1, 0.1)
    fig.legend(frameon=False, fontsize=9, loc="outside lower right", ncols=3)
    fig.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
