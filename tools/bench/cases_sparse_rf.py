"""The cases of the kernels, of regression by `sparse_rf` and of prediction."""

import time
import warnings
from functools import partial

import numpy as np
from case import CASES, WORKERS, Case, data_set, sampler
from threadpoolctl import threadpool_limits

import sparserf as srf
from sparserf._core.rows import RowSlice
from sparserf.features import NeuronBlock
from sparserf.rows import as_rows

# --- kernels -----------------------------------------------------------------------------------------------------


def kernel_data(d):
    rng = np.random.default_rng(0)
    theirs, ours = sampler(d, 2048, 0.5 / d)
    return rng.standard_normal((40_000, d)), rng.standard_normal(40_000), theirs, ours


def numpy_correlate(data):
    X, r, _, features = data
    block = features.blocks[0]
    return r @ np.cos(X @ block.weights.T + block.offset)


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
    best = np.full(len(runs), np.inf)
    with threadpool_limits(1):
        for _ in range(200):
            for i, run in enumerate(runs):
                start = time.perf_counter()
                run()
                best[i] = min(best[i], time.perf_counter() - start)
    value, half, whole, gemm = best / SIDE**2
    return value, min((whole - half) / 64, gemm / SIDE)


SIDE = 256


def describe_correlate(data, _):
    (n, d), (value, product) = data[0].shape, rates()
    return {"limit_s": n * 2048 * (value + (d - 1) * product) / WORKERS, "value_ns": value * 1e9, "product_ns": product * 1e9}


for d in (8, 21, 90):
    CASES[f"transform-d{d}"] = Case(
        f"40,000 × {d}, float64, 2,048 features, {WORKERS} threads: the whole feature matrix.",
        partial(kernel_data, d),
        {
            "FeatureSet.transform": lambda data: data[3].transform(data[0], workers=WORKERS),
            "RBFSampler.transform": lambda data: data[2].transform(data[0]),
        },
    )
    CASES[f"correlate-d{d}"] = Case(
        f"40,000 × {d}, float64, 2,048 features, {WORKERS} threads: Φ'r without Φ. `limit_s` is the least time: of each "
        "value a cosine of one input (`value_ns`), of each further input a product (`product_ns`); both measured in cache, "
        f"the product in our kernel or in NumPy's GEMM, whichever is faster, on {WORKERS} threads without loss.",
        partial(kernel_data, d),
        {
            "Rows.correlate": lambda data: as_rows(data[0], WORKERS).correlate(data[3], data[1]),
            "r @ np.cos(X @ W.T + b)": numpy_correlate,
        },
        describe_correlate,
    )


# --- regression --------------------------------------------------------------------------------------------------


def cpu_data():
    X, y, _ = data_set("cpu_act")
    order = np.random.default_rng(0).permutation(len(X))[:6554]
    X, y = X[order], y[order]
    y = (y - y.min()) / (y.max() - y.min())
    theirs, ours = sampler(21, 10_000, 0.05)
    return (X - X.mean(0)) / X.std(0), y, theirs, ours


