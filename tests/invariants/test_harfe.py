"""HARFE (Saha, Schaeffer, Tran 2022) and hard thresholding pursuit (Foucart 2011): the objective
never rises, the gap is a bound, sparse models are recovered, and forms of one problem agree.

The paper's problem (6) is min ||A c - y||^2 + m lambda ||c||^2 over c of s entries. `harfe` divides
it by 2 m, so that lambda is alpha, and its step is m times the paper's mu. The restricted isometry
constants delta_k are those of B of Theorem 3.1: A above sqrt(m lambda) I, divided by sqrt(m + m
lambda).
"""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.linalg import norm
from scipy.optimize import minimize

from sparserf import Linear, RandomNeurons, harfe, plain

from ..conftest import LOSSES, convergence_ignored, each_loss, examples, phi_oracle
from .forms import SINGLE, each_form, random_rows
from .problems import Problem, alike, seeds

each_selection = pytest.mark.parametrize("selection", ["magnitude", "positive"])
PAPER = {"start": "zero", "backtracking": False}  # the steps of Algorithm 1 as they are


def fit(A, y, **options):
    """Fit with the columns of A as features, unless others are given."""
    options = {
        "features": Linear().draw(None, A.shape[1]),
        "scale": None,
        "fit_intercept": False,
        "normalize": False,
        "tol": 0,
        **options,
    }
    with convergence_ignored():
        return harfe(A, y, **options)


def neurons(d, seed, n=60):
    """Draw sines of two of d inputs."""
    return RandomNeurons("sin", order=2).draw(n, d, rng=seed)


def fit_rows(rows, **options):
    """Fit 8 of the features of the rows, over their root mean squares, unless other options are
    given."""
    options = {"n_nonzero_coefs": 8, "alpha": 0.01, "normalize": True, **options}
    return fit(rows.X, rows.y, features=rows.features, sample_weight=rows.weight, **options)


def unit_problem(rows, loss, fit_intercept):
    """Return the problem on the features of the rows over their root mean squares r, and r."""
    p = Problem(phi_oracle(rows.features, rows.X), rows.y, loss, fit_intercept, rows.weight)
    r = np.sqrt(p.s @ p.phi**2 / len(p.y))
    return Problem(p.phi / r, p.y, loss, fit_intercept, rows.weight), r


# The objective never rises


@pytest.mark.every_case
@each_selection
@pytest.mark.parametrize("start", ["greedy", "zero"])
@examples(40)
@given(seeds, st.sampled_from(LOSSES), st.booleans(), st.sampled_from([0.05, 0.5, 5.0]))
@example(1, "squared", False, 0.05)  # in which positive parts come from a lower point
def test_the_objective_never_rises(start, selection, seed, loss, backtracking, step_size):
    """Problem (6): no iteration of Algorithm 1 raises the objective, as steps are halved or the
    best iterate is kept, and the last that a model tells is its own. For the reference's positive
    parts this begins at the first iterate without negative coefficients."""
    rows = random_rows(seed, loss, neurons)
    p, r = unit_problem(rows, loss, False)
    how = {"start": start, "selection": selection, "backtracking": backtracking}
    F, feasible = [], []
    for k in (1, 2, 3, 50):
        model = fit_rows(rows, loss=loss, step_size=step_size, max_iter=k, **how)
        F.append(p.ridge_objective(p.coef(model) * r, 0.0, 0.01))
        feasible.append(selection == "magnitude" or bool(np.all(model.coef > 0)))
        assert model.info.objective[-1] == pytest.approx(F[-1], rel=1e-9)
        assert np.all(np.diff(model.info.objective) <= 0)
    assert np.all((np.diff(F) <= 1e-12 * F[0]) | ~np.array(feasible[:-1]))
    assert all(feasible) or not backtracking


