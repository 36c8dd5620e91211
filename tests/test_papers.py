"""The bounds of Sparse-RF (Yen et al. 2014) as property tests, against F, g and the duality gap in plain NumPy.

F(w, b) = (1/n) sum_n s_n L(b + sum_h w_h phi_h(x_n), y_n) + lambda |w|_1, and g_h = (1/n) sum_n s_n L'_n phi_h(x_n).
A sub-problem that is solved to a duality gap of e adds e to the right-hand side of a bound.

S7 is of the Taylor features (Cotter et al. 2011) of MFGA (Shahrampour & Tarokh 2018).
"""

import itertools
from dataclasses import dataclass
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import cdist
from scipy.special import xlogy
from scipy.stats import binom

from sparserf import Fourier, Taylor, sparse_rf, sparse_rf_path
from sparserf.features import make_dictionary, make_learning_dictionary
from sparserf.features.proposals import BASE

from .conftest import SLOPE, VALUE, phi_oracle

CONJUGATE = {
    "squared": lambda u, y: u**2 / 2 + u * y,
    "squared_hinge": lambda u, y: u**2 / 4 + y * u,
    "logistic": lambda u, y: xlogy(-u * y, -u * y) + xlogy(1 + u * y, 1 + u * y),
}
BETA = {"squared": 1.0, "squared_hinge": 2.0, "logistic": 0.25}
B2 = 2.0  # |phi|^2 of sqrt(2) cos is at most this
LOSSES = tuple(BETA)
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_intercept = pytest.mark.parametrize("fit_intercept", [False, True])
seeds = st.integers(0, 2**32 - 1)
ROUNDING = 1e-12


def examples(n):
    return settings(max_examples=n, derandomize=True, deadline=None, database=None)


@dataclass
class Problem:
    """Rows, target, loss and weights of mean 1; F, g and the gap of it."""

    X: np.ndarray
    y: np.ndarray
    loss: str
    weight: np.ndarray
    fit_intercept: bool

    def fit(self, alpha, **options):
        """sparse_rf on this problem."""
        options = {"features": "gaussian", "tol": 1e-7, "fit_intercept": self.fit_intercept, **options}
        return sparse_rf(self.X, self.y, alpha=alpha, loss=self.loss, sample_weight=self.weight, **options)

    def empirical(self, z):
        """The mean loss at the margins z."""
        return np.mean(self.weight * VALUE[self.loss](z, self.y))

    def margins(self, model):
        return phi_oracle(model.features, self.X) @ model.coef + model.intercept

    def F(self, model, alpha):
        return self.empirical(self.margins(model)) + alpha * np.abs(model.coef).sum()

    def v(self, z):
        """The row vector with g = Phi' v."""
        return self.weight * SLOPE[self.loss](z, self.y) / len(z)

    def z0(self):
        """The margins of the empty model."""
        b = brentq(lambda b: self.v(np.full(len(self.y), b)).sum(), -9, 9, xtol=1e-15) if self.fit_intercept else 0.0
        return np.full(len(self.y), b)

    def gamma(self, phi):
        """gamma_h = beta (1/n) sum_n s_n phi_h(x_n)^2."""
        return BETA[self.loss] * (self.weight @ phi**2) / len(self.y)

    def gap(self, model, alpha, phi):
        """P - D over the features phi, D = -(1/n) sum_n s_n L*(c L'_n, y_n), c = min(1, lambda / max|g|)."""
        z = self.margins(model)
        c = min(1.0, alpha / np.abs(phi.T @ self.v(z)).max())
        u = c * SLOPE[self.loss](z, self.y)
        return self.F(model, alpha) + np.mean(self.weight * CONJUGATE[self.loss](u, self.y))


