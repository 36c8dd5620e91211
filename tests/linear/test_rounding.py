"""The error bound of `drp` against solutions in 40 digits, and data that rounding makes hard.

Hard data are columns of very different sizes, far from 0 or very large, and penalties far below
what float64 can resolve.
"""

import warnings
from functools import partial

import mpmath
import numpy as np
import pytest
from numpy.linalg import norm
from scipy.sparse import csr_array

import sparserf as srf

drp = partial(srf.drp, scale=None)  # columns as hard as they are
LOSSES = ("squared", "squared_hinge", "smoothed_hinge", "logistic")
each_loss = pytest.mark.parametrize("loss", LOSSES)
nightly = pytest.mark.nightly
# Five of the paper's iterations. They end after the number that is given, and five do for these
# tests.
A_FEW = {"accelerate": False, "n_iter": 5}
each_layout = pytest.mark.parametrize("layout", [np.asarray, csr_array])


def quietly(*args, **options):
    """Fit by drp, which may warn that its bound is above the tolerance, and of nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", srf.ConvergenceWarning)
        return drp(*args, **options)


# The bound beside solutions in 40 digits

exactly = np.vectorize(mpmath.mpf, otypes=[object])


def solve(A, b):
    """Solve A x = b by Gaussian elimination with pivoting, in the precision of mpmath."""
    rows, n = [[*row, right] for row, right in zip(A, b, strict=True)], len(b)
    for i in range(n):
        best = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * c for a, c in zip(rows[k], rows[i], strict=True)]
    x = [mpmath.mpf(0)] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
    return np.array(x, object)


def slope_and_curvature(loss, z, y):
    """Compute the first and second derivatives of the loss in each margin, in the precision of
    mpmath."""
    zero, one = mpmath.mpf(0), mpmath.mpf(1)
    if loss == "squared":
        return z - y, 0 * z + one
    if loss == "logistic":
        p = np.array([1 / (1 + mpmath.exp(margin)) for margin in y * z], object)
        return -y * p, p * (1 - p)
    short = [1 - margin for margin in y * z]
    if loss == "squared_hinge":
        return -2 * y * np.array([max(a, zero) for a in short], object), np.array(
            [2 * one * (a > 0) for a in short], object
        )
    return -y * np.array([min(max(a, zero), one) for a in short], object), np.array(
        [one * (0 < a <= 1) for a in short], object
    )


def optimum(X, y, alpha, loss, fit_intercept, s, w, b):
    """Find w* by Newton's method from (w, b); return None where it does not settle, as on a
    kink."""
    n, d = X.shape
    Z = exactly(np.hstack([X, np.ones((n, 1))]) if fit_intercept else X)
    P = exactly(np.append(np.full(d, alpha), 0.0) if fit_intercept else np.full(d, alpha))
    y, s, t = exactly(y), exactly(s), exactly(np.append(w, b) if fit_intercept else w)
    s = s * n / s.sum()
    for _ in range(40):
        v, h = (each * s / n for each in slope_and_curvature(loss, Z @ t, y))
        g = Z.T @ v + P * t
        if mpmath.sqrt(g @ g) < mpmath.mpf(10) ** -30 * (1 + mpmath.sqrt(t @ t)):
            return t[:d]
        H = (Z.T * h) @ Z + np.diag(P)
        H[-1, -1] += mpmath.mpf(10) ** -25  # curvatures of all rows may be zero
        t = t - solve(H, g)
    return None


def hard_problem(rng, loss):
    """Draw (X, y): columns may differ in size, be far from 0 or equal, and the noise may be
    none."""
    n, d = int(rng.integers(5, 30)), int(rng.integers(1, 7))
    X = rng.standard_normal((n, d))
    if rng.random() < 0.4:
        X *= np.geomspace(10.0 ** -rng.integers(0, 6), 10.0 ** rng.integers(0, 6), d)
    if rng.random() < 0.3:
        X += 10.0 ** rng.integers(0, 6)
    if rng.random() < 0.2:
        X[:, -1] = X[:, 0]
    f = (X - X.mean(axis=0)) @ rng.standard_normal(d)
    y = f / f.std() + rng.choice([0, 0.1, 1.0]) * rng.standard_normal(n)
    X = X.astype(rng.choice([np.float32, np.float64]))
    return X, y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)


@pytest.mark.slow
@each_loss
@pytest.mark.parametrize("n_seeds", [20, pytest.param(100, marks=nightly)])
def test_the_bound_holds_in_40_digits(loss, n_seeds):
    """At tolerances down to 1e-15 the error is rounding, which the bound must include."""
    n_checked = n_tight = 0
    with mpmath.workdps(40):
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            X, y = hard_problem(rng, loss)
            alpha, tol, m = (
                10.0 ** rng.uniform(-7, 1),
                rng.choice([1e-3, 1e-6, 1e-15]),
                rng.choice([0, 1, 3]),
            )
            fit_intercept, s = bool(rng.random() < 0.5), rng.choice([0.5, 1, 2], len(y))
            layout = csr_array if rng.random() < 0.3 else np.asarray
            how = {
                "alpha": alpha,
                "loss": loss,
                "fit_intercept": fit_intercept,
                "sample_weight": s,
                "tol": tol,
                "rng": 0,
            }
            model = quietly(layout(X), y, n_projections=int(m) or None, **how)
            if model.info.error_bound is None or model.info.error_bound > 1:
                continue
            w = optimum(
                X.astype(np.float64), y, alpha, loss, fit_intercept, s, model.coef, model.intercept
            )
            if w is None:
                continue
            e = exactly(model.coef) - w
            assert mpmath.sqrt(e @ e) <= model.info.error_bound * mpmath.sqrt(w @ w), (
                seed,
                model.info,
            )
            n_checked, n_tight = n_checked + 1, n_tight + (model.info.error_bound < 1e-9)
    assert n_checked >= 0.6 * n_seeds
    assert n_tight >= 0.2 * n_seeds


# Columns of any size


@each_loss
@pytest.mark.parametrize("alpha", [1.0, pytest.param(1e-2, marks=nightly), 1e-4])
@pytest.mark.parametrize(("n", "d"), [(70, 15), (15, 70), (40, 40)])
@pytest.mark.slow
def test_converges_for_any_m_and_columns_of_any_size(loss, alpha, n, d):
    rng = np.random.default_rng(n)
    # With larger sizes rounding would decide on which side of a kink of a hinge a row lies.
    for size in (1e2, 1e5) if loss in ("squared", "logistic") else (1e2,):
        X = rng.standard_normal((n, d)) * rng.permutation(np.geomspace(1 / size, size, d))
        y = rng.standard_normal(n)
        y = y if loss == "squared" else np.sign(y)
        models = [
            quietly(X, y, alpha=alpha, loss=loss, n_projections=m, rng=1, tol=1e-5)
            for m in (None, 1, 8, d)
        ]
        for model in models:
            assert model.info.converged, (size, model.info)
            assert norm(model.coef - models[0].coef) <= 2.1e-5 * norm(models[0].coef)


# Shift and scale


@each_layout
@each_loss
@pytest.mark.parametrize(("n", "d"), [(200, 8), (60, 300)])
@pytest.mark.parametrize("shift", [1e3, 1e6, 1e8, 1e10])
def test_a_shift_changes_what_rounding_changes(layout, loss, n, d, shift):
    """Shifted rows, once rounded, are shifted back exactly: the two fits may differ by rounding
    within the fit alone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) + shift * rng.choice([-1.0, 1.0], d)
    centred = X - np.round(X.mean(axis=0))
    y = centred[:, :3] @ np.ones(3) + 0.5 * rng.standard_normal(n)
    y = y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    how = {"alpha": 0.01, "loss": loss, "tol": 1e-6, "rng": 0}
    model, plain = quietly(layout(X), y, **how), quietly(centred, y, **how)
    assert plain.info.converged
    assert norm(model.coef - plain.coef) <= (1e-5 + 4e-13 * shift) * norm(plain.coef)
    moved = model.decision_function(X) - plain.decision_function(centred)
    assert np.abs(moved).max() <= 1e-4 + 1e-14 * shift * d
    if shift <= 1e3:
        assert model.info.converged