def friedman_data():
    """Friedman's function among 21 inputs, standardised; of these features about 1,190 are in the solution."""
    rng = np.random.default_rng(0)
    X = rng.random((6554, 21))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y = y + rng.standard_normal(len(y))
    theirs, ours = sampler(21, 10_000, 0.025)
    return (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std(), theirs, ours


def ours_cpu(data, exact):
    X, y, _, features = data
    model = srf.sparse_rf(X, y, alpha=10 / len(X), features=features, exact=exact, workers=WORKERS)
    return model.support, model.coef, model.intercept


def lasso(data, solver):
    """RBFSampler, then a Lasso; its features are 1/sqrt(D) of ours, and so is alpha."""
    X, y, theirs, _ = data
    scale = np.sqrt(10_000)
    fit = solver(10 / len(X) / scale)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit.fit(theirs.transform(X), y)
    support = np.flatnonzero(fit.coef_)
    return support, fit.coef_[support] / scale, fit.intercept_


def celer_lasso(alpha, tol):
    from celer import Lasso

    return Lasso(alpha=alpha, tol=tol)


# celer stops at a gap of tol * |y|^2 / n; these are where its gap is 1e-4 of the objective: of cpu_act, of Friedman's function.
CELER_TOL, CELER_TOL_FRIEDMAN = 8e-6, 3e-6


def sklearn_lasso(alpha):
    from sklearn.linear_model import Lasso

    return Lasso(alpha=alpha, tol=1e-4, max_iter=1000)


def describe_lasso(data, result):
    """Objective and gap over all 10,000 features, worked out plainly."""
    X, y, _, features = data
    support, coef, b = result
    n, alpha = len(X), 10 / len(X)
    r = as_rows(X).apply(features.take(support), coef) + b - y
    b -= r.mean()
    r -= r.mean()
    objective = r @ r / (2 * n) + alpha * np.abs(coef).sum()
    largest = np.abs(as_rows(X, WORKERS).correlate(features, r)).max() / n
    u = r * min(1.0, alpha / largest)
    dual = -(u @ u / 2 + u @ y) / n
    return {"objective": objective, "relative_gap": (objective - dual) / objective, "terms": len(support)}


for name, load, about, tol in (
    ("lasso", cpu_data, "cpu_act", CELER_TOL),
    ("lasso-1200", friedman_data, "Friedman's function, about 1,190 terms", CELER_TOL_FRIEDMAN),
):
    CASES[name] = Case(
        f"{about}, 6,554 × 21, the same 10,000 Gaussian features, n·alpha = 10, everything counted. Relative gap over all "
        "features; Algorithm 1 does not aim at it.",
        load,
        {
            "sparse_rf(exact=True)": partial(ours_cpu, exact=True),
            "sparse_rf": partial(ours_cpu, exact=False),
            "RBFSampler + celer": partial(lasso, solver=partial(celer_lasso, tol=tol)),
            "RBFSampler + Lasso": partial(lasso, solver=sklearn_lasso),
        },
        describe_lasso,
    )


# --- prediction and scale ----------------------------------------------------------------------------------------


def predict_data():
    X = np.random.default_rng(0).standard_normal((100_000, 21))
    theirs, ours = sampler(21, 10_000, 0.05)
    coef = np.random.default_rng(1).standard_normal(1000)
    info = srf.FitInfo(1, True, (0.0,), 0.0, 10_000, 1000, 1.0)
    model = srf.SparseModel(coef, 0.0, np.arange(1000), ours.take(np.arange(1000)), "squared", None, info)
    return X, model, theirs


def pipeline_predict(data):
    X, _, theirs = data
    w = np.random.default_rng(1).standard_normal(10_000)
    return np.concatenate([theirs.transform(X[i : i + 5000]) @ w for i in range(0, len(X), 5000)])


CASES["predict"] = Case(
    "100,000 × 21: a model of 1,000 terms, against the pipeline it replaces, 10,000 RBFSampler features and a linear "
    "model, 5,000 rows at a time.",
    predict_data,
    {"SparseModel.predict": lambda data: data[1].predict(data[0], workers=WORKERS), "pipeline": pipeline_predict},
)


def year_data(n):
    """Of YearPredictionMSD's size and type; a smooth function of projections, and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 90), dtype=np.float32)
    W = rng.standard_normal((90, 20)).astype(np.float32) / np.sqrt(90)
    y = np.sin(2 * (X @ W)).sum(axis=1).astype(np.float64) + 0.5 * rng.standard_normal(n)
    return X, y


def ours_year(data, alpha):
    X, y = data
    return srf.sparse_rf(X, y, features="gaussian", alpha=alpha, gamma=0.006, workers=WORKERS)


for n, alpha in ((50_000, 0.0120), (115_000, 0.0091), (231_000, 0.0073), (463_715, 0.0066)):
    CASES[f"scale-{n}"] = Case(
        f"{n:,} × 90 in float32 ({n * 360 // 10**6} MB), synthetic, 10,000 Gaussian features, Algorithm 1, alpha = {alpha}, "
        "which leaves about 1,000 terms.",
        partial(year_data, n),
        {"sparse_rf": partial(ours_year, alpha=alpha)},
        lambda data, model: {"terms": len(model.features), "relative_gap": model.info.dual_gap / model.info.objective[-1]},
        repeat=1,
    )