def problem(seed=0, loss="squared", fit_intercept=False, weighted=False, n=25, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + 0.2 * rng.standard_normal(n)
    if loss != "squared":
        y = np.where(y > np.median(y), 1.0, -1.0)
    weight = rng.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    return Problem(X, y, loss, weight / weight.mean(), fit_intercept)


def random_problem(seed, loss, fit_intercept, weighted):
    """A problem, a dictionary of 40 features, its matrix, and the smallest penalty of the empty model."""
    p = problem(seed, loss, fit_intercept, weighted)
    atoms = Fourier(gamma=0.5).draw(40, 2, rng=seed)
    phi = phi_oracle(atoms, p.X)
    return p, atoms, phi, np.abs(phi.T @ p.v(p.z0())).max()


each_problem = given(seeds, st.sampled_from(LOSSES), st.booleans(), st.booleans())


def soft(g, alpha):
    """(|g| - lambda)_+."""
    return np.maximum(np.abs(g) - alpha, 0)


# S1, S2: what one round gains.


@each_loss
@each_intercept
@examples(8)
@given(seed=seeds, R=st.integers(1, 6), ratio=st.sampled_from([0.5, 0.1, 0.02]), weighted=st.booleans())
def test_s1_descent_of_every_round(loss, fit_intercept, seed, R, ratio, weighted):
    """S1, Theorem 1 for every draw: F_{t+1} <= F_t - max_h (|g_h| - lambda)_+^2 / (2 gamma_h) + gap, h in batch t + 1,
    gamma_h = beta mean_n s_n phi_h^2. F never rises, and is unchanged iff no h of the batch has |g_h| > lambda."""
    T, p = 8, problem(seed, loss, fit_intercept, weighted)
    draws = make_dictionary("gaussian", p.X, n_components=T * R, batch_size=R, gamma=0.5, rng=seed)
    phi = [phi_oracle(draws.batch(t), p.X) for t in range(T)]
    alpha = ratio * np.abs(np.hstack(phi).T @ p.v(p.z0())).max()
    infos = []
    options = {"gamma": 0.5, "batch_size": R, "rng": seed, "tol": 1e-6}
    whole = p.fit(alpha, n_components=T * R, callback=infos.append, **options)
    z, F = p.z0(), p.empirical(p.z0())
    for t in range(T):
        g = phi[t].T @ p.v(z)
        prefix = p.fit(alpha, n_components=(t + 1) * R, **options)
        assert prefix.info.objective == whole.info.objective[: t + 1]  # a fit of fewer batches is the same, cut short
        gap, new = infos[t].dual_gap, p.F(prefix, alpha)
        gain = (soft(g, alpha) ** 2 / (2 * p.gamma(phi[t]))).max()
        assert new <= F - gain + gap + ROUNDING
        assert whole.info.objective[t] == pytest.approx(new, abs=ROUNDING)
        if t and np.abs(g).max() <= alpha * (1 - 1e-6):
            assert whole.info.objective[t] == whole.info.objective[t - 1]
        if gain > gap + ROUNDING:
            assert new < F
        z, F = p.margins(prefix), new
    assert np.all(np.diff(whole.info.objective) <= 0)


@each_loss
@each_intercept
def test_s2_expected_descent(loss, fit_intercept):
    """S2, Theorem 1: E F_{t+1} - F_t <= -(gamma/2) E_h eta_h^2, eta_h = -soft(g_h, lambda)/gamma, gamma = beta B^2."""
    p = problem(1, loss, fit_intercept, n=40)
    pool = Fourier(gamma=0.5).draw(160, 2, rng=1)
    phi = phi_oracle(pool, p.X)
    alpha = 0.2 * np.abs(phi[:, :8].T @ p.v(p.z0())).max()
    now = p.fit(alpha, features=pool.take(range(8)), batch_size=8)
    draws = range(8, 160)
    after = [p.fit(alpha, features=pool.take([*range(8), h]), batch_size=8) for h in draws]
    gamma = BETA[loss] * B2
    eta = soft(phi[:, draws].T @ p.v(p.margins(now)), alpha) / gamma
    gain = gamma / 2 * np.mean(eta**2)
    assert gain > 0
    change = np.mean([p.F(model, alpha) for model in after]) - p.F(now, alpha)
    assert change <= -gain + max(model.info.dual_gap for model in after) + ROUNDING


# S3 to S5: convergence to a reference, over the draws.


def objective_after_each_draw(p, alpha, R, seed, D, **options):
    """F after R, 2 R, ... draws, and the largest gap of a round."""
    infos = []
    p.fit(alpha, batch_size=R, rng=seed, callback=infos.append, tol=1e-6, **options)
    assert len(infos) == D // R
    return np.array(infos[-1].objective), max(info.dual_gap for info in infos)


def c_of_theorem_2(F0, F_ref, gamma, norm2):
    """c = ceil(2 (F(0) - F(w_ref)) / (gamma ||w_ref||^2)), at least 1."""
    return max(1, int(np.ceil(2 * (F0 - F_ref) / (gamma * norm2))))


@each_loss
@pytest.mark.parametrize("R", [1, 5])
def test_s3_convergence_on_a_finite_dictionary(loss, R):
    """S3, Theorem 2, p uniform over M atoms: E F(w^D) <= F_bar(w_ref) + 2 gamma ||w_ref||^2 / (D - c) for every w_ref,
    F_bar(w) = lambda |sqrt(p) . w|_1 + Loss(sqrt(p) . w), c = ceil(2 (F(0) - F_bar(w_ref)) / (gamma ||w_ref||^2)).
    The recursion of its proof holds from the first draw, with c = 0, and that is asserted too."""
    M, D, alpha = 60, 150, 0.01
    p = problem(2, loss, n=30)
    atoms = Fourier(gamma=0.5).draw(M, 2, rng=2)
    phi = phi_oracle(atoms, p.X) / np.sqrt(M)
    runs = [
        objective_after_each_draw(p, alpha, R, s, D, features=atoms.take(np.random.default_rng(s).integers(0, M, D)))
        for s in range(10)
    ]
    F, gap = np.mean([F for F, _ in runs], axis=0), max(gap for _, gap in runs)
    draws, gamma, F0, told = R * np.arange(1, len(F) + 1), BETA[loss] * B2, p.empirical(np.zeros(30)), False
    for ridge in (1e-2, 1e-1, 1.0):
        for size in (0.5, 1.0, 2.0):
            ref = size * phi.T @ np.linalg.solve(phi @ phi.T + 30 * ridge * np.eye(30), p.y)
            norm2, F_ref = ref @ ref, alpha * np.abs(ref).sum() / np.sqrt(M) + p.empirical(phi @ ref)
            c = c_of_theorem_2(F0, F_ref, gamma, norm2)
            late = draws > c
            assert np.all(F[late] <= F_ref + 2 * gamma * norm2 / (draws[late] - c) + gap)
            bound = F_ref + 2 * gamma * norm2 / draws
            assert np.all(F <= bound + gap)
            told |= bound[-1] < F0
    assert told  # that the bound says more than F <= F(0)


def gaussian_kernel(p, gamma):
    return np.exp(-gamma * cdist(p.X, p.X, "sqeuclidean"))


def kernel_machine(p, K, ridge):
    """(||w*||_2, Loss(w*)) of the minimiser of (ridge / 2) ||w||^2 + Loss(w) with the kernel matrix K."""
    n = len(p.y)
    if p.loss == "squared":
        a = np.linalg.solve(K + n * ridge * np.eye(n), p.y)
    else:  # the dual of the squared hinge
        Q = p.y[:, None] * K * p.y + n * ridge / 2 * np.eye(n)
        dual = minimize(lambda a: (a @ Q @ a / 2 - a.sum(), Q @ a - 1), np.zeros(n), jac=True, bounds=[(0, None)] * n)
        a = dual.x * p.y
    return np.sqrt(a @ K @ a), p.empirical(K @ a)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
@pytest.mark.parametrize("R", [1, 5, 50])
def test_s4_convergence_to_the_kernel_machine(loss, R):
    """S4, Corollaries 1 and 2, T rounds of R draws: E F(w^T) <= lambda ||w*||_2 + Loss(w*) + 2 gamma ||w*||^2/(TR - c),
    ||w*||^2 = a' K a, Loss(w*) = (1/n) sum_n L((K a)_n, y_n), a of KRR or of the dual of the SVM."""
    D, alpha, gamma = 400, 0.01, BETA[loss] * B2
    p = problem(3, loss, n=40)
    runs = [objective_after_each_draw(p, alpha, R, s, D, gamma=0.3, n_components=D) for s in range(6)]
    F, gap = np.mean([F for F, _ in runs], axis=0), max(gap for _, gap in runs)
    draws, F0, told = R * np.arange(1, len(F) + 1), p.empirical(np.zeros(40)), False
    for ridge in (1e-3, 1e-2, 1e-1):
        norm, loss_ref = kernel_machine(p, gaussian_kernel(p, 0.3), ridge)
        F_ref = alpha * norm + loss_ref
        c = c_of_theorem_2(F0, F_ref, gamma, norm**2)
        late = draws > c
        bound = F_ref + 2 * gamma * norm**2 / (draws[late] - c)
        assert np.all(F[late] <= bound + gap)
        assert np.all(F <= F_ref + 2 * gamma * norm**2 / draws + gap)  # with c = 0, as in S3
        told |= bound[-1] < F0
    assert told


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
@pytest.mark.parametrize("R", [4, 20, 100])
def test_s4_convergence_of_draws_that_learn(loss, R):
    """S4 where rho = BASE of each batch, at least, are of the base distribution p, and the rest follow what was accepted:
    E F(w^T) <= lambda ||w*||_2 + Loss(w*) + 2 gamma ||w*||^2 / (rho TR - c), w* the kernel machine of
    k(x, z) = E_p phi(x) phi(z), here the mean over many draws of p, which are not those of the fit."""
    D, alpha, gamma = 1200, 0.01, BETA[loss] * B2
    p = problem(3, loss, n=40)
    base = make_learning_dictionary(p.X, p.weight, n_components=D, batch_size=R, gamma=None, rng=0).base
    phi = base.draw(40_000, 2, rng=1).transform(p.X)
    K = phi @ phi.T / phi.shape[1]
    runs = [objective_after_each_draw(p, alpha, R, s, D, features="auto", n_components=D)[0] for s in range(6)]
    F, draws, F0, told = np.mean(runs, axis=0), BASE * R * np.arange(1, D // R + 1), p.empirical(np.zeros(40)), False
    for ridge in (1e-3, 1e-2, 1e-1):
        norm, loss_ref = kernel_machine(p, K, ridge)
        F_ref = alpha * norm + loss_ref
        c = c_of_theorem_2(F0, F_ref, gamma, norm**2)
        late = draws > c
        assert np.all(F[late] <= F_ref + 2 * gamma * norm**2 / (draws[late] - c))
        bound = F_ref + 2 * gamma * norm**2 / draws
        assert np.all(F <= bound)  # with c = 0, as in S3
        told |= bound[-1] < F0
    assert told
    assert np.all(np.diff(runs, axis=1) <= 0)


def test_s5_convergence_with_high_probability():
    """S5, Corollary 3: for D >= (2 gamma ||w*||^2 / eps) (1 + log(1/rho)) + 2 - 4/c + c, with probability 1 - rho
    F(w^D) <= lambda ||w*||_2 + Loss(w*) + eps. As a frequency: failures within the 99.9 % binomial quantile."""
    D, alpha, gamma, rho, n_runs = 300, 0.01, B2, 0.2, 40
    p = problem(4, n=40)
    runs = [objective_after_each_draw(p, alpha, 50, s, D, gamma=0.3, n_components=D) for s in range(n_runs)]
    last = np.array([F[-1] - gap for F, gap in runs])
    for ridge in (3e-3, 3e-2, 3e-1):
        norm, loss_ref = kernel_machine(p, gaussian_kernel(p, 0.3), ridge)
        c = c_of_theorem_2(p.empirical(np.zeros(40)), alpha * norm + loss_ref, gamma, norm**2)
        eps = 2 * gamma * norm**2 * (1 + np.log(1 / rho)) / (D - 2 + 4 / c - c)
        assert np.count_nonzero(last > alpha * norm + loss_ref + eps) <= binom.ppf(0.999, n_runs, rho)


# S6: optimality.


@examples(40)
@each_problem
def test_s6_the_gap_bounds_the_distance_to_the_optimum(seed, loss, fit_intercept, weighted):
    """S6: the gap P - D over the whole dictionary is >= 0, >= F - F*, and what info.dual_gap says."""
    p, atoms, phi, largest = random_problem(seed, loss, fit_intercept, weighted)
    alpha = 0.1 * largest
    best = p.F(p.fit(alpha, features=atoms, exact=True), alpha)
    for tol in (0.3, 1e-2, 1e-5):
        model = p.fit(alpha, features=atoms, exact=True, batch_size=7, tol=tol)
        F, gap = p.F(model, alpha), p.gap(model, alpha, phi)
        assert max(F - best, 0) - ROUNDING <= model.info.dual_gap <= tol * F * (1 + 1e-9)
        assert model.info.dual_gap == pytest.approx(gap, abs=1e-10)
        assert model.info.objective[-1] == pytest.approx(F, abs=ROUNDING)


@examples(40)
@each_problem
def test_s6_optimality_conditions(seed, loss, fit_intercept, weighted):
    """S6, KKT with a gap of e: |g_h| <= lambda + sqrt(2 gamma_h e) for every h of the dictionary; on the support
    |g_h + lambda sign(w_h)| <= max(sqrt(2 gamma_h e), 2 e / |w_h|); sum_n s_n L'_n = 0 with an intercept."""
    p, atoms, phi, largest = random_problem(seed, loss, fit_intercept, weighted)
    alpha = 0.1 * largest
    model = p.fit(alpha, features=atoms, exact=True)
    e = p.gap(model, alpha, phi) + 1e-13
    v = p.v(p.margins(model))
    g, slack = phi.T @ v, np.sqrt(2 * p.gamma(phi) * e)
    assert np.all(np.abs(g) <= alpha + slack)
    assert np.all(model.coef != 0)
    S, w = model.support, model.coef
    assert np.all(np.abs(g[S] + alpha * np.sign(w)) <= np.maximum(slack[S], 2 * e / np.abs(w)))
    assert model.intercept == 0 if not fit_intercept else abs(v.sum()) < 1e-8


@examples(40)
@each_problem
def test_s6_the_largest_penalty(seed, loss, fit_intercept, weighted):
    """S6: lambda >= max_h |g_h| at w = 0 gives w = 0; a lambda below it does not, nor does F(w) = F(0) then."""
    p, atoms, _, largest = random_problem(seed, loss, fit_intercept, weighted)
    empty = p.fit(largest * (1 + 1e-9), features=atoms, exact=True)
    assert len(empty.features) == 0 and empty.info.objective[-1] == pytest.approx(p.empirical(p.z0()), abs=ROUNDING)
    model = p.fit(largest * 0.97, features=atoms, exact=True)
    assert len(model.features) > 0 and model.info.objective[-1] < empty.info.objective[-1]


@each_loss
@each_intercept
def test_s6_the_path_is_continuous(loss, fit_intercept):
    """S6, for lambda_1 > lambda_2 with gaps e_1, e_2 and F*(lambda) concave of slope |w|_1:
    (l_1 - l_2) |w_1|_1 - e_1 <= F_1 - F_2 + e_2 and F_1 - F_2 - e_1 <= (l_1 - l_2) |w_2|_1 + e_2; for the squared loss
    also mean (f_1 - f_2)^2 <= (l_1 - l_2) (|w_2|_1 - |w_1|_1)."""
    p, atoms, _, largest = random_problem(5, loss, fit_intercept, True)
    alphas = largest * np.geomspace(1.1, 0.02, 60)
    models = sparse_rf_path(
        p.X, p.y, alphas=alphas, features=atoms, loss=loss, exact=True, fit_intercept=fit_intercept,
        sample_weight=p.weight, tol=1e-7,
    )  # fmt: skip
    for one, two in itertools.pairwise(models):
        step, e = one.info.alpha - two.info.alpha, one.info.dual_gap + two.info.dual_gap + ROUNDING
        fall = p.F(one, one.info.alpha) - p.F(two, two.info.alpha)
        l1, l2 = np.abs(one.coef).sum(), np.abs(two.coef).sum()
        assert step * l1 - e <= fall <= step * l2 + e
        if loss == "squared":
            change = np.mean(p.weight * (p.margins(one) - p.margins(two)) ** 2)
            assert change <= step * (l2 - l1) + 1e-6 * step + 10 * e


# S7: the Taylor features of the gaussian kernel.


@examples(100)
@given(seeds, st.integers(1, 5), st.integers(1, 7), st.sampled_from([1e-3, 0.05, 0.3, 1.0, 3.0]))
def test_s7_truncation(seed, d, degree, gamma):
    """S7, with a = 2 gamma x'z, E = exp(-gamma (|x|^2 + |z|^2)), k = E exp(a), r the degree:
    phi(x)'phi(z) = E sum_{k <= r} a^k / k!, and |k - phi(x)'phi(z)| <= (2 gamma |x| |z|)^(r+1) / (r+1)! max(E, k), where
    E, k <= 1. On the diagonal phi(x)'phi(x) <= 1, and rises to it with r."""
    X = np.random.default_rng(seed).standard_normal((12, d))
    X[1], X[2] = -X[0], 3 * X[0]
    phi = Taylor(degree, gamma).draw(None, d).transform(X)
    a, norm = 2 * gamma * X @ X.T, np.linalg.norm(X, axis=1)
    E, k = np.exp(-gamma * (norm[:, None] ** 2 + norm**2)), np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    np.testing.assert_allclose(phi @ phi.T, E * sum(a**j / factorial(j) for j in range(degree + 1)), rtol=1e-9, atol=ROUNDING)
    bound = (2 * gamma * np.outer(norm, norm)) ** (degree + 1) / factorial(degree + 1) * np.maximum(E, k)
    assert (np.abs(k - phi @ phi.T) <= bound + ROUNDING).all()
    less = Taylor(max(degree - 1, 1), gamma).draw(None, d).transform(X)
    assert ((less**2).sum(axis=1) <= (phi**2).sum(axis=1) + ROUNDING).all()
    assert ((phi**2).sum(axis=1) <= 1 + ROUNDING).all()


# S8: the certificate against the kernel machine.


@examples(60)
@given(seeds, st.sampled_from(LOSSES), st.booleans(), st.integers(1, 30), st.sampled_from([0.01, 0.3, 3.0]))
def test_s8_certificate(seed, loss, fit_intercept, k, size):
    """S8, p uniform over the dictionary and w optimal on a part of it, for every w_ref:
    F(w) - F_bar(w_ref) <= ||w_ref||_2 sqrt(E_h (|g_h| - lambda)_+^2), <= max_h (|g_h| - lambda)_+ |sqrt(p).w_ref|_1."""
    p, atoms, phi, largest = random_problem(seed, loss, fit_intercept, False)
    M, alpha, rng = len(atoms), 0.1 * largest, np.random.default_rng(seed)
    model = p.fit(alpha, features=atoms.take(range(k)), exact=True)
    violation = soft(phi.T @ p.v(p.margins(model)), alpha)
    F, slack = p.F(model, alpha), 1e-7 * p.empirical(p.z0())
    A = phi / np.sqrt(M)
    ridge = A.T @ np.linalg.solve(A @ A.T + np.eye(len(p.y)) / 2, p.y)
    for ref in (ridge, size * rng.standard_normal(M), np.where(violation > 0, 10 * size, 0) * rng.standard_normal(M)):
        F_ref = alpha * np.abs(ref).sum() / np.sqrt(M) + p.empirical(A @ ref + model.intercept)
        assert F - F_ref <= np.linalg.norm(ref) * np.sqrt(np.mean(violation**2)) + slack
        assert F - F_ref <= violation.max() * np.abs(ref).sum() / np.sqrt(M) + slack
