"""features="auto" against boosted trees on every dense set of 1,000 rows and more. To docs/tables/auto.md and .json.

    python tools/tables/auto.py --data DIR [--rows 5000] [--seeds 1] [names]

All get the same training rows, and choose on the same share of them, a tenth. --rows caps the training rows. "Chosen on" marks
the sets on which the defaults of "auto" were chosen; the others were first run when they stood. LightGBM is skipped where it is
not installed.
"""

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np

import sparserf as srf

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[2] / "docs" / "tables"
CHOSEN_ON = ("airfoil", "ccpp", "cpu_act", "kin40k", "protein", "cod_rna", "adult")
SETS = (*CHOSEN_ON, "galaxy", "telemonitor", "music", "house_16h", "kegg", "ijcnn1", "news", "mnist_parity")
WORKERS, POINTS, TREES, PATIENCE, MOST_TEST = 2, 20, 1000, 30, 20_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=SETS)
    parser.add_argument("--data", default=os.environ.get("SPARSERF_DATA"))
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    if not args.data:
        raise SystemExit("needs the data sets: give their folder by --data or SPARSERF_DATA")
    path = DOCS / "auto.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in args.names:
        results[name] = [run(Path(args.data), name, args.rows, seed) for seed in range(args.seeds)]
        path.write_text(json.dumps(results, indent=1) + "\n")
        report({name: results[name] for name in SETS if name in results})


def load(folder, name, rows, seed):
    """(X, y, X_test, y_test, loss): the official split, each side shuffled; or four fifths of the shuffled rows."""
    z, rng = np.load(folder / f"{name}.npz"), np.random.default_rng(seed)
    X, y, split = z["X"].astype(np.float64), z["y"], int(z["test_start"])
    order = np.concatenate([rng.permutation(split), split + rng.permutation(len(y) - split)]) if split > 0 else None
    order, split = (rng.permutation(len(y)), int(0.8 * len(y))) if order is None else (order, split)
    train, test = order[: min(split, rows)], order[split : split + MOST_TEST]
    loss = "logistic" if len(np.unique(y)) == 2 else "squared"
    return X[train], y[train], X[test], y[test], loss


def run(folder, name, rows, seed):
    X, y, X_test, y_test, loss = load(folder, name, rows, seed)
    found = {"shape": X.shape, "loss": loss}
    for who, fit in CONTENDERS.items():
        start = time.perf_counter()
        try:
            predict, size = fit(X, y, loss, seed)
        except ImportError as error:
            print(name, who, "skipped:", error)
            continue
        seconds = time.perf_counter() - start
        z = predict(X_test)
        error = np.mean((z - y_test) ** 2) / y.var() if loss == "squared" else np.mean(np.logaddexp(0, -y_test * z))
        batch, one = clock(predict, X_test[:10_000], 5), clock(predict, X_test[:1], 100)
        found[who] = {"error": float(error), "size": size, "seconds": seconds, "batch_us": batch, "single_us": one}
        print(name, who, found[who], flush=True)
    return found


def clock(predict, X, times):
    """Microseconds a row, the best of some."""
    each = []
    for _ in range(times):
        start = time.perf_counter()
        predict(X)
        each.append(time.perf_counter() - start)
    return 1e6 * min(each) / len(X)


def auto(X, y, loss, seed, **options):
    model = srf.sparse_rf(X, y, features="auto", loss=loss, rng=seed, workers=WORKERS, **options)
    return partial(model.decision_function, workers=WORKERS), len(model.support)


