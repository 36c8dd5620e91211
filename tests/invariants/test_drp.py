"""Dual random projection (Zhang et al. 2013): the objective never rises, the certificate is a
bound, w* is recovered, and forms of one problem agree.

The matrix R of the paper's iteration is drawn again from the seed, and its error measured: eps =
||B' R R' B / m - I|| for an orthonormal basis B of the row space of X. With it, the bounds hold for
each draw, not for most. The paper's lambda is n alpha, and its X has a row in each column.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.linalg import norm
from scipy.sparse import csr_array

from sparserf import Linear, drp
from sparserf.features import make_projection

from ..conftest import convergence_ignored, examples
from .forms import SINGLE, each_form, permuted, permuted_columns, random_rows
from .problems import BETA, CONJUGATE, LINEAR_LOSSES, Problem, low_rank, seeds

RANK, D = 5, 150
each_loss = pytest.mark.parametrize("loss", LINEAR_LOSSES)
each_accelerate = pytest.mark.parametrize("accelerate", [True, False])
each_projection = pytest.mark.parametrize("projection", ["gaussian", "sparse_sign", "srht"])
SMALL = 1e-7  # relative to |w*|: above the accuracy of the projected problem
penalties = st.sampled_from([1.0, 0.1, 1e-2, 1e-3])


def fit(X, y, alpha, loss="squared", **options):
    """Fit to a bound of 1e-8 on the error, without intercept, unless other options are given."""
    options = {"scale": None, "fit_intercept": False, "tol": 1e-8, "rng": 1, **options}
    return drp(X, y, alpha=alpha, loss=loss, **options)


def paper(X, y, alpha, loss, m, T, seed, projection="gaussian", **options):
    """Fit by T iterations of Algorithm 2, or fewer once the error is below the tolerance; R is that
    of `projection_of`."""
    how = {"accelerate": False, "n_projections": m, "n_iter": T, "projection": projection}
    with convergence_ignored():
        return fit(X, y, alpha, loss, rng=np.random.default_rng(seed), **how, **options)


def row_space(X):
    """Return an orthonormal basis of the row space of X, one direction in each row."""
    _, s, V = np.linalg.svd(X, full_matrices=False)
    return V[s > 1e-10 * s[0]]


def optimum(X, y, alpha, loss, fit_intercept=False, weight=None):
    """Return w* and b*, by Newton's method in the row space of X, and the least objective."""
    B = row_space(X)
    p = Problem(X @ B.T, y, loss, fit_intercept, weight)
    u, b = p.ridge_minimum(alpha)
    return B.T @ u, b, p.ridge_objective(u, b, alpha)


def projection_of(B, m, seed, kind="gaussian"):
    """Return R, and eps on the space of the basis B."""
    R = make_projection(kind, B.shape[1], m, np.random.default_rng(seed))
    hat = R.project(B)
    return R, norm(hat @ hat.T - np.eye(len(B)), 2)


def naive(R, X, y, alpha, loss):
    """Return z*, the solution of (6), and (10), the naive solution w^ = R z* / sqrt(m)."""
    z = optimum(R.project(X), y, alpha, loss)[0]
    return z, R.project(np.eye(X.shape[1])) @ z


# The objective never rises


@pytest.mark.every_case
@each_loss
@examples(32)
@given(seeds, penalties, st.booleans())
def test_the_objective_never_rises(loss, seed, alpha, fit_intercept):
    """Problem (1): no Newton step raises the objective. (Of Algorithm 2 the distance to w* falls,
    D2, while the objective may rise.)"""
    X, y = low_rank(seed, loss, spectrum=20.0 / np.arange(1, 41))
    p, F = Problem(X, y, loss, fit_intercept), []
    for k in (1, 2, 3, 4):
        how = {"fit_intercept": fit_intercept, "callback": lambda info, k=k: info.n_iter >= k}
        model = fit(X, y, alpha, loss, **how)
        F.append(p.ridge_objective(model.coef, model.intercept, alpha))
        assert model.info.n_iter == len(model.info.objective) <= k
    assert np.all(np.diff(F) <= 1e-12 * F[0])
    np.testing.assert_allclose(model.info.objective, F[: model.info.n_iter], rtol=1e-9)


# The certificate is a bound


