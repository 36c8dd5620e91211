"""The cases of `harfe`."""

from functools import partial

import numpy as np
from case import CASES, WORKERS, Case

import sparserf as srf
from sparserf.baselines import srfe

# --- against the algorithm as the reference writes it ------------------------------------------------------------


def table_1_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 5))
    return X, 1 / np.sqrt(1 + (X**2).sum(axis=1)), srf.RandomNeurons("sin", order=3).draw(10_000, 5, rng=0)


def ours_table_1(data, backtracking):
    X, y, features = data
    start = "greedy" if backtracking else "zero"
    return srf.harfe(X, y, features=features, n_nonzero_coefs=500, backtracking=backtracking, start=start, tol=0,
                     fit_intercept=False, workers=WORKERS)  # fmt: skip


def reference(data):
    """N x N Gram matrix, pseudo-inverse, 50 iterations, unit columns, lam = 1e-4: in NumPy as the reference does it."""
    X, y, features = data
    block = features.blocks[0]
    W = np.zeros((len(features), X.shape[1]))
    np.put_along_axis(W, block.inputs, block.weights, axis=1)
    A = np.sin(X @ W.T + block.offset)
    A /= np.linalg.norm(A, axis=0)
    B, Ay, c = A.T @ A, A.T @ y, np.zeros(A.shape[1])
    for _ in range(50):
        c_tilde = c + 0.1 * (Ay - B @ c - 1e-4 * c)
        S = np.argsort(-np.abs(c_tilde))[:500]
        c = np.zeros(A.shape[1])
        c[S] = np.linalg.pinv(B[np.ix_(S, S)] + 1e-4 * np.eye(500), rcond=1e-15) @ Ay[S]
    return A, c


def describe_table_1(data, result):
    _, y, _ = data
    if isinstance(result, tuple):
        A, c = result
        return {"objective": ((A @ c - y) ** 2).mean() / 2 + 1e-4 * (c @ c) / 1000, "terms": int(np.count_nonzero(c))}
    return {"objective": result.info.objective[-1], "terms": len(result.support), "iterations": result.info.n_iter}


CASES["harfe"] = Case(
    "500 × 5, 10,000 features of order 3, s = 500, the same features and lambda, everything counted. The first goes the "
    "paper's way, fixed step from zero, and stops where a support comes back; the second is the default.",
    table_1_data,
    {
        "harfe, plain": partial(ours_table_1, backtracking=False),
        "harfe": partial(ours_table_1, backtracking=True),
        "NumPy, 50 iterations": reference,
    },
    describe_table_1,
)


# --- size --------------------------------------------------------------------------------------------------------


def sized_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0] * X[:, 1]) + np.cos(X[:, 2]) + X[:, 3] + 0.1 * rng.standard_normal(n)


def ours_sized(data, n_components, s):
    return srf.harfe(*data, n_components=n_components, n_nonzero_coefs=s, order=2, alpha=1e-3, max_iter=50, rng=0,
                     workers=WORKERS)  # fmt: skip


def least(n, n_components, passes):
    """Seconds of so many passes at 1 ns a feature value."""
    return n * n_components * passes * 1e-9 / WORKERS


def describe_sized(data, model):
    n = len(data[1])
    share = np.mean((model.predict(data[0], WORKERS) - data[1]) ** 2) / data[1].var()
    return {
        "terms": len(model.support),
        "iterations": model.info.n_iter,
        "converged": model.info.converged,
        "pass_s": least(n, model.info.n_drawn, 1),
        "mse_over_variance": share,
    }


for name, n, d, n_components, s in (("airfoil", 750, 41, 80_000, 5_000), ("scale", 200_000, 20, 20_000, 1_000)):
    CASES[f"harfe-{name}"] = Case(
        f"{n:,} × {d} ({n * d * 8 // 10**6} MB), {n_components:,} features of order 2, s = {s:,}, the default settings. "
        "`pass_s`: one pass over the dictionary at 1 ns a feature value.",
        partial(sized_data, n, d),
        {"harfe": partial(ours_sized, n_components=n_components, s=s)},
        describe_sized,
        repeat=1,
    )


# --- Figure 3 ----------------------------------------------------------------------------------------------------


def figure_3_data(m, d):
    X, y = sized_data(m, d)
    return X, y, srf.RandomNeurons("sin", order=2).draw(10_000, d, rng=0)


for m, d in ((250, 50), (500, 100), (1000, 200)):
    CASES[f"harfe-srfe-{m}-{d}"] = Case(
        f"{m} × {d}, the same 10,000 features of order 2: harfe with s = 0.15 m as the paper runs it, and by default; "
        "basis pursuit denoising to a residual of 1 %, as in the paper's Figure 3.",
        partial(figure_3_data, m, d),
        {
            "harfe": lambda data: srf.harfe(data[0], data[1], features=data[2], workers=WORKERS),
            "harfe, plain": lambda data: srf.harfe(
                data[0], data[1], features=data[2], backtracking=False, start="zero", workers=WORKERS
            ),
            "srfe": lambda data: srfe(data[0], data[1], features=data[2], workers=WORKERS),
        },
        lambda data, model: {"terms": len(model.support)},
    )
