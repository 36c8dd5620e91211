"""The bounds of dual random projection (Zhang et al. 2013) as property tests, with the error of
each projection measured.

The matrix R of the paper's iteration is drawn again from the seed: eps = |B' R R' B / m - I|_2 for
an orthonormal basis B of the row space of X, and the bounds then hold for each draw. The paper's
lambda is n alpha. What `drp` does beyond the paper is compared with other solvers, and with `drp`
itself where its result must not change.
"""

from functools import partial

import numpy as np
import pytest
from numpy.linalg import norm
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import sparserf as srf
from sparserf.features import make_projection
from sparserf.rows.core_block import CoreBlock

from .. import conftest
from ..conftest import convergence_ignored, each_intercept

# as the paper and other solvers see the columns
drp, drp_path = partial(srf.drp, scale=None), partial(srf.drp_path, scale=None)
R, D = 5, 150
SLOPE = {**conftest.SLOPE, "smoothed_hinge": lambda z, y: -y * np.clip(1 - y * z, 0, 1)}
VALUE = {
    **conftest.VALUE,
    "smoothed_hinge": lambda z, y: np.where(
        y * z < 0, 0.5 - y * z, np.maximum(0, 1 - y * z) ** 2 / 2
    ),
}


CONJUGATE = {**conftest.CONJUGATE, "smoothed_hinge": lambda u, y: u**2 / 2 + y * u}
BETA = {**conftest.BETA, "smoothed_hinge": 1.0}
LOSSES = tuple(BETA)
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_accelerate = pytest.mark.parametrize("accelerate", [False, True])
SMALL = 1e-7  # relative to |w*|: above the accuracy of the reference and of the projected problem


def bound_of(model):
    """Return the bound on the error of a model, at most 1e9, which stands for none."""
    bound = model.info.error_bound
    return 1e9 if bound is None else min(bound, 1e9)


def problem(seed, loss, n=60, d=D, spectrum=None):
    """Return X = U S V' of rank 5, or of a given spectrum, and a target."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(1, 4, R) * np.sqrt(n) if spectrum is None else spectrum
    U, V = (np.linalg.qr(rng.standard_normal((k, len(s))))[0] for k in (n, d))
    y = U @ rng.standard_normal(len(s)) * np.sqrt(n) + 0.3 * rng.standard_normal(n)
    return (U * s) @ V.T, y if loss == "squared" else np.where(y > 0, 1.0, -1.0)


def star(X, y, alpha, loss, **options):
    """Return the optimum w* of the problem, from the accelerated fit."""
    model = drp(
        X, y, alpha=alpha, loss=loss, **{"fit_intercept": False, "tol": 1e-8, "rng": 1, **options}
    )
    assert model.info.converged
    return model.coef


def paper(X, y, alpha, loss, m, T, seed, projection="gaussian", **options):
    """Fit by T iterations of the paper's method, or fewer once the error is below 1e-8."""
    options = {"fit_intercept": False, "tol": 1e-8, **options}
    options |= {
        "accelerate": False,
        "n_projections": m,
        "n_iter": T,
        "projection": projection,
        "rng": seed,
    }
    with convergence_ignored():
        return drp(X, y, alpha=alpha, loss=loss, **options)


def row_space(X, rank=R):
    """Return an orthonormal basis of the row space of X, one direction in each row."""
    return np.linalg.qr(X.T @ np.random.default_rng(0).standard_normal((len(X), rank)))[0].T


def projection_of(basis, m, seed, kind="gaussian"):
    """Return R, and eps on the row space of X."""
    p = make_projection(kind, basis.shape[1], m, np.random.default_rng(seed))
    B = p.project(basis)
    return p, norm(B @ B.T - np.eye(len(B)), 2)


def naive(p, X, y, alpha, loss):
    """Return z*, the solution of the projected problem, and the naive solution w^ = R z* /
    sqrt(m)."""
    z = drp(p.project(X), y, alpha=alpha, loss=loss, fit_intercept=False, tol=1e-8, rng=2).coef
    return z, p.expand(z)


# The bounds of the paper


