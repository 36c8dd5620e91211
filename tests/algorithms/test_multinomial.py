"""The multinomial loss, of all classes together, in every algorithm: against plain NumPy and
scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import sparserf as srf
from sparserf.losses import Multinomial

from ..conftest import n_examples

LOSS = Multinomial()
FITS = {
    "sparse_rf": lambda X, y, **how: srf.sparse_rf(
        X,
        y,
        **{
            "features": "gaussian",
            "gamma": 0.3,
            "n_components": 200,
            "alpha": 0.01,
            "rng": 0,
            **how,
        },
    ),
    "exact": lambda X, y, **how: srf.sparse_rf(
        X,
        y,
        **{
            "features": "gaussian",
            "gamma": 0.3,
            "n_components": 200,
            "alpha": 0.01,
            "exact": True,
            "rng": 0,
            **how,
        },
    ),
    "harfe": lambda X, y, **how: srf.harfe(
        X,
        y,
        **{"n_components": 200, "n_nonzero_coefs": 6, "order": 2, "alpha": 1e-3, "rng": 0, **how},
    ),
    "mfga": lambda X, y, **how: srf.mfga(X, y, **{"n_nonzero_coefs": 6, "rng": 0, **how}),
    "drp": lambda X, y, **how: srf.drp(X, y, **{"alpha": 0.01, "rng": 0, "scale": None, **how}),
}
each = pytest.mark.parametrize("name", FITS)


def data(n=240, d=4, n_classes=3, seed=0, noise=0.7):
    """Return rows and labels of classes that are functions of the rows, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(X @ rng.normal(size=(d, n_classes))) * 2 + noise * rng.gumbel(size=(n, n_classes))
    return X, f.argmax(axis=1)


def signs(label, n_classes):
    """Return the targets of each class: 1 where a row is of it, else -1."""
    return np.where(np.arange(n_classes)[:, None] == label, 1.0, -1.0)


def mean_loss(f, y, weight=None):
    """Return the mean of minus the log of the softmax share of each label."""
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    return np.mean(weight * (logsumexp(f, axis=1) - f[np.arange(len(y)), y]))


margins = arrays(float, (3, 5), elements=st.floats(-30, 30))
labels = arrays(int, 5, elements=st.integers(0, 2))


@settings(max_examples=n_examples(100))
@given(z=margins, label=labels)
def test_the_loss_of_a_row_is_minus_the_log_of_its_share(z, label):
    y = signs(label, 3)
    expected = -np.log(softmax(z, axis=0))[label, np.arange(5)]
    np.testing.assert_allclose(LOSS.value(z, y).sum(axis=0), expected, rtol=1e-10, atol=1e-12)


@settings(max_examples=n_examples(100))
@given(z=arrays(float, (3, 5), elements=st.floats(-4, 4)), label=labels)
def test_derivative_and_curvature_are_those_of_the_value(z, label):
    y, step = signs(label, 3), 1e-5
    for k in range(3):
        e = np.zeros((3, 1))
        e[k] = step
        up, down = (LOSS.value(z + t * e, y).sum(axis=0) for t in (1, -1))
        np.testing.assert_allclose(LOSS.derivative(z, y)[k], (up - down) / (2 * step), atol=1e-8)
        up, down = (LOSS.derivative(z + t * e, y)[k] for t in (1, -1))
        np.testing.assert_allclose(LOSS.curvature(z, y)[k], (up - down) / (2 * step), atol=1e-8)


@settings(max_examples=n_examples(20), deadline=None)
@given(p=arrays(float, 3, elements=st.floats(0.05, 1)), label=st.integers(0, 2))
def test_the_conjugate_is_a_numeric_one(p, label):
    y, p = signs(np.array([label]), 3), p[:, None] / p.sum()
    u = p - (y > 0)
    found = minimize(
        lambda z: LOSS.value(z[:, None], y).sum() - z @ u[:, 0], np.zeros(3), tol=1e-10
    )
    np.testing.assert_allclose(LOSS.conjugate(u, y).sum(), -found.fun, atol=1e-6)


@settings(max_examples=n_examples(100))
@given(z=margins, label=labels, c=st.floats(0, 1))
def test_fenchel_and_young(z, label, c):
    y = signs(label, 3)
    u = LOSS.derivative(z, y)
    product, pair = (
        (c * u * z).sum(axis=0),
        (LOSS.value(z, y) + LOSS.conjugate(c * u, y)).sum(axis=0),
    )
    assert (pair >= product - 1e-9).all()
    if c == 1:
        np.testing.assert_allclose(pair, product, atol=1e-9)


