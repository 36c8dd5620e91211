"""Of the benchmarks: objectives, problems whose solution is known, where rows live and how often
they are asked; and how well a random projection recovers w*, of the DRP paper."""

import contextlib
import tempfile
import time
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace as Data
from unittest.mock import patch

import numpy as np
from experiments.data import WORKERS, few, split, value
from experiments.fits import estimator, ours

import sparserf as srf
from sparserf.features import make_projection
from sparserf.rows import Rows, as_rows

N_ALPHAS = 10, 1, 0.1, 0.01, 0.001


def sparse(result):
    """(support, coefficients, intercept) of a model of ours or of an estimator."""
    if hasattr(result, "support"):
        return result.support, result.coef, result.intercept
    coef = np.ravel(result.fit.coef_)
    support = np.flatnonzero(coef)
    return support, coef[support], float(np.ravel(result.fit.intercept_)[0])


def gap(data, result):
    """Objective and gap of the Lasso over all features, n alpha = 10, worked out plainly."""
    y, (support, coef, b) = data.y, sparse(result)
    n, alpha = len(y), 10 / len(y)
    r = as_rows(data.X).apply(data.features.take(support), coef) + b - y
    r -= r.mean()
    objective = r @ r / (2 * n) + alpha * np.abs(coef).sum()
    u = r * min(1.0, alpha * n / np.abs(as_rows(data.X, WORKERS).correlate(data.features, r)).max())
    return {
        "objective": objective,
        "relative_gap": 1 + (u @ u / 2 + u @ y) / n / objective,
        "terms": len(support),
    }


def objective(data, result, loss, n_alpha=None):
    """With a loss of sparserf, and alpha as it is given, or of the data."""
    (support, coef, b), alpha = sparse(result), n_alpha / len(data.y) if n_alpha else data.alpha
    z = as_rows(data.X, WORKERS).apply(data.features.take(support), coef) + b
    return {
        "objective": np.mean(value(loss).value(z, data.y)) + alpha * np.abs(coef).sum(),
        "terms": len(support),
    }


def on_disk(f, n, d):
    """A float32 matrix in a file, which goes with the scratch directory of the process, and a noisy
    target."""
    n, path, rng = few(n), Path(tempfile.gettempdir()) / "X.npy", np.random.default_rng(0)
    X, y = np.lib.format.open_memmap(path, "w+", np.float32, (n, d)), np.empty(n)
    for start in range(0, n, 50_000):
        some = slice(start, min(start + 50_000, n))
        X[some] = rng.standard_normal((some.stop - start, d), np.float32)
        y[some] = value(f, X=X[some]) + 0.5 * rng.standard_normal(some.stop - start)
    X.flush()
    return Data(path=path, y=y, loss="squared")


def at(data, place, **options):
    """(a fit to rows in this place, its seconds without what brought them there)."""
    with contextlib.ExitStack() as stack:
        start = time.perf_counter()
        if place == "disk":
            X = srf.Chunks(np.load(data.path, mmap_mode="r"))
        elif place == "jax":
            X = resolve_name("jax.numpy").asarray(data.X)
        elif place == "dask":
            X = on_cluster(data.X, stack)
            start = time.perf_counter()
        else:
            X = np.load(data.path) if hasattr(data, "path") else data.X
        return ours(Data(X=X, y=data.y, loss="squared"), **options), time.perf_counter() - start


