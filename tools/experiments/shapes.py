"""Models that must rise or fall with some columns: ours, and those of others that take such
constraints."""

import time
from functools import partial

import numpy as np
from experiments.data import WORKERS, csv, few, folded, with_more
from experiments.fits import BATCH, Fitted, bagged, loss_of, size_of
from experiments.fits import ours as fitted
from experiments.others import PICTURES, elsewhere

import sparserf as srf

# Predictions of a pair of rows that differ by less than this share of their range are level.
LEVEL = 1e-6


def table(source, seed, monotone, folder="", rows=10_000, **more):
    """A frame, of a folder of tables or of tools/data, and the columns that the target rises (1) or
    falls (-1) with.

    A list is the order of a category. `signs` has an entry for each column; in `coded` ordered
    categories are their places.
    """
    import pandas as pd

    if folder:
        data = folded(source, seed, folder)
    else:
        data = csv(source)
        X, order = (
            pd.DataFrame(data.X, columns=data.names),
            np.random.default_rng(seed).permutation(len(data.y)),
        )
        train, test = order[len(order) // 3 :], order[: len(order) // 3]
        data.X, data.X_test, data.y, data.y_test = (
            X.iloc[train],
            X.iloc[test],
            data.y[train],
            data.y[test],
        )
        data.measure = "RMSE"
    some = np.random.default_rng(seed).permutation(len(data.y))[: few(rows)]
    data.X, data.y, data.monotone = data.X.iloc[some], data.y[some], monotone
    place = {
        name: {level: k for k, level in enumerate(order)}
        for name, order in monotone.items()
        if isinstance(order, list)
    }

    def to_codes(X):
        """Return the table with the place of each level, in its order, instead of the level."""
        return X.assign(**{name: X[name].map(codes).astype(float) for name, codes in place.items()})

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
    return of_codes(
        data, bagged(with_codes(data), seed, 8, trees=5000, patience=100, learning_rate=0.05, **how)
    )


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
        return np.mean(
            [one.predict(rows, True, iteration_range=(0, one.best_iteration + 1)) for one in each],
            axis=0,
        )

    return of_codes(data, Fitted(predict, sum(one.get_dump().__len__() for one in each)))


def ebm(data, seed):
    """An explainable boosting machine as it comes, a mean of its own bags."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = (
        ExplainableBoostingClassifier if data.loss == "logistic" else ExplainableBoostingRegressor
    )
    model = kind(monotone_constraints=data.signs, random_state=seed, n_jobs=WORKERS).fit(
        data.coded, data.y
    )
    return of_codes(
        data, Fitted(getattr(model, "decision_function", model.predict), len(model.term_features_))
    )


def with_codes(data):
    """The data with ordered categories as their places."""
    return type(data)(**vars(data) | {"X": data.coded, "X_test": data.coded_test})


def of_codes(data, model):
    """A fit that takes rows with ordered categories as their places, for rows as they are."""
    return Fitted(lambda X: model.decision_function(data.to_codes(X)), model.size)


def told(data, result, n_pairs=10_000):
    """The error on test rows, the size, and how many pairs of rows that differ in one constrained
    column are wrong."""
    model = hasattr(result, "support")
    decide = (
        partial(result.decision_function, workers=WORKERS) if model else result.decision_function
    )
    n = len(data.y_test)
    predicted = np.concatenate(
        [decide(data.X_test.iloc[i : i + BATCH]) for i in range(0, n, BATCH)]
    )
    found = {
        "error": loss_of(data.measure, predicted, data.y_test),
        "rows": len(data.y),
        "inputs": data.X.shape[1],
    }
    wrong, pairs, rng = 0, 0, np.random.default_rng(0)
    for name, sign in data.monotone.items():
        base = data.X_test.iloc[rng.integers(0, n, few(n_pairs) // len(data.monotone))]
        low, high = (
            data.X_test[name].iloc[rng.integers(0, n, len(base))].to_numpy() for _ in range(2)
        )
        if isinstance(sign, list):
            place = {level: k for k, level in enumerate(sign)}
            swap = np.array([place[a] > place[b] for a, b in zip(low, high, strict=True)])
        else:
            swap = (low > high) if sign > 0 else (low < high)
        low, high = np.where(swap, high, low), np.where(swap, low, high)
        f = [
            decide(
                base.assign(**{name: base[name].array._from_sequence(x, dtype=base[name].dtype)})
            )
            for x in (low, high)
        ]
        wrong += int(np.sum(f[0] > f[1] + LEVEL * np.ptp(predicted)))
        pairs += len(base)
    return found | {
        "size": size_of(result),
        "wrong": wrong,
        "pairs": pairs,
    }


def drawn(data, seed, file, columns, title, labels, n_curves=12, n_places=120):
    """A picture: along each of some columns, the curves of some rows; red where a curve goes
    against the constraint.

    labels : what is written below the columns: of a category with its levels, in their order
    """
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    models = {
        "no constraint": ours(data, seed, constrained=False),
        "constrained": ours(data, seed),
        "LightGBM, constrained": lightgbm(data, seed),
    }
    some = data.X_test.iloc[np.random.default_rng(seed).permutation(len(data.y_test))[:n_curves]]
    size, mark = (
        (10, 2.6 * len(columns) + 0.4),
        {"color": "tab:blue", "ls": "", "marker": "|", "ms": 6},
    )
    figure, axes = plt.subplots(
        len(columns), 3, figsize=size, sharey="row", squeeze=False, layout="constrained"
    )
    for ax, name in zip(axes[0], models, strict=True):
        ax.set_title(name)
    for line, column in zip(axes, columns, strict=True):
        sign, order = data.monotone[column], data.monotone[column]
        is_ordered = isinstance(order, list)
        places = (
            order
            if is_ordered
            else np.linspace(data.X[column].min(), data.X[column].max(), n_places)
        )
        at = np.arange(len(places)) if is_ordered else places
        label, *levels = labels[column] if is_ordered else [labels[column]]
        for ax, model in zip(line, models.values(), strict=True):
            curves = []
            for place in places:
                dtype = data.X[column].dtype if is_ordered else float
                rows = some.assign(
                    **{column: some[column].array._from_sequence([place] * len(some), dtype=dtype)}
                )
                curves.append(model.decision_function(rows))
            for curve in np.stack(curves, axis=1):
                steps = np.stack(
                    [np.column_stack([at, curve])[:-1], np.column_stack([at, curve])[1:]], axis=1
                )
                falls = np.diff(curve) * (1 if is_ordered else sign) < -LEVEL * np.ptp(curves)
                how = {
                    "colors": np.where(falls, "crimson", "0.45"),
                    "linewidths": np.where(falls, 2, 1),
                }
                ax.add_collection(LineCollection(steps, **how))
            ax.autoscale()
            ax.set_xlabel(label)
            if is_ordered:
                ax.set_xticks(at, levels)
            else:
                ax.plot(
                    data.X[column],
                    0 * data.X[column],
                    **mark,
                    alpha=0.3,
                    transform=ax.get_xaxis_transform(),
                )
        line[0].set_ylabel(title)
    said = [
        Line2D([], [], color="crimson", lw=2, label="against the constraint"),
        Line2D([], [], **mark, label="rows of the fit"),
    ]
    figure.legend(handles=said, loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(PICTURES / file, dpi=90)
    return {"terms": len(models["constrained"].support)}


# Whether constrained models keep them, tried hard


def made(seed, rows=1500, gaps=0.0, csr=False, categories=False, target="squared", dtype="float64"):
    """Made rows whose target rises with columns 0 and 2, falls with 1, and, of a frame, rises with
    the grade."""
    from scipy.sparse import csr_array

    rng, n = np.random.default_rng(seed), few(rows)
    X = np.column_stack(
        [
            rng.standard_normal(n),
            rng.lognormal(0, 1.5, n),
            rng.integers(0, 11, n),
            rng.uniform(-2, 2, n),
            rng.integers(0, 2, n),
            rng.standard_normal(n),
        ]
    )
    if csr:
        X *= rng.random(X.shape) < 0.3
    grade, city = rng.integers(0, 5, n), rng.integers(0, 6, n)
    f = (
        2 * np.tanh(X[:, 0])
        - np.log1p(X[:, 1])
        + 0.2 * X[:, 2] * (1 + X[:, 4])
        + np.cos(2 * X[:, 3] + X[:, 5])
    )
    f = f + (grade + 0.3 * city * np.sin(X[:, 5]) if categories else 0)
    noise = rng.standard_normal(n)
    y = {
        "squared": f + 0.5 * noise,
        "logistic": np.where(f + noise > np.median(f), 1, -1),
        "poisson": rng.poisson(np.exp(0.5 * f - 0.5 * f.mean())),
    }[target]
    X, monotone = np.where(rng.random(X.shape) < gaps, np.nan, X).astype(dtype), {0: 1, 1: -1, 2: 1}
    if categories:
        import pandas as pd

        order, towns = ["poor", "fair", "good", "fine", "best"], list("abcdef")
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
        X["grade"], X["city"] = (
            pd.Categorical.from_codes(grade, order),
            pd.Categorical.from_codes(city, towns),
        )
        monotone = {"x0": 1, "x1": -1, "x2": 1, "grade": order}
    return type(csv("airfoil"))(X=csr_array(X) if csr else X, y=y, loss=target, monotone=monotone)


def kept(
    data, through="", constrained=True, n_pairs=10_000, n_searches=200, n_steps=200, **options
):
    """Of a constrained model how many pairs fall, at random and after a search for the worst, and
    by how much of the range.

    through : what predicts: the model, pruned ("prune 30"), or exported ("c -O2", "onnx float64")
    """
    model, what = (
        fitted(data, **options | ({"monotone": data.monotone} if constrained else {})),
        through.split(),
    )
    is_sparse = hasattr(data.X, "toarray")
    X = data.X.toarray() if is_sparse else data.X
    if what[:1] == ["prune"]:
        model = srf.prune(model, data.X, max_terms=int(what[1]))
    is_exported = what[:1] in (["c"], ["onnx"])
    predict = elsewhere(model, through) if is_exported else model.decision_function

    def decide(X):
        return predict(type(data.X)(X) if is_sparse else X)

    table, orders = Cells(X, data.monotone), np.random.default_rng(0)
    rows, column = table.draw(few(n_pairs), orders), orders.choice(table.bound, few(n_pairs))

    def rise(rows, column, low, high):
        return decide(table.at(rows, column, high)) - decide(table.at(rows, column, low))

    low, high = table.pair(column, orders)
    change = rise(rows, column, low, high)
    rows, column, low, high = (each[:n_searches] for each in (rows, column, low, high))
    worst = rise(rows, column, low, high)
    for _ in range(few(n_steps, 10)):
        tried, (a, b) = table.moved(rows, orders), table.pair(column, orders)
        keep = orders.random(len(a)) < 0.5
        a, b = np.where(keep, low, a), np.where(keep, high, b)
        found = rise(tried, column, a, b)
        better = found < worst
        rows = np.where(better[:, None], tried, rows)
        low, high, worst = (
            np.where(better, a, low),
            np.where(better, b, high),
            np.where(better, found, worst),
        )
    span = np.ptp(decide(table.at(rows, column, low))) + np.ptp(
        decide(table.frame(table.draw(1000, orders)))
    )
    level = LEVEL * span
    found = {
        "pairs": len(change),
        "wrong": int(np.sum(change < -level)),
        "worst": float(min(change.min(), worst.min()) / span),
    }
    return found | {
        "searches": len(worst),
        "found": int(np.sum(worst < -level)),
        "terms": len(model.support),
    }


class Cells:
    """Rows as numbers, categories by their codes, of which cells are drawn anew."""

    def __init__(self, X, monotone):
        self.X, self.is_frame = X, hasattr(X, "columns")
        self.names = list(X.columns) if self.is_frame else list(range(X.shape[1]))
        self.values = (
            np.column_stack([self._codes(name) for name in self.names]) if self.is_frame else X
        )
        self.bound = [self.names.index(name) for name in monotone]
        self.sign = {
            self.names.index(name): 1 if isinstance(sign, list) else sign
            for name, sign in monotone.items()
        }

    def _codes(self, name):
        return self.X[name].cat.codes if self.X[name].dtype == "category" else self.X[name]

    def draw(self, n, rng):
        """Rows whose cells come each from some row, a tenth of the numbers far out."""
        cells = np.column_stack(
            [rng.choice(self.values[:, j], n) for j in range(self.values.shape[1])]
        )
        return self._far(cells, 0.1, rng)

    def moved(self, rows, rng):
        """The rows with some cells from elsewhere."""
        return np.where(rng.random(rows.shape) < 0.3, self.draw(len(rows), rng), rows)

    def pair(self, column, rng):
        """Two cells of these columns, the one that must give the smaller prediction first."""
        cells = [self.draw(len(column), rng)[np.arange(len(column)), column] for _ in range(2)]
        cells = [np.where(np.isnan(each), 0.0, each) for each in cells]
        falls = np.array([self.sign[j] < 0 for j in column.tolist()])
        low, high = np.minimum(*cells), np.maximum(*cells)
        return np.where(falls, high, low), np.where(falls, low, high)

    def at(self, rows, column, cells):
        """What predicts takes: the rows with these cells."""
        rows = rows.copy()
        rows[np.arange(len(rows)), column] = cells
        return self.frame(rows)

    def frame(self, rows):
        """The rows as the model's user has them."""
        if not self.is_frame:
            return rows.astype(self.values.dtype)
        import pandas as pd

        frame = pd.DataFrame(rows, columns=self.names)
        for name in self.X.columns[self.X.dtypes == "category"]:
            frame[name] = pd.Categorical.from_codes(
                frame[name].astype(int), dtype=self.X[name].dtype
            )
        return frame

    def _far(self, cells, share, rng):
        is_number = np.array(
            [not self.is_frame or self.X[name].dtype != "category" for name in self.names]
        )
        away = cells + 5 * np.abs(cells) * rng.standard_normal(cells.shape)
        return np.where((rng.random(cells.shape) < share) & is_number, away, cells)


# How narrow bounds are


def bounded(data, seed, time_limit=10, **options):
    """Prove the least and the largest value of a model over the range of the training rows: by how
    many percent the proved range is wider than that of values that were found, in how many
    processor seconds."""
    model = ours(data, seed, **options)
    start = time.process_time()
    bounds = model.bounds(time_limit=time_limit)
    seconds = time.process_time() - start
    proved = bounds.largest.upper - bounds.least.lower
    found = bounds.largest.lower - bounds.least.upper
    return {
        "beyond": 100 * (proved / found - 1),
        "proof_s": seconds,
        "terms": len(model.support),
        "inputs": data.X.shape[1],
    }
