"""What single experiments ask for: rivals, raw tables, uncertainty, exported models, explanations,
progress."""

import ctypes
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Data

import numpy as np
from experiments.data import CSV, QUICK, WORKERS, few, held_out, split
from experiments.fits import BATCH, Fitted, clock, lightgbm, ours

import sparserf as srf

PICTURES = Path(tempfile.gettempdir()) if QUICK else Path(__file__).parents[2] / "docs/pictures"


def raw(name, seed, rows, hot, missing):
    """A data frame with the ones and zeros of its categories, {name: (first, how many)}, put
    together, some cells missing."""
    import pandas as pd

    data = split(name, seed, rows=rows, loss="logistic")
    X = np.concatenate([data.X, data.X_test])
    inside = {j for first, n in hot.values() for j in range(first, first + n)}
    frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1]) if j not in inside})
    for column, (first, n) in hot.items():
        code = np.where(
            X[:, first : first + n].max(axis=1) > 0, X[:, first : first + n].argmax(axis=1), -1
        )
        frame[column] = pd.Categorical.from_codes(code, [f"{column} {k}" for k in range(n)])
    frame = frame.mask(np.random.default_rng(seed).random(frame.shape) < missing)
    n = len(data.y)
    return Data(**vars(data) | {"X": frame[:n], "X_test": frame[n:]})


def intervals(data, seed, trees=False, **how):
    """What conformal intervals of one search hold, or the 5 % and 95 % quantiles of trees;
    `one_width`: the score unscaled."""
    if trees:
        ends = [
            lightgbm(
                data, seed, 1, "quantile", alpha=q, learning_rate=0.05, trees=2000, patience=50
            )
            for q in (0.05, 0.95)
        ]
        return scored(
            data, *np.sort([each.decision_function(data.X_test) for each in ends], axis=0)
        )
    bands = srf.intervals(srf.sparse_rf, data.X, data.y, rng=seed, **how)
    found = scored(data, *bands.predict(data.X_test))
    if how:
        return found
    plain = srf.intervals(
        lambda *_, rng: bands.experts[0].model, data.X, data.y, rng=seed, adaptive=False
    )
    return found | {"one_width": scored(data, *plain.predict(data.X_test))["score"]}


def scored(data, low, high):
    """What they hold, and mean width and interval score at 90 % in deviations of the target."""
    outside, sd = (
        np.maximum(low - data.y_test, 0) + np.maximum(data.y_test - high, 0),
        data.y_test.std(),
    )
    found = {
        "held": np.mean(outside == 0),
        "width": np.mean(high - low) / sd,
        "score": np.mean(high - low + 20 * outside) / sd,
    }
    return {key: float(each) for key, each in found.items()} | {
        "rows": len(data.y),
        "tested": len(data.y_test),
    }


def sets(data, seed, mapie=None, **how):
    """What sets of classes hold, of all rows and of the third of which the model is least sure, and
    their mean size; MAPIE's with a score, "aps", "aps randomized" or "lac", of the same model and
    the same rows that calibrate."""
    fit, n = partial(srf.sparse_rf, loss=data.loss), len(data.y)
    if how:
        found = srf.intervals(fit, data.X, data.y, rng=seed, **how)
        model, inside = found.experts[0].model, found.predict_set(data.X_test)
        classes = found.classes
    else:
        fitted, held = held_out(n, seed, 0.3)
        X, X_held = (rows_of(data.X, some) for some in (fitted, held))
        model = fit(X, data.y[fitted], rng=seed)
        classes = model.classes
        there = np.isin(data.y[held], classes)
        X_held, y_held = rows_of(data.X, held[there]), data.y[held[there]]
        inside = (
            srf.intervals(model, X_held, y_held).predict_set(data.X_test)
            if mapie is None
            else sets_of_mapie(model, X_held, y_held, data.X_test, mapie)
        )
    own = (data.y_test[:, None] == classes) & inside
    sure = model.predict_proba(data.X_test).max(axis=1)
    is_hard = sure <= np.quantile(sure, 1 / 3)
    return {
        "held": float(own.any(axis=1).mean()),
        "of_hard": float(own.any(axis=1)[is_hard].mean()),
        "set_size": float(inside.sum(axis=1).mean()),
        "empty": float(np.mean(~inside.any(axis=1))),
        "right": float(np.mean(model.predict(data.X_test) == data.y_test)),
        "classes": len(classes),
        "rows": n,
        "tested": len(data.y_test),
    }