def on_cluster(X, stack):
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    how = {
        "n_workers": WORKERS,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    stack.enter_context(Client(stack.enter_context(LocalCluster(**how))))
    there = da.from_array(X, chunks=(max(1, len(X) // 8), X.shape[1])).persist()
    wait(there)
    return there


def error(data, result):
    """In w, relative to the solution."""
    if not hasattr(result, "info"):
        return {
            "error": relative(
                np.ravel(result.fit.coef_) if hasattr(result, "fit") else result, data.best
            )
        }
    info = result.info
    said = {"bound": info.error_bound, "passes": info.n_passes}
    said |= {"projections": info.n_projections, "conjugate": info.n_conjugate}
    return {"error": relative(result.coef, data.best)} | said


def relative(w, best):
    return float(np.linalg.norm(w - best) / np.linalg.norm(best))


def low_rank(loss, n=8000, d=20_000, rank=150):
    """X of singular values 1 to 0.01, and the solution at n alpha = 1, in the span of the
    rows: a problem of `rank`."""
    rng, n, d = np.random.default_rng(0), few(n, 400), few(d, 400)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (n, d))
    Z = U * np.geomspace(1.0, 0.01, rank)
    f = Z @ rng.standard_normal(rank)
    y = f / f.std() + 0.5 * rng.standard_normal(n)
    y = y if loss == "squared" else np.sign(y)
    w = (
        np.linalg.solve(Z.T @ Z + np.eye(rank), Z.T @ y)
        if loss == "squared"
        else logistic_newton(Z, y)
    )
    return Data(X=Z @ V.T, y=y, loss=loss, best=V @ w)


def decaying(loss="logistic", n=4000, d=10_000, rank=120):
    """X of low rank with decaying directions, labels, and the solution at n alpha = 1, in the span
    of the rows."""
    rng, n, d = np.random.default_rng(0), few(n, 400), few(d, 400)
    A, B = (
        rng.standard_normal((n, rank)) * np.logspace(0, -2, rank),
        rng.standard_normal((rank, d)) / np.sqrt(rank),
    )
    y = np.sign(A @ (B @ rng.standard_normal(d)) + 0.1 * rng.standard_normal(n))
    Q, R = np.linalg.qr(B.T)
    Z = A @ R.T
    w = (
        np.linalg.solve(Z.T @ Z + np.eye(rank), Z.T @ y)
        if loss == "squared"
        else logistic_newton(Z, y)
    )
    return Data(X=A @ B, y=y, loss=loss, best=Q @ w)


def passes(_, said, seed, multiple=None):
    """The passes over X of `drp` for each rank, with the basis, or with a sketch of a multiple of
    the rank."""
    counts = []
    for rank in said["at"]:
        data = decaying(n=2000, d=5000, rank=rank)
        how = {} if multiple is None else {"n_projections": multiple * rank}
        counts.append(
            ours(data, "drp", seed=seed, n_alpha=1.0, fit_intercept=False, **how).info.n_passes
        )
    return {"at": said["at"], "passes": counts}


def logistic_newton(Z, y):
    w = np.zeros(Z.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(y * (Z @ w)))
        w = w - np.linalg.solve(np.eye(len(w)) + (Z.T * (p * (1 - p))) @ Z, w - Z.T @ (y * p))
    return w


def counted(data, **options):
    """Of a fit, how often it asked all rows, as its encoder shows them."""
    made, encoded = [], Rows.encoded

    def recorded(rows, encoder, is_asked_often=False):
        shown = encoded(rows, encoder, is_asked_often)
        if is_asked_often:
            made.append(shown)
        return shown

    with patch.object(Rows, "encoded", recorded):
        model = ours(data, **options)
    return {
        "passes": sum(rows.n_passes for rows in {id(rows): rows for rows in made}.values()),
        "terms": len(model.support),
    }


def text(source):
    """CSR, and the solutions of a path over n alpha."""
    data = split(source, 0, share=1.0, loss="logistic")
    data.best = text_path(data, tol=1e-10, seed=1)
    return data


def text_path(data, **options):
    alphas = np.array(N_ALPHAS) / len(data.y)
    return [
        model.coef
        for model in ours(data, "drp_path", alphas=alphas, fit_intercept=False, **options)
    ]


def text_sklearn(data, tols, solver):
    make = "of('sklearn.linear_model:LogisticRegression')(fit_intercept=False, max_iter=10**5, {})"
    each = [
        f"C={1 / n_alpha}, tol={tol}, solver='{solver}'"
        for n_alpha, tol in zip(N_ALPHAS, tols, strict=True)
    ]
    return [np.ravel(estimator(data, make.format(options)).fit.coef_) for options in each]


def text_errors(data, result):
    return {
        f"error at n alpha={a}": relative(w, best)
        for a, w, best in zip(N_ALPHAS, result, data.best, strict=True)
    }


def problem(rank=10, n=400, d=2000):
    """Of the paper's theorems: X of equal singular values, labels, and a basis of the rows."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (n, d))
    f = U @ rng.standard_normal(rank) * n**0.5
    return Data(X=10 * U @ V.T, y=np.sign(f + 0.3 * rng.standard_normal(n)), V=V, loss="logistic")


def recovery(_, said, seed, **options):
    """`recovered` for each value `at` of what the set goes `along`."""
    ways = [options | {said["along"]: at} for at in said["at"]]
    errors, bounds = zip(*(recovered(seed, **way) for way in ways), strict=True)
    return {"at": said["at"], "error": errors, "bound": bounds}


def recovered(seed, m=200, T=1, **of):
    """The error of T iterations (of 0: of the naive solution), and the bound (eps / (1 - eps))^T,
    of this draw of R."""
    data, options = problem(**of), {"seed": seed, "n_alpha": 1.0, "fit_intercept": False}
    best, how = ours(data, "drp", tol=1e-9, **options), {"n_projections": m} | options
    model = (
        ours(data, "drp", accelerate=False, n_iter=T, **how)
        if T
        else ours(data, "random_projection", **how)
    )
    A = make_projection("gaussian", len(data.V), m, np.random.default_rng(seed)).project(data.V.T)
    eps = np.linalg.norm(A @ A.T - np.eye(len(A)), 2)
    return relative(model.coef, best.coef), (eps / (1 - eps)) ** T if eps < 1 and T else None