@each_layout
@pytest.mark.parametrize("exponent", [-140, 126])
@pytest.mark.parametrize("method", ["drp", "drp of the paper"])
def test_float32_at_the_ends_of_its_range(layout, exponent, method):
    """Entries k / 8 times a power of two fit into float32, sums of them do not: the model is the
    same in other units."""
    rng = np.random.default_rng(0)
    X = (rng.integers(-16, 17, (60, 20)) / 8).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(60)
    options = {
        "drp": {"n_projections": 10},
        "drp of the paper": {"n_projections": 2000, "accelerate": False},
    }
    models = [
        drp(layout(np.ldexp(X, k)), y, alpha=0.1 * 4.0**k, rng=0, **options[method])
        for k in (0, exponent)
    ]
    np.testing.assert_allclose(models[1].coef * 2.0**exponent, models[0].coef, rtol=1e-9)


@each_layout
def test_a_shift_of_float32(layout):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((200, 8)) + 1e4).astype(np.float32)
    centred = X.astype(np.float64) - 1e4  # exact
    y = centred[:, 0] + 0.1 * rng.standard_normal(200)
    model, plain = quietly(layout(X), y, alpha=1e-3, rng=0), quietly(centred, y, alpha=1e-3, rng=0)
    assert norm(model.coef - plain.coef) <= 1e-5 * norm(plain.coef)


