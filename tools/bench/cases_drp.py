"""The cases of `drp`: time to an error of 1e-6 in w, relative to a solution that is known (`error` in the tables)."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from unittest.mock import patch

import numpy as np
from case import CASES, WORKERS, Case, data_set
from threadpoolctl import threadpool_limits

import sparserf as srf
from sparserf import task
from sparserf.rows import as_rows


def drp(data, **options):
    X, y, alpha, *_ = data
    model = srf.drp(X, y, alpha=alpha, fit_intercept=False, rng=0, workers=WORKERS, **options)
    return model.coef, model.info


def sklearn_fit(data, estimator, tol, **options):
    X, y, alpha, *_ = data
    scale = {"alpha": alpha * len(y)} if estimator == "Ridge" else {"C": 1 / (alpha * len(y)), "max_iter": 10**5}
    import sklearn.linear_model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = getattr(sklearn.linear_model, estimator)(fit_intercept=False, tol=tol, **scale, **options).fit(X, y)
    return fit.coef_.ravel(), None


def describe(data, result):
    (w, info), best = result, data[3]
    notes = {"error": float(np.linalg.norm(w - best) / np.linalg.norm(best))}
    if info is not None:
        notes |= {"bound": info.error_bound, "projections": info.n_projections, "conjugate": info.n_conjugate}
    return notes


# --- dense, of low rank ------------------------------------------------------------------------------------------

N, D, RANK = 8_000, 20_000, 150


@cache
def low_rank(loss, scale):
    """X of singular values scale (1 to 0.01), y, n alpha = 1, and w*, which lies in the span of the rows: a problem of 150."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((N, RANK)))[0]
    V = np.linalg.qr(rng.standard_normal((D, RANK)))[0]
    Z = U * np.geomspace(scale, 0.01 * scale, RANK)
    X = Z @ V.T
    f = Z @ rng.standard_normal(RANK)
    y = f / f.std() + 0.5 * rng.standard_normal(N)
    if loss == "squared":
        return X, y, 1 / N, V @ np.linalg.solve(Z.T @ Z + np.eye(RANK), Z.T @ y)
    y = np.sign(y)
    return X, y, 1 / N, V @ logistic_newton(Z, y)


def logistic_newton(Z, y):
    w = np.zeros(Z.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(y * (Z @ w)))
        g = w - Z.T @ (y * p)
        w = w - np.linalg.solve(np.eye(len(w)) + (Z.T * (p * (1 - p))) @ Z, g)
    return w


def as_size(scale):
    return "as they are" if scale == 1 else "times 1,000, so that X has entries of size 1 and not 0.0003"


for scale in (1.0, 1000.0):
    tag = "" if scale == 1 else "-scaled"
    CASES[f"drp-squared{tag}"] = Case(
        f"{N:,} × {D:,} of rank {RANK}, singular values 1 to 0.01, {as_size(scale)}; n alpha = 1, squared loss.",
        partial(low_rank, "squared", scale),
        {
            "drp": drp,
            "Ridge, cholesky": partial(sklearn_fit, estimator="Ridge", solver="cholesky", tol=0),
            "Ridge, lsqr": partial(sklearn_fit, estimator="Ridge", solver="lsqr", tol=1e-8 if scale == 1 else 1e-10),
            "Ridge, sparse_cg": partial(sklearn_fit, estimator="Ridge", solver="sparse_cg", tol=1e-7),
        },
        describe,
    )
    CASES[f"drp-logistic{tag}"] = Case(
        f"The same with signs of the target, logistic loss, {as_size(scale)}.",
        partial(low_rank, "logistic", scale),
        {
            "drp": partial(drp, loss="logistic"),
            "LogisticRegression, lbfgs": partial(sklearn_fit, estimator="LogisticRegression", solver="lbfgs", tol=1e-10),
            "LogisticRegression, newton-cg": partial(
                sklearn_fit, estimator="LogisticRegression", solver="newton-cg", tol=1e-10
            ),
            "LogisticRegression, liblinear dual": partial(
                sklearn_fit, estimator="LogisticRegression", solver="liblinear", dual=True, tol=1e-5
            ),
        },
        describe,
        repeat=2,
    )


# --- beside the passes over the rows -----------------------------------------------------------------------------


