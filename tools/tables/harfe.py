"""The HARFE paper's Tables 1, 2 and 4 and Figures 3 to 5: the paper's numbers, ours as it ran, and ours at its best.

    python tools/tables/harfe.py --data DIR [--splits 20] [table1 table2 figure3 figure45 SET-OF-TABLE-4 ...]

"As the paper ran it": fixed step from zero, no intercept, unit columns, its N, s, lambda and q; `positive` is what its code
does, `magnitude` what it prints. "At its best": the default algorithm, with the weights' law, order, selection, alpha (1e-10 to
0.1) and s (up to two terms a row) of least error on held-out quarters of the training rows: of the first split, or for Table 2
of five samples. Without --data the real sets are skipped. Writes docs/tables/harfe.{json,md} and pictures.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
from harfe_report import commit, draw_figure3, pyplot, report

import sparserf as srf
from sparserf.baselines import srfe

DOCS = Path(__file__).parents[2] / "docs/tables"
SELECTIONS = ("positive", "magnitude")
LAWS = (("normal", 1.0), ("normal", 0.3), ("uniform", 1.0))
ALPHAS = {"magnitude": (1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1), "positive": (1e-5, 1e-2)}
ORDERS = (1, 2, 3)
# Settings are chosen on so many of Friedman's samples; and on the rows of a real set, some of many, few more than once.
SAMPLES, MANY, FEW = 5, 2000, 512


def as_the_paper_ran(X, y, features, n_components, s, alpha, selection, seed):
    return srf.harfe(X, y, features=features, n_components=n_components, n_nonzero_coefs=s, alpha=alpha, selection=selection,
                     backtracking=False, start="zero", fit_intercept=False, rng=seed, workers=-1)  # fmt: skip


def best_settings(samples, n_components, orders=ORDERS, alphas=ALPHAS):
    """The weights' law, order, selection, alpha and s / rows of least validation error, the mean over samples (X, y)."""
    maps = [srf.RandomNeurons("sin", q, law, scale) for q in orders if q <= samples[0][0].shape[1] for law, scale in LAWS]
    grid = [{"features": map_, "selection": k, "alpha": a} for map_ in maps for k in SELECTIONS for a in alphas[k]]
    n = len(samples[0][1]) - len(samples[0][1]) // 4
    sizes = np.geomspace(8, min(2 * n, n_components // 2), 8).astype(int)
    errors = [np.mean([validated(*one, g, n_components, sizes, i) for i, one in enumerate(samples)], axis=0) for g in grid]
    best, size = np.unravel_index(np.argmin(errors), (len(grid), len(sizes)))
    return grid[best], sizes[size] / n


def validated(X, y, settings, n_components, sizes, seed):
    """The error of each size on a quarter of the rows that is held out."""
    held = np.random.default_rng([seed, 1]).permutation(len(y)) < len(y) // 4
    models = srf.harfe_path(X[~held], y[~held], n_nonzero_coefs=sizes, n_components=n_components, tol=0, rng=seed,
                            workers=-1, **settings)  # fmt: skip
    return [mse(model, X[held], y[held]) for model in models]


def at_its_best(X, y, best, n_components, seed):
    settings, share = best
    s = min(int(share * len(y)), n_components)
    return srf.harfe(X, y, n_components=n_components, n_nonzero_coefs=s, tol=0, rng=seed, workers=-1, **settings)


def said(best):
    settings, share = best
    map_ = settings["features"]
    law = f"{map_.weights} {map_.scale:g}"
    return f"s = {share:.2g} m, order {map_.order}, {law}, alpha {settings['alpha']:g}, {settings['selection']}"


def mse(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2))


# --- Table 1 -----------------------------------------------------------------------------------------------------

FUNCTIONS = {  # name: d, f, lambda, the paper's HARFE with lambda > 0 for q = 1, 3, 5
    "1/sqrt(1+|x|^2)": (5, lambda X: 1 / np.sqrt(1 + (X**2).sum(1)), 1e-4, (3.20, 0.73, 0.57)),
    "sqrt(1+|x|^2)": (5, lambda X: np.sqrt(1 + (X**2).sum(1)), 1e-10, (1.00, 0.18, 1.00)),
    "x1 x2 / (1+x3^6)": (5, lambda X: X[:, 0] * X[:, 1] / (1 + X[:, 2] ** 6), 1e-10, (100.0, 3.40, 7.70)),
    "sum exp(-|x_i|)": (100, lambda X: np.exp(-np.abs(X)).sum(1), 1e-1, (1.10, 2.01, 2.20)),
}


def table1(_):
    """Median relative error in percent over 10 test sets."""
    rows = []
    for name, (d, f, ridge, paper) in FUNCTIONS.items():
        for order, theirs in zip((1, 3, 5), paper, strict=True):
            errors = {"positive": [], "magnitude": [], "best": []}
            for seed in range(10):
                X = np.random.default_rng(seed).uniform(-1, 1, (1000, d))
                train, test, y = X[:500], X[500:], f(X)
                if seed == 0:
                    alphas = {"magnitude": (1e-10, 1e-6, 1e-3), "positive": (1e-10, 1e-5)}
                    best = best_settings([(train, y[:500])], 10_000, [order], alphas)
                models = {s: as_the_paper_ran(train, y[:500], srf.RandomNeurons("sin", order), 10_000, 500, ridge, s, seed)
                          for s in SELECTIONS}  # fmt: skip
                models["best"] = at_its_best(train, y[:500], best, 10_000, seed)
                for key, model in models.items():
                    errors[key].append(100 * np.linalg.norm(model.predict(test) - y[500:]) / np.linalg.norm(y[500:]))
            rows.append({"function": name, "q": order, "paper": theirs, "chosen": said(best),
                         **{k: float(np.median(e)) for k, e in errors.items()}})  # fmt: skip
            print(rows[-1], flush=True)
    return rows


# --- Table 2 -----------------------------------------------------------------------------------------------------


def friedman(which, X):
    if which == "f1":
        return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    a, c, d = 100 * X[:, 0], 520 * np.pi * X[:, 1] + 40 * np.pi, 10 * X[:, 3] + 1
    inner = c * X[:, 2] - 1 / (c * d)
    return np.sqrt(a**2 + inner**2) if which == "f2" else np.arctan(inner / a)


FRIEDMAN = {  # d, sd of the noise, N, lambda, {q: the paper's}, the table's unit, the ANOVA row (on noisy targets)
    "f1": (10, 1.0, 10_000, 1e-3, {2: 1.52, 5: 3.01}, 1.0, 1.43),
    "f2": (4, 125.0, 2_000, 5e-3, {2: 1.31, 4: 1.90}, 1e3, 17.21),
    "f3": (4, 0.1, 2_000, 1e-5, {2: 10.90, 4: 13.28}, 1e-3, 20.69),
}


def friedman_sample(which, d, noise, seed):
    """(X, noiseless y, y) of 200 training and 1,000 test rows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (1200, d))
    clean = friedman(which, X)
    return X, clean, clean + noise * rng.standard_normal(1200)


def table2(_, repeats=100):
    """Mean squared error over 100 repeats, on clean and on noisy targets."""
    rows = []
    for which, (d, noise, N, ridge, paper, unit, anova) in FRIEDMAN.items():
        samples = [friedman_sample(which, d, noise, seed) for seed in range(SAMPLES)]
        best = best_settings([(2 * X[:200] - 1, y[:200]) for X, _, y in samples], N)  # ours at its best: inputs centred
        for order, theirs in paper.items():
            errors = {}
            for seed in range(repeats):
                X, clean, y = friedman_sample(which, d, noise, seed)
                features = srf.RandomNeurons("sin", order, "uniform")
                models = {s: (as_the_paper_ran(X[:200], y[:200], features, N, 200, ridge, s, seed), X[200:])
                          for s in SELECTIONS}  # fmt: skip
                models["best"] = at_its_best(2 * X[:200] - 1, y[:200], best, N, seed), 2 * X[200:] - 1
                for key, (model, test) in models.items():
                    errors.setdefault(f"{key} clean", []).append(mse(model, test, clean[200:]) / unit)
                    errors.setdefault(f"{key} noisy", []).append(mse(model, test, y[200:]) / unit)
            summary = {k: [float(np.mean(e)), float(np.std(e))] for k, e in errors.items()}
            rows.append({"function": which, "q": order, "paper": theirs, "anova": anova, "chosen": said(best), **summary})
            print(rows[-1], flush=True)
    return rows


# --- Table 4 -----------------------------------------------------------------------------------------------------

REAL = {  # training and test rows, columns of noise, N, s, m lambda, q, the paper's HARFE
    "propulsion": (200, 200, 0, 3_000, 300, 1e-10, 2, 0.0000417),
    "galaxy": (2000, 2000, 0, 10_000, 1_000, 1e-7, 2, 0.0001024),
    "airfoil": (750, 750, 36, 80_000, 5_000, 1.0, 2, 0.4492),
    "forestfires": (211, 167, 0, 4_220, 422, 0.5, 2, 0.2937),
    "housing": (256, 250, 0, 10_000, 1_000, 0.1, 2, 0.2636),
    "music": (1000, 1000, 0, 10_000, 666, 2.5, 3, 0.6134),
    "insulin": (256, 250, 0, 2_560, 170, 2.75, 2, 1.0137),
    "telemonitor": (1000, 867, 0, 15_000, 937, 0.1, 5, 0.0370),
    "ccpp": (2000, 2000, 55, 10_000, 1_000, 0.05, 1, 0.0677),
}


def real_split(folder, name, seed):
    """Seed 0 is the stored order, the split of the protocol; the others shuffle it."""
    z = np.load(Path(folder, f"{name}.npz"))
    X, y = z["X"].astype(np.float64), z["y"]
    n, n_test, n_noise, *_ = REAL[name]
    rng = np.random.default_rng(seed)
    order = np.arange(len(y)) if seed == 0 else rng.permutation(len(y))
    train, test = order[:n], order[n : n + n_test]
    if name == "galaxy":
        y = y / y.std()
    else:
        sd = X[train].std(axis=0, ddof=1)
        X = (X - X[train].mean(axis=0)) / np.where(sd > 1e-8, sd, 1)
        y = (y - y[train].mean()) / y[train].std(ddof=1)
    X = np.hstack([X, rng.standard_normal((len(y), n_noise))])
    return X[train], y[train], X[test], y[test]


def chosen_on(X, y):
    """Few rows more than once, with other rows held out; of many, some."""
    some = [np.random.default_rng([i, 2]).permutation(len(y))[:MANY] for i in range(max(1, FEW // len(y)))]
    return [(X[rows], y[rows]) for rows in some]


def table4(folder, name, splits):
    """Mean squared error on one set over random splits; the first of all: the split of the published tables."""
    _, _, _, N, s, ridge, order, theirs = REAL[name]
    errors, sizes, start = {}, [], time.perf_counter()
    for seed in range(splits + 1):
        X, y, X_test, y_test = real_split(folder, name, seed)
        if seed == 0:
            best = best_settings(chosen_on(X, y), min(N, 10_000))
        models = {f"{k} {law}": as_the_paper_ran(X, y, srf.RandomNeurons("sin", order, law), N, s, ridge, k, seed)
                  for k in SELECTIONS for law in ("normal", "uniform")}  # fmt: skip
        models["best"] = at_its_best(X, y, best, min(N, 10_000), seed)
        sizes.append(len(models["best"].features))
        for key, model in models.items():
            errors.setdefault(key, []).append(mse(model, X_test, y_test))
    row = {"set": name, "paper": theirs, "chosen": said(best), "terms": float(np.mean(sizes[1:])), "paper_terms": s}
    row |= {k: [e[0], float(np.mean(e[1:])), float(np.std(e[1:]))] for k, e in errors.items()}
    return row | {"seconds": time.perf_counter() - start}


# --- Figures -----------------------------------------------------------------------------------------------------


def figure3(_):
    """Seconds against N, best of 3 (of 1 for SRFE), the same features for both."""
    rows = []
    for m, d in ((250, 50), (500, 100), (1000, 200)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((m, d))
        y = np.sin(2 * X[:, 0] * X[:, 1]) + np.cos(X[:, 2]) + X[:, 3] + 0.1 * rng.standard_normal(m)
        for N in (1_000, 2_500, 5_000, 10_000):
            features = srf.RandomNeurons("sin", 2).draw(N, d, rng=0)
            s = int(0.15 * m)
            seconds = {
                "harfe": best_of(3, lambda: srf.harfe(X, y, features=features, n_nonzero_coefs=s, workers=-1)),
                "plain": best_of(3, lambda: as_the_paper_ran(X, y, features, N, s, 1e-4, "magnitude", 0)),
                "srfe": best_of(1, lambda: srfe(X, y, features=features, workers=-1)),
            }
            rows.append({"m": m, "d": d, "N": N, **seconds})
            print(rows[-1], flush=True)
    draw_figure3(rows, DOCS)
    return rows


def best_of(n, run):
    seconds = []
    for _ in range(n):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def figure45(folder):
    """Inputs of the selected features: Friedman's functions in 20 inputs, of which 5, 4 and 4 matter; real sets."""
    plt = pyplot()
    names = ["f1", "f2", "f3"] + (["propulsion", "housing", "telemonitor"] if folder else [])
    fig, axes = plt.subplots(len(names) // 3, 3, figsize=(10, 2.8 * (len(names) // 3)), layout="constrained", squeeze=False)
    usage = {}
    for ax, name in zip(axes.flat, names, strict=True):
        if name in FRIEDMAN:
            rng = np.random.default_rng(0)
            X = rng.uniform(0, 1, (200, 20))
            y = friedman(name, X) + FRIEDMAN[name][1] * rng.standard_normal(200)
            X, y = 2 * X - 1, (y - y.mean()) / y.std()
        else:
            X, y, *_ = real_split(folder, name, 0)
        model = srf.harfe(X, y, order=2, alpha=0.01, n_components=10_000, n_nonzero_coefs=len(y) // 4, scale=None, rng=0,
                          workers=-1)  # fmt: skip
        srf.plot.input_usage(model, ax=ax)
        ax.set_title(name)
        usage[name] = model.input_usage().round(4).tolist()
    fig.savefig(DOCS / "harfe_figure45.png", dpi=120)
    return usage


# --- report ------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"table1": table1, "table2": table2, "figure3": figure3, "figure45": figure45}
    parser.add_argument("parts", nargs="*", default=[*parts, *REAL])
    parser.add_argument("--data", default=os.environ.get("SPARSERF_DATA"))
    parser.add_argument("--splits", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore", srf.ConvergenceWarning)
    DOCS.mkdir(exist_ok=True)
    file = DOCS / "harfe.json"
    for part in args.parts:
        if part in REAL and not args.data:
            print(f"{part} skipped: it needs the folder of the data sets, --data DIR or SPARSERF_DATA")
            continue
        made = {"commit": commit(), "result": parts[part](args.data) if part in parts else table4(args.data, part, args.splits)}
        results = (json.loads(file.read_text()) if file.exists() else {}) | {part: made}
        file.write_text(json.dumps(results, indent=1) + "\n")
        (DOCS / "harfe.md").write_text(report(results, REAL, __doc__))


if __name__ == "__main__":
    main()
