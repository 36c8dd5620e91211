"""Features whose coefficients must be at least 0: the optimum under this constraint, its gap, and
that no method breaks it."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso

import sparserf as srf
from sparserf.algorithms.prune import LeastSquares, best_terms
from sparserf.features import FeatureSet
from sparserf.losses import LOSSES, Huber

from ..conftest import bits, examples, ignore_convergence, l1_oracle, phi_oracle

N, D = 200, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
F = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0)
WEIGHT = RNG.uniform(0.2, 2, N)
TARGETS = {
    "squared": F + 0.1 * RNG.standard_normal(N),
    "huber": F + 0.1 * RNG.standard_t(2, N),
    "logistic": np.where(F > 0, 1, -1),
    "poisson": RNG.poisson(np.exp(0.5 * F)).astype(float),
}
OF_NAME = {name: LOSSES[name] for name in TARGETS} | {"huber": Huber(0.7)}


def neurons(n, nonnegative, activation="tanh", seed=1, d=D):
    """Draw neurons whose coefficients must be at least 0, or may be of any sign."""
    drawn = srf.RandomNeurons(activation).draw(n, d, rng=seed)
    return FeatureSet([replace(block, nonnegative=nonnegative) for block in drawn.blocks], d)


MIXED = neurons(60, True).concat(neurons(60, False, "cos", 2))
MIXED = MIXED.take(np.random.default_rng(3).permutation(len(MIXED)))


def check_signs(model):
    """Check that no coefficient is negative that must not be, and that some of both kinds are
    there."""
    nonnegative = model.features.nonnegative
    coef = np.atleast_2d(model.coef)
    assert (coef[:, nonnegative] >= 0).all()
    assert nonnegative.any() and (coef[:, ~nonnegative] < 0).any()


def smallest(name, phi, alpha, nonnegative, weight):
    """Return the least objective by L-BFGS-B."""
    loss, y, s = OF_NAME[name], TARGETS[name], weight / weight.mean()

    def value_and_slopes(z):
        return np.mean(s * loss.value(z, y)), s * loss.derivative(z, y) / N

    return l1_oracle(value_and_slopes, phi, alpha, nonnegative=nonnegative).fun


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "Algorithm 1"])
@pytest.mark.parametrize("layout", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_l1_optimum_is_that_of_scipy(name, layout, exact):
    """Over features of both kinds, in one batch and in many."""
    for weight, batch_size in ((np.ones(N), 120), (WEIGHT, 17)):
        how = {"alpha": 0.01, "loss": OF_NAME[name], "tol": 1e-7, "sample_weight": weight}
        model = srf.sparse_rf(
            layout(X), TARGETS[name], features=MIXED, exact=exact, batch_size=batch_size, **how
        )
        check_signs(model)
        if exact or batch_size == 120:
            best = smallest(name, phi_oracle(MIXED, X), 0.01, MIXED.nonnegative, weight)
            assert model.info.converged
            assert best - 1e-7 <= model.info.objective[-1] <= best + model.info.dual_gap + 1e-7


@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.001])
def test_the_l1_optimum_is_that_of_scikit_learn(alpha):
    features, y = neurons(100, True), TARGETS["squared"]
    phi = phi_oracle(features, X)
    expected = Lasso(alpha=alpha, positive=True, tol=1e-12, max_iter=10**6).fit(phi, y)
    model = srf.sparse_rf(X, y, features=features, alpha=alpha, exact=True, tol=1e-9)
    np.testing.assert_array_equal(model.support, np.flatnonzero(expected.coef_))
    np.testing.assert_allclose(model.coef, expected.coef_[model.support], atol=1e-5)


@examples(20)
@given(
    st.integers(0, 10**6),
    st.sampled_from(sorted(TARGETS)),
    st.sampled_from([0.1, 0.01]),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_gap_bounds_the_distance_to_the_optimum(seed, name, alpha, share):
    """Of any fit that ends early, beside one that goes on for long, and the signs are right on the
    way."""
    n_signed = int(40 * share)
    features = neurons(n_signed, True, seed=seed).concat(
        neurons(40 - n_signed, False, "cos", seed + 1)
    )
    rows = np.random.default_rng(seed).choice(N, 120)
    how = {"features": features, "loss": name, "exact": True, "alpha": alpha, "batch_size": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = srf.sparse_rf(X[rows], TARGETS[name][rows], tol=1e-9, **how)
        for max_iter in (1, 3, 6):
            early = srf.sparse_rf(X[rows], TARGETS[name][rows], max_iter=max_iter, **how)
            assert (
                early.info.objective[-1] - best.info.objective[-1]
                <= early.info.dual_gap * (1 + 1e-9) + 1e-12
            )
            assert (early.coef[early.features.nonnegative] >= 0).all()
    assert best.info.dual_gap <= 1e-8 * best.info.objective[-1] + 1e-12


def test_the_largest_penalty_of_a_path_is_that_of_usable_slopes():
    """Here the steepest feature could only be subtracted, which it must not be."""
    features = neurons(50, True)
    y = TARGETS["squared"] - 3 * phi_oracle(features, X)[:, 7]
    slopes = phi_oracle(features, X).T @ (y.mean() - y) / N
    assert slopes.max() > -slopes.min() > 0
    least = -slopes.min()
    none, one = srf.sparse_rf_path(
        X, y, features=features, exact=True, alphas=[1.001 * least, 0.95 * least]
    )
    assert len(none.coef) == 0 < len(one.coef)
    path = srf.sparse_rf_path(X, y, features=features, exact=True, n_alphas=3)
    assert path[0].info.alpha == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_rows_in_chunks_and_in_single_precision(dtype, name):
    Z, y = X.astype(dtype), TARGETS[name]
    best = smallest(name, phi_oracle(MIXED, Z), 0.01, MIXED.nonnegative, np.ones(N))
    for rows in (Z, srf.Chunks(Z, block_rows=70)):
        model = srf.sparse_rf(rows, y, features=MIXED, alpha=0.01, loss=name, tol=1e-4)
        check_signs(model)
        assert model.info.objective[-1] <= best + model.info.dual_gap + 1e-5


@pytest.mark.parametrize(
    "how",
    [{}, {"alpha": 0.003}, {"alpha": 0.003, "features": MIXED}],
    ids=["search", "auto", "given"],
)
def test_start_keeps_signs(how):
    y = TARGETS["squared"]
    one = srf.sparse_rf(X, y, features=MIXED, alpha=0.02)
    check_signs(srf.sparse_rf(X, y + X[:, 3], start=one, rng=0, **how))


def test_a_start_of_wrong_signs_is_refused():
    one = srf.sparse_rf(X, TARGETS["squared"], features=neurons(30, True), alpha=0.02)
    with pytest.raises(
        ValueError, match=f"start must have coefficients of at least 0 .* got {len(one.coef)} below"
    ):
        srf.sparse_rf(X, TARGETS["squared"], start=replace(one, coef=-one.coef))


def test_the_mean_of_a_search_keeps_flags_and_signs():
    model = srf.sparse_rf(X, TARGETS["squared"], features=MIXED, rng=0)
    check_signs(model)
    index = model.support
    np.testing.assert_array_equal(model.features.nonnegative, MIXED.nonnegative[index])


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    "how",
    [
        {"tol": 0.1},
        {"tol": 1e-3},
        {"max_terms": 5},
        {"max_terms": 30},
        {"max_order": 2},
        {"readable": True},
    ],
    ids=str,
)
def test_pruned_models_keep_signs(n_outputs, how):
    y = np.column_stack([TARGETS["squared"], -X[:, 0]])[:, :n_outputs].squeeze()
    model = srf.sparse_rf(X, y, features=MIXED, alpha=0.003)
    small = srf.prune(model, X, **how)
    assert (
        np.atleast_2d(small.coef)[:, small.features.nonnegative] >= 0
    ).all() and small.features.nonnegative.any()
    assert len(small.support) < len(model.support) and np.atleast_2d(small.coef).any(axis=0).all()
    f, g = (np.asarray(each.predict(X)).reshape(N, -1) for each in (model, small))
    change = ((f - g) ** 2).mean(axis=0).sum() / f.var(axis=0).sum()
    if set(how) == {"tol"}:
        assert change <= how["tol"] * (1 + 1e-9)
    if set(how) <= {"tol", "max_terms"}:  # the coefficients are the best of these signs
        phi = phi_oracle(small.features, X)
        least = np.where(small.features.nonnegative, 0, -np.inf)
        for k, coef in enumerate(np.atleast_2d(small.coef)):
            fit = lsq_linear(
                phi - phi.mean(axis=0), f[:, k] - f[:, k].mean(), (least, np.inf), tol=1e-13
            )
            np.testing.assert_allclose(coef, fit.x, atol=1e-5 * abs(coef).max())


@pytest.mark.parametrize("seed", range(12))
def test_terms_are_taken_until_coefficients_of_their_sign_suffice(seed):
    """The target is a sum of nonnegative multiples of collinear features, so that many orders of
    terms need negative ones."""
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((80, 1)) + rng.standard_normal((80, 25))
    signs, w = rng.random(25) < 0.8, rng.exponential(size=(1, 25))
    G = phi.T @ phi / 80
    c, variance, least = w @ G, float((w @ G @ w.T).item()), 1e-9 * G.diagonal()
    before = 0
    for share in (0.1, 1e-2, 1e-3, 1e-5):
        S, coef = best_terms(LeastSquares(G, c, variance, least, signs), 25, share * variance)
        step = w[0].copy()
        step[S] -= coef[0]
        assert (coef[:, signs[S]] >= 0).all() and coef.any(axis=0).all() and before <= len(S) <= 25
        assert step @ G @ step <= share * variance * (1 + 1e-9)
        before = len(S)
    positive = np.where(signs & (c[0] <= 0), 0, c[0] ** 2 / G.diagonal()).argmax()
    assert best_terms(LeastSquares(G, c, variance, least, signs), 1, 0.0)[0].tolist() == [positive]
    opposite = np.where(signs & (c[0] >= 0), 0, c[0] ** 2 / G.diagonal()).argmax()
    assert best_terms(LeastSquares(G, -c, variance, least, signs), 1, 0.0)[0].tolist() == [opposite]


@ignore_convergence
@pytest.mark.parametrize("backtracking", [True, False])
@pytest.mark.parametrize("start", ["greedy", "zero"])
@pytest.mark.parametrize("selection", ["magnitude", "positive"])
@pytest.mark.parametrize("name", TARGETS)
def test_harfe_keeps_signs_and_its_objective_never_rises(name, selection, start, backtracking):
    seen = []
    how = {"features": MIXED, "loss": name, "alpha": 1e-3, "n_nonzero_coefs": 30, "tol": 0.0}
    model = srf.harfe(
        X,
        TARGETS[name],
        selection=selection,
        start=start,
        backtracking=backtracking,
        callback=seen.append,
        **how,
    )
    assert (model.coef[model.features.nonnegative] >= 0).all() and model.features.nonnegative.any()
    assert (model.coef < 0).any() == (selection == "magnitude")
    assert np.diff(model.info.objective).max(initial=0) <= 1e-10
    assert model.info.dual_gap >= 0


@pytest.mark.parametrize("backtracking", [True, False])
def test_harfe_drops_what_ridge_regression_makes_negative(backtracking):
    """Both inputs are correlated with y, and together the second is to be subtracted."""
    x = RNG.standard_normal(N)
    Z = np.column_stack([x, x + 0.3 * RNG.standard_normal(N)])
    features = FeatureSet(
        [replace(block, nonnegative=True) for block in srf.Linear().draw(None, 2).blocks], 2
    )
    how = {"features": features, "n_nonzero_coefs": 2, "tol": 0.0, "backtracking": backtracking}
    model = srf.harfe(Z, 2 * Z[:, 0] - Z[:, 1], **how)
    assert (model.support.tolist(), model.info.converged) == ([0], True)
    assert model.coef > 0
    with pytest.warns(srf.ConvergenceWarning):  # the first step is on both
        first = srf.harfe(Z, 2 * Z[:, 0] - Z[:, 1], start="zero", max_iter=1, **how)
    assert first.support.tolist() == [0]


def test_harfe_counts_only_entries_of_the_right_sign():
    """The first feature, which could only be subtracted, takes no place."""
    features = FeatureSet(
        [replace(block, nonnegative=True) for block in srf.Linear().draw(None, D).blocks], D
    )
    model = srf.harfe(
        X,
        -5 * X[:, 0] + X[:, 1] + 0.5 * X[:, 2],
        features=features,
        n_nonzero_coefs=1,
        alpha=1e-4,
        start="zero",
        tol=0.0,
    )
    assert model.support.tolist() == [1]


def test_harfe_ends_where_no_term_of_the_right_sign_helps():
    y = -np.tanh(X @ np.ones(D))
    (block,) = neurons(1, True).blocks
    features = FeatureSet([replace(block, weights=np.ones((1, D)), offset=np.zeros(1))], D)
    assert (
        len(srf.harfe(X, y, features=features, n_nonzero_coefs=1, alpha=1e-4, tol=0.0).support) == 0
    )
    assert (
        len(srf.harfe(X, -y, features=features, n_nonzero_coefs=1, alpha=1e-4, tol=0.0).support)
        == 1
    )
    assert len(srf.sparse_rf(X, y, features=features, alpha=1e-6).support) == 0


def test_a_mask_of_the_other_features_gives_another_model():
    """What these tests check has the power to fail: the constraints bind."""
    flipped = FeatureSet(
        [replace(block, nonnegative=not block.nonnegative) for block in MIXED.blocks],
        D,
        MIXED.order,
    )
    free = FeatureSet([replace(block, nonnegative=False) for block in MIXED.blocks], D, MIXED.order)
    for method in (
        partial(srf.sparse_rf, alpha=0.01),
        partial(srf.harfe, n_nonzero_coefs=30, alpha=1e-4),
    ):
        model, other, unbound = (
            method(X, F, features=features) for features in (MIXED, flipped, free)
        )
        assert (other.coef[MIXED.nonnegative[other.support]] < 0).any()
        assert (unbound.coef[MIXED.nonnegative[unbound.support]] < 0).any()
        assert unbound.info.objective[-1] < min(model.info.objective[-1], other.info.objective[-1])


@pytest.mark.parametrize("nonnegative", [True, False])
def test_constraints_that_do_not_bind_change_next_to_nothing(nonnegative):
    """Where all coefficients are positive anyway, and bits where there are none."""
    features = neurons(5, nonnegative)
    y = phi_oracle(features, X).sum(axis=1)
    model = srf.sparse_rf(X, y, features=features, alpha=1e-4, exact=True, tol=1e-9)
    free = srf.sparse_rf(X, y, features=neurons(5, False), alpha=1e-4, exact=True, tol=1e-9)
    assert (free.coef > 0).all()
    np.testing.assert_allclose(model.predict(X), free.predict(X), atol=1e-4)
    if not nonnegative:
        assert bits(model) == bits(free)


def test_methods_that_may_give_any_sign_refuse_such_features():
    labels = np.arange(N) % 3
    one = srf.sparse_rf(X, labels, features=MIXED, alpha=0.1, loss="logistic")
    for call in (
        lambda: srf.mfga(X, F, features=MIXED),
        lambda: srf.Sums.of(X, F, MIXED),
        lambda: srf.harfe(X, labels, features=MIXED, loss="multinomial"),
        lambda: srf.sparse_rf(X, labels, features=MIXED, loss="multinomial", alpha=0.1),
        lambda: srf.sparse_rf(X, labels, features=MIXED, loss="multinomial"),
    ):
        with pytest.raises(
            ValueError, match=r"features must take coefficients of any sign in .*, got 60"
        ):
            call()
    assert (one.coef[:, one.features.nonnegative] >= 0).all()


def test_terms_of_one_sign_keep_it_in_each_class():
    labels = np.digitize(F, [-0.5, 0.5])
    model = srf.sparse_rf(X, labels, features=MIXED, loss="logistic", rng=0)
    of_one_sign = model.coef[:, model.features.nonnegative]
    assert (of_one_sign >= 0).all() and (of_one_sign > 0).any()
