"""Benchmarks of kernels, of solvers that are given the same features, of prediction, and of where rows live."""

import tempfile
import time
from pathlib import Path
from types import SimpleNamespace as Data

import numpy as np
from threadpoolctl import threadpool_limits

import sparserf as srf
from experiments.data import WORKERS, few, value, with_more
from experiments.fits import ours
from sparserf._core.rows import RowSlice
from sparserf.features import NeuronBlock
from sparserf.rows import as_rows

SIDE = 256


def least_seconds(data, _):
    """Of a correlation: of each value a cosine of one input, of each further input a product."""
    (n, d), (value, product) = data.X.shape, rates()
    limit = n * len(data.features) * (value + (d - 1) * product) / WORKERS
    return {"limit_s": limit, "value_ns": value * 1e9, "product_ns": product * 1e9}


def rates():
    """Seconds of a value (a cosine of one input, and its part of the sum), and of one more product, each at its best.

    On one thread, in cache, the least of many. The product: as in NumPy's GEMM, or as in the kernel, whichever is faster.
    """
    rng = np.random.default_rng(0)

    def correlation(activation, d):
        panels = NeuronBlock(activation, 1.0, rng.standard_normal((SIDE, d)), np.zeros(SIDE)).packed(np.dtype(np.float64), d)
        X, v, out = rng.standard_normal((SIDE, d)), rng.standard_normal((1, SIDE)), np.zeros((1, SIDE))
        return lambda: panels.correlate(RowSlice(X), v, out)

    A, B = rng.standard_normal((2, SIDE, SIDE))
    runs = [correlation("cos", 1), correlation("identity", 64), correlation("identity", 128), lambda: A @ B]
    with threadpool_limits(1):
        value, half, whole, gemm = np.min([[seconds(run) for run in runs] for _ in range(200)], axis=0) / SIDE**2
    return value, min((whole - half) / 64, gemm / SIDE)


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


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
    return {"objective": objective, "relative_gap": 1 + (u @ u / 2 + u @ y) / n / objective, "terms": len(support)}


def objective(data, result, n_alpha):
    """Of a classifier without an intercept."""
    support, coef, _ = sparse(result)
    margin = data.y * as_rows(data.X, WORKERS).apply(data.features.take(support), coef)
    loss = np.logaddexp(0, -margin) if data.loss == "logistic" else np.maximum(0, 1 - margin) ** 2
    return {"objective": loss.mean() + n_alpha / len(data.y) * np.abs(coef).sum(), "terms": len(support)}


def model_of_1000():
    """A model of 1,000 of 10,000 features, and what a linear model of all of them would be."""
    data = with_more(Data(X=np.random.default_rng(0).standard_normal((few(100_000), 21))), n_components=10_000, gamma=0.05)
    data.w = np.random.default_rng(1).standard_normal(10_000)
    n = min(1000, len(data.features))
    features, info = data.features.take(np.arange(n)), srf.FitInfo(1, True, (0.0,), 0.0, 10_000, n, 1.0)
    data.model = srf.SparseModel(data.w[:n], 0.0, np.arange(n), features, "squared", None, info)
    return data


# --- where rows live ---------------------------------------------------------------------------------------------


def on_disk(f, n, d):
    """A float32 matrix in a file, which goes with the scratch directory of the process, and a noisy target."""
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
    if place == "dask":
        return on_cluster(data, options)
    start = time.perf_counter()
    if place == "disk":
        X = srf.Chunks(np.load(data.path, mmap_mode="r"))
    elif place == "jax":
        import jax.numpy as jnp

        X = jnp.asarray(data.X)
    else:
        X = np.load(data.path) if hasattr(data, "path") else data.X
    return ours(Data(X=X, y=data.y, loss="squared"), **options), time.perf_counter() - start


def on_cluster(data, options):
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    how = {"n_workers": WORKERS, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster):
        there = da.from_array(data.X, chunks=(max(1, len(data.X) // 8), data.X.shape[1])).persist()
        wait(there)
        start = time.perf_counter()
        return ours(Data(X=there, y=data.y, loss="squared"), **options), time.perf_counter() - start
