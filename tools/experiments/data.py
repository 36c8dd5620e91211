"""The rows of experiments, as a namespace of X, y and what else a fit or a measure asks for. In a
quick run there are few."""

import json
import os
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace as Data

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

import sparserf as srf
from sparserf.features import NeuronBlock

QUICK = bool(os.environ.get("SPARSERF_QUICK"))
WORKERS = int(os.environ.get("SPARSERF_WORKERS", 2))
CSV = Path(__file__).parents[1] / "data"


def few(n, most=200):
    """n; in a quick run no more than `most`."""
    return min(n, most) if QUICK else n


def value(expression, **names):
    """What an experiment's file writes as an expression of Python, in which of("module:name")
    imports; else itself."""
    return (
        eval(expression, {"np": np, "srf": srf, "of": resolve_name} | names)
        if isinstance(expression, str)
        else expression
    )


def file(name):
    """The path of a file of the folder of data sets."""
    path = Path(os.environ.get("SPARSERF_DATA", ""), name)
    if not os.environ.get("SPARSERF_DATA") or not path.exists():
        raise FileNotFoundError(
            f"needs {name}: give the folder that has it by --data or SPARSERF_DATA"
        )
    return path


def stored(source):
    """(X as float64, dense or CSR; y; the first test row, or a number that is not positive) of
    NAME.npz, or an expression."""
    if "(" in source:
        return *value(source), 0
    z = np.load(file(f"{source}.npz"))
    if "X" in z.files:
        return z["X"].astype(np.float64), z["y"], int(z["test_start"])
    parts = (
        z["data"].astype(np.float64),
        z["indices"].astype(np.int32),
        z["indptr"].astype(np.int32),
    )
    return csr_array(parts, shape=tuple(z["shape"])), z["y"], int(z["test_start"])


def split(
    name,
    seed,
    said=None,
    source=None,
    rows=10**9,
    test=20_000,
    share=0.8,
    official=True,
    loss=None,
    **more,
):
    """The official split, each side shuffled; else a share of the shuffled rows, and the rest."""
    (X, y, start), rng = stored(source or name), np.random.default_rng(seed)
    if official and start > 0:
        order, n = (
            np.concatenate([rng.permutation(start), start + rng.permutation(len(y) - start)]),
            start,
        )
    else:
        order, n = rng.permutation(len(y)), min(rows, int(share * len(y)))
    train, held = order[: few(min(rows, n))], order[n:][: few(test)]
    loss = loss or ("logistic" if len(np.unique(y)) == 2 else "squared")
    return with_more(
        Data(X=X[train], y=y[train], X_test=X[held], y_test=y[held], loss=loss), said, **more
    )


