"""What single experiments ask for: rivals, raw tables, uncertainty, exported models, explanations, changed constants."""

import ctypes
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace as Data

import numpy as np

import sparserf as srf
from experiments.data import CSV, WORKERS, csv, few, split, value
from experiments.fits import Fitted, clock, lightgbm, ours
from sparserf.rows import as_rows

PICTURES = Path(__file__).parents[2] / "docs/pictures"


def changed(data, seed, change, **options):
    """A fit with something in sparserf put in place of the `old`, an expression each; fails where that is no more."""
    before = []
    try:
        for where, expression in change.items():
            owner = resolve_name(f"sparserf.{where.rpartition('.')[0]}")
            before.append((owner, where.rpartition(".")[2], vars(owner)[where.rpartition(".")[2]]))
            setattr(*before[-1][:2], value(expression, old=before[-1][2]))
        return ours(data, seed=seed, **{"n_models": 1, "workers": 1} | options)
    finally:
        for each in before:
            setattr(*each)


def raw(name, seed, rows, hot, missing):
    """A data frame with the ones and zeros of its categories, {name: (first, how many)}, put together, some cells missing."""
    import pandas as pd

    data = split(name, seed, rows=rows, loss="logistic")
    X = np.concatenate([data.X, data.X_test])
    inside = {j for first, n in hot.values() for j in range(first, first + n)}
    frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1]) if j not in inside})
    for column, (first, n) in hot.items():
        code = np.where(X[:, first : first + n].max(axis=1) > 0, X[:, first : first + n].argmax(axis=1), -1)
        frame[column] = pd.Categorical.from_codes(code, [f"{column} {k}" for k in range(n)])
    frame = frame.mask(np.random.default_rng(seed).random(frame.shape) < missing)
    n = len(data.y)
    return Data(**vars(data) | {"X": frame[:n], "X_test": frame[n:]})


def penalised(loss, share, n, f, k):
    """Rows with k cosine features, of which phi is the matrix, a share of the largest penalty, and the least objective."""
    rng, n = np.random.default_rng(0), few(n)
    X = rng.standard_normal((n, 8))
    features, y = srf.Fourier("gaussian", gamma=0.1).draw(k, 8, rng), value(f, X=X, rng=rng)
    of, start = (srf.losses.Poisson(), np.log(y.mean())) if loss == "poisson" else (srf.losses.Huber(0.5), np.median(y))
    phi = np.asfortranarray(as_rows(X, 1).transform(features))
    alpha = share * np.abs(phi.T @ of.derivative(np.full(n, start), y)).max() / n
    data = Data(X=X, y=y, loss=of, features=features, phi=phi, alpha=alpha)
    data.objective = lambda w, b: np.mean(of.value(phi @ w + b, y)) + alpha * np.abs(w).sum()
    data.least = data.objective(*l1(data, 1e-8))
    return data


def l1(data, tol):
    model = ours(data, alpha=data.alpha, features="data.features", exact=True, tol=tol, unscaled=True, workers=1)
    w = np.zeros(len(data.features))
    w[model.support] = model.coef
    return w, model.intercept


def skglm(data, tol, rows=None):
    from skglm import datafits, penalties, solvers

    poisson = data.loss.name == "poisson"
    fit, Solver = (datafits.Poisson(), solvers.ProxNewton) if poisson else (datafits.Huber(0.5), solvers.AndersonCD)
    solver, phi = Solver(tol=tol, max_iter=50, fit_intercept=True), np.asfortranarray(data.phi[:rows])
    w, *_ = solver.solve(phi, data.y[:rows], fit, penalties.L1(data.alpha))
    return w[:-1], w[-1]