@pytest.mark.one_case
@pytest.mark.parametrize("alpha", [1.0, 0.01])
@pytest.mark.parametrize("n", [60, 200])
def test_optimum_is_that_of_other_solvers(n, alpha):
    """w*, which all tests below compare with, is the closed form and scikit-learn's, for few rows
    (a sketch of the rows) and many (moments of the inputs)."""
    X, y = problem(0, "squared", n)
    w = star(X, y, alpha, "squared")
    assert norm(w - np.linalg.solve(X.T @ X + n * alpha * np.eye(D), X.T @ y)) <= SMALL * norm(w)
    ridge = Ridge(alpha=n * alpha, fit_intercept=False, solver="cholesky").fit(X, y).coef_
    assert norm(w - ridge) <= SMALL * norm(w)
    _, y = problem(0, "logistic", n)
    C = 1 / (n * alpha)
    logistic = LogisticRegression(
        C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(X, y)
    w = star(X, y, alpha, "logistic")
    assert norm(w - logistic.coef_[0]) <= SMALL * norm(w)
    svc = LinearSVC(
        C=C, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-10, max_iter=10000
    ).fit(X, y)
    w = star(X, y, alpha, "squared_hinge")
    assert norm(w - svc.coef_[0]) <= 1e-5 * norm(w)


def draws(low):
    """Yield cases of the paper's iteration: a seed, a penalty, a number of projections from `low`
    on and a number of rows."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        yield (
            seed,
            [1.0, 0.1, 1e-2, 1e-3][seed % 4],
            int(rng.integers(low, 300)),
            int(rng.integers(60, 200)),
        )


@pytest.mark.one_case
@each_loss
def test_d1_d3_d4_one_step_and_the_naive_solution(loss):
    """D1 |w~ - w*| <= e |w*|, e = eps / (1 - eps); D3 |z* - R'w* / sqrt(m)| <= eps / sqrt(1 - eps)
    |w*|;
    D4 |B'(w^ - w*)| <= 2 e |w*| for the naive w^ = R z* / sqrt(m). They hold in every draw, as eps
    < 1 in every draw."""
    for seed, alpha, m, n in draws(60):
        X, y = problem(seed, loss, n)
        basis = row_space(X)
        p, eps = projection_of(basis, m, seed)
        assert eps < 0.8
        w, e = star(X, y, alpha, loss), eps / (1 - eps)
        z, w_hat = naive(p, X, y, alpha, loss)
        assert norm(z - p.project(w[None])[0]) <= (eps / np.sqrt(1 - eps) + SMALL) * norm(w)
        assert norm(basis @ (w_hat - w)) <= (2 * e + SMALL) * norm(w)
        one = paper(X, y, alpha, loss, m, 1, seed)
        assert norm(one.coef - w) <= (e + SMALL) * norm(w)


@pytest.mark.slow
@each_loss
def test_d2_iterations(loss):
    """D2 |w_T - w*| <= e^T |w*|, with eps < 1/2 in every draw. The certificate bounds the error;
    the objective never rises."""
    # in the last case the objective would rise on the way
    for seed, alpha, m, n in [*draws(130), (9, 1e-3, 130, 60)]:
        X, y = problem(seed, loss, n)
        _, eps = projection_of(row_space(X), m, seed)
        assert eps < 0.5
        w, e = star(X, y, alpha, loss), eps / (1 - eps)
        for T in range(1, 5):
            model = paper(X, y, alpha, loss, m, T, seed)
            error = norm(model.coef - w)
            assert error <= (e**T + SMALL) * norm(w)
            assert error <= (bound_of(model) * (1 + SMALL) + SMALL) * norm(w)
            assert len(model.info.objective) == model.info.n_iter <= T
            assert np.all(np.diff(model.info.objective) <= 0)


def test_d5_the_naive_solution_fails():
    """D5, Theorem 3: |w^ - w*| >= 1/2 sqrt((d - r) / m) (1 - eps sqrt(2 (1 + eps)) / (1 - eps))
    |w*| where eps <= 1/3, but for a share exp(-(d - r) / 32) + exp(-m / 32), 1 %, of the draws: for
    none of the draws here. The error is not much larger: its part outside of the row space has a
    length near sqrt((d - r) / m) |z*|."""
    m = 400
    for seed in range(16):
        X, y = problem(seed, "squared")
        basis = row_space(X)
        p, eps = projection_of(basis, m, seed)
        assert eps <= 1 / 3
        w, (z, w_hat) = star(X, y, 0.1, "squared"), naive(p, X, y, 0.1, "squared")
        least = (
            0.5 * np.sqrt((D - R) / m) * (1 - eps * np.sqrt(2 * (1 + eps)) / (1 - eps)) * norm(w)
        )
        outside = norm(w_hat - basis.T @ (basis @ w_hat))
        assert least <= norm(w_hat - w)
        assert outside == pytest.approx(np.sqrt((D - R) / m) * norm(z), rel=0.25)


@each_loss
@pytest.mark.parametrize("seed", range(3))
def test_d6_full_rank(loss, seed):
    """D6, Theorem 6 at k = rank: |w~ - w*| <= e sqrt(1 + lambda / (gamma s_k^2)) |w*|, eps = |I -
    H^-1/2 H^ H^-1/2| with H = X X' + lambda / gamma I and H^ = X R R' X' / m + lambda / gamma I.
    The eps of D1 is above 1 here, so D1 says nothing."""
    n, m, alpha = 60, 80, 0.5
    s = np.sqrt(n) * 4.0 / np.arange(1, n + 1)
    X, y = problem(seed, loss, n, spectrum=s)
    p, eps_1 = projection_of(row_space(X, n), m, seed)
    shift = n * alpha / BETA[loss] * np.eye(n)
    root = np.linalg.cholesky(X @ X.T + shift)
    hat = p.project(X)
    eps = norm(np.eye(n) - np.linalg.solve(root, np.linalg.solve(root, hat @ hat.T + shift).T), 2)
    assert eps < 1 < eps_1
    w = star(X, y, alpha, loss)
    bound = eps / (1 - eps) * np.sqrt(1 + shift[0, 0] / s[-1] ** 2)
    assert norm(paper(X, y, alpha, loss, m, 1, seed).coef - w) <= (bound + SMALL) * norm(w)


@pytest.mark.one_case
@pytest.mark.parametrize("eps", [0.4, 0.6])
def test_d7_projections_needed(eps):
    """D7: m >= (r + 1) log(2 r / delta) / (0.268 eps^2) projections are enough but for a share
    delta of the draws; a sixteenth of them are not."""
    delta, n = 0.1, 40
    m = int(np.ceil((R + 1) * np.log(2 * R / delta) / (0.268 * eps**2)))
    basis = row_space(problem(0, "squared")[0])
    assert np.mean([projection_of(basis, m, seed)[1] > eps for seed in range(n)]) <= delta
    assert np.mean([projection_of(basis, m // 16, seed)[1] > eps for seed in range(n)]) > 0.5


@each_loss
def test_d8_orthogonal_projection(loss):
    """D8: where R R' / m = I, as for the whole Hadamard transform, one step gives w* exactly."""
    X, y = problem(3, loss, d=128)
    p, eps = projection_of(row_space(X), 128, 3, "srht")
    assert (
        np.allclose(p.project(np.eye(128)) @ p.project(np.eye(128)).T, np.eye(128)) and eps < 1e-12
    )
    w = star(X, y, 0.1, loss)
    model = paper(X, y, 0.1, loss, 128, 1, 3, "srht")
    assert norm(model.coef - w) <= SMALL * norm(w) and model.info.n_iter == 1


@pytest.mark.parametrize("projection", ["gaussian", "sparse_sign", "srht"])
def test_d9_closed_form(projection):
    """D9: for the squared loss w~ = X'(lambda I + X R R' X' / m)^-1 y."""
    X, y = problem(4, "squared")
    for alpha in (1.0, 0.01):
        p, _ = projection_of(row_space(X), 200, 4, projection)
        hat = p.project(X)
        w = X.T @ np.linalg.solve(len(y) * alpha * np.eye(len(y)) + hat @ hat.T, y)
        assert norm(paper(X, y, alpha, "squared", 200, 1, 4, projection).coef - w) <= SMALL * norm(
            w
        )


@each_loss
@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_d10_strong_duality(loss, alpha):
    """D10: P(w*) = D(a*) and w* = -X'a* / alpha for a*_i = L'_i / n; the objective that the model
    tells is P."""
    X, y = problem(5, loss)
    model = drp(X, y, alpha=alpha, loss=loss, fit_intercept=False, tol=1e-9, rng=0)
    z, w = X @ model.coef, model.coef
    v = SLOPE[loss](z, y) / len(y)
    P = VALUE[loss](z, y).mean() + alpha / 2 * w @ w
    dual = -CONJUGATE[loss](len(y) * v, y).mean() - norm(X.T @ v) ** 2 / (2 * alpha)
    assert P == pytest.approx(dual, rel=1e-10)
    assert norm(w + X.T @ v / alpha) <= 1e-8 * norm(w)
    assert (
        model.info.objective[-1] == pytest.approx(P, rel=1e-10)
        and 0 <= model.info.dual_gap <= 1e-12
    )


@pytest.mark.one_case
@each_loss
@each_accelerate
def test_d11_equivalent_data(loss, accelerate):
    """D11: CSR and dense X, rows in any order, and a row twice or once with weight 2 give the same
    w."""
    X, y = problem(6, loss, n=90)
    X = X * (np.random.default_rng(0).random(D) < 0.3)
    twice, order = np.arange(90) < 30, np.random.default_rng(1).permutation(90)

    def fit(X, y, weight=None):
        how = {} if accelerate else {"accelerate": False, "n_projections": 300}
        model = drp(X, y, alpha=0.3, loss=loss, sample_weight=weight, rng=0, tol=1e-7, **how)
        assert model.info.converged
        return np.append(model.coef, model.intercept)

    w = fit(X, y)
    assert norm(fit(csr_array(X), y) - w) <= 1e-6 * norm(w)
    assert norm(fit(X[order], y[order]) - w) <= 1e-6 * norm(w)
    w = fit(X, y, 1.0 + twice)
    assert norm(fit(np.vstack([X, X[twice]]), np.append(y, y[twice])) - w) <= 1e-5 * norm(w)


# What drp does beyond the paper


@pytest.mark.one_case
@each_loss
@pytest.mark.parametrize(("n", "d"), [(400, 150), (80, 1000)])
def test_accelerated_whatever_the_projection(loss, n, d):
    """The accelerated fit gives the same w, to its own bound, for any R and any number of its
    columns."""
    X, y = problem(7, loss, n, d, np.sqrt(n) * 3.0 / np.arange(1, 51))
    w = star(X, y, 0.01, loss)
    for projection in ("gaussian", "sparse_sign", "srht"):
        for m in (None, 5, 40, 1000):
            if projection == "srht" and m == 1000 and d == 150:
                continue
            how = {"n_projections": m, "projection": projection, "tol": 1e-6, "rng": 0}
            model = drp(X, y, alpha=0.01, loss=loss, fit_intercept=False, **how)
            assert model.info.converged and model.info.error_bound <= 1e-6
            assert norm(model.coef - w) <= (model.info.error_bound + 2e-9) * norm(w)
            assert len(model.info.objective) == model.info.n_iter
            assert np.all(np.diff(model.info.objective) <= 0)


@each_loss
@each_accelerate
@each_intercept
def test_certificate_of_a_fit_cut_short(loss, accelerate, fit_intercept):
    X, y = problem(8, loss, 100, 200, 20.0 / np.arange(1, 41))
    w = star(X, y, 0.01, loss, fit_intercept=fit_intercept, tol=1e-10)
    m = 40 if accelerate else 400
    for n_iter in (1, 2, 3):
        with convergence_ignored():
            model = drp(
                X,
                y,
                alpha=0.01,
                loss=loss,
                accelerate=accelerate,
                n_projections=m,
                n_iter=n_iter,
                tol=1e-9,
                rng=0,
                fit_intercept=fit_intercept,
            )
        assert norm(model.coef - w) <= (bound_of(model) + 1e-8) * norm(w)


def test_too_few_projections_diverge():
    X, y = problem(9, "squared", 100, 200, 20.0 / np.arange(1, 41) ** 0.2)
    with pytest.warns(srf.ConvergenceWarning, match="diverges"):
        drp(X, y, alpha=1e-3, accelerate=False, n_projections=10, rng=0)
    with pytest.warns(srf.ConvergenceWarning, match="raise n_iter"):
        drp(X, y, alpha=10.0, accelerate=False, n_projections=2000, n_iter=1, rng=0)


@pytest.mark.parametrize("more", [{}, {"projection": "srht", "n_projections": 257}])
def test_the_iteration_of_the_paper_needs_projections_and_not_too_many(more):
    X, y = problem(0, "squared")
    with pytest.raises(ValueError, match="n_projections"):
        drp(X, y, alpha=1.0, accelerate=False, **more)


@each_accelerate
@pytest.mark.slow
def test_several_outputs_and_classes(accelerate):
    """Each output, and each class against the rest, has the coefficients of a fit of its own."""
    X, y = problem(10, "squared", 120)
    how = {
        "alpha": 0.1,
        "rng": 0,
        "tol": 1e-8,
        "accelerate": accelerate,
        "n_projections": None if accelerate else 300,
    }
    Y = np.column_stack([y, X[:, 0] - 2 * y, np.sin(y)])
    model = drp(X, Y, **how)
    assert model.coef.shape == (3, D) and model.decision_function(X).shape == (120, 3)
    for k in range(3):
        one = drp(X, Y[:, k], **how)
        assert norm(model.coef[k] - one.coef) <= 1e-7 * norm(one.coef)
        assert model.intercept[k] == pytest.approx(one.intercept, abs=1e-6)
    label = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    for loss in LOSSES[1:]:
        model = drp(X, label, loss=loss, **how)
        for k, name in enumerate("abc"):
            one = drp(X, np.where(label == name, 1, -1), loss=loss, **how)
            assert norm(model.coef[k] - one.coef) <= 1e-7 * norm(one.coef)
            assert model.intercept[k] == pytest.approx(one.intercept, abs=1e-6)
        assert set(model.predict(X)) <= set("abc")


@each_accelerate
def test_intercept_is_the_fit_on_centred_rows(accelerate):
    X, y = problem(11, "squared")
    X, how = X + 1.0, {"alpha": 0.1, "rng": 0, "tol": 1e-8, "accelerate": accelerate}
    how["n_projections"] = None if accelerate else 300
    model = drp(X, y, **how)
    centred = drp(X - X.mean(axis=0), y - y.mean(), fit_intercept=False, **how)
    assert norm(model.coef - centred.coef) <= 1e-7 * norm(centred.coef)
    assert model.intercept == pytest.approx(y.mean() - X.mean(axis=0) @ model.coef, abs=1e-6)


@pytest.mark.one_case
@each_loss
@each_accelerate
def test_path(loss, accelerate):
    X, y = problem(13, loss, 80)
    how = {
        "loss": loss,
        "rng": 0,
        "tol": 1e-7,
        "accelerate": accelerate,
        "n_projections": None if accelerate else 300,
    }
    models = drp_path(X, y, alphas=[0.1, 1.0, 0.01], **how)
    assert [model.info.alpha for model in models] == [1.0, 0.1, 0.01]
    for model in models:
        one = drp(X, y, alpha=model.info.alpha, **how)
        assert norm(model.coef - one.coef) <= 3e-7 * norm(one.coef)


@pytest.mark.one_case
@each_loss
@each_accelerate
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_float32(loss, accelerate, kind):
    X, y = problem(15, loss, 100)
    X = X.astype(np.float32)
    how = {"alpha": 0.1, "loss": loss, "rng": 0, "tol": 1e-5, "accelerate": accelerate}
    how["n_projections"] = None if accelerate else 300
    model, exact = drp(kind(X), y, **how), drp(X.astype(np.float64), y, **how)
    assert model.info.converged and norm(model.coef - exact.coef) <= 1e-4 * norm(exact.coef)
    assert model.decision_function(X).dtype == np.float32


@pytest.mark.one_case
@each_accelerate
def test_callback_ends_the_fit(accelerate):
    X, y = problem(17, "logistic")
    how = {
        "alpha": 1e-3,
        "loss": "logistic",
        "rng": 0,
        "accelerate": accelerate,
        "n_projections": 400,
    }
    told = []
    whole = drp(X, y, callback=told.append, **how)
    assert whole.info.converged and told[-1] == whole.info and len(told) > 2
    cut = drp(X, y, callback=lambda info: True, **how)
    assert cut.info.n_iter == len(cut.info.objective) == 1 and not cut.info.converged


# How Newton's steps are made


def few_and_rare(n, d, rng):
    """Return inputs of which half are 0 but in one row each, which a sample of the rows mostly
    misses."""
    X = rng.standard_normal((n, d))
    X[:, : d // 2] = 0
    X[rng.integers(0, n, d // 2), np.arange(d // 2)] = 50.0
    return X


@pytest.mark.one_case
@each_loss
@each_intercept
@pytest.mark.parametrize("kind", ["ordinary", "rare"])
def test_many_rows_from_the_moments_of_a_sample(loss, fit_intercept, kind, monkeypatch):
    """For n >= 80 d, Newton's steps from the moments of a sample of the rows lead to the same w as
    from those of all rows."""
    least = "sparserf.linear.steps.LEAST_INPUTS_TO_SAMPLE"
    monkeypatch.setattr(least, 50)
    rng = np.random.default_rng(0)
    n, d = 5000, 60
    X = rng.standard_normal((n, d)) if kind == "ordinary" else few_and_rare(n, d, rng)
    y = X @ rng.standard_normal(d) / 10 + rng.standard_normal(n)
    y = y if loss == "squared" else np.sign(y)
    model = drp(X, y, alpha=1e-3, loss=loss, fit_intercept=fit_intercept, tol=1e-8, rng=0)
    assert model.info.converged
    monkeypatch.setattr(least, d + 1)
    again = drp(X, y, alpha=1e-3, loss=loss, fit_intercept=fit_intercept, tol=1e-8, rng=0)
    assert again.info.n_conjugate < model.info.n_conjugate
    assert norm(model.coef - again.coef) <= 3e-8 * norm(again.coef)


@pytest.mark.one_case
@pytest.mark.parametrize("layout", [np.asarray, csr_array])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_sketch_where_it_pays_and_none_where_it_does_not(layout, loss):
    rng = np.random.default_rng(0)
    n, d, rank = 300, 1000, 30
    U, V = (
        np.linalg.qr(rng.standard_normal((n, rank)))[0],
        np.linalg.qr(rng.standard_normal((d, rank)))[0],
    )
    y = U @ rng.standard_normal(rank) + 0.01 * rng.standard_normal(n)
    y = y if loss == "squared" else np.sign(y)
    how = {"alpha": 1 / n, "loss": loss, "tol": 1e-6, "rng": 0, "fit_intercept": False}
    easy = drp(layout((U * np.geomspace(1, 0.1, rank)) @ V.T), y, **how)
    assert easy.info.n_projections == 0
    hard = drp(layout((U * np.geomspace(3000, 30, rank)) @ V.T), y, **how)
    assert 0 < hard.info.n_projections < n
    # its rank is full: no sketch is fine enough
    flat = drp(layout(rng.standard_normal((n, d)) * np.sqrt(1000.0)), y, **how)
    assert (easy.info.converged, hard.info.converged, flat.info.converged) == (True, True, True)


@pytest.mark.one_case
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_second_moments_only_where_conjugate_gradients_are_slow(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    n, d = 1200, 600
    easy = rng.standard_normal((n, d)).astype(dtype)
    hard = (easy * np.geomspace(1, 1e-3, d)).astype(dtype)
    y = easy[:, :9] @ np.ones(9) + rng.standard_normal(n)
    asked, gram = [], CoreBlock.gram
    monkeypatch.setattr(CoreBlock, "gram", lambda *given: asked.append(1) or gram(*given))
    for X, alpha, n_moments in ((easy, 3.0, 0), (hard, 1e-6, 1)):
        wide = X.astype(np.float64)
        asked.clear()
        model = drp(X, y, alpha=alpha, fit_intercept=False, tol=1e-6, rng=0)
        best = np.linalg.solve(wide.T @ wide + n * alpha * np.eye(d), wide.T @ y)
        assert model.info.converged and norm(model.coef - best) <= 1e-6 * norm(best)
        assert len(asked) == n_moments


@each_loss
@each_intercept
def test_passes_over_the_rows(loss, fit_intercept):
    """A fit asks one question to begin with and one at the first penalty; each Newton step asks one
    for each conjugate direction, of which its margins are added up, and one for the gradient after
    it. At this penalty no basis would pay. The first rows are read for samples, too."""
    X, y = problem(20, loss, 60, 400, np.sqrt(60) * np.ones(40))
    starts = []
    rows = srf.Chunks(lambda a, b: starts.append(a) or X[a:b], X.shape, block_rows=15)
    info = drp(rows, y, alpha=200.0, loss=loss, fit_intercept=fit_intercept, rng=0).info
    assert info.converged and info.n_projections == 0
    assert info.n_passes == 2 + info.n_iter + info.n_conjugate
    assert [starts.count(a) for a in (15, 30, 45)] == [info.n_passes] * 3