@pytest.mark.every_case
@each_loss
@each_accelerate
@examples(32)
@given(seeds, penalties, st.booleans(), st.integers(1, 4))
def test_the_certificate_is_a_bound(loss, accelerate, seed, alpha, fit_intercept, n_iter):
    """Problem (1): after any number of steps of either kind ||w - w*|| <= error_bound ||w*|| and
    P(w) - P(w*) <= dual_gap; the last objective that a model tells is its own."""
    X, y = low_rank(seed, loss, spectrum=20.0 / np.arange(1, 41))
    how = {"n_iter": n_iter, "fit_intercept": fit_intercept, "accelerate": accelerate}
    with convergence_ignored():
        model = fit(X, y, alpha, loss, n_projections=None if accelerate else 400, **how)
    w, _, least = optimum(X, y, alpha, loss, fit_intercept)
    info, p = model.info, Problem(X, y, loss, fit_intercept)
    F = p.ridge_objective(model.coef, model.intercept, alpha)
    assert info.error_bound is None or norm(model.coef - w) <= (info.error_bound + 1e-9) * norm(w)
    assert -1e-10 * least <= F - least <= info.dual_gap + 1e-10 * least
    assert info.objective[-1] == pytest.approx(F, rel=1e-9)


@pytest.mark.every_case
@each_loss
@examples(32)
@given(seeds, penalties)
def test_d10_strong_duality(loss, seed, alpha):
    """D10, Proposition 1: w* = -X'a* / alpha and P(w*) = D(a*) for a*_i = L'_i / n; the objective
    that the model tells is P."""
    X, y = low_rank(seed, loss)
    model = fit(X, y, alpha, loss, tol=1e-9)
    p, w = Problem(X, y, loss), model.coef
    v, P = p.v(X @ w), p.ridge_objective(w, 0.0, alpha)
    dual = -CONJUGATE[loss](len(y) * v, y).mean() - norm(X.T @ v) ** 2 / (2 * alpha)
    assert P == pytest.approx(dual, rel=1e-10)
    assert norm(w + X.T @ v / alpha) <= 1e-8 * norm(w)
    assert model.info.objective[-1] == pytest.approx(P, rel=1e-10)
    assert 0 <= model.info.dual_gap <= 1e-12


# Recovery


@pytest.mark.every_case
@each_loss
@examples(32)
@given(seeds, penalties, st.integers(60, 300), st.integers(60, 200))
def test_d1_d3_d4_one_step_and_the_naive_solution(loss, seed, alpha, m, n):
    """D1, Theorem 2: ||w~ - w*|| <= e ||w*||, e = eps / (1 - eps); D3, Theorem 1 by (24) and (25):
    ||z* - R'w* / sqrt(m)|| <= eps / sqrt(1 - eps) ||w*||; D4, Theorem 4: ||B'(w^ - w*)|| <= 2 e
    ||w*|| for the naive w^."""
    X, y = low_rank(seed, loss, n)
    B = row_space(X)
    R, eps = projection_of(B, m, seed)
    assume(eps < 1)
    w, e = optimum(X, y, alpha, loss)[0], eps / (1 - eps)
    z, w_hat = naive(R, X, y, alpha, loss)
    assert norm(z - R.project(w[None])[0]) <= (eps / np.sqrt(1 - eps) + SMALL) * norm(w)
    assert norm(B @ (w_hat - w)) <= (2 * e + SMALL) * norm(w)
    one = paper(X, y, alpha, loss, m, 1, seed)
    assert norm(one.coef - w) <= (e + SMALL) * norm(w)


@pytest.mark.every_case
@each_loss
@examples(16)
@given(seeds, penalties, st.integers(130, 300), st.integers(60, 200))
def test_d2_iterations(loss, seed, alpha, m, n):
    """D2, Theorem 5: ||w_T - w*|| <= e^T ||w*|| for eps < 1/2; the last objective that a model
    tells is its own, though the objective may rise."""
    X, y = low_rank(seed, loss, n)
    _, eps = projection_of(row_space(X), m, seed)
    assume(eps < 0.5)
    w, e = optimum(X, y, alpha, loss)[0], eps / (1 - eps)
    for T in (1, 2, 4):
        model = paper(X, y, alpha, loss, m, T, seed)
        assert norm(model.coef - w) <= (e**T + SMALL) * norm(w)
        F = Problem(X, y, loss).ridge_objective(model.coef, 0.0, alpha)
        assert model.info.objective[-1] == pytest.approx(F, rel=1e-9)
        assert len(model.info.objective) == model.info.n_iter <= T