def to_the_least(data, solver, near=1e-5):
    """Seconds of the processor of the first run, at ever smaller tolerances, that comes near to the least objective.

    skglm compiles itself in a fit before, and is given the matrix of features.
    """
    solve = {"ours": l1, "skglm": skglm}[solver]
    if solver == "skglm":
        solve(data, 0.1, 300)
    for tol in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        start = time.process_time()
        w, b = solve(data, tol)
        found = {"cpu": time.process_time() - start, "terms": np.count_nonzero(w), "excess": data.objective(w, b) / data.least - 1}
        if found["excess"] <= near:
            break
    return found


def intervals(data, seed, **how):
    """Conformal intervals of one search, or the 5 % and 95 % quantiles of boosted trees: what they hold, width and score."""
    if how.pop("trees", False):
        ends = [lightgbm(data, seed, 1, "quantile", alpha=q, learning_rate=0.05, trees=2000, patience=50) for q in (0.05, 0.95)]
        low, high = np.sort([each.decision_function(data.X_test) for each in ends], axis=0)
    else:
        fit = partial(srf.sparse_rf, n_models=1)
        low, high = srf.intervals(fit, data.X, data.y, coverage=0.9, rng=seed, **how).predict(data.X_test)
    outside, sd = np.maximum(low - data.y_test, 0) + np.maximum(data.y_test - high, 0), data.y_test.std()
    score = np.mean(high - low + 2 / 0.1 * outside) / sd
    return {"held": float(np.mean(outside == 0)), "width": float(np.mean(high - low) / sd), "score": float(score),
            "rows": len(data.y), "tested": len(data.y_test)}  # fmt: skip


def probabilities(data, seed, loss, calibrated):
    """Log loss, and of ten groups of rows |mean probability - share of the class|."""
    fit = partial(srf.sparse_rf, loss=loss, n_models=1)
    model = srf.calibrated(fit, data.X, data.y, rng=seed) if calibrated else fit(data.X, data.y, rng=seed)
    p, label = model.predict_proba(data.X_test)[:, 1].astype(np.float64), data.y_test == model.classes[1]
    groups = np.array_split(np.argsort(p), 10)
    off = sum(len(some) * abs(p[some].mean() - label[some].mean()) for some in groups) / len(p)
    return {"error": float(-np.mean(np.log(np.clip(np.where(label, p, 1 - p), 1e-15, 1)))), "off": float(off)}


def to_export(f, features, scale=None):
    """200 terms of a map, or what an expression makes, of 10 normal inputs."""
    X = np.random.default_rng(0).standard_normal((few(4000), 10))
    data = Data(X=X, y=value(f, X=X), loss="squared")
    data.model = ours(data, "harfe", features=features, n_components=300, n_nonzero_coefs=200, alpha=1e-6, scale=scale)
    if features == "default":
        data.model = ours(data, n_models=1)
    return data


def exported(data, to):
    """Nanoseconds a row of many, of one row, and the largest error relative to the largest prediction: in C, ONNX or Python."""
    X, out, kind = data.X, np.empty(len(data.X)), to.partition(" ")[0]
    if kind == "c":
        folder = Path(tempfile.mkdtemp())
        data.model.to_c(folder / "model.c")
        subprocess.run(["cc", *to.split()[1:], "-fPIC", "-shared", "model.c", "-o", "model.so", "-lm"], check=True, cwd=folder)
        call, pointer = ctypes.CDLL(str(folder / "model.so")).predict_rows, lambda a: a.ctypes.data_as(ctypes.c_void_p)
        predict = lambda X: (call(pointer(X), ctypes.c_size_t(len(X)), pointer(out)), out)[1]  # noqa: E731
    elif kind == "onnx":
        import onnxruntime

        X, how = X.astype(to.split()[1]), onnxruntime.SessionOptions()
        how.intra_op_num_threads = 1
        model = data.model.to_onnx(dtype=to.split()[1]).SerializeToString()
        session = onnxruntime.InferenceSession(model, how, providers=["CPUExecutionProvider"])
        predict = lambda X: session.run(None, {"X": X})[0][:, 0]  # noqa: E731
    else:
        predict = data.model.predict
    expected = data.model.predict(X.astype(np.float64))
    found = {"off": float(np.abs(predict(X) - expected).max() / np.abs(expected).max()), "terms": len(data.model.support)}
    return found | {"many_ns": 1e3 * clock(predict, X, 30), "one_us": clock(predict, X[:1], 1000)}


