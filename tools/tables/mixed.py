"""Raw tables with categories and missing cells: features="auto" beside LightGBM, both on the data frame as it is.

    python tools/tables/mixed.py --data DIR [--rows 10000] [--seeds 3]

adult (its zeros and ones put back together as the categories that they were made of) and news (its channel and weekday as
categories, its numbers raw), a tenth of the cells missing at random. LightGBM takes categories and NaN natively; its number of
trees, leaves, rate and penalties are those of the best of 20 points on a tenth of the training rows.
Writes docs/tables/mixed.md.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from auto import load
from auto_contenders import POINTS, WORKERS, held_out

import sparserf as srf

# Inputs of each category of adult, in the order of its file.
ADULT = {
    "age": 5, "workclass": 8, "fnlwgt": 5, "education": 16, "education_num": 5, "marital_status": 7, "occupation": 14,
    "relationship": 6, "race": 5, "sex": 2, "capital_gain": 2, "capital_loss": 2, "hours": 5, "country": 41,
}  # fmt: skip
# The first input of each category of news, and how many.
NEWS = {"channel": (11, 6), "weekday": (29, 7)}
MISSING = 0.1


def categories(X, first, n, name):
    """A column of strings, of n inputs of which one is 1; missing where none is."""
    hot = X[:, first : first + n]
    return np.where(hot.max(axis=1) > 0, np.char.add(f"{name} ", hot.argmax(axis=1).astype(str)), None)


def table(name, X, rng):
    """The data frame of a set, a tenth of its cells missing."""
    if name == "adult":
        starts = np.cumsum([0, *ADULT.values()])
        frame = pd.DataFrame({of: categories(X, start, n, of) for start, (of, n) in zip(starts, ADULT.items(), strict=False)})
    else:
        hot = {j for first, n in NEWS.values() for j in range(first, first + n)}
        frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1]) if j not in hot})
        frame = frame.assign(**{of: categories(X, *where, of) for of, where in NEWS.items()})
    return frame.mask(rng.random(frame.shape) < MISSING)


def auto(frame, y, seed):
    model = srf.sparse_rf(frame, y, loss="logistic", rng=seed, workers=WORKERS)
    return lambda frame: model.decision_function(frame), len(model.features)


def lightgbm(frame, y, seed):
    """The best of POINTS draws of its parameters, then all training rows."""
    import lightgbm

    named = [name for name in frame if frame[name].dtype.kind not in "fi"]
    levels = {name: pd.CategoricalDtype(sorted(frame[name].dropna().unique())) for name in named}
    X, rng = frame.astype(levels), np.random.default_rng(seed)
    fitted, held = held_out(len(X), seed)
    best = (np.inf, None, None)
    for _ in range(POINTS):
        how = {
            "objective": "binary", "learning_rate": 10 ** rng.uniform(-2, -0.5), "num_leaves": int(2 ** rng.uniform(2, 8)),
            "min_data_in_leaf": int(10 ** rng.uniform(0.3, 2)), "lambda_l2": 10 ** rng.uniform(-3, 2),
            "feature_fraction": rng.uniform(0.4, 1), "bagging_fraction": rng.uniform(0.5, 1), "bagging_freq": 1,
            "num_threads": WORKERS, "verbosity": -1, "seed": seed,
        }  # fmt: skip
        data = lightgbm.Dataset(X.iloc[fitted], y[fitted] > 0, free_raw_data=False)
        model = lightgbm.train(how, data, 1000, [lightgbm.Dataset(X.iloc[held], y[held] > 0, reference=data)],
                               callbacks=[lightgbm.early_stopping(30, verbose=False)])  # fmt: skip
        best = min(best, (model.best_score["valid_0"]["binary_logloss"], model.best_iteration, how), key=lambda found: found[0])
    model = lightgbm.train(best[2], lightgbm.Dataset(X, y > 0), best[1])
    return lambda frame: model.predict(frame.astype(levels), raw_score=True), best[1] * best[2]["num_leaves"]


def measure(folder, name, rows, seed):
    X, y, X_test, y_test, _ = load(folder, name, rows, seed)
    frames, found = [table(name, part, np.random.default_rng(seed + k)) for k, part in enumerate((X, X_test))], {}
    for fit in (auto, lightgbm):
        start = time.perf_counter()
        f, size = fit(frames[0], y, seed)
        found[fit.__name__] = float(np.logaddexp(0, -y_test * f(frames[1])).mean()), size, time.perf_counter() - start
        print(name, seed, fit.__name__, found[fit.__name__], flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SPARSERF_DATA"))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    if not args.data:
        raise SystemExit("needs the data sets: give their folder by --data or SPARSERF_DATA")
    lines = ["# Raw tables with categories and missing cells", "",
             f"`python tools/tables/mixed.py --rows {args.rows} --seeds {args.seeds}`: log loss on test rows; in brackets",
             "terms, or leaves at most, and seconds of the whole fit; means over seeds. A tenth of the cells is missing.", "",
             "| | auto | LightGBM tuned |", "| --- | --- | --- |"]  # fmt: skip
    for name in ("adult", "news"):
        runs = [measure(Path(args.data), name, args.rows, seed) for seed in range(args.seeds)]
        cells = [np.mean([run[who] for run in runs], axis=0) for who in ("auto", "lightgbm")]
        lines.append(f"| {name} | " + " | ".join(f"{e:.4f} ({n:,.0f}), {s:.0f} s" for e, n, s in cells) + " |")
    (Path(__file__).parents[2] / "docs" / "tables" / "mixed.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
