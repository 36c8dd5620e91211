"""Models that must rise or fall with some columns: ours, and those of others that take such constraints."""

from functools import partial

import numpy as np
from experiments.data import WORKERS, csv, few, folded, with_more
from experiments.fits import BATCH, Fitted, bagged, loss_of
from experiments.fits import ours as fitted
from experiments.others import PICTURES

# Predictions of a pair of rows that differ by less than this share of their range are level.
LEVEL = 1e-6


def table(source, seed, monotone, folder="", rows=10_000, **more):
    """A frame, of a folder of tables or of tools/data, and the columns that the target rises (1) or falls (-1) with.

    A list is the order of a category. `signs` has an entry for each column; in `coded` ordered categories are their places.
    """
    import pandas as pd

    if folder:
        data = folded(source, seed, folder)
    else:
        data = csv(source)
        X, order = pd.DataFrame(data.X, columns=data.names), np.random.default_rng(seed).permutation(len(data.y))
        train, test = order[len(order) // 3 :], order[: len(order) // 3]
        data.X, data.X_test, data.y, data.y_test = X.iloc[train], X.iloc[test], data.y[train], data.y[test]
        data.measure = "RMSE"
    some = np.random.default_rng(seed).permutation(len(data.y))[: few(rows)]
    data.X, data.y, data.monotone = data.X.iloc[some], data.y[some], monotone
    place = {name: {level: k for k, level in enumerate(order)} for name, order in monotone.items() if isinstance(order, list)}
    to_codes = lambda X: X.assign(**{name: X[name].map(of).astype(float) for name, of in place.items()})  # noqa: E731
    data.signs = [1 if name in place else monotone.get(name, 0) for name in data.X.columns]
    data.coded, data.coded_test, data.to_codes = to_codes(data.X), to_codes(data.X_test), to_codes
    return with_more(data, **more)


def ours(data, seed, constrained=True, **options):
    """The default, with the constraints or without."""
    return fitted(data, seed=seed, **options | ({"monotone": data.monotone} if constrained else {}))


def lightgbm(data, seed, constrained=True, method="basic", **how):
    """Eight of LightGBM, each stopped early on its own eighth of the rows."""
    if constrained:
        how |= {"monotone_constraints": data.signs, "monotone_constraints_method": f"'{method}'"}
    return of_codes(data, bagged(with_codes(data), seed, 8, trees=5000, patience=100, learning_rate=0.05, **how))


def xgboost(data, seed):
    """Eight of XGBoost, each stopped early on its own eighth of the rows."""
    from xgboost import DMatrix, train

    X, y = data.coded, data.y > 0 if data.loss == "logistic" else data.y
    how = {"eta": 0.05, "monotone_constraints": tuple(data.signs), "nthread": WORKERS, "seed": seed}
    how |= {"objective": "binary:logistic" if data.loss == "logistic" else "reg:squarederror"}
    each = []
    for part in np.array_split(np.random.default_rng(seed).permutation(len(y)), 8):
        rest = np.delete(np.arange(len(y)), part)
        of = [DMatrix(X.iloc[some], y[some], enable_categorical=True) for some in (rest, part)]
        watched = {"evals": [(of[1], "held")], "early_stopping_rounds": 100, "verbose_eval": False}
        each.append(train(how, of[0], few(5000, 20), **watched))

    def predict(X):
        rows = DMatrix(X, enable_categorical=True)
        return np.mean([one.predict(rows, True, iteration_range=(0, one.best_iteration + 1)) for one in each], axis=0)

    return of_codes(data, Fitted(predict, sum(one.get_dump().__len__() for one in each)))


def ebm(data, seed):
    """An explainable boosting machine as it comes, a mean of its own bags."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if data.loss == "logistic" else ExplainableBoostingRegressor
    model = kind(monotone_constraints=data.signs, random_state=seed, n_jobs=WORKERS).fit(data.coded, data.y)
    return of_codes(data, Fitted(getattr(model, "decision_function", model.predict), len(model.term_features_)))


def with_codes(data):
    """The data with ordered categories as their places."""
    return type(data)(**vars(data) | {"X": data.coded, "X_test": data.coded_test})


def of_codes(data, model):
    """A fit that takes rows with ordered categories as their places, for rows as they are."""
    return Fitted(lambda X: model.decision_function(data.to_codes(X)), model.size)


def told(data, result, n_pairs=10_000):
    """The error on test rows, the size, and how many pairs of rows that differ in one constrained column are wrong."""
    model = hasattr(result, "support")
    decide = partial(result.decision_function, workers=WORKERS) if model else result.decision_function
    n = len(data.y_test)
    predicted = np.concatenate([decide(data.X_test.iloc[i : i + BATCH]) for i in range(0, n, BATCH)])
    found = {"error": loss_of(data.measure, predicted, data.y_test), "rows": len(data.y), "inputs": data.X.shape[1]}
    wrong, pairs, rng = 0, 0, np.random.default_rng(0)
    for name, sign in data.monotone.items():
        base = data.X_test.iloc[rng.integers(0, n, few(n_pairs) // len(data.monotone))]
        low, high = (data.X_test[name].iloc[rng.integers(0, n, len(base))].to_numpy() for _ in range(2))
        if isinstance(sign, list):
            place = {level: k for k, level in enumerate(sign)}
            swap = np.array([place[a] > place[b] for a, b in zip(low, high, strict=True)])
        else:
            swap = (low > high) if sign > 0 else (low < high)
        low, high = np.where(swap, high, low), np.where(swap, low, high)
        f = [decide(base.assign(**{name: base[name].array._from_sequence(x, dtype=base[name].dtype)})) for x in (low, high)]
        wrong += int(np.sum(f[0] > f[1] + LEVEL * np.ptp(predicted)))
        pairs += len(base)
    return found | {"size": len(result.support) if model else result.size, "wrong": wrong, "pairs": pairs}


def drawn(data, seed, file, columns, title, n_curves=12, n_places=60):
    """A picture: along each of some columns, the curves of some rows; red where a curve goes against the constraint."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    models = {
        "no constraint": ours(data, seed, constrained=False), "constrained": ours(data, seed),
        "LightGBM, constrained": lightgbm(data, seed),
    }  # fmt: skip
    some = data.X_test.iloc[np.random.default_rng(seed).permutation(len(data.y_test))[:n_curves]]
    figure, axes = plt.subplots(len(columns), 3, figsize=(10, 2.6 * len(columns)), sharey="row", squeeze=False)
    for line, column in zip(axes, columns, strict=True):
        sign, order = data.monotone[column], data.monotone[column]
        is_ordered = isinstance(order, list)
        places = order if is_ordered else np.linspace(data.X[column].min(), data.X[column].max(), n_places)
        at = np.arange(len(places)) if is_ordered else places
        for ax, (name, model) in zip(line, models.items(), strict=True):
            curves = []
            for place in places:
                dtype = data.X[column].dtype if is_ordered else float
                rows = some.assign(**{column: some[column].array._from_sequence([place] * len(some), dtype=dtype)})
                curves.append(model.decision_function(rows))
            for curve in np.stack(curves, axis=1):
                steps = np.stack([np.column_stack([at, curve])[:-1], np.column_stack([at, curve])[1:]], axis=1)
                falls = np.diff(curve) * (1 if is_ordered else sign) < -LEVEL * np.ptp(curves)
                how = {"colors": np.where(falls, "crimson", "0.45"), "linewidths": np.where(falls, 2, 1)}
                ax.add_collection(LineCollection(steps, **how))
            ax.autoscale()
            ax.set_xlabel(column)
            ax.set_title(name if line is axes[0] else "")
            if is_ordered:
                ax.set_xticks(at, places)
        line[0].set_ylabel(title)
    figure.tight_layout()
    figure.savefig(PICTURES / file, dpi=90)
    return {"terms": len(models["constrained"].support)}
