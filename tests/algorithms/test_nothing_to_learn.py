"""Where rows tell nothing of y, or y varies by rounding alone, a fit is a constant: without terms,
or with coefficients of 0, and classes of the same frequency are ties, which go to the first."""

import numpy as np
import pytest

import sparserf as srf

from ..conftest import convergence_ignored

N = 60
HALF = np.random.default_rng(0).normal(size=(N, 3))
ORDER = np.random.default_rng(1).permutation(2 * N)
# each row twice, once of either side
TWICE, SIDE = np.tile(HALF, (2, 1))[ORDER], np.repeat([0, 1], N)[ORDER]
GROUPS = np.tile(np.arange(N), 2)[ORDER]
FITS = {
    "default": lambda X, y, **how: srf.sparse_rf(X, y, effort=0.1, rng=0, **how),
    "alpha": lambda X, y, **how: srf.sparse_rf(
        X, y, alpha=1e-4, features="gaussian", n_components=100, rng=0, **how
    ),
    "path": lambda X, y, **how: srf.sparse_rf_path(
        X, y, features="gaussian", n_components=100, n_alphas=3, rng=0, **how
    )[-1],
    "rules": lambda X, y, **how: srf.sparse_rf(
        X, y, alpha=1e-4, features=srf.Rules(), rng=0, **how
    ),
    "harfe": lambda X, y, **how: srf.harfe(
        X, y, n_nonzero_coefs=10, alpha=1e-4, n_components=100, rng=0, **how
    ),
    "harfe, the paper's": lambda X, y, **how: srf.harfe(
        X,
        y,
        n_nonzero_coefs=10,
        activation="sin",
        alpha=1e-4,
        n_components=100,
        backtracking=False,
        start="zero",
        rng=0,
        **how,
    ),
    "mfga": lambda X, y, **how: srf.mfga(X, y, n_nonzero_coefs=10, alpha=1e-3, rng=0, **how),
    "drp": lambda X, y, **how: srf.drp(X, y, alpha=1e-3, rng=0, **how),
}
TARGETS = {
    "squared": 2.5 * SIDE - 1.5,
    "huber": 3 + 0.1 * SIDE,
    "quantile": 4.0 * SIDE - 1,
    "poisson": 1.0 + SIDE,
    "tweedie": 3.0 * SIDE,
    "gamma": 1.0 + SIDE,
    "logistic": SIDE,
    "squared_hinge": SIDE,
    "multinomial": SIDE,
}


def is_constant(model, X):
    """Return whether a model has no terms, or coefficients of 0, and so one prediction."""
    return not model.coef.any() and len(np.unique(model.predict(X))) == 1


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("loss", TARGETS)
def test_rows_that_are_there_with_both_targets_tell_nothing(loss, fit):
    how = {"groups": GROUPS} if fit == "default" else {}
    with convergence_ignored():
        model = FITS[fit](TWICE, TARGETS[loss], loss=loss, **how)
    assert is_constant(model, TWICE)
    if model.classes is not None:
        assert (model.predict(TWICE) == 0).all()


@pytest.mark.parametrize("noise", [1e-16, 1e-15])
@pytest.mark.parametrize("size", [1.0, 1e-5, 1 / 3, 1e29])
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "poisson", "tweedie", "gamma"])
def test_a_target_that_varies_by_rounding_is_a_constant(loss, fit, size, noise):
    y = size * (1 + noise * np.random.default_rng(2).normal(size=N))
    model = FITS[fit](HALF, y, loss=loss)
    assert is_constant(model, HALF)
    np.testing.assert_allclose(model.predict(HALF), y, rtol=1e-13)


@pytest.mark.parametrize("fit", FITS)
def test_ridge_residual_of_offsets_is_rounding_too(fit):
    offset = np.random.default_rng(3).normal(size=N)
    assert is_constant(FITS[fit](HALF, (offset + 1 / 3) - 1 / 3, offset=offset), HALF)


def test_little_that_is_more_than_rounding_is_learned():
    y = 1e6 + 1e-6 * (HALF[:, 0] > 0)
    for name in ("path", "harfe", "mfga", "drp", "default"):
        found = FITS[name](HALF, y).predict(HALF) - 1e6
        assert np.corrcoef(found, y - 1e6)[0, 1] > 0.6, name


@pytest.mark.parametrize("n", [20, 60, 200, 400])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "tweedie", "poisson", "squared"])
def test_one_row_of_a_class_or_one_event_is_no_term_worth_rounding(loss, seed, n):
    X, y = np.random.default_rng(seed).normal(size=(n, 3)), np.zeros(n)
    y[3] = 1 if loss in ("logistic", "squared_hinge") else 2.5
    model = srf.sparse_rf(X, y, loss=loss, effort=0.1, rng=0)
    assert not len(model.features) or np.ptp(model.decision_function(X)) > 1e-3


# Ties


def balanced(n_classes, n):
    """Return labels of as many classes, of which the last have one row less where n asks for it."""
    return np.arange(n) % n_classes


@pytest.mark.parametrize("fit", ["default", "alpha"])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "multinomial"])
@pytest.mark.parametrize("left_out", [None, 0, 1, 2, 5])
def test_classes_of_the_same_weight_are_ties_and_go_to_the_first(left_out, loss, n_classes, fit):
    """One row is left out, whose class is then rarer, and weights make up for it: no label is told
    by which row that is."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(6 * n_classes, 2)), balanced(n_classes, 6 * n_classes)
    rows = np.arange(len(y)) != (len(y) if left_out is None else left_out)
    how = {"alpha": 5.0, "features": "gaussian", "n_components": 20} if fit == "alpha" else {}
    how |= {"effort": 0.02} if fit == "default" else {}
    model = srf.sparse_rf(X[rows] * 0, y[rows], loss=loss, class_weight="balanced", rng=0, **how)
    assert len(model.features) == 0
    assert (model.predict(X) == 0).all()
    f = model.decision_function(X[:1])
    assert (f == 0).all() if n_classes == 2 else len(np.unique(f)) == 1
    assert (model.to_estimator().predict(X) == 0).all()


def test_frequencies_that_differ_by_little_are_no_ties():
    n = 4_001
    y = np.arange(n) % 2 == 0  # one True more
    model = srf.sparse_rf(
        np.zeros((n, 1)), y, alpha=1.0, features=srf.Linear(), rng=0, loss="logistic"
    )
    assert model.predict(np.zeros((1, 1)))[0]
    y = np.arange(3 * n) % 3
    y[0] = 2
    model = srf.sparse_rf(
        np.zeros((3 * n, 1)), y, alpha=1.0, features=srf.Linear(), rng=0, loss="multinomial"
    )
    assert model.predict(np.zeros((1, 1)))[0] == 2