def rows_of(X, some):
    """Some rows of a frame or of an array."""
    return X.iloc[some] if hasattr(X, "iloc") else X[some]


def sets_of_mapie(model, X, y, X_test, score):
    """The sets of MAPIE for a model of ours, calibrated on X and y."""
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Prefit(ClassifierMixin, BaseEstimator):
        classes_ = model.classes

        def fit(self, X, y):
            return self

        def predict(self, X):
            return model.predict(X)

        def predict_proba(self, X):
            p = model.predict_proba(X).astype(np.float64)
            return p / p.sum(axis=1, keepdims=True)

        def __sklearn_is_fitted__(self):
            return True

    name, _, is_random = score.partition(" ")
    conformal = SplitConformalClassifier(
        Prefit(), confidence_level=0.9, prefit=True, conformity_score=name, random_state=0
    ).conformalize(X, y)
    how = {"include_last_label": "randomized"} if is_random else None
    return conformal.predict_set(X_test, conformity_score_params=how)[1][:, :, 0]


def levels(data, seed, within=False):
    """The least share of rows that intervals hold in a level of a column, over levels of at least
    30 test rows, and how many have their own threshold."""
    bands = srf.intervals(
        srf.sparse_rf, data.X, data.y, within=data.column if within else None, rng=seed
    )
    lower, upper = bands.predict(data.X_test)
    held = (lower <= data.y_test) & (data.y_test <= upper)
    level = data.X_test[data.column].to_numpy(str)
    shares = {
        each: float(held[level == each].mean())
        for each in np.unique(level).tolist()
        if np.count_nonzero(level == each) >= 30
    }
    return {
        "held": float(held.mean()),
        "least": min(shares.values()),
        "most": max(shares.values()),
        "shares": shares,
        "own": sum(share > 0 for share in bands.guarantees.values()),
        "width": float(np.mean(upper - lower) / data.y_test.std()),
        "rows": len(data.y),
        "tested": len(data.y_test),
    }


def probabilities(data, seed, loss, calibrated):
    """Log loss, and of ten groups of rows |mean probability - share of the class|."""
    fit = partial(srf.sparse_rf, loss=loss)
    model = (
        srf.calibrated(fit, data.X, data.y, rng=seed)
        if calibrated
        else fit(data.X, data.y, rng=seed)
    )
    p, label = (
        model.predict_proba(data.X_test)[:, 1].astype(np.float64),
        data.y_test == model.classes[1],
    )
    groups = np.array_split(np.argsort(p), 10)
    off = sum(len(some) * abs(p[some].mean() - label[some].mean()) for some in groups) / len(p)
    return {
        "error": float(-np.mean(np.log(np.clip(np.where(label, p, 1 - p), 1e-15, 1)))),
        "off": float(off),
    }


def exported(data, to):
    """Nanoseconds a row of many, of one row, and the largest error relative to the largest
    prediction: in C, ONNX or Python."""
    X, predict = (
        data.X.astype(to.split()[1]) if to.startswith("onnx") else data.X,
        elsewhere(data.model, to),
    )
    expected = data.model.predict(X.astype(np.float64))
    found = {
        "off": float(np.abs(predict(X) - expected).max() / np.abs(expected).max()),
        "terms": len(data.model.support),
    }
    return found | {"many_ns": 1e3 * clock(predict, X, 30), "one_us": clock(predict, X[:1], 1000)}


