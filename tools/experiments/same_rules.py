"""Whether few rules come back: with another seed, and from other rows of the same table; those of
prune, drawn and readable, and those of SIRUS (Bénard et al., Electronic Journal of Statistics 15,
2021), as its paper tells, in plain NumPy."""

from itertools import permutations

import numpy as np
from experiments.data import few
from experiments.rules import loss_of, timed

import sparserf as srf
from sparserf.expansion.terms import terms_of

# Fits that are compared two by two, and the share of the rows in a sample.
FITS, SHARE = 5, 0.8
# The quantiles and trees of SIRUS.
QUANTILES, TREES = 10, 1000


def same_rules(data, seed, most, **how):
    """Of each kind of rules, over seeds, and over samples of the rows: the share of rules whose
    text another fit has, the mean Jaccard index of the rows of a rule and its best partner, and
    the error."""
    n = len(data.y)
    all_rows, rng = np.arange(n), np.random.default_rng(seed)
    samples = [np.sort(rng.permutation(n)[: int(SHARE * n)]) for _ in range(FITS)]
    each = {}
    for kind, parts in {"seeds": [all_rows] * FITS, "samples": samples}.items():
        fits = [fitted(data, some, FITS * seed + k, most, how) for k, some in enumerate(parts)]
        for who in fits[0]:
            pairs = [compared(a[who], b[who]) for a, b in permutations(fits, 2)]
            text, rows = np.mean(pairs, axis=0)
            error = np.mean([fit[who]["error"] for fit in fits])
            each[f"{who}, {kind}"] = {
                "text": float(text),
                "rows": float(rows),
                "error": float(error),
            }
    for who, one in each.items():
        one["over"] = one["error"] / each[f"drawn, {who.split(', ')[1]}"]["error"]
    return {"each": each}


def fitted(data, some, seed, most, how):
    """The rules of each kind of one fit: their texts, which rows of the table they hold, and the
    error on the test rows."""
    X, y = data.X[some] if isinstance(data.X, np.ndarray) else data.X.iloc[some], data.y[some]
    call = {"loss": data.loss, "rng": seed, "verbose": False, "features": srf.Rules(**how)}
    model = timed(srf.sparse_rf, X, y, **call)[0]
    names, found = [f"x{j}" for j in range(data.X.shape[1])], {}
    for who, readable in {"drawn": False, "readable": True}.items():
        small = srf.prune(model, X, max_terms=most, readable=readable)
        encoder = small.features.encoder
        found[who] = {
            "texts": [term.title(names, 9, encoder) for term in terms_of(small.features)],
            "inside": small.features.transform(data.X).T != 0,
            "error": loss_of(small.decision_function(data.X_test), data.y_test, data.loss),
        }
    every, part, test = (
        model.features.rows_of(each).array().astype(float) for each in (data.X, X, data.X_test)
    )
    rules = sirus(part, y, most, seed)
    z = sirus_weights(rules, part, y)(test)
    if data.loss == "logistic":
        p = np.clip((z + 1) / 2, 0.01, 0.99)
        z = np.log(p / (1 - p))
    found["SIRUS"] = {
        "texts": [str(rule) for rule in rules],
        "inside": np.array([rows_in(rule, every) for rule in rules]),
        "error": loss_of(z, data.y_test, data.loss),
    }
    return found


def compared(one, other):
    """The share of rules whose text the other has, and the mean Jaccard index of the rows of each
    and of the best partner."""
    A, B = one["inside"].astype(float), other["inside"].astype(float)
    both = A @ B.T
    jaccard = both / np.maximum(A.sum(1)[:, None] + B.sum(1) - both, 1)
    return np.mean([text in other["texts"] for text in one["texts"]]), jaccard.max(axis=1).mean()


def rows_in(rule, X):
    """Which rows are in all intervals (column, low, high) of a rule."""
    return np.all([(low < X[:, j]) & (X[:, j] <= high) for j, low, high in rule], axis=0)


def sirus(X, y, most, seed):
    """The paths to nodes of trees of depth 2, split at quantiles, that most trees have; without
    those that depend linearly on more frequent ones."""
    from sklearn.ensemble import RandomForestRegressor

    at = np.arange(1, QUANTILES) / QUANTILES
    cuts = [np.unique(np.quantile(x, at, method="inverted_cdf")) for x in X.T]
    bins = np.column_stack([np.searchsorted(own, x) for own, x in zip(cuts, X.T, strict=True)])
    forest = RandomForestRegressor(
        few(TREES, 50),
        max_depth=2,
        max_features=max(1, X.shape[1] // 3),
        min_samples_leaf=5,
        random_state=seed,
    )
    count = {}
    for tree in (each.tree_ for each in forest.fit(bins, y).estimators_):
        nodes = [(0, ())]
        while nodes:
            k, path = nodes.pop()
            if path:
                count[tuple(sorted(path))] = count.get(tuple(sorted(path)), 0) + 1
            if tree.children_left[k] >= 0:
                j = int(tree.feature[k])
                cut = float(cuts[j][int(tree.threshold[k])])
                nodes.append((tree.children_left[k], (*path, (j, -np.inf, cut))))
                nodes.append((tree.children_right[k], (*path, (j, cut, np.inf))))
    columns, rules = np.ones((len(y), 1)), []
    for rule in sorted(count, key=lambda rule: (-count[rule], rule)):
        wider = np.column_stack([columns, rows_in(rule, X)])
        if np.linalg.matrix_rank(wider) == wider.shape[1]:
            columns = wider
            rules.append(rule)
        if len(rules) == most:
            break
    return rules


def sirus_weights(rules, X, y):
    """The function of rows that predicts by the rules, each the mean of y inside and outside, with
    weights of ridge regression, at least 0; its penalty is chosen on five folds."""
    from sklearn.linear_model import Ridge

    inside = np.array([rows_in(rule, X) for rule in rules], float)
    means = [(own @ y / own.sum(), (1 - own) @ y / (1 - own).sum()) for own in inside]

    def values(X):
        each = zip(rules, means, strict=True)
        return np.column_stack([np.where(rows_in(rule, X), *pair) for rule, pair in each])

    phi, fold = values(X), np.arange(len(y)) % 5

    def line(penalty, some):
        return Ridge(penalty * some.sum(), positive=True).fit(phi[some], y[some])

    def held_out(penalty):
        return sum(
            ((line(penalty, fold != k).predict(phi[fold == k]) - y[fold == k]) ** 2).sum()
            for k in range(5)
        )

    best = line(min(10.0 ** np.arange(-4, 3), key=held_out), fold >= 0)
    return lambda X: best.predict(values(X))