@each_loss
@pytest.mark.parametrize(("n", "d"), [(80, 5), (80, 300)])
@pytest.mark.parametrize("scale", [1e9, 1e18, 1e100])
def test_penalties_below_rounding_end(loss, n, d, scale):
    """A fit finds the least-squares solution or separates the classes, even where it cannot bound
    its distance to w*."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = X[:, 0] + 0.1 * rng.standard_normal(n)
    y = y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    model = quietly(scale * X, y, alpha=1e-2, loss=loss, rng=0)
    assert model.info.n_conjugate <= 20_000
    if loss == "squared":
        best = (
            np.hstack([X, np.ones((n, 1))])
            @ np.linalg.lstsq(np.hstack([X, np.ones((n, 1))]), y, rcond=None)[0]
        )
        assert norm(model.decision_function(scale * X) - best) <= 1e-5 * norm(y)
    else:
        assert np.mean(model.predict(scale * X) == y) >= (0.9 if d < n else 1.0)


@each_layout
@each_loss
@pytest.mark.parametrize("size", [1e-308, 1e-200, pytest.param(1e-30, marks=nightly), 1e150])
@pytest.mark.parametrize("alpha", [1e-8, pytest.param(1.0, marks=nightly), 1e8])
def test_extreme_sizes_leak_no_warning(layout, loss, size, alpha):
    rng = np.random.default_rng(0)
    X = size * rng.uniform(-1, 1, (30, 4))
    for large in (1e-308, 1.0, 1e308) if loss == "squared" else (1.0,):
        y = large * rng.uniform(-1, 1, 30)
        y = y if loss == "squared" else np.sign(y)
        for how in ({}, {"n_projections": 2}, {"n_projections": 8} | A_FEW):
            try:
                model = quietly(layout(X), y, alpha=alpha, loss=loss, rng=0, **how)
            except ValueError:  # X must be of moderate size
                assert size == 1e150
                continue
            assert np.isfinite(model.coef).all() and np.isfinite(model.intercept)


# Fits that must end


def hostile(kind):
    """Draw (X, f) without noise: more columns than rows, nearly equal columns, or columns of very
    different sizes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 1000)) if kind == "wide" else rng.standard_normal((2000, 20))
    if kind == "collinear":
        X[:, 10:] = X[:, :10] + 1e-9 * rng.standard_normal((2000, 10))
    if kind == "sizes":
        X *= np.geomspace(1e-6, 1e6, 20)
    return X, X[:, :3] @ np.ones(3)


HOW = [
    {},
    {"n_projections": 3},
    {"n_projections": 50} | A_FEW,
    pytest.param({"n_projections": 50, "accelerate": False}, marks=nightly),
]


@each_loss
@pytest.mark.parametrize("kind", ["wide", "collinear", "sizes"])
@pytest.mark.parametrize("how", HOW)
def test_hostile_fits_end(kind, loss, how):
    """Without noise, with separable classes and alpha = 1e-8 every fit ends, and warns where it has
    not converged."""
    X, y = hostile(kind)
    y = y if loss == "squared" else np.sign(y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        info = drp(X, y, alpha=1e-8, loss=loss, rng=0, **how).info
    assert info.converged == (not caught)
    bound = "no bound" if info.error_bound is None else f"{info.error_bound:.2g}"
    assert all(bound in str(one.message) or "diverges" in str(one.message) for one in caught)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.slow
def test_a_callback_is_asked_within_long_iterations(how, monkeypatch):
    from sparserf._base import progress

    X, y = hostile("wide")
    told = []
    whole = quietly(X, np.sign(y), alpha=1e-8, loss="logistic", rng=0, callback=told.append, **how)
    monkeypatch.setattr(progress, "NUMBERS_BETWEEN_CALLS", X.size)
    often = []
    again = quietly(X, np.sign(y), alpha=1e-8, loss="logistic", rng=0, callback=often.append, **how)
    assert np.array_equal(again.coef, whole.coef) and len(often) > len(told)
    cut = quietly(
        X, np.sign(y), alpha=1e-8, loss="logistic", rng=0, callback=lambda info: True, **how
    )
    assert not cut.info.converged and cut.info.n_iter <= 1 and np.isfinite(cut.coef).all()
