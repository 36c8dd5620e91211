"""The methods that the papers compare with, against scikit-learn or their definitions written
plainly."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import gamma as gamma_function
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

import sparserf as srf
from sparserf.baselines import (
    boosting,
    eerf,
    kernel_ridge,
    kernel_svm,
    lkrf,
    rks,
    srfe,
)
from sparserf.baselines.boosting import WeakLearner, best_threshold
from sparserf.baselines.random_features import aligned

from ..conftest import phi_oracle
from ..features.sets import gamma_of, resolved

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 4))
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * RNG.standard_normal(120)
NEURONS = srf.RandomNeurons("sin", order=2).draw(300, 4, rng=0)


@pytest.mark.one_case
@pytest.mark.parametrize("eta", [0.5, 0.1, 0.02])
def test_srfe_is_the_lasso_of_that_residual(eta):
    model = srfe(X, Y, eta=eta, features=NEURONS)
    residual = np.std(model.predict(X) - Y) / np.std(Y)
    assert 0.98 * eta <= residual <= eta * (1 + 1e-9)
    if eta < 0.1:
        return  # here scikit-learn does not converge
    lasso = Lasso(alpha=model.info.alpha, tol=1e-10, max_iter=100_000).fit(
        phi_oracle(NEURONS, X), Y
    )
    assert np.abs(model.coef).sum() == pytest.approx(np.abs(lasso.coef_).sum(), rel=1e-3)


def test_srfe_keeps_the_units_of_y():
    one, other = (
        srfe(X, scale * Y + shift, eta=0.1, features=NEURONS)
        for scale, shift in ((1, 0), (1e6, 5e6))
    )
    np.testing.assert_allclose(other.predict(X), 1e6 * one.predict(X) + 5e6, rtol=1e-6, atol=1e3)


def test_srfe_beyond_reach_warns():
    with pytest.warns(srf.ConvergenceWarning, match="eta"):
        srfe(X, RNG.standard_normal(120), eta=0.01, features=NEURONS.take(np.arange(5)), max_iter=5)
    with pytest.raises(ValueError, match="eta"):
        srfe(X, Y, eta=0)


# Random features

LABELS = np.where(Y > 0, "up", "down")
SIGNS = np.where(Y > 0, 1.0, -1.0)
THREE = np.array(["low", "middle", "top"])[np.digitize(Y, [-0.4, 0.4])]
TARGETS = {"squared": Y, "squared_hinge": LABELS, "logistic": LABELS}
WAVES = srf.Fourier(gamma=0.5).draw(300, 4, rng=0)
FEW = WAVES.take(np.arange(40))
COUNTS = np.random.default_rng(1).integers(0, 4, 120)


def mean_loss(loss, z, y):
    """Return the mean loss at the margins z."""
    return np.mean(
        {
            "squared": (z - y) ** 2 / 2,
            "squared_hinge": np.maximum(0, 1 - y * z) ** 2,
            "logistic": np.logaddexp(0, -y * z),
        }[loss]
    )


def ridge_by_scipy(loss, phi, y, alpha):
    """Return (objective, decision function) of rks on the columns phi, by a solver for any smooth
    function."""
    Z = phi / np.sqrt(phi.shape[1])
    objective = lambda p: mean_loss(loss, Z @ p[1:] + p[0], y) + alpha / 2 * p[1:] @ p[1:]  # noqa: E731
    found = minimize(
        objective, np.zeros(Z.shape[1] + 1), method="BFGS", options={"gtol": 1e-7, "maxiter": 2000}
    )
    return found.fun, Z @ found.x[1:] + found.x[0]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("features", [FEW, WAVES], ids=["primal", "dual"])
def test_rks_is_the_ridge_of_scikit_learn(features, intercept):
    model = rks(X, Y, features=features, alpha=0.01, fit_intercept=intercept)
    Z = phi_oracle(features, X) / np.sqrt(len(features))
    ridge = Ridge(alpha=0.01 * len(X), fit_intercept=intercept).fit(Z, Y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(Z), atol=1e-9)
    np.testing.assert_allclose(model.coef, ridge.coef_ / np.sqrt(len(features)), atol=1e-9)
    objective = mean_loss("squared", ridge.predict(Z), Y) + 0.005 * ridge.coef_ @ ridge.coef_
    assert model.info.objective == pytest.approx((objective,)) and model.info.dual_gap < 1e-9
    assert model.info.n_drawn == len(features) == model.info.n_nonzero


@pytest.mark.one_case
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_rks_classifies_as_a_general_solver_does(loss):
    features = FEW.take(np.arange(15))
    model = rks(X, LABELS, features=features, alpha=0.02, loss=loss)
    objective, f = ridge_by_scipy(loss, phi_oracle(features, X), SIGNS, 0.02)
    assert model.info.objective[-1] == pytest.approx(objective, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-3)
    assert set(model.predict(X)) == {"up", "down"}


def test_rks_draws_the_dictionary_of_sparse_rf_and_nears_the_kernel():
    some = srf.sparse_rf(X, Y, features="gaussian", alpha=0.05, n_components=3000, gamma=0.5, rng=5)
    many = rks(X, Y, n_components=3000, gamma=0.5, rng=5)
    np.testing.assert_array_equal(
        many.features.take(some.support).blocks[0].weights, some.features.blocks[0].weights
    )
    exact = kernel_ridge(X, Y, gamma=0.5).predict(X)
    errors = [
        np.abs(rks(X, Y, n_components=n, gamma=0.5, rng=0).predict(X) - exact).max()
        for n in (100, 20_000)
    ]
    assert errors[1] < 0.05 < errors[0]


@pytest.mark.parametrize("loss", TARGETS)
def test_the_gap_of_rks_is_zero_at_the_end(loss):
    model = rks(X, TARGETS[loss], features=FEW, alpha=1e-3, loss=loss)
    assert 0 <= model.info.dual_gap <= 1e-6 * model.info.objective[-1] and model.info.converged


def test_where_rks_stops_early_it_warns_and_its_gap_bounds_the_distance_to_the_optimum():
    how = {"features": WAVES, "alpha": 1e-9}
    best = rks(X, Y, **how).info
    with pytest.warns(srf.ConvergenceWarning, match="alpha"):
        early = rks(X.astype(np.float32), Y, **how | {"alpha": 1e-13}).info
    assert not early.converged and early.dual_gap > 0
    assert early.objective[-1] - early.dual_gap <= best.objective[-1]


@pytest.mark.parametrize("intercept", [True, False])
def test_eerf_keeps_the_features_that_correlate_most(intercept):
    model = eerf(
        X,
        Y,
        n_nonzero_coefs=25,
        features=WAVES,
        alpha=0.01,
        fit_intercept=intercept,
        sample_weight=COUNTS,
    )
    s = COUNTS / COUNTS.mean()
    centred = Y - np.average(Y, weights=s) if intercept else Y
    score = np.abs(phi_oracle(WAVES, X).T @ (s * centred)) / 120
    np.testing.assert_array_equal(model.support, np.sort(np.argsort(-score)[:25]))
    chosen = rks(
        X,
        Y,
        features=WAVES.take(model.support),
        alpha=0.01,
        fit_intercept=intercept,
        sample_weight=COUNTS,
    )
    np.testing.assert_allclose(model.coef, chosen.coef, rtol=1e-12)
    assert model.info.n_drawn == 300 and model.info.n_nonzero == 25


def test_eerf_takes_the_first_of_equal_features():
    repeated = FEW.concat(FEW)
    assert eerf(X, Y, n_nonzero_coefs=1, features=repeated).support[0] < 40


@pytest.mark.parametrize("selection", ["largest", "sample"])
@pytest.mark.parametrize("function", [eerf, lkrf])
def test_selection_for_each_of_three_classes(function, selection):
    options = {"selection": selection} if function is lkrf else {}
    model = function(
        X, THREE, n_nonzero_coefs=20, features=WAVES, loss="squared_hinge", **options, rng=0
    )
    assert model.coef.shape == (3, len(model.support)) and model.info.converged
    assert np.all((model.coef != 0).sum(axis=1) <= 20) and 20 < len(model.support) <= 60
    assert np.mean(model.predict(X) == THREE) > 0.7
    alone = function(
        X,
        THREE == "top",
        n_nonzero_coefs=20,
        features=WAVES,
        loss="squared_hinge",
        **options,
        rng=0,
    )
    if selection == "largest" or function is eerf:
        np.testing.assert_allclose(
            model.decision_function(X)[:, 2], alone.decision_function(X), rtol=1e-9
        )


@pytest.mark.parametrize("rho", [0.005, 0.3, 2.0, 100.0])
@pytest.mark.parametrize(
    "v", [[0.1, 1.0, 0.9, 0.2, 0.0], [1.0, 1.0, 0.3], [0.0, 0.0, 0.0, 0.0], [1.0, 1e-9]]
)
def test_the_weights_of_lkrf_solve_their_problem(v, rho):
    v = np.array(v)
    q, N = aligned(v, rho), len(v)
    assert (
        q.min() >= 0
        and q.sum() == pytest.approx(1)
        and np.sum((q - 1 / N) ** 2) <= rho / N * (1 + 1e-9) + 1e-15
    )
    ball = {
        "type": "ineq",
        "fun": lambda q: rho / N - np.sum((q - 1 / N) ** 2),
        "jac": lambda q: -2 * (q - 1 / N),
    }
    simplex = {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like}
    start = 0.999 / N + 0.001 * np.eye(N)[np.argmax(v)]  # SLSQP needs a gradient of the ball
    found = minimize(
        lambda q: -q @ v,
        start,
        jac=lambda q: -v,
        bounds=[(0, 1)] * N,
        constraints=[ball, simplex],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert q @ v >= -found.fun - 1e-6 and q @ v <= v.max() + 1e-12
    if found.success:
        assert q @ v == pytest.approx(-found.fun, abs=1e-5)


def test_lkrf_largest_is_eerf_and_sample_counts_repeats():
    options = {"n_nonzero_coefs": 12, "features": WAVES}
    for rho in (1e-4, None, 1e6):
        np.testing.assert_array_equal(
            lkrf(X, Y, rho=rho, **options).support, eerf(X, Y, **options).support
        )
    sampled = lkrf(X, Y, selection="sample", rng=0, rho=20.0, **options)
    assert 1 < len(sampled.support) < 12  # some features were drawn more than once
    v = (phi_oracle(WAVES, X).T @ (Y - Y.mean())) ** 2
    q = aligned(v / v.max(), 20.0)
    assert np.all(q[sampled.support] > 0) and np.count_nonzero(q) > 12
    rng = np.random.default_rng(0)
    drawn = rng.choice(300, 12, p=q / q.sum())
    np.testing.assert_array_equal(sampled.support, np.unique(drawn))
    repeated = rks(X, Y, features=WAVES.take(drawn))
    np.testing.assert_allclose(sampled.predict(X), repeated.predict(X), atol=1e-9)
    assert sampled.info.objective == pytest.approx(repeated.info.objective)
    few = lkrf(X, Y, selection="sample", rho=1e6, **options)  # all of q is on the best feature
    np.testing.assert_array_equal(few.support, [np.argmax(v)])


# Kernel machines

KERNELS = ("gaussian", "laplacian", "perceptron", "gaussian+linear")


def kernel_oracle(name, X, Z, model):
    """Return the kernel between rows X and Z, with the width of a model."""
    gap = X[:, None, :] - Z[None]
    r = np.sqrt((gap**2).sum(axis=2))
    if name == "perceptron":
        return 1 - gamma_function(X.shape[1] / 2) / (
            np.sqrt(np.pi) * gamma_function((X.shape[1] + 1) / 2)
        ) * (r / model.kernel.radius)
    if name == "laplacian":
        return np.exp(-model.kernel.gamma * np.abs(gap).sum(axis=2))
    K = np.exp(-model.kernel.gamma * r**2)
    return (K + X @ Z.T) / 2 if name == "gaussian+linear" else K


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_ridge_is_that_of_scikit_learn(name):
    new = RNG.uniform(-1, 1, (50, 4))
    model = kernel_ridge(X, Y, kernel=name, alpha=0.01, fit_intercept=False)
    K = kernel_oracle(name, X, X, model)
    theirs = KernelRidge(alpha=0.01 * 120, kernel="precomputed").fit(K, Y)
    np.testing.assert_allclose(model.coef, theirs.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(
        model.predict(new), kernel_oracle(name, new, X, model) @ model.coef, atol=1e-9
    )
    assert (
        model.norm == pytest.approx(np.sqrt(model.coef @ K @ model.coef)) and model.intercept == 0
    )
    with_intercept = kernel_ridge(X, Y + 100, kernel=name, alpha=0.01)
    system = np.block([[K + 1.2 * np.eye(120), np.ones((120, 1))], [np.ones(120), 0]])
    a = np.linalg.solve(system, np.append(Y + 100, 0))
    np.testing.assert_allclose(
        np.append(with_intercept.coef, with_intercept.intercept), a, atol=1e-8
    )
    residual = K @ a[:-1] + a[-1] - Y - 100
    assert with_intercept.objective == pytest.approx(
        np.mean(residual**2) / 2 + 0.005 * a[:-1] @ K @ a[:-1]
    )
    assert with_intercept.dual_gap <= 1e-9 * with_intercept.objective


def test_the_widths_are_those_of_the_random_features():
    for name in ("gaussian", "laplacian"):
        for gamma in (None, "knn", 0.7):
            kernel = kernel_ridge(X, Y, kernel=name, gamma=gamma).kernel
            assert kernel.gamma == gamma_of(name, gamma, X)
    perceptron = resolved(srf.Perceptron(), X)
    assert kernel_ridge(X, Y, kernel="perceptron").kernel.radius == perceptron.radius
    many = perceptron.draw(40_000, 4, rng=0)
    phi = many.transform(X[:20])
    model = kernel_ridge(X, Y, kernel="perceptron")
    np.testing.assert_allclose(
        phi @ phi.T / 40_000, kernel_oracle("perceptron", X[:20], X[:20], model), atol=0.03
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_svm_is_stationary(name, intercept):
    """alpha a = -s L'(f) / n, so that a = 0 beyond the margin, and the slopes sum to 0 with an
    intercept: the optimum."""
    model = kernel_svm(
        X, LABELS, kernel=name, alpha=0.01, fit_intercept=intercept, sample_weight=COUNTS
    )
    f, a = model.decision_function(X), np.zeros(120)
    a[model.support] = model.coef
    slope = -2 * SIGNS * np.maximum(0, 1 - SIGNS * f) * COUNTS / COUNTS.mean() / 120
    np.testing.assert_allclose(0.01 * a, -slope, atol=1e-9)
    assert abs(slope.sum()) < 1e-9 or not intercept
    assert (
        0 < len(model.support) < np.count_nonzero(COUNTS)
        and model.dual_gap <= 1e-8 * model.objective
    )
    beyond = SIGNS * f > 1 + 1e-9
    assert beyond.any() and not a[beyond].any() and not a[COUNTS == 0].any()


def test_kernel_svm_is_rks_on_the_features_of_its_kernel():
    phi = srf.Linear().draw(None, 4)
    # x'z / 2 and a constant
    K = kernel_svm(X, LABELS, kernel="gaussian+linear", gamma=1e-12, alpha=0.02)
    theirs = rks(X, LABELS, features=phi, alpha=0.04 / 4, loss="squared_hinge")
    np.testing.assert_allclose(K.decision_function(X), theirs.decision_function(X), atol=1e-6)


def test_kernel_svm_of_three_classes_and_too_few_steps():
    model = kernel_svm(X, THREE, gamma=1.0)
    assert model.coef.shape == (
        3,
        len(model.support),
    ) and model.norm.shape == model.intercept.shape == (3,)
    for k, label in enumerate(model.classes):
        alone = kernel_svm(X, THREE == label, gamma=1.0)
        np.testing.assert_allclose(
            model.decision_function(X)[:, k], alone.decision_function(X), rtol=1e-10
        )
    assert np.mean(model.predict(X) == THREE) > 0.9
    with pytest.warns(srf.ConvergenceWarning, match="max_iter"):
        kernel_svm(X, LABELS, alpha=1e-6, max_iter=2)


def test_kernel_ridge_keeps_the_units_of_y():
    one, big, small = (kernel_ridge(X, scale * Y, gamma=1.0) for scale in (1.0, 1e200, 1e-200))
    np.testing.assert_allclose(big.coef / 1e200, one.coef, rtol=1e-9)
    np.testing.assert_allclose(small.coef * 1e200, one.coef, rtol=1e-9)
    assert np.isfinite(big.objective)
    with pytest.raises(ValueError, match="y must be of moderate size"):
        kernel_ridge(X, Y / np.abs(Y).max() * 1.7e308, gamma=1.0)


@pytest.mark.parametrize("function", [kernel_ridge, kernel_svm])
def test_kernel_machines_name_bad_arguments(function):
    y = Y if function is kernel_ridge else LABELS
    for changes, message in [
        ({"max_rows": 100}, r"max_rows=100 rows, got 120.*GiB"),
        ({"kernel": "cauchy"}, "kernel"),
        ({"gamma": -1.0}, "gamma"),
        ({"kernel": "perceptron", "gamma": 1.0}, "gamma"),
        ({"alpha": 0}, "alpha"),
        ({"max_rows": 0.5}, "max_rows"),
        ({"fit_intercept": 1}, "fit_intercept"),
        ({"sample_weight": np.zeros(120)}, "sample_weight"),
        ({"workers": 0}, "workers"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            function(X, y, **changes)
    with pytest.raises(ValueError, match="X must be of moderate size"):
        function(X * 1e200, y, kernel="gaussian+linear")
    with pytest.raises(ValueError, match="X must have 4 columns"):
        function(X, y).predict(X[:, :3])


# Boosting


@pytest.mark.one_case
@pytest.mark.parametrize("offset", ["surrogate", "exact"])
@pytest.mark.parametrize("loss", TARGETS)
def test_boosting_descends_to_the_optimum_over_what_it_added(loss, offset):
    seen = []
    model = boosting(
        X,
        TARGETS[loss],
        alpha=0.01,
        n_terms=25,
        loss=loss,
        offset=offset,
        tol=1e-9,
        callback=seen.append,
    )
    assert np.all(np.diff(model.info.objective) <= 0) and len(seen) == model.info.n_iter
    assert [len(info.objective) for info in seen] == list(
        range(1, len(seen) + 1)
    ) and model.info.converged
    y = Y if loss == "squared" else SIGNS
    objective = mean_loss(loss, model.decision_function(X), y) + 0.01 * np.abs(model.coef).sum()
    assert model.info.objective[-1] == pytest.approx(objective, rel=1e-9)
    again = srf.sparse_rf(
        X, TARGETS[loss], alpha=0.01, loss=loss, features=model.features, exact=True, tol=1e-9
    )
    assert again.info.objective[-1] == pytest.approx(objective, rel=1e-8)
    assert {b.activation for b in model.features.blocks} == {"sign"} and len(
        model.support
    ) <= model.info.n_drawn <= 25
    np.testing.assert_allclose([np.linalg.norm(w) for w in model.features.blocks[0].weights], 1)


@pytest.mark.slow
def test_boosting_with_exact_offsets_comes_lower():
    """The surrogate is biased, as the paper shows: it ends above what random perceptrons reach;
    exact offsets do not."""
    ends = [
        boosting(X, LABELS, alpha=0.01, n_terms=40, offset=o).info.objective[-1]
        for o in ("surrogate", "exact")
    ]
    random = srf.sparse_rf(
        X, LABELS, alpha=0.01, features="perceptron", n_components=2000, loss="squared_hinge", rng=0
    )
    assert ends[1] < ends[0] and random.info.objective[-1] < ends[0]


def test_the_exact_offset_is_the_best_of_all():
    rng = np.random.default_rng(3)
    for trial in range(20):
        f, v = np.round(rng.standard_normal(30), 1 if trial % 2 else 9), rng.standard_normal(30)
        v -= v.mean()
        c = best_threshold(f, v)
        best = max(abs(np.where(f >= t, 1, -1) @ v) for t in f)
        assert abs(np.where(f - c >= 0, 1, -1) @ v) == pytest.approx(best) and not np.any(f == c)
    rows = FEW.rows_of(X)
    v = (SIGNS - SIGNS.mean()) / 120
    scores = [
        abs(phi_oracle(WeakLearner(rows, exact).fit(v), X)[:, 0] @ v) for exact in (False, True)
    ]
    assert 0.1 < scores[0] <= scores[1] + 1e-15
    assert (
        best_threshold(np.zeros(5), np.ones(5)) < 0
        and best_threshold(np.array([1.0, 2.0]), np.array([-1.0, 1.0])) == 1.5
    )


def test_the_weak_learner_is_the_logistic_regression_of_scikit_learn():
    v = np.random.default_rng(4).standard_normal(120) + X[:, 0]
    feature = WeakLearner(FEW.rows_of(X), False).fit(v).blocks[0]
    weight = np.abs(v) / np.abs(v).mean()
    r = np.sqrt(np.mean(weight[:, None] * X**2, axis=0))
    theirs = LogisticRegression(C=1 / (120 * 1e-4), tol=1e-10, max_iter=1000).fit(
        X / r, v < 0, sample_weight=weight
    )
    t = theirs.coef_[0] / r
    np.testing.assert_allclose(feature.weights[0], t / np.linalg.norm(t), atol=1e-5)
    assert feature.offset[0] == pytest.approx(theirs.intercept_[0] / np.linalg.norm(t), abs=1e-5)


@pytest.mark.slow
def test_boosting_of_three_classes_numbers_their_features_apart():
    model = boosting(X, THREE, alpha=0.01, n_terms=15, offset="exact")
    for k, label in enumerate(model.classes):
        alone = boosting(X, THREE == label, alpha=0.01, n_terms=15, offset="exact")
        own = model.coef[k] != 0
        np.testing.assert_array_equal(model.support[own], alone.support + 15 * k)
        np.testing.assert_allclose(
            model.decision_function(X)[:, k], alone.decision_function(X), atol=1e-12
        )


def test_boosting_ends_where_nothing_violates_or_when_told():
    nothing = boosting(X, Y, alpha=10.0, n_terms=5, loss="squared")
    assert (
        len(nothing.features) == 0 and nothing.info.n_drawn == 0 and nothing.info.dual_gap < 1e-12
    )
    assert nothing.intercept == pytest.approx(Y.mean())
    constant = boosting(X, np.full(120, 3.0), alpha=1e-3, n_terms=5, loss="squared", offset="exact")
    assert len(constant.features) == 0 and constant.intercept == 3.0
    assert boosting(X, LABELS, alpha=0.01, n_terms=50).info.n_drawn < 50
    told = boosting(
        X, LABELS, alpha=0.01, n_terms=50, offset="exact", callback=lambda info: info.n_iter == 3
    )
    assert told.info.n_iter == 3


@pytest.mark.parametrize("function", [eerf, lkrf])
def test_more_features_than_are_drawn_are_refused(function):
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        function(X, Y, n_nonzero_coefs=10_001)


# What holds for every baseline

HINGE = {"loss": "squared_hinge", "features": WAVES}
EVERY = {
    "rks": (rks, LABELS, HINGE),
    "eerf": (eerf, THREE, {**HINGE, "n_nonzero_coefs": 20}),
    "lkrf": (lkrf, Y, {"features": WAVES, "n_nonzero_coefs": 20, "selection": "sample", "rng": 3}),
    "kernel_ridge": (kernel_ridge, Y, {"gamma": 1.0}),
    "kernel_ridge l1": (kernel_ridge, Y, {"kernel": "laplacian", "gamma": 1.0}),
    "kernel_ridge sum": (kernel_ridge, Y, {"kernel": "gaussian+linear", "gamma": 1.0}),
    "kernel_svm": (kernel_svm, THREE, {"kernel": "perceptron"}),
    "boosting": (boosting, LABELS, {"alpha": 0.02, "n_terms": 20, "offset": "exact"}),
}


@pytest.fixture(params=EVERY)
def fitted(request):
    """A function that fits one of the baselines, with other rows, targets or options if they are
    given."""
    function, y, options = EVERY[request.param]
    return lambda X=X, y=y, **changes: function(X, y, **{**options, **changes})


def bits(model):
    """Return the bytes of a model and of its answers."""
    return [
        np.asarray(a).tobytes()
        for a in (model.coef, model.intercept, model.support, model.decision_function(X))
    ]


@pytest.mark.one_case
def test_csr_and_dense_agree(fitted):
    sparse = np.where(np.abs(X) > 0.3, X, 0.0)
    dense, csr = fitted(sparse), fitted(csr_array(sparse))
    np.testing.assert_allclose(
        csr.decision_function(sparse), dense.decision_function(sparse), atol=1e-6
    )
    np.testing.assert_allclose(
        dense.decision_function(csr_array(sparse)), dense.decision_function(sparse), atol=1e-6
    )


@pytest.mark.one_case
def test_float32_stays_float32(fitted):
    single = fitted(X.astype(np.float32)).decision_function(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, fitted().decision_function(X), atol=5e-3)


@pytest.mark.every_case
def test_the_arguments_are_left_as_they_were_and_models_are_immutable(fitted):
    before = X.tobytes(), Y.tobytes()
    model = fitted()
    assert before == (X.tobytes(), Y.tobytes())
    assert (
        pickle.loads(pickle.dumps(model)).decision_function(X).tobytes()
        == model.decision_function(X).tobytes()
    )
    with pytest.raises(ValueError, match="read-only"):
        model.coef[...] = 0


def test_kernel_ridge_beyond_floating_point_warns():
    copies = np.repeat(X[:10], 5, axis=0)
    with pytest.warns(srf.ConvergenceWarning, match="alpha=1e-14.*raise alpha"):
        kernel_ridge(copies, np.arange(50.0), alpha=1e-14)