def objective(model, X, y, penalty):
    """Return the mean loss of a model plus a penalty on its coefficients."""
    return mean_loss(model.decision_function(X), y) + penalty(model.coef)


@pytest.mark.parametrize("alpha", [0.03, 0.003])
@pytest.mark.parametrize("exact", [False, True])
def test_l1_fits_are_those_of_scikit_learn(alpha, exact):
    linear = pytest.importorskip("sklearn.linear_model")
    X, y = data()
    how = {"C": 1 / (len(y) * alpha), "solver": "saga", "tol": 1e-9, "max_iter": 100_000}
    other = linear.LogisticRegression(
        **({"l1_ratio": 1.0} if _version() >= (1, 8) else {"penalty": "l1"}), **how
    ).fit(X, y)
    model = srf.sparse_rf(
        X,
        y,
        features=srf.Linear(),
        scale=None,
        loss="multinomial",
        alpha=alpha,
        exact=exact,
        tol=1e-8,
        rng=0,
    )
    expected = mean_loss(other.decision_function(X), y) + alpha * np.abs(other.coef_).sum()
    assert abs(objective(model, X, y, lambda w: alpha * np.abs(w).sum()) / expected - 1) < 1e-7
    assert model.info.converged and abs(model.info.objective[-1] / expected - 1) < 1e-7
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-4)


def _version():
    """Return the version of scikit-learn."""
    import sklearn

    return tuple(map(int, sklearn.__version__.split(".")[:2]))


@pytest.mark.parametrize("alpha", [1.0, 0.01, 1e-4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_drp_has_the_coefficients_of_scikit_learn(alpha, fit_intercept):
    linear = pytest.importorskip("sklearn.linear_model")
    X, y = data()
    C = 1 / (len(y) * alpha)
    other = linear.LogisticRegression(
        C=C, tol=1e-10, solver="newton-cg", max_iter=5000, fit_intercept=fit_intercept
    ).fit(X, y)
    how = {"loss": "multinomial", "scale": None, "fit_intercept": fit_intercept}
    model = srf.drp(X, y, alpha=alpha, **how, rng=0)
    error = np.linalg.norm(model.coef - other.coef_) / np.linalg.norm(other.coef_)
    assert model.info.converged and error < model.info.error_bound + 1e-7
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_drp_of_many_inputs_uses_one_sketch(alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12)) @ rng.normal(size=(12, 900)) * np.geomspace(1, 1e-2, 900)
    y = X[:, :3].argmax(axis=1)
    how = {"alpha": alpha, "loss": "multinomial", "tol": 1e-6, "rng": 0}
    plain, sketched = (srf.drp(X, y, n_projections=m, **how) for m in (None, 60))
    assert plain.info.converged and sketched.info.converged and sketched.info.n_projections >= 60
    assert np.linalg.norm(plain.coef - sketched.coef) < 2e-6 * np.linalg.norm(plain.coef)


@each
def test_two_classes_are_the_logistic_loss(name):
    X, y = data(n_classes=2)
    one, other = (FITS[name](X, y, loss=loss) for loss in ("multinomial", "logistic"))
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert (one.loss, one.link) == ("multinomial", "softmax")


# harfe, whose classes take turns, finds other supports
@pytest.mark.parametrize("name", ["sparse_rf", "exact", "mfga", "drp"])
def test_the_order_of_classes_does_not_matter(name):
    X, y = data()
    one = FITS[name](X, y, loss="multinomial", tol=1e-7 if name != "mfga" else None)
    order = np.array([2, 0, 1])
    other = FITS[name](X, order[y], loss="multinomial", tol=1e-7 if name != "mfga" else None)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, order], atol=2e-3)