@examples(48)
@given(seeds, penalties)
def test_d5_the_naive_solution_fails(seed, alpha):
    """D5, Theorem 3: ||w^ - w*|| >= 1/2 sqrt((d - r) / m) (1 - eps sqrt(2 (1 + eps)) / (1 - eps))
    ||w*|| where eps <= 1/3, but for a share exp(-(d - r) / 32) + exp(-m / 32), 1 %, of the draws.
    The error is not much larger: its part outside of the row space has a length near sqrt((d - r) /
    m) ||z*||."""
    m = 400
    X, y = low_rank(seed, "squared")
    B = row_space(X)
    R, eps = projection_of(B, m, seed)
    assume(eps <= 1 / 3)
    w, (z, w_hat) = optimum(X, y, alpha, "squared")[0], naive(R, X, y, alpha, "squared")
    share = 1 - eps * np.sqrt(2 * (1 + eps)) / (1 - eps)
    assert norm(w_hat - w) >= 0.5 * np.sqrt((D - RANK) / m) * share * norm(w)
    outside = norm(w_hat - B.T @ (B @ w_hat))
    assert outside == pytest.approx(np.sqrt((D - RANK) / m) * norm(z), rel=0.35)


@pytest.mark.every_case
@each_loss
@examples(24)
@given(seeds, st.integers(70, 300), st.sampled_from([0.5, 2.0]))
def test_d6_full_rank(loss, seed, m, alpha):
    """D6, Theorem 6 at k = rank: ||w~ - w*|| <= e sqrt(1 + lambda / (gamma s_k^2)) ||w*||, eps =
    ||I - H^-1/2 H^ H^-1/2|| with H = X X' + lambda / gamma I and H^ = X R R' X' / m + lambda /
    gamma I. The eps of D1 may be above 1, so that D1 says nothing."""
    n = 60
    s = np.sqrt(n) * 4.0 / np.arange(1, n + 1)
    X, y = low_rank(seed, loss, spectrum=s)
    R, _ = projection_of(row_space(X), m, seed)
    shift = n * alpha / BETA[loss] * np.eye(n)
    root, hat = np.linalg.cholesky(X @ X.T + shift), R.project(X)
    whitened = np.linalg.solve(root, np.linalg.solve(root, hat @ hat.T + shift).T)
    eps = norm(np.eye(n) - whitened, 2)
    assume(eps < 1)
    w = optimum(X, y, alpha, loss)[0]
    bound = eps / (1 - eps) * np.sqrt(1 + shift[0, 0] / s[-1] ** 2)
    assert norm(paper(X, y, alpha, loss, m, 1, seed).coef - w) <= (bound + SMALL) * norm(w)


def test_d6_holds_where_d1_says_nothing():
    """D6: of full rank eps of D1 is above 1, and that of D6 below."""
    X, _ = low_rank(0, "squared", spectrum=np.sqrt(60) * 4.0 / np.arange(1, 61))
    R, eps_1 = projection_of(row_space(X), 80, 0)
    root, hat = np.linalg.cholesky(X @ X.T + 30 * np.eye(60)), R.project(X)
    whitened = np.linalg.solve(root, np.linalg.solve(root, hat @ hat.T + 30 * np.eye(60)).T)
    assert norm(np.eye(60) - whitened, 2) < 1 < eps_1