@cache
def dense(loss):
    """X of 20,000 × 2,000 normal numbers, and a target that follows 50 of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 2000))
    f = X[:, :50] @ rng.standard_normal(50)
    y = f / f.std() + 0.5 * rng.standard_normal(len(X))
    return {np.float64: X, np.float32: X.astype(np.float32)}, y if loss == "squared" else np.sign(y)


def drp_dense(data, loss, dtype):
    X, y = data[0][dtype], data[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", srf.ConvergenceWarning)
        return dtype, srf.drp(X, y, alpha=1 / len(X), loss=loss, rng=0, workers=WORKERS).info


def seconds_of_a_pass(X):
    """The least time of reading X on WORKERS threads: to add it up, or to multiply it with a vector of its type."""
    w, parts = np.ones(X.shape[1], X.dtype), [X[i : i + 512] for i in range(0, len(X), 512)]
    best = np.inf
    with threadpool_limits(1), ThreadPoolExecutor(WORKERS) as pool:
        for _ in range(10):
            for read in (np.sum, lambda part: part @ w):
                start = time.perf_counter()
                list(pool.map(read, parts))
                best = min(best, time.perf_counter() - start)
    return best


def passes_of(fit):
    """How many times all rows are asked in fit()."""
    made = []
    with patch.object(task, "as_rows", lambda *given: made.append(as_rows(*given)) or made[-1]):
        fit()
    return made[0].n_passes


def describe_dense(loss, data, result):
    dtype, info = result
    passes = passes_of(partial(drp_dense, data, loss, dtype))
    a_pass = seconds_of_a_pass(data[0][dtype])
    return {
        "limit_s": passes * a_pass, "passes": passes, "a_pass_ms": 1e3 * a_pass, "conjugate": info.n_conjugate,
        "bound": info.error_bound,
    }  # fmt: skip


for loss in ("squared", "logistic", "squared_hinge"):
    CASES[f"drp-dense-{loss}"] = Case(
        f"20,000 × 2,000 normal numbers, n alpha = 1, {loss.replace('_', ' ')} loss, an intercept. `limit_s`: the passes over "
        f"X that the fit makes, times the least time of one, in which {WORKERS} threads add X up or multiply it with a "
        "vector of its own type.",
        partial(dense, loss),
        {f"drp, {dtype.__name__}": partial(drp_dense, loss=loss, dtype=dtype) for dtype in (np.float64, np.float32)},
        partial(describe_dense, loss),
    )


# --- many rows of few inputs -------------------------------------------------------------------------------------


@cache
def tall():
    rng = np.random.default_rng(0)
    n, d = 200_000, 500
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = rng.standard_normal((n, d)) * np.geomspace(1, 1e-5, d) @ V.T
    y = X @ (V @ (rng.standard_normal(d) / np.sqrt(d))) * 10 + 0.1 * rng.standard_normal(n)
    values, W = np.linalg.eigh(X.T @ X)
    return X, y, 1 / n, W @ ((W.T @ (X.T @ y)) / (np.maximum(values, 0) + 1))


def scipy_lsqr(data):
    from scipy.sparse.linalg import lsqr

    X, y, alpha, *_ = data
    return lsqr(X, y, damp=np.sqrt(alpha * len(y)), atol=1e-10, btol=1e-10)[0], None


CASES["drp-tall"] = Case(
    "200,000 × 500, condition number 1e5, n alpha = 1, squared loss.",
    tall,
    {
        "drp": drp,
        "Ridge, cholesky": partial(sklearn_fit, estimator="Ridge", solver="cholesky", tol=0),
        "Ridge, lsqr": partial(sklearn_fit, estimator="Ridge", solver="lsqr", tol=1e-10),
        "Ridge, sparse_cg": partial(sklearn_fit, estimator="Ridge", solver="sparse_cg", tol=1e-8),
        "scipy lsqr": scipy_lsqr,
    },
    describe,
)


# --- sparse text -------------------------------------------------------------------------------------------------

N_ALPHAS = (10, 1, 0.1, 0.01, 0.001)


@cache
def text(name):
    X, y, n = data_set(name)
    X, y = (X[:n], y[:n]) if n > 0 else (X, y)
    models = srf.drp_path(X, y, alphas=np.array(N_ALPHAS) / len(y), loss="logistic", fit_intercept=False, tol=1e-10, rng=1)
    return X, y, [model.coef for model in models]


def drp_text(data):
    X, y, _ = data
    models = srf.drp_path(X, y, alphas=np.array(N_ALPHAS) / len(y), loss="logistic", fit_intercept=False, rng=0,
                          workers=WORKERS)  # fmt: skip
    return [model.coef for model in models]


def sklearn_text(data, tols, **options):
    X, y, _ = data
    each = ((X, y, n_alpha / len(y)) for n_alpha in N_ALPHAS)
    return [sklearn_fit(one, "LogisticRegression", tol, **options)[0] for one, tol in zip(each, tols, strict=True)]


def describe_text(data, result):
    errors = [np.linalg.norm(w - best) / np.linalg.norm(best) for w, best in zip(result, data[2], strict=True)]
    return {f"error at n alpha={a}": float(e) for a, e in zip(N_ALPHAS, errors, strict=True)}


for name, size in (("farm_ads", "4,143 × 54,877"), ("reuters", "7,770 × 8,315")):
    CASES[f"drp-{name}"] = Case(
        f"{name}, CSR, {size}, logistic loss, a path over n alpha = 10, 1, 0.1, 0.01, 0.001; tolerances by hand, as loose as "
        "an error of 1e-6 allows at most of the penalties.",
        partial(text, name),
        {
            "drp_path": drp_text,
            "liblinear, primal": partial(sklearn_text, solver="liblinear", tols=(1e-7, 1e-7, 1e-9, 1e-9, 1e-10)),
            "newton-cg": partial(sklearn_text, solver="newton-cg", tols=(1e-8, 1e-9, 1e-10, 1e-10, 1e-11)),
            "lbfgs": partial(sklearn_text, solver="lbfgs", tols=(1e-9,) * 5),
        },
        describe_text,
        repeat=5,
    )