@each
def test_probabilities_are_shares_and_better_than_none(name):
    X, y = data(n=400)
    model = FITS[name](X, y, loss="multinomial")
    p = model.predict_proba(X)
    np.testing.assert_allclose(p, softmax(model.decision_function(X), axis=1), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    share = np.bincount(y) / len(y)
    assert mean_loss(model.decision_function(X), y) < -share @ np.log(share) - 0.05
    # The intercepts make the mean probability of a class its share of the rows.
    np.testing.assert_allclose(p.mean(axis=0), share, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["harfe", "mfga"])
def test_the_coefficients_are_the_best_on_the_supports(name):
    X, y = data()
    model = FITS[name](X, y, loss="multinomial", alpha=1e-2)
    phi, there = model.features.transform(X), model.coef != 0
    r = np.sqrt(np.mean(phi**2, axis=0)) if name == "harfe" else np.ones(phi.shape[1])

    def value(x):
        w = np.zeros(model.coef.shape)
        w[there] = x[: there.sum()]
        return mean_loss(phi @ w.T + x[there.sum() :], y) + 0.5 * 1e-2 * ((w * r) ** 2).sum()

    start = np.concatenate([model.coef[there], model.intercept])
    best = minimize(value, start, tol=1e-12).fun
    assert abs(value(start) - model.info.objective[-1]) < 1e-9
    assert value(start) - best < 1e-5 * best


@pytest.mark.slow
def test_mfga_has_one_support_and_harfe_one_a_class():
    X, y = data()
    assert FITS["mfga"](X, y, loss="multinomial").coef.shape == (3, 6)
    coef = FITS["harfe"](X, y, loss="multinomial").coef
    assert (np.count_nonzero(coef, axis=1) == 6).all()


@settings(max_examples=n_examples(10), deadline=None)
@given(
    seed=st.integers(0, 1000), alpha=st.sampled_from([0.1, 0.03, 0.01]), n_classes=st.integers(3, 5)
)
def test_the_gap_is_a_bound(seed, alpha, n_classes):
    X, y = data(n=80, n_classes=n_classes, seed=seed)
    y[:n_classes] = np.arange(n_classes)
    how = {"features": srf.Linear(), "loss": "multinomial", "alpha": alpha, "rng": 0}
    best = srf.sparse_rf(X, y, tol=1e-6, **how)
    rough = srf.sparse_rf(X, y, tol=0.5, **how)
    excess = rough.info.objective[-1] - best.info.objective[-1]
    assert -2e-6 <= excess <= rough.info.dual_gap + 1e-12


@pytest.mark.parametrize("name", ["exact", "harfe", "mfga", "drp"])
def test_csr_is_dense(name):
    X, y = data(n=300)
    how = {"loss": "multinomial"} | ({} if name == "drp" else {"scale": None})
    one, other = FITS[name](X, y, **how), FITS[name](sp.csr_array(X), y, **how)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-5)


@each
def test_paths_and_callbacks(name):
    X, y = data(n=80)
    seen = []
    model = FITS[name](X, y, loss="multinomial", callback=lambda info: seen.append(info))
    assert (
        seen
        and seen[-1].n_nonzero == model.info.n_nonzero
        and all(np.diff(model.info.objective) <= 0)
    )
    ended = FITS[name](X, y, loss="multinomial", callback=lambda info: True)
    assert ended.predict_proba(X).shape == (80, 3)


@pytest.mark.slow
def test_the_default_learns():
    X, y = data(n=300, noise=0.2)
    model = srf.sparse_rf(X, y, loss="multinomial", n_components=100, rng=0)
    assert mean_loss(model.decision_function(X), y) < 0.6 and model.info.converged


def test_its_formula_says_what_it_is():
    X, y = data()
    text = FITS["sparse_rf"](X, np.array(["a", "b", "c"])[y], loss="multinomial").formula()
    assert "f[b] = " in text and "is its exp(f)" in text


def test_what_is_not_offered_is_named():
    X, y = data()
    with pytest.raises(ValueError, match="accelerate"):
        FITS["drp"](X, y, loss="multinomial", accelerate=False, n_projections=10)
    with pytest.raises(ValueError, match="best_phase"):
        FITS["mfga"](X, y, loss="multinomial", best_phase=True, features="gaussian")
    with pytest.raises(ValueError, match="backtracking"):
        FITS["harfe"](X, y, loss="multinomial", backtracking=False)


MORE = {
    "found terms": lambda X, y: srf.mfga(
        X, y, features="auto", n_nonzero_coefs=5, alpha=1e-3, loss="multinomial", rng=0
    ),
    "harfe_path": lambda X, y: srf.harfe_path(
        X, y, n_nonzero_coefs=[2, 5], n_components=100, loss="multinomial", rng=0
    )[-1],
    "path of auto": lambda X, y: srf.sparse_rf_path(
        X, y, n_alphas=3, alpha_min_ratio=0.05, n_components=1000, loss="multinomial", rng=0
    )[-1],
    "drp_path": lambda X, y: srf.drp_path(X, y, alphas=[0.1, 0.001], loss="multinomial", rng=0)[-1],
    "pruned": lambda X, y: srf.prune(FITS["sparse_rf"](X, y, loss="multinomial"), X, max_terms=10),
    "validated": lambda X, y: (
        srf.cross_validate(
            srf.mfga, X, y, {"n_nonzero_coefs": [3, 6], "loss": ["multinomial"]}, cv=3, rng=0
        ).model
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_every_other_function_fits_it(name):
    X, y = data(n=200)
    model = MORE[name](X, y)
    assert (
        model.info.converged and model.link == "softmax" and np.mean(model.predict(X) == y) > 0.65
    )