@pytest.mark.every_case
@each_loss
@examples(24)
@given(seeds, st.sampled_from([15, 50]), st.booleans())
def test_h1_stationary_on_the_support_and_at_rest(loss, seed, s, fit_intercept):
    """H1, Algorithm 1: the gradient is zero on the support, so that c~ is c there, and at rest min
    |c| on it >= mu max |g| off it; for supports below and above the number of rows, 40."""
    rows = random_rows(seed, loss, lambda d, k: neurons(d, k, 150))
    how = {"n_nonzero_coefs": s, "fit_intercept": fit_intercept, "step_size": 0.02}
    model = fit_rows(rows, loss=loss, **how)
    p, r = unit_problem(rows, loss, fit_intercept)
    c = p.coef(model) * r
    v = p.v(p.phi @ c + model.intercept)
    g, on = p.phi.T @ v, c != 0
    assert np.count_nonzero(on) == s
    assert np.abs(g[on] + 0.01 * c[on]).max() < 1e-7
    assert not fit_intercept or abs(v.sum()) < 1e-7
    # no feature of the support and one outside would change places with a gain
    if model.info.converged and loss == "squared":
        assert np.abs(c[on]).min() >= 0.02 / (4 * s) * np.abs(g[~on]).max()


@examples(40)
@given(seeds, st.sampled_from([0.1, 0.5, 1.0]))
def test_h2_small_steps_descend_and_come_to_rest(seed, share):
    """H2, Foucart 2011: with mu (||A||^2 + m lambda) <= 1 the steps of Algorithm 1 never raise the
    objective, and the support settles."""
    rng, n, alpha = np.random.default_rng(seed), 30, 0.01
    A = rng.standard_normal((n, 60))
    y = A[:, :6] @ rng.standard_normal(6) + 0.1 * rng.standard_normal(n)
    mu = share / (norm(A, 2) ** 2 + n * alpha)
    p, iterates = Problem(A, y), list(plain.harfe(A, y, 6, alpha, mu, 500))
    F = [p.ridge_objective(c, 0.0, alpha) for c in iterates]
    assert np.all(np.diff(F) <= 1e-12)
    how = {"n_nonzero_coefs": 6, "alpha": alpha, "step_size": n * mu, **PAPER}
    for k in (1, 2, 3, 5):
        model = fit(A, y, max_iter=k, **how)
        np.testing.assert_allclose(p.coef(model), iterates[k - 1], rtol=1e-6, atol=1e-9)
    model = fit(A, y, max_iter=500, **how)
    assert model.info.converged
    assert model.info.objective[-1] == pytest.approx(F[-1], rel=1e-9)