def lightgbm(X, y, loss, seed, points):
    """Defaults where there are no points; else the best of a random search, each stopped early, on a tenth of the rows."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    Trees = LGBMRegressor if loss == "squared" else LGBMClassifier
    rng, order = np.random.default_rng(seed), np.random.default_rng(seed).permutation(len(y))
    fitted, held = order[len(y) // 10 :], order[: len(y) // 10]
    best = None if points else Trees(verbose=-1, n_jobs=WORKERS).fit(X, y)
    for _ in range(points):
        trees = Trees(
            n_estimators=TREES, learning_rate=np.exp(rng.uniform(np.log(0.01), np.log(0.2))), num_leaves=rng.integers(8, 256),
            min_child_samples=rng.integers(3, 50), colsample_bytree=rng.uniform(0.5, 1), subsample=rng.uniform(0.5, 1),
            subsample_freq=1, reg_lambda=np.exp(rng.uniform(-7, 3)), verbose=-1, n_jobs=WORKERS, random_state=0,
        )  # fmt: skip
        trees.fit(X[fitted], y[fitted], eval_X=X[held], eval_y=y[held], callbacks=[early_stopping(PATIENCE, verbose=False)])
        value = next(iter(next(iter(trees.best_score_.values())).values()))
        if best is None or value < best[0]:
            best = value, trees
    trees = best if points == 0 else best[1]
    size = sum(tree["num_leaves"] for tree in trees.booster_.dump_model()["tree_info"])
    return partial(trees.booster_.predict, raw_score=True, num_threads=WORKERS), size


def hist_gradient_boosting(X, y, loss, seed):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if loss == "squared":
        return HistGradientBoostingRegressor(random_state=seed).fit(X, y).predict, 0
    return HistGradientBoostingClassifier(random_state=seed).fit(X, y).decision_function, 0


CONTENDERS = {
    "auto": auto,
    "auto, 100 terms": partial(auto, max_terms=100),
    "LightGBM": partial(lightgbm, points=0),
    "LightGBM tuned": partial(lightgbm, points=POINTS),
    "HistGradientBoosting": hist_gradient_boosting,
}


def mean(results, name, who, what):
    """The geometric mean over the seeds."""
    return float(np.exp(np.mean([np.log(max(one[who][what], 1e-300)) for one in results[name]])))


def report(results):
    about = "`python tools/tables/auto.py --rows 10000`: " + " ".join(__doc__.split("\n\n")[2].split())
    units = (
        "MSE / variance of the target, or log loss, on the test rows; in brackets terms, or leaves of all trees; seconds of "
        f"the whole fit, its choices included ({POINTS} points for LightGBM tuned); microseconds a row of 10,000."
    )
    lines = ['# features="auto" against boosted trees', "", about, "", units, ""]
    who = [w for w in CONTENDERS if all(w in one for runs in results.values() for one in runs)]
    lines += ["| | rows × inputs | " + " | ".join(who) + " | seconds auto / tuned | µs a row auto / tuned |",
              "|---" * (len(who) + 4) + "|"]  # fmt: skip
    for name, runs in results.items():
        sizes = [np.mean([one[w]["size"] for one in runs]) for w in who]  # 0: not known
        errors = [mean(results, name, w, "error") for w in who]
        cells = [f"{e:.3g}" + (f" ({size:.0f})" if size else "") for e, size in zip(errors, sizes, strict=True)]
        pairs = [" / ".join(f"{mean(results, name, w, what):.3g}" for w in ("auto", "LightGBM tuned") if w in who)
                 for what in ("seconds", "batch_us")]  # fmt: skip
        marked = name + (" (chosen on)" if name in CHOSEN_ON else "")
        lines.append(f"| {marked} | {' × '.join(f'{n:,}' for n in runs[0]['shape'])} | {' | '.join(cells + pairs)} |")
    lines += ["", "Geometric means of the error of auto over that of the others:", "", "| sets | " + " | ".join(who[1:]) + " |",
              "|---" * len(who) + "|"]  # fmt: skip
    for what, inside in (("chosen on", True), ("not chosen on", False)):
        for loss in ("squared", "logistic"):
            names = [n for n, runs in results.items() if (n in CHOSEN_ON) == inside and runs[0]["loss"] == loss]
            if names:
                means = [ratio(results, names, w) for w in who[1:]]
                lines.append(f"| {loss}, {what}: {len(names)} | " + " | ".join(f"{m:.2f}" for m in means) + " |")
    lines += ["", "![Errors and sizes](auto.png)"]
    (DOCS / "auto.md").write_text("\n".join(lines) + "\n")
    draw(results, who[1:])


def ratio(results, names, other):
    logs = [np.log(mean(results, n, "auto", "error") / mean(results, n, other, "error")) for n in names]
    return float(np.exp(np.mean(logs)))


def draw(results, others):
    fig, ax = plt.subplots(figsize=(8, 0.35 * len(results) + 1.2))
    for k, other in enumerate(others):
        shares = [ratio(results, [name], other) for name in results]
        ax.plot(shares, range(len(results)), "osD^v"[k], label=f"/ {other}", alpha=0.8)
    ax.axvline(1.0, color="grey", linewidth=0.8)
    ax.set(xscale="log", xlabel='error of features="auto" over that of the others (left of 1: auto is better)')
    ax.set_yticks(range(len(results)), [name + (" *" if name in CHOSEN_ON else "") for name in results])
    ax.legend(fontsize=8)
    fig.tight_layout()
    fig.savefig(DOCS / "auto.png", dpi=110)
    plt.close(fig)


if __name__ == "__main__":
    main()
