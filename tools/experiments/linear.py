"""Of `drp`: problems whose solution is known, beside the passes over the rows, paths on text; and the recovery of the paper."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace as Data
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

import sparserf as srf
from experiments.data import WORKERS, few, split
from experiments.fits import Fitted, estimator, ours
from sparserf import task
from sparserf.features import make_projection
from sparserf.rows import as_rows

N_ALPHAS = 10, 1, 0.1, 0.01, 0.001


def error(data, result):
    """In w, relative to the solution."""
    if not hasattr(result, "info"):
        return {"error": relative(np.ravel(result.fit.coef_) if isinstance(result, Fitted) else result, data.best)}
    info = result.info
    said = {"bound": info.error_bound, "projections": info.n_projections, "conjugate": info.n_conjugate}
    return {"error": relative(result.coef, data.best)} | said


def relative(w, best):
    return float(np.linalg.norm(w - best) / np.linalg.norm(best))


def low_rank(loss, scale, n=8000, d=20_000, rank=150):
    """X of singular values scale (1 to 0.01), and the solution at n alpha = 1, in the span of the rows: a problem of `rank`."""
    rng, n, d = np.random.default_rng(0), few(n, 400), few(d, 400)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (n, d))
    Z = U * np.geomspace(scale, 0.01 * scale, rank)
    f = Z @ rng.standard_normal(rank)
    y = f / f.std() + 0.5 * rng.standard_normal(n)
    y = y if loss == "squared" else np.sign(y)
    w = np.linalg.solve(Z.T @ Z + np.eye(rank), Z.T @ y) if loss == "squared" else logistic_newton(Z, y)
    return Data(X=Z @ V.T, y=y, loss=loss, best=V @ w)


def logistic_newton(Z, y):
    w = np.zeros(Z.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(y * (Z @ w)))
        w = w - np.linalg.solve(np.eye(len(w)) + (Z.T * (p * (1 - p))) @ Z, w - Z.T @ (y * p))
    return w


def tall(n=200_000, d=500):
    """Of condition number 1e5."""
    rng, n, d = np.random.default_rng(0), few(n, 1000), few(d)
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = rng.standard_normal((n, d)) * np.geomspace(1, 1e-5, d) @ V.T
    y = X @ (V @ (rng.standard_normal(d) / np.sqrt(d))) * 10 + 0.1 * rng.standard_normal(n)
    values, W = np.linalg.eigh(X.T @ X)
    return Data(X=X, y=y, loss="squared", best=W @ ((W.T @ (X.T @ y)) / (np.maximum(values, 0) + 1)))


def dense(loss, dtype=None, n=20_000, d=2000):
    """Normal numbers, and a target that follows 50 of them, with both types of X."""
    rng, n, d = np.random.default_rng(0), few(n), few(d)
    X = rng.standard_normal((n, d))
    f = X[:, :50] @ rng.standard_normal(50)
    y = f / f.std() + 0.5 * rng.standard_normal(n)
    return Data(float64=X, float32=X.astype(np.float32), y=y if loss == "squared" else np.sign(y), loss=loss)


def fit_dense(data, dtype):
    return dtype, ours(Data(X=getattr(data, dtype), y=data.y, loss=data.loss), "drp", n_alpha=1)


def passes(data, result):
    """What a fit would take that only reads X."""
    (dtype, model), made = result, []
    with patch.object(task, "as_rows", lambda *given, **how: made.append(as_rows(*given, **how)) or made[-1]):
        fit_dense(data, dtype)
    n, one = made[0].n_passes, seconds_of_a_pass(getattr(data, dtype))
    costs = {"limit_s": n * one, "passes": n, "a_pass_ms": 1e3 * one}
    return costs | {"conjugate": model.info.n_conjugate, "bound": model.info.error_bound}


def seconds_of_a_pass(X):
    """The least time of reading X on WORKERS threads: to add it up, or to multiply it with a vector of its type."""
    w, parts, best = np.ones(X.shape[1], X.dtype), [X[i : i + 512] for i in range(0, len(X), 512)], np.inf
    with threadpool_limits(1), ThreadPoolExecutor(WORKERS) as pool:
        for read in 10 * (np.sum, lambda part: part @ w):
            start = time.perf_counter()
            list(pool.map(read, parts))
            best = min(best, time.perf_counter() - start)
    return best


def text(source):
    """CSR, and the solutions of a path."""
    data = split(source, 0, share=1.0, loss="logistic")
    data.best = text_path(data, tol=1e-10, seed=1)
    return data


def text_path(data, **options):
    """Over n alpha = 10, 1, 0.1, 0.01, 0.001."""
    models = ours(data, "drp_path", alphas=np.array(N_ALPHAS) / len(data.y), fit_intercept=False, **options)
    return [model.coef for model in models]


def text_sklearn(data, tols, solver):
    found, make = [], "of('sklearn.linear_model:LogisticRegression')(fit_intercept=False, max_iter=10**5, C={}, tol={}, solver='{}')"
    for n_alpha, tol in zip(N_ALPHAS, tols, strict=True):
        found.append(np.ravel(estimator(data, make.format(1 / n_alpha, tol, solver)).fit.coef_))
    return found


def text_errors(data, result):
    return {f"error at n alpha={a}": relative(w, best) for a, w, best in zip(N_ALPHAS, result, data.best, strict=True)}


def problem(rank=10, decay=0.0, n=400, d=2000):
    """Of the paper's theorems: X of singular values sqrt(n) exp(-decay k), labels, and a basis of the rows."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (n, d))
    f = U @ rng.standard_normal(rank) * n**0.5
    X, y = (U * 10 * np.exp(-decay * np.arange(rank))) @ V.T, np.sign(f + 0.3 * rng.standard_normal(n))
    return Data(X=X, y=y, V=V, loss="logistic")


def recovered(data, seed, said, m=None, T=1, n_alpha=1.0):
    """The error of T iterations (of 0: of the naive solution), and the bound (eps / (1 - eps))^T, of this draw of R."""
    m, options = m or said["at"], {"seed": seed, "n_alpha": n_alpha, "fit_intercept": False}
    best, how = ours(data, "drp", tol=1e-9, **options), {"n_projections": m} | options
    model = ours(data, "drp", accelerate=False, n_iter=T, **how) if T else ours(data, "random_projection", **how)
    A = make_projection("gaussian", len(data.V), m, np.random.default_rng(seed)).project(data.V.T)
    eps = np.linalg.norm(A @ A.T - np.eye(len(A)), 2)
    return {"error": relative(model.coef, best.coef), "bound": (eps / (1 - eps)) ** T if eps < 1 and T else None}


def projected(data, said, method):
    """Error in w beside the accelerated solution, and accuracy; the bound and the seconds of that."""
    options = {"alpha": said["alpha"]}
    start = time.perf_counter()
    best, seconds = ours(data, "drp", **options), time.perf_counter() - start
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if method == "naive":
            model = ours(data, "random_projection", n_projections=500, **options)
        else:
            paper = {"accelerate": False, "n_projections": 500, "n_iter": method, "loss": "logistic", "rng": 0, "workers": WORKERS}
            model = best if method == "best" else srf.drp(data.X, data.y, **paper, **options)
    found = {"error": relative(model.coef, best.coef), "accuracy": float(np.mean(model.predict(data.X_test) == data.y_test))}
    diverges = " (diverges)" * any("diverges" in str(warning.message) for warning in caught)
    return found | {"bound": best.info.error_bound, "fit_seconds": seconds, "diverges": diverges}