@examples(40)
@given(seeds)
def test_h2_large_steps_return_the_best_point(seed):
    """H2: where the steps of Algorithm 1 cycle, the best iterate is returned, which is no worse
    than the first."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((20, 100)), rng.standard_normal(20)
    how = {"n_nonzero_coefs": 8, "alpha": 0.01, "step_size": 5.0, **PAPER}
    model = fit(A, y, max_iter=300, **how)
    assert model.info.converged and model.info.n_iter < 300
    assert model.info.objective[-1] <= fit(A, y, max_iter=1, **how).info.objective[-1]


# The certificate is a bound


@pytest.mark.every_case
@each_selection
@each_loss
@examples(16)
@given(seeds)
def test_the_certificate_is_a_bound(loss, selection, seed):
    """Problem (6) of s = 2 terms: objective - dual_gap is at most the best objective of all
    supports of 2 out of 7, each solved by another method, and that is at most the objective; for
    the default, and for steps so small that the support is that of the first."""
    p = alike(seed, loss)

    def best_on(p, alpha):
        if selection == "magnitude":
            return p.least_ridge(alpha)
        start, bounds = np.full(2, 0.1), [(0, None)] * 2
        return minimize(lambda c: p.ridge_objective(c, 0.0, alpha), start, bounds=bounds).fun

    for alpha in (0.01, 1.0, 3.0):
        best = min(best_on(p.on(list(S)), alpha) for S in combinations(range(7), 2))
        for how in ({}, {"start": "zero", "step_size": 1e-3}):
            how |= {"n_nonzero_coefs": 2, "alpha": alpha, "loss": loss, "selection": selection}
            info = fit(p.phi, p.y, **how).info
            assert info.objective[-1] - info.dual_gap <= best * (1 + 1e-9)
            assert info.objective[-1] >= best * (1 - 1e-6)


def test_the_gap_is_that_of_s_terms_where_fewer_are_used():
    """Problem (6): the bound is that of three terms, though a single column is of use with a
    positive sign."""
    A = np.random.default_rng(0).standard_normal((40, 3))
    y = A @ [1.0, -1.0, -1.0]
    model = fit(A, y, n_nonzero_coefs=3, alpha=0.5, selection="positive")
    r = y - A[:, model.support] @ model.coef
    g = A.T @ r / 40
    weakest = [
        np.mean(c * r * y - (c * r) ** 2 / 2) - c * c * np.sum(np.maximum(g, 0) ** 2)
        for c in np.linspace(0, 1, 1001)
    ]  # D(c) for alpha = 1/2
    gap = model.info.objective[-1] - max(weakest)
    assert model.info.dual_gap >= gap - 1e-12
    assert model.info.dual_gap == pytest.approx(gap, rel=1e-3, abs=1e-6)


# Recovery


def restricted_isometry(B, k):
    """Return delta_k, the most by which any k columns differ from an isometry."""
    sets = (B[:, list(S)] for S in combinations(range(B.shape[1]), k))
    return max(norm(C.T @ C - np.eye(k), 2) for C in sets)


def nearly_orthogonal(seed):
    """Return 40 rows of 7 columns near an isometry, each of norm sqrt(40)."""
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.standard_normal((40, 7)))[0] + 0.1 * rng.standard_normal((40, 7))
    return np.sqrt(40) * A / norm(A, axis=0)


def constants(A, ridge, s=2):
    """Return (rho, tau, delta_3s): rho = sqrt(2 delta_3s^2 / (1 - delta_2s^2)), tau = (sqrt(2 (1 -
    delta_2s)) + sqrt(1 + delta_s)) / (1 - delta_2s)."""
    n, N = A.shape
    B = np.vstack([A, np.sqrt(n * ridge) * np.eye(N)]) / np.sqrt(n * (1 + ridge))
    d1, d2, d3 = (restricted_isometry(B, k * s) for k in (1, 2, 3))
    tau = (np.sqrt(2 * (1 - d2)) + np.sqrt(1 + d1)) / (1 - d2)
    return np.sqrt(2 * d3**2 / (1 - d2**2)), tau, d3


def after_steps(A, y, ridge, k):
    """Return the model of 2 terms after k steps of Algorithm 1 with mu = 1 for B."""
    return fit(A, y, n_nonzero_coefs=2, alpha=ridge, step_size=1 / (1 + ridge), max_iter=k, **PAPER)


RIDGE = 1e-8


def errors_and_bounds(seed, weak, size, noise):
    """Yield (||c_n - c||, the bound from the step before, the bound from the start, whether the
    support is right) for the first steps."""
    A, rng = nearly_orthogonal(seed), np.random.default_rng(seed)
    (n, N), (rho, tau, _) = A.shape, constants(A, RIDGE)
    c, e = np.eye(N)[0] + size * np.eye(N)[weak], noise * rng.standard_normal(n)
    all_noise = norm(np.append(e, -np.sqrt(n * RIDGE) * c)) / np.sqrt(n * (1 + RIDGE))
    last, p = norm(c), Problem(A, A @ c + e)
    for k in (1, 2, 3):
        found = p.coef(after_steps(A, p.y, RIDGE, k))
        error, floor = norm(found - c), tau * all_noise
        from_start = rho**k * norm(c) + floor * (1 - rho**k) / (1 - rho)
        yield error, rho * last + floor, from_start, set(np.flatnonzero(found)) == {0, weak}
        last = error


@examples(48)
@given(seeds, st.integers(1, 6), st.sampled_from([0.2, -0.4, 1.0]), st.sampled_from([1e-4, 0.1]))
def test_h3_the_error_contracts(seed, weak, size, noise):
    """H3, Theorem 3.1 with the constants of Foucart 2011, Theorem 3.8, for delta_3s < 1 / sqrt(3):
    ||c_{n+1} - c|| <= rho ||c_n - c|| + tau ||e~||, e~ = [e; -sqrt(m lambda) c] / sqrt(m + m
    lambda); from c_0 = 0 ||c_n - c|| <= rho^n ||c|| + tau (1 - rho^n) / (1 - rho) ||e~||."""
    assume(constants(nearly_orthogonal(seed), RIDGE)[-1] < 1 / np.sqrt(3))
    for error, bound, from_start, _ in errors_and_bounds(seed, weak, size, noise):
        assert error <= min(bound, from_start) * (1 + 1e-9)


@pytest.mark.slow
def test_h3_some_errors_are_above_half_of_the_bound():
    """H3: some errors are above half of the bound. One of the two terms is so weak that the first
    step often takes another in its place, and a later step finds it."""
    late, closest = 0, 0.0
    for seed, weak, size in product(range(12), range(1, 7), (0.2, -0.4)):
        steps = list(errors_and_bounds(seed, weak, size, 1e-4))
        closest = max(closest, *(error / bound for error, bound, _, _ in steps))
        late += not steps[0][-1] and steps[-1][-1]
    assert 0.5 < closest <= 1 and late >= 30, (closest, late)


@examples(24)
@given(seeds, st.sampled_from([0.0, 0.3, 2.0]), st.integers(1, 3))
def test_h4_the_penalty_shrinks_the_isometry_constants(seed, ridge, k):
    """H4, proof of Theorem 3.1: delta_k(B) = delta_k(A / sqrt(m)) / (1 + lambda), exactly."""
    A = np.random.default_rng(seed).standard_normal((30, 7))
    B = np.vstack([A, np.sqrt(30 * ridge) * np.eye(7)]) / np.sqrt(30 * (1 + ridge))
    expected = restricted_isometry(A / np.sqrt(30), k) / (1 + ridge)
    assert restricted_isometry(B, k) == pytest.approx(expected, rel=1e-10)


@examples(48)
@given(seeds, st.integers(1, 6), st.floats(0.05, 1))
def test_h5_the_support_is_found_in_as_many_steps_as_the_theorem_says(seed, other, size):
    """H5, Foucart 2011, Corollary 3.6: without noise, and with delta_3s < 1 / sqrt(3), the support
    is right from the first step n on with sqrt(2) delta_3s rho^(n-1) ||c|| < min |c_j|."""
    A = nearly_orthogonal(seed)
    c = np.eye(7)[0] - size * np.eye(7)[other]
    rho, _, d3 = constants(A, 1e-12)
    assume(d3 < 1 / np.sqrt(3))
    n = 1 + max(0, int(np.ceil(np.log(np.sqrt(2) * d3 * norm(c) / size) / -np.log(rho))))
    for k in (n, n + 1):
        model = after_steps(A, A @ c, 1e-12, k)
        assert model.support.tolist() == [0, other]
        np.testing.assert_allclose(model.coef, [1, -size], rtol=1e-8)


@pytest.mark.every_case
@pytest.mark.parametrize("start", ["zero", "greedy"])
@pytest.mark.parametrize("backtracking", [False, True])
@examples(24)
@given(seeds)
def test_h5_a_sparse_model_is_found_in_as_many_steps_as_terms(start, backtracking, seed):
    """H5, Bouchot, Foucart, Hitczenko 2016: without noise, with well-conditioned columns and terms
    of like size, the support of s terms is found in at most s steps."""
    rng, s = np.random.default_rng(seed), 8
    A = rng.standard_normal((200, 300))
    S = np.sort(rng.choice(300, s, replace=False))
    y = A[:, S] @ (rng.choice([-1, 1], s) * rng.uniform(1, 2, s))
    how = {"start": start, "backtracking": backtracking, "step_size": 0.8, "max_iter": s}
    model = fit(A, y, n_nonzero_coefs=s, alpha=1e-12, tol=1e-6, **how)
    assert model.info.converged
    np.testing.assert_array_equal(model.support, S)


@pytest.mark.every_case
@each_loss
@examples(16)
@given(seeds, st.sampled_from([20, 120]), st.booleans())
def test_h6_all_terms_are_ridge_regression(loss, seed, n_features, fit_intercept):
    """H6: of as many terms as features, (6) is ridge regression, in the primal for fewer features
    than the 40 rows and in the dual for more."""
    rows = random_rows(seed, loss, lambda d, k: neurons(d, k, n_features))
    how = {"normalize": False, "fit_intercept": fit_intercept, "loss": loss}
    model = fit_rows(rows, n_nonzero_coefs=n_features, **how)
    p = Problem(phi_oracle(rows.features, rows.X), rows.y, loss, fit_intercept, rows.weight)
    w, b = p.ridge_minimum(0.01)
    np.testing.assert_allclose(p.coef(model), w, rtol=1e-5, atol=1e-6 * abs(w).max())
    assert model.intercept == pytest.approx(b, rel=1e-5, abs=1e-6)


# The same problem in another form


@pytest.mark.every_case
@each_form
@examples(24)
@given(seeds, st.sampled_from(LOSSES), st.sampled_from([8, 45]), st.booleans())
def test_the_same_problem_in_another_form(form, seed, loss, s, fit_intercept):
    """H6, problem (6): the model is the same for dense, CSR and float32 rows, for rows, columns and
    features in any order, and for copies of a row in place of its weight, but for rounding."""
    rows = random_rows(seed, loss, neurons)
    other = form(rows)
    how = {"n_nonzero_coefs": s, "fit_intercept": fit_intercept, "loss": loss, "alpha": 0.1}
    c, same = rows.coef(fit_rows(rows, **how)), other.coef(fit_rows(other, **how))
    assert np.count_nonzero(c) == s
    tol = 1e-3 if form in SINGLE else 1e-6
    np.testing.assert_allclose(same, c, atol=tol * abs(c).max())


def unit_columns(seed, **options):
    """Return a function that fits columns times `units` to a target times `t`, all columns over
    their norms, and gives the coefficients."""
    rows = random_rows(seed, "squared", neurons)
    p = Problem(phi_oracle(rows.features, rows.X), rows.y)
    how = {"alpha": 0.1, "normalize": True, "fit_intercept": True, **options}
    return lambda units=1.0, t=1.0: p.coef(fit(units * p.phi, t * p.y, **how))


@each_selection
@examples(40)
@given(seeds, st.sampled_from([8, 45]), st.sampled_from([1e-3, 8.0, 1e6]))
def test_units_of_the_target(selection, seed, s, t):
    """H6, problem (6): the model of t y is t c."""
    coef = unit_columns(seed, n_nonzero_coefs=s, selection=selection)
    c = t * coef()
    assert np.count_nonzero(c) == s or selection == "positive"
    np.testing.assert_allclose(coef(t=t), c, atol=1e-6 * abs(c).max())


@each_selection
@examples(40)
@given(seeds, st.sampled_from([8, 45]))
def test_units_of_features(selection, seed, s):
    """H6, problem (6) with unit columns: each feature may have a unit of its own, of any sign where
    the largest magnitudes are kept, and a positive one where positive parts are."""
    coef, rng = (
        unit_columns(seed, n_nonzero_coefs=s, selection=selection),
        np.random.default_rng(seed),
    )
    units = 10.0 ** rng.uniform(-3, 3, 60)
    if selection == "magnitude":
        units *= rng.choice([-1, 1], 60)
    c = coef()
    np.testing.assert_allclose(units * coef(units), c, atol=1e-6 * abs(c).max())


def test_positive_parts_depend_on_signs():
    """H6: columns of other signs give another model by positive parts."""
    coef = unit_columns(0, n_nonzero_coefs=8, selection="positive")
    flip = np.random.default_rng(0).choice([-1, 1], 60)
    assert set(np.flatnonzero(coef())) != set(np.flatnonzero(coef(flip)))