def elsewhere(model, to):
    """The function that predicts, of rows of numbers, in C, ONNX or Python."""
    if to.startswith("c "):
        folder = Path(tempfile.mkdtemp())
        model.to_c(folder / "model.c")
        subprocess.run(
            ["cc", *to.split()[1:], "-fPIC", "-shared", "model.c", "-o", "model.so", "-lm"],
            check=True,
            cwd=folder,
        )
        call, pointer = (
            ctypes.CDLL(str(folder / "model.so")).predict_rows,
            lambda a: a.ctypes.data_as(ctypes.c_void_p),
        )

        def predict(X):
            X, out = np.ascontiguousarray(X), np.empty(len(X))
            call(pointer(X), ctypes.c_size_t(len(X)), pointer(out))
            return out

        return predict
    if to.startswith("onnx "):
        import onnxruntime

        how = onnxruntime.SessionOptions()
        how.intra_op_num_threads = 1
        written = model.to_onnx(dtype=to.split()[1]).SerializeToString()
        session = onnxruntime.InferenceSession(written, how, providers=["CPUExecutionProvider"])
        return lambda X: session.run(None, {"X": X})[0][:, 0]
    return model.predict


def progress(data, **options):
    """The largest distance of the progress that a fit tells from the share of its time that had
    gone."""
    start, seen = time.perf_counter(), []
    ours(
        data,
        callback=lambda info: seen.append((time.perf_counter() - start, info.progress)),
        **options,
    )
    gone, told = np.array(seen).T
    return {"off": float(np.abs(told - gone / gone[-1]).max())}


def within(data, limit, call="sparse_rf", **options):
    """The seconds of a call with a time limit, in a process that has fitted before; its error on
    test rows, and what it cut."""
    warm = np.random.default_rng(0).standard_normal((60, 2))
    few_rows = Data(X=warm, y=warm[:, 0] > 0, loss="logistic")
    with warnings.catch_warnings(action="ignore", category=srf.TimeLimitWarning):
        for time_limit in (0.3, 3.0):
            ours(few_rows, time_limit=time_limit)
        start = time.perf_counter()
        model = ours(data, call, time_limit=limit, **options)
        took = time.perf_counter() - start
    predicted = model.predict(data.X_test)
    is_wrong = (
        predicted != data.y_test
        if data.loss != "squared"
        else (predicted - data.y_test) ** 2 / np.var(data.y_test)
    )
    told = float(np.mean(is_wrong))
    assert np.isfinite(told)
    over = {
        "took": took,
        "of_limit": took / limit,
        "in_time": bool(took <= limit + max(0.1 * limit, 0.3)),
    }
    return over | {"error": told, "terms": len(model.support), "cut": model.info.cut}


def distilled(data, seed, trees, terms, fewer=(), **options):
    """What a sparse model gives of CatBoost's variance on test rows, also pruned to fewer terms;
    what both err and take."""
    from catboost import CatBoostRegressor

    how = {"verbose": 0, "thread_count": WORKERS, "random_seed": seed, "allow_writing_files": False}
    options |= {"n_made": 200} if QUICK else {}
    start = time.perf_counter()
    teacher = CatBoostRegressor(few(trees, 20), **how).fit(data.X, data.y)
    trained, ask = time.perf_counter(), partial(teacher.predict, thread_count=WORKERS)
    model = srf.distill(ask, data.X, max_terms=few(terms, 20), rng=seed, workers=WORKERS, **options)
    found = {"teacher_seconds": trained - start, "distilled_seconds": time.perf_counter() - trained}
    t, variance = ask(data.X_test), data.y_test.var()
    share = lambda small: float(1 - np.mean((small.predict(data.X_test) - t) ** 2) / t.var())  # noqa: E731
    error = lambda f: float(np.mean((f - data.y_test) ** 2) / variance)  # noqa: E731
    found |= {"fidelity": model.info.fidelity, "unseen": share(model), "terms": len(model.support)}
    found |= {"error": error(model.predict(data.X_test)), "teacher_error": error(t)}
    found |= {"rows": len(data.y), "inputs": data.X.shape[1]}
    for n in fewer:
        found[f"unseen_{n}"] = share(
            srf.prune(model, data.X, max_terms=few(n, 10), workers=WORKERS)
        )
    many, folder = data.X_test[np.resize(np.arange(len(t)), BATCH)], Path(tempfile.mkdtemp())
    for name, predict in (("teacher", ask), ("model", partial(model.predict, workers=WORKERS))):
        found |= {
            f"{name}_batch_us": clock(predict, many, 5),
            f"{name}_single_us": clock(predict, many[:1], 100),
        }
    teacher.save_model(str(folder / "teacher.cbm"))
    model.save(folder / "model.npz")
    found |= {f"{path.stem}_kb": path.stat().st_size / 1e3 for path in folder.iterdir()}
    return found | {"c_single_us": exported(Data(X=data.X_test, model=model), "c -O3")["one_us"]}