def explained(name, max_terms, n_rows, n_background):
    """A model with rows to explain, background, and its Shapley values as exact as orders of inputs make them."""
    data = csv(name)
    model = ours(data, n_models=1, max_terms=max_terms)
    rows = np.random.default_rng(0).permutation(len(data.X))
    X, B = data.X[rows[: few(n_rows, 20)]], data.X[rows[-few(n_background, 20) :]]
    return Data(X=X, B=B, model=model, reference=model.shapley(X, B, n_permutations=few(256, 4), rng=1))


def sampler(data, n_orders):
    """Shapley values of any function: along an order, rows of the background become the rows, input by input."""
    rng, X, total = np.random.default_rng(0), data.X, np.zeros(data.X.shape)
    for _ in range(n_orders):
        mixed = data.B[rng.integers(0, len(data.B), len(X))].copy()
        last = data.model.predict(mixed)
        for j in rng.permutation(X.shape[1]):
            mixed[:, j] = X[:, j]
            last, before = data.model.predict(mixed), last
            total[:, j] += last - before
    return total / n_orders


def drawn(data, file, call="sparse_rf", panels=None, terms=None, **options):
    """A picture of a model's effects in docs/pictures, and the first lines of what the model says."""
    model = ours(data, call, **options)
    small = srf.prune(model, data.X, max_terms=terms, workers=WORKERS) if terms else model
    folder = Path(tempfile.gettempdir()) if few(2, 1) == 1 else PICTURES
    srf.plot.effects(model, data.X, names=data.names, **{"n_panels": panels} if panels else {}).savefig(folder / file, dpi=90)
    said = small.formula(n_terms=4) if terms else model.summary(data.X, n_terms=5, rng=0)
    return {"model": str(model), "says": str(said), "validation_loss": getattr(model.info, "validation_loss", None)}


def script(_, command):
    """What a script of tools/ prints."""
    tools, to = CSV.parent, tempfile.gettempdir() if few(2, 1) == 1 else PICTURES
    words = [word.format(pictures=to, data=CSV) for word in command.split()]
    done = subprocess.run([sys.executable, tools / words[0], *words[1:]], capture_output=True, text=True, check=True)
    return {"says": done.stdout}


def reference(data):
    """HARFE as its authors write it: N x N Gram matrix, pseudo-inverse, 50 iterations, unit columns, lambda = 1e-4."""
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
    return Data(objective=((A @ c - data.y) ** 2).mean() / 2 + 1e-4 * (c @ c) / (2 * len(data.y)), terms=int(np.count_nonzero(c)))


def orthogonal_matching_pursuit(data, precompute, gamma, terms):
    """Of all monomials of degree 0, 1 and 2 under the envelope, and the inputs, in columns that are built: unit, of mean 0."""
    from sklearn.linear_model import OrthogonalMatchingPursuit

    X, (i, j) = data.X, np.triu_indices(data.X.shape[1])
    u, envelope = np.sqrt(2 * gamma) * X, np.exp(-gamma * (X**2).sum(axis=1))[:, None]
    phi = np.hstack([envelope, envelope * u, envelope * u[:, i] * u[:, j] / np.sqrt(1 + (i == j)), X])
    phi -= phi.mean(axis=0)
    phi /= np.sqrt((phi**2).sum(axis=0))
    with warnings.catch_warnings(action="ignore"):
        fit = OrthogonalMatchingPursuit(n_nonzero_coefs=few(terms, 20), precompute=precompute).fit(phi, data.y)
    return Fitted(lambda X: fit.predict(phi), np.count_nonzero(fit.coef_))
