"""Fits with an l1 penalty on the same features, in CPU time, beside skglm: python tools/tables/losses_speed.py

Cosine features of standard normal inputs, one thread. Every solver is run at ever smaller tolerances, and its time is that of
the first run whose objective is within 1e-5 of the least that any reached. skglm compiles itself in a fit before, not counted,
and gets the matrix of features; `sparse_rf` makes them as it goes.
"""

import time
import warnings

import numpy as np
from skglm import datafits, penalties, solvers

import sparserf as srf

TOLERANCES = (1e-3, 1e-5, 1e-6)
NEAR = 1e-5
DELTA = 0.5


def problem(loss, n, k, rng):
    X = rng.standard_normal((n, 8))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    y = rng.poisson(3 * np.exp(f)).astype(float) if loss == "poisson" else f + 0.3 * rng.standard_t(1.5, n)
    features = srf.Fourier("gaussian", gamma=0.1).draw(k, 8, rng)
    return X, y, features


def objective(loss, phi, y, alpha, w, b):
    of = srf.losses.Poisson() if loss == "poisson" else srf.losses.Huber(DELTA)
    return np.mean(of.value(phi @ w + b, y)) + alpha * np.abs(w).sum()


def ours(loss, X, y, features, alpha, tol):
    of = "poisson" if loss == "poisson" else srf.losses.Huber(DELTA)
    start = time.process_time()
    model = srf.sparse_rf(X, y, features=features, loss=of, alpha=alpha, exact=True, tol=tol, scale=None)
    taken = time.process_time() - start
    w = np.zeros(len(features))
    w[model.support] = model.coef
    return taken, w, model.intercept


def theirs(loss, phi, y, alpha, tol):
    fit = datafits.Poisson() if loss == "poisson" else datafits.Huber(DELTA)
    Solver = solvers.ProxNewton if loss == "poisson" else solvers.AndersonCD
    start = time.process_time()
    solver = Solver(tol=tol, max_iter=50, fit_intercept=True)
    w, *_ = solver.solve(phi, y, fit, penalties.L1(alpha))
    return time.process_time() - start, w[:-1], w[-1]


def least_time(runs, least):
    return next((taken for taken, value in runs if value <= least * (1 + NEAR)), np.nan)


def main():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    print("| loss | rows | features | alpha / largest | terms | sparse_rf, s | skglm, s | times |")
    print("|---|---|---|---|---|---|---|---|")
    for loss in ("poisson", "huber"):
        for n, k in ((5000, 500), (5000, 2000)):
            X, y, features = problem(loss, n, k, rng)
            phi = np.asfortranarray(srf_matrix(features, X))
            of = srf.losses.Poisson() if loss == "poisson" else srf.losses.Huber(DELTA)
            start = np.log(y.mean()) if loss == "poisson" else np.median(y)
            largest = np.abs(phi.T @ of.derivative(np.full(n, start), y)).max() / n
            theirs(loss, np.asfortranarray(phi[:300]), y[:300], largest / 2, 0.1)
            for share in (0.1, 0.01):
                alpha = share * largest
                both = [], []
                for tol in TOLERANCES:
                    taken, w, b = ours(loss, X, y, features, alpha, tol)
                    both[0].append((taken, objective(loss, phi, y, alpha, w, b)))
                    terms = np.count_nonzero(w)
                    if both[1] and len(both[1]) > 2 and both[1][-1][1] <= both[0][-1][1] * (1 + NEAR / 10):
                        continue
                    taken, w, b = theirs(loss, phi, y, alpha, tol * 1e-1)
                    both[1].append((taken, objective(loss, phi, y, alpha, w, b)))
                least = min(value for runs in both for _, value in runs)
                a, b = (least_time(runs, least) for runs in both)
                print(f"| {loss} | {n} | {k} | {share} | {terms} | {a:.2f} | {b:.2f} | {b / a:.1f} |", flush=True)


def srf_matrix(features, X):
    from sparserf.rows import as_rows

    return as_rows(X, 1).transform(features)


if __name__ == "__main__":
    main()