@pytest.mark.parametrize("eps", [0.4, 0.6])
def test_d7_projections_needed(eps):
    """D7, Theorem 2 with c = 2 - sqrt(3): m >= (r + 1) log(2 r / delta) / (0.268 eps^2) projections
    are enough but for a share delta of the draws; a sixteenth of them are not."""
    delta, n = 0.1, 40
    m = int(np.ceil((RANK + 1) * np.log(2 * RANK / delta) / (0.268 * eps**2)))
    B = row_space(low_rank(0, "squared")[0])
    assert np.mean([projection_of(B, m, seed)[1] > eps for seed in range(n)]) <= delta
    assert np.mean([projection_of(B, m // 16, seed)[1] > eps for seed in range(n)]) > 0.5


@pytest.mark.every_case
@each_loss
@examples(24)
@given(seeds, penalties)
def test_d8_orthogonal_projection(loss, seed, alpha):
    """D8, Theorem 2 with eps = 0: where R R' / m = I, as for the whole Hadamard transform, one step
    gives w* exactly."""
    X, y = low_rank(seed, loss, d=128)
    R, eps = projection_of(row_space(X), 128, seed, "srht")
    whole = R.project(np.eye(128))
    assert np.allclose(whole @ whole.T, np.eye(128)) and eps < 1e-12
    w = optimum(X, y, alpha, loss)[0]
    model = paper(X, y, alpha, loss, 128, 1, seed, "srht")
    assert norm(model.coef - w) <= SMALL * norm(w) and model.info.n_iter == 1


@each_projection
@examples(24)
@given(seeds, penalties, st.integers(20, 200))
def test_d9_closed_form(projection, seed, alpha, m):
    """D9, (15) with R in place of S: for the squared loss w~ = X'(lambda I + X R R' X' / m)^-1
    y."""
    X, y = low_rank(seed, "squared")
    R, _ = projection_of(row_space(X), m, seed, projection)
    hat = R.project(X)
    w = X.T @ np.linalg.solve(len(y) * alpha * np.eye(len(y)) + hat @ hat.T, y)
    model = paper(X, y, alpha, "squared", m, 1, seed, projection)
    assert norm(model.coef - w) <= SMALL * norm(w)


# The same problem in another form


@pytest.mark.every_case
@each_form
@each_accelerate
@examples(16)
@given(seeds, st.sampled_from(LINEAR_LOSSES), st.booleans())
def test_the_same_problem_in_another_form(form, accelerate, seed, loss, fit_intercept):
    """D11, problem (1): w is the same for dense, CSR and float32 rows, for rows and columns in any
    order, and for copies of a row in place of its weight, to the bounds of both, which count
    rounding."""
    rows = random_rows(seed, loss, lambda d, _: Linear().draw(None, d), n=40, d=40)
    other = form(rows)
    place = permuted(40) if form is permuted_columns else np.arange(40)

    def fitted(rows):
        how = {"n_projections": None if accelerate else 600, "accelerate": accelerate}
        how |= {"fit_intercept": fit_intercept, "sample_weight": rows.weight}
        tol = 1e-5 if rows.X.dtype == np.float32 else 1e-7
        model = fit(rows.X, rows.y, 1.0, loss, tol=tol, **how)
        assert model.info.converged and model.decision_function(rows.X).dtype == rows.X.dtype
        return model

    one, two = fitted(rows), fitted(other)
    bound = 1.01 * (one.info.error_bound + two.info.error_bound)
    assert norm(two.coef - one.coef[place]) <= bound * norm(one.coef)
    assert abs(two.intercept - one.intercept) <= 10 * bound * norm(one.coef)
    assert bound < (1e-4 if form in SINGLE else 1e-6)


@each_accelerate
@examples(32)
@given(seeds, penalties, st.sampled_from([-1.0, 1e-6, 7.0, 1e6]))
def test_units_of_the_target(accelerate, seed, alpha, t):
    """Problem (1) of the squared loss: the model of t y is t w."""
    X, y = low_rank(seed, "squared")
    how = {"accelerate": accelerate, "n_projections": None if accelerate else 300}
    one, other = (fit(X, unit * y, alpha, **how).coef for unit in (1, t))
    assert norm(other - t * one) <= 3e-8 * norm(t * one)


@pytest.mark.parametrize("layout", [np.asarray, csr_array])
@each_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d", "how"),
    [
        (100, 8, {}),
        (40, 300, {}),
        (40, 300, {"n_projections": 5}),
        (100, 8, {"n_projections": 100, "accelerate": False, "n_iter": 5}),
    ],
)
def test_units_of_features(layout, loss, dtype, n, d, how):
    """Problem (1): X 2^k with a penalty of 4^k alpha gives w 2^-k in the same steps, bit for
    bit."""
    rng = np.random.default_rng(1)
    X = (rng.standard_normal((n, d)) + 0.5).astype(dtype)
    y = X[:, 0] + rng.standard_normal(n)
    y = y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    how = {"fit_intercept": True, "tol": 1e-4, "rng": 0, **how}
    with convergence_ignored():
        first = fit(layout(X), y, 0.02, loss, **how)
        for k in (-20, 20) if dtype is np.float32 else (-60, 300):
            model = fit(layout(X * dtype(2.0**k)), y, 0.02 * 4.0**k, loss, **how)
            assert np.array_equal(model.coef * 2.0**k, first.coef)
            assert model.intercept == first.intercept
            for name in ("objective", "error_bound", "n_conjugate"):
                assert getattr(model.info, name) == getattr(first.info, name)