def folded(name, seed, folder, rows=10**9, **more):
    """A frame of a folder of tables, with its words and gaps; the test rows are those of a fold,
    the first for the first seed, and of the others about so many, evenly spaced.

    Two classes are -1 and 1, more are numbers from 0. `published` are the errors and seconds of
    others on the first fold.
    """
    import pandas as pd

    said = json.loads(file(f"{folder}/index.json").read_text())[name]
    with np.load(file(f"{folder}/folds.npz")) as folds:
        fold = seed % sum(key.rpartition("/")[0] == name for key in folds.files)
        tested = folds[f"{name}/{fold}"]
    X = pd.read_csv(file(f"{folder}/{name}.csv.gz"))
    y = X.pop(said["target"]).to_numpy()
    X = X.astype(
        dict.fromkeys(
            [*said["categorical"], *X.select_dtypes(exclude=["number", "bool"])], "category"
        )
    )
    if said["kind"] != "regression":
        y = np.unique(y, return_inverse=True)[1]
        y = y if said["kind"] == "multiclass" else 2.0 * y - 1
    train, test = (
        part[:: -(-len(part) // min(most, few(len(part))))]
        for part, most in ((np.delete(np.arange(len(y)), tested), rows), (np.sort(tested), 10**9))
    )
    others = pd.read_csv(file(f"{folder}/published.csv")).query("dataset == @name")
    each = zip(others.method, others.metric_error, others.time_train_s, strict=True)
    published = {who: {"error": error, "seconds": s} for who, error, s in each if fold == 0}
    published |= (
        {"best of all": min(published.values(), key=lambda one: one["error"])} if published else {}
    )
    loss, measure = {
        "regression": ("squared", "RMSE"),
        "binary": ("logistic", "1-AUC"),
        "multiclass": ("multinomial", "log-loss"),
    }[said["kind"]]
    rows = {"X": X.iloc[train], "y": y[train], "X_test": X.iloc[test], "y_test": y[test]}
    return with_more(Data(**rows, loss=loss, measure=measure, published=published), **more)


def scaling(X, to="deviation"):
    """What brings inputs to mean 0 and standard deviation 1 in X; of CSR, and where asked for, to a
    largest size of 1."""
    if issparse(X) or to == "largest":
        top = abs(X).max(axis=0)
        shares = np.ravel(top.toarray() if issparse(X) else top)
        shares = 1 / np.where(shares > 0, shares, 1)
        return lambda X: csr_matrix(X).multiply(shares).tocsr() if issparse(X) else X * shares
    mean, sd = X.mean(axis=0), X.std(axis=0)
    return lambda X: (X - mean) / np.where(sd > 0, sd, 1)


def synthetic(f, n, d, seed=0, law=None, dtype="float64", test=0, loss="squared", **more):
    """Random rows, normal or of a law, and a target that is a formula of X and rng."""
    rng, n = np.random.default_rng(seed), few(n)
    shape = n + few(test), d
    X = value(law, rng=rng, shape=shape) if law else rng.standard_normal(shape, dtype=dtype)
    y = value(f, X=X, rng=rng)
    return with_more(Data(X=X[:n], y=y[:n], X_test=X[n:], y_test=y[n:], loss=loss), **more)


def forest(seed, n, test):
    """Rows like those of forest cover: cells of a map, of which near ones are alike. Ten numbers of
    the ground, the ones and zeros of two categories of 4 and 40 levels, and seven classes with the
    frequencies of forest cover, in belts by height."""
    from scipy.spatial import cKDTree

    rng, n = np.random.default_rng(seed), few(n)
    place = rng.random((n + few(test), 2))

    def field(*scales):
        """Smooth noise on the map: waves of these many to its side, the finer the lower."""
        found = np.zeros(len(place))
        for scale in np.repeat(scales, 12):
            found += np.cos(place @ rng.normal(0, scale, 2) + rng.uniform(0, 2 * np.pi)) / scale
        return found / found.std()

    def distance(n_points):
        return cKDTree(rng.random((n_points, 2))).query(place)[0]

    def levels(x, shares):
        return np.searchsorted(np.quantile(x, np.cumsum(shares)[:-1] / np.sum(shares)), x)

    height, slope, aspect = field(8, 30, 90), np.abs(field(30, 90)), np.pi * field(30, 90)
    shades = [np.cos(np.arctan(slope) - 0.8) * np.cos(aspect - of) for of in (-0.8, 0.0, 0.8)]
    water, road, fire = distance(800), distance(60), distance(200)
    area = levels(place[:, 0] + 0.1 * field(8), [45, 5, 44, 6])
    soil = levels(height + 0.5 * field(15, 60), rng.gamma(0.7, size=40) + 0.05)
    belt = height + 0.3 * rng.standard_normal(40)[soil] + 0.3 * np.sin(aspect) * slope
    belt += 0.4 * (area == 2) - 20 * np.minimum(water, 0.02) + 0.4 * field(20, 60, 150)
    belt += 0.1 * rng.standard_normal(len(place))
    numbers = [height, aspect, slope, water, height - field(8, 30), road, *shades, fire]
    hot = [np.eye(4)[area], np.eye(40)[soil]]
    X = np.column_stack([*numbers, *hot]).astype(np.float32)
    y = levels(belt, [5, 62, 30, 488, 16, 365, 35])
    both = {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}
    return Data(**both, loss="multinomial", measure="log-loss")


def with_more(
    data,
    said=None,
    scaled=None,
    span=None,
    unit=False,
    n_classes=None,
    n_components=None,
    gamma=None,
    **more,
):
    """Rows with what is asked for beside them.

    Inputs `scaled` by the training rows, to deviations or to their largest size; targets to a span
    of theirs, to `unit` deviation, or cut into classes of as many rows; scikit-learn's sampler of
    features, and the same features of ours; and expressions of the data, and of what is said of
    their set.
    """
    if scaled == "deviation" and issparse(data.X):
        data.X, data.X_test = data.X.toarray(), data.X_test.toarray()
    if scaled:
        scale = scaling(data.X, scaled)
        data.X, data.X_test = scale(data.X), scale(data.X_test)
    if span or unit:
        low, width = (
            (data.y.mean(), data.y.std())
            if unit
            else (data.y.min(), np.ptp(data.y) / (span[1] - span[0]))
        )
        data.y, data.y_test = (
            (y - low) / width + (0 if unit else span[0]) for y in (data.y, data.y_test)
        )
    if n_classes:
        ends = np.quantile(data.y, np.arange(1, n_classes) / n_classes)
        data.y, data.y_test = np.digitize(data.y, ends), np.digitize(data.y_test, ends)
    if n_components:
        from sklearn.kernel_approximation import RBFSampler

        d = data.X.shape[1]
        data.sampler = RBFSampler(gamma=gamma, n_components=few(n_components), random_state=0).fit(
            np.zeros((1, d))
        )
        of = data.sampler.random_weights_.T.copy(), data.sampler.random_offset_.copy()
        data.features = srf.FeatureSet([NeuronBlock("cos", float(np.sqrt(2)), *of)], d)
    for key, expression in more.items():
        setattr(data, key, value(expression, data=data, said=said))
    return data


def held_out(n, seed, share=0.1):
    """(fitted, held) of the row numbers."""
    order = np.random.default_rng(seed).permutation(n)
    return order[int(n * share) :], order[: int(n * share)]


def csv(source, **more):
    """X and y of tools/data, and the names of the columns."""
    names = (CSV / f"{source}.csv").read_text().splitlines()[0].split(",")[:-1]
    table = np.loadtxt(CSV / f"{source}.csv", delimiter=",", skiprows=1)[: few(10**9)]
    return with_more(Data(X=table[:, :-1], y=table[:, -1], loss="squared"), names=names, **more)