def sampler(data, n_orders):
    """Shapley values of any function: along an order, rows of the background become the rows, input
    by input."""
    rng, X, B, total = (
        np.random.default_rng(0),
        data.rows,
        data.background,
        np.zeros(data.rows.shape),
    )
    for _ in range(n_orders):
        mixed = B[rng.integers(0, len(B), len(X))].copy()
        last = data.model.predict(mixed)
        for j in rng.permutation(X.shape[1]):
            mixed[:, j] = X[:, j]
            last, before = data.model.predict(mixed), last
            total[:, j] += last - before
    return total / n_orders


def drawn(data, file=None, call="sparse_rf", panels=12, terms=None, **options):
    """A picture of a model's effects in docs/pictures, or what the model says in few terms."""
    model = ours(data, call, **options)
    if file:
        srf.plot.effects(model, data.X, names=data.names, n_panels=panels).savefig(
            PICTURES / file, dpi=90
        )
        says = str(model.summary(data.X, n_terms=5, rng=0))
    else:
        says = srf.prune(model, data.X, max_terms=terms, workers=WORKERS).formula(n_terms=4)
    return {
        "terms": len(model.support),
        "says": str(says),
        "validation_loss": getattr(model.info, "validation_loss", None),
    }


def script(_, command):
    """What a script of tools/ prints, in the folder of the pictures."""
    name, *words = (word.format(data=CSV) for word in command.split())
    return {
        "says": subprocess.check_output(
            [sys.executable, CSV.parent / name, *words], text=True, cwd=PICTURES
        )
    }


def reference(data):
    """HARFE as its authors write it: N x N Gram matrix, pseudo-inverse, 50 iterations, unit
    columns, lambda = 1e-4."""
    block, s = data.features.blocks[0], min(500, len(data.y))
    W = np.zeros((len(data.features), data.X.shape[1]))
    np.put_along_axis(W, block.inputs, block.weights, axis=1)
    A = np.sin(data.X @ W.T + block.offset)
    A /= np.linalg.norm(A, axis=0)
    B, Ay, c = A.T @ A, A.T @ data.y, np.zeros(A.shape[1])
    for _ in range(few(50, 2)):
        c_tilde = c + 0.1 * (Ay - B @ c - 1e-4 * c)
        S, c = np.argsort(-np.abs(c_tilde))[:s], np.zeros(A.shape[1])
        c[S] = np.linalg.pinv(B[np.ix_(S, S)] + 1e-4 * np.eye(s), rcond=1e-15) @ Ay[S]
    objective = ((A @ c - data.y) ** 2).mean() / 2 + 1e-4 * (c @ c) / (2 * len(data.y))
    return Data(objective=objective, terms=np.count_nonzero(c))


def orthogonal_matching_pursuit(data, precompute, gamma, terms):
    """Of all monomials of degree 0, 1 and 2 under the envelope, and the inputs, in columns that are
    built: unit, of mean 0."""
    from sklearn.linear_model import OrthogonalMatchingPursuit

    X, (i, j) = data.X, np.triu_indices(data.X.shape[1])
    u, envelope = np.sqrt(2 * gamma) * X, np.exp(-gamma * (X**2).sum(axis=1))[:, None]
    phi = np.hstack(
        [envelope, envelope * u, envelope * u[:, i] * u[:, j] / np.sqrt(1 + (i == j)), X]
    )
    phi -= phi.mean(axis=0)
    phi /= np.sqrt((phi**2).sum(axis=0))
    with warnings.catch_warnings(action="ignore"):
        fit = OrthogonalMatchingPursuit(n_nonzero_coefs=few(terms, 20), precompute=precompute).fit(
            phi, data.y
        )
    return Fitted(lambda X: fit.predict(phi), np.count_nonzero(fit.coef_))
