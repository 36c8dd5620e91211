"""Two installed versions of the library on the same rows: what a fit costs and says, and rows that
show single faults."""

import time
import warnings
from types import SimpleNamespace as Data

import numpy as np
from experiments.data import few, folded, stored
from experiments.fits import loss_of, ours


def measured(data, seed, warm_up=("squared", "logistic", "multinomial"), **options):
    """Return costs and errors of a call, in a process that has fitted before: imports are no part
    of them. `warm_up`: the losses of these fits."""
    warm = np.random.default_rng(0).standard_normal((60, 2))
    answers = {"squared": warm[:, 0], "logistic": warm[:, 0] > 0, "multinomial": np.arange(60) % 3}
    for loss in warm_up:
        ours(Data(X=warm, y=answers[loss], loss=loss), effort=0.1)
    options = {"seed": seed} | vars(data).get("more", {}) | options
    start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ours(data, **options)
    costs = {
        "seconds": time.perf_counter() - start[0],
        "cpu": time.process_time() - start[1],
        "warned": sorted({each.category.__name__ for each in said}),
    }
    return costs | told(data, model)


def told(data, model):
    """Return the error on test rows, of the squared loss over their variance, beside that of the
    constant; terms; and what the model says of its error (`said`), over the error."""
    squared, y = data.loss == "squared", data.y_test
    z = {"squared": model.predict, "logistic": model.decision_function}.get(
        data.loss, model.predict_proba
    )(data.X_test)
    unit = y.var() / 2 if squared else 1.0
    level, error = constant(data), loss_in(data, z) / unit
    found = {
        "error": error,
        "constant": loss_in(data, np.repeat(level[None], len(y), axis=0)) / unit,
        "varies": bool(np.ptp(z, axis=0).max() > 0),
        "terms": len(model.features),
        "rows": len(data.y),
        "inputs": data.X.shape[1],
    }
    claimed = model.info.validation_loss
    if claimed is not None:
        found |= {"said": claimed / unit / error}
    if hasattr(data, "level"):  # of each training row, the mean of y in its level
        p = model.predict(data.X)
        found["with_level"] = float(np.corrcoef(p + 1e-9 * data.level, data.level)[0, 1])
    beyond = {"excess": error - found["constant"], "of_constant": error / found["constant"]}
    return found | beyond


def constant(data):
    """Return the best constant: mean, margin or shares of the classes."""
    if data.loss == "squared":
        return np.asarray(data.y.mean())
    share = np.unique(data.y, return_counts=True)[1] / len(data.y)
    return share if data.loss == "multinomial" else np.asarray(np.log(share[1] / share[0]))


def loss_in(data, z):
    """Return the mean loss on test rows; of the squared loss half the mean square, as the library
    has it."""
    if data.loss == "squared":
        return loss_of("squared", z, data.y_test) / 2
    at = np.searchsorted(np.unique(data.y), data.y_test)
    two = data.loss == "logistic"
    return loss_of("logistic", z, 2.0 * at - 1) if two else loss_of("log-loss", z, at)


def table(name, seed, folder, rows=10**9):
    """Return a table of a folder, split as its first fold, with some of the training rows."""
    data = folded(name, 0, folder)
    some = np.random.default_rng(seed).permutation(len(data.y))[: few(rows)]
    data.X, data.y = data.X.iloc[some], data.y[some]
    return data


def grouped(name, seed, by, source=None, folder=None, rows=10**9, tell=False):
    """Return rows of which test rows are whole groups, three tenths of them: those that are equal
    in the columns `by`. `tell`: the fit is told."""
    if folder:
        data = folded(source or name, 0, folder)
        X, y = np.vstack([data.X, data.X_test]).astype(float), np.append(data.y, data.y_test)
    else:
        X, y, _ = stored(source or name)
    group = np.unique(X[:, by], axis=0, return_inverse=True)[1].ravel()
    place = np.random.default_rng(seed).permutation(group.max() + 1)[group]
    n = round(0.7 * (group.max() + 1))
    train, test = np.flatnonzero(place < n), np.flatnonzero(place >= n)
    if len(train) > few(rows):  # whole groups, as many as there is room for
        order = train[np.argsort(place[train], kind="stable")]
        train = order[: np.searchsorted(place[order], place[order[few(rows)]])]
    more = {"groups": group[train]} if tell else {}
    return Data(X=X[train], y=y[train], X_test=X[test], y_test=y[test], loss="squared", more=more)


def in_order(name, source=None, rows=10**9, test=6000, tell=False):
    """Return rows in time order, thinned evenly, the last three tenths to test; of an official
    split the training rows alone."""
    X, y, end = stored(source or name)
    end = end if end > 0 else len(y)
    n = int(0.7 * end)
    train = np.unique(np.linspace(0, n - 1, few(min(rows, n))).astype(int))
    tested = np.unique(np.linspace(n, end - 1, few(min(test, end - n))).astype(int))
    more = {}
    if tell:
        from sklearn.model_selection import TimeSeriesSplit

        more = {"validation": TimeSeriesSplit(5)}
    loss = "logistic" if len(np.unique(y)) == 2 else "squared"
    return Data(X=X[train], y=y[train], X_test=X[tested], y_test=y[tested], loss=loss, more=more)


def people(seed, n=60, visits=8, others=1000, tell=False):
    """Return visits of people whom age and weight tell, each with a level that X does not have;
    test rows are of others."""
    rng, who = np.random.default_rng(seed), np.repeat(np.arange(n + others), visits)
    age, weight = rng.uniform(20, 80, n + others)[who], rng.normal(75, 12, n + others)[who]
    dose, own = rng.uniform(0, 4, len(who)), rng.normal(0, 2, n + others)[who]
    y = 3 * np.tanh(dose - 1) + 0.02 * age + own + 0.5 * rng.standard_normal(len(who))
    X, m = np.column_stack([age, weight, dose]), n * visits
    more = {"groups": who[:m]} if tell else {}
    return Data(X=X[:m], y=y[:m], X_test=X[m:], y_test=y[m:], loss="squared", more=more)


def levels(seed, n=1000):
    """Return one column of levels of four rows each that say nothing of y, and its mean in each;
    test rows are of the same levels."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    words = rng.permutation(np.array([f"u{i // 4}" for i in range(n)]))
    y = rng.normal(size=n)
    level = pd.Series(y).groupby(words).transform("mean").to_numpy()
    X, test = pd.DataFrame({"id": words}), pd.DataFrame({"id": rng.choice(words, 4 * n)})
    # the one seed of the fits is that of the figures: rows differ, draws do not
    more = {"seed": 0}
    y_test = rng.normal(size=4 * n)
    return Data(X=X, y=y, X_test=test, y_test=y_test, level=level, loss="squared", more=more)


def frames(seed, total=2000):
    """Return a frame of 30 to 100 rows with words and gaps, of a third of the seeds with two
    classes."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    n, (a, b, c) = int(rng.integers(30, 101)), rng.standard_normal((3, total))
    word, flag = rng.choice(list("abcdef"), total), rng.choice(["yes", "no"], total)
    y = a + 2 * (word == "a") + (flag == "yes") * b + rng.standard_normal(total)
    X = pd.DataFrame({"a": a, "b": b, "c": np.round(c), "word": word, "flag": flag})
    X, loss = X.mask(rng.random(X.shape) < 0.2), "squared" if seed % 3 else "logistic"
    y = y if seed % 3 else 2.0 * (y > np.median(y)) - 1
    return Data(X=X[:n], y=y[:n], X_test=X[n:], y_test=y[n:], loss=loss)
