"""drp and drp_path against scikit-learn, and themselves where the result must not change; its steps
and what it asks of the rows. The bounds of the paper are among the invariants."""

from functools import partial

import numpy as np
import pytest
from numpy.linalg import norm
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import sparserf as srf
from sparserf.algorithms.drp_fit import NewtonFit

from ..conftest import each_intercept
from ..invariants.problems import LINEAR_LOSSES, low_rank

D = 150
# as other solvers see the columns
drp, drp_path = partial(srf.drp, scale=None), partial(srf.drp_path, scale=None)


each_loss = pytest.mark.parametrize("loss", LINEAR_LOSSES)
each_accelerate = pytest.mark.parametrize("accelerate", [False, True])
SMALL = 1e-7  # relative to |w*|: above the accuracy of the reference and of the projected problem


def star(X, y, alpha, loss, **options):
    """Return the optimum w* of the problem, from the accelerated fit."""
    model = drp(
        X, y, alpha=alpha, loss=loss, **{"fit_intercept": False, "tol": 1e-8, "rng": 1, **options}
    )
    assert model.info.converged
    return model.coef


@pytest.mark.parametrize("alpha", [1.0, 0.01])
@pytest.mark.parametrize("n", [60, 200])
def test_optimum_is_that_of_other_solvers(n, alpha):
    """w* is the closed form and scikit-learn's, for few rows (a sketch of the rows) and many
    (moments of the inputs)."""
    X, y = low_rank(0, "squared", n)
    w = star(X, y, alpha, "squared")
    assert norm(w - np.linalg.solve(X.T @ X + n * alpha * np.eye(D), X.T @ y)) <= SMALL * norm(w)
    ridge = Ridge(alpha=n * alpha, fit_intercept=False, solver="cholesky").fit(X, y).coef_
    assert norm(w - ridge) <= SMALL * norm(w)
    _, y = low_rank(0, "logistic", n)
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


# What drp does beyond the paper


@each_loss
@pytest.mark.parametrize(("n", "d"), [(400, 150), (80, 1000)])
def test_accelerated_whatever_the_projection(loss, n, d):
    """The accelerated fit gives the same w, to its own bound, for any R and any number of its
    columns."""
    X, y = low_rank(7, loss, n, d, np.sqrt(n) * 3.0 / np.arange(1, 51))
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


def test_too_few_projections_diverge():
    X, y = low_rank(9, "squared", 100, 200, 20.0 / np.arange(1, 41) ** 0.2)
    with pytest.warns(srf.ConvergenceWarning, match="diverges"):
        drp(X, y, alpha=1e-3, accelerate=False, n_projections=10, rng=0)
    with pytest.warns(srf.ConvergenceWarning, match="raise n_iter"):
        drp(X, y, alpha=10.0, accelerate=False, n_projections=2000, n_iter=1, rng=0)


@pytest.mark.parametrize("more", [{}, {"projection": "srht", "n_projections": 257}])
def test_the_iteration_of_the_paper_needs_projections_and_not_too_many(more):
    X, y = low_rank(0, "squared")
    with pytest.raises(ValueError, match="n_projections"):
        drp(X, y, alpha=1.0, accelerate=False, **more)


@each_accelerate
@pytest.mark.slow
def test_several_outputs_and_classes(accelerate):
    """Each output, and each class against the rest, has the coefficients of a fit of its own."""
    X, y = low_rank(10, "squared", 120)
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
    for loss in LINEAR_LOSSES[1:]:
        model = drp(X, label, loss=loss, **how)
        for k, name in enumerate("abc"):
            one = drp(X, np.where(label == name, 1, -1), loss=loss, **how)
            assert norm(model.coef[k] - one.coef) <= 1e-7 * norm(one.coef)
            assert model.intercept[k] == pytest.approx(one.intercept, abs=1e-6)
        assert set(model.predict(X)) <= set("abc")


@each_accelerate
def test_intercept_is_the_fit_on_centred_rows(accelerate):
    X, y = low_rank(11, "squared")
    X, how = X + 1.0, {"alpha": 0.1, "rng": 0, "tol": 1e-8, "accelerate": accelerate}
    how["n_projections"] = None if accelerate else 300
    model = drp(X, y, **how)
    centred = drp(X - X.mean(axis=0), y - y.mean(), fit_intercept=False, **how)
    assert norm(model.coef - centred.coef) <= 1e-7 * norm(centred.coef)
    assert model.intercept == pytest.approx(y.mean() - X.mean(axis=0) @ model.coef, abs=1e-6)


@each_loss
@each_accelerate
def test_path(loss, accelerate):
    X, y = low_rank(13, loss, 80)
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


@each_accelerate
def test_callback_ends_the_fit(accelerate):
    X, y = low_rank(17, "logistic")
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


@each_loss
@each_intercept
@pytest.mark.parametrize("kind", ["ordinary", "rare"])
def test_many_rows_from_the_moments_of_a_sample(loss, fit_intercept, kind, monkeypatch):
    """For n >= 80 d, Newton's steps from the moments of a sample of the rows lead to the same w as
    from those of all rows."""
    rng = np.random.default_rng(0)
    n, d = 5000, 60
    X = rng.standard_normal((n, d)) if kind == "ordinary" else few_and_rare(n, d, rng)
    y = X @ rng.standard_normal(d) / 10 + rng.standard_normal(n)
    y = y if loss == "squared" else np.sign(y)
    of_all = drp(X, y, alpha=1e-3, loss=loss, fit_intercept=fit_intercept, tol=1e-8, rng=0)
    monkeypatch.setattr("sparserf.linear.steps.LEAST_INPUTS_TO_SAMPLE", 50)
    model = drp(X, y, alpha=1e-3, loss=loss, fit_intercept=fit_intercept, tol=1e-8, rng=0)
    assert model.info.converged and of_all.info.n_conjugate < model.info.n_conjugate
    assert norm(model.coef - of_all.coef) <= 3e-8 * norm(of_all.coef)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_second_moments_only_where_conjugate_gradients_are_slow(dtype):
    """Where they are fast, each takes a pass over the rows, and nothing else but three does; where
    they would be hundreds, second moments make them few."""
    rng = np.random.default_rng(0)
    n, d = 1200, 600
    easy = rng.standard_normal((n, d)).astype(dtype)
    hard = (easy * np.geomspace(1, 1e-3, d)).astype(dtype)
    y = easy[:, :9] @ np.ones(9) + rng.standard_normal(n)
    for X, alpha in ((easy, 3.0), (hard, 1e-6)):
        wide = X.astype(np.float64)
        model = drp(X, y, alpha=alpha, fit_intercept=False, tol=1e-6, rng=0)
        best = np.linalg.solve(wide.T @ wide + n * alpha * np.eye(d), wide.T @ y)
        assert model.info.converged and norm(model.coef - best) <= 1e-6 * norm(best)
        assert 0 < model.info.n_conjugate < 30
        assert (model.info.n_passes <= model.info.n_conjugate + 3) == (X is easy)


@each_loss
@each_intercept
def test_passes_over_the_rows(loss, fit_intercept):
    """A fit asks one question to begin with and one at the first penalty; each Newton step asks one
    for each conjugate direction, of which its margins are added up, and one for the gradient after
    it. At this penalty no basis would pay. The first rows are read for samples, too."""
    X, y = low_rank(20, loss, 60, 400, np.sqrt(60) * np.ones(40))
    starts = []
    rows = srf.Chunks(lambda a, b: starts.append(a) or X[a:b], X.shape, block_rows=15)
    info = drp(rows, y, alpha=200.0, loss=loss, fit_intercept=fit_intercept, rng=0).info
    assert info.converged and info.n_projections == 0
    assert info.n_passes == 2 + info.n_iter + info.n_conjugate
    assert [starts.count(a) for a in (15, 30, 45)] == [info.n_passes] * 3


# What is chosen on folds


CHOICES = {
    "squared": ({}, lambda f: f),
    "few columns, logistic": ({"loss": "logistic"}, lambda f: f > 0),
    "classes together": ({"loss": "multinomial"}, lambda f: np.digitize(f, [-1.0, 1.0])),
    "one-vs-rest": ({"loss": "logistic"}, lambda f: np.digitize(f, [-1.0, 1.0])),
    "counts": ({"loss": "poisson"}, lambda f: np.round(np.exp(f / 2))),
    "hinge": ({"loss": "squared_hinge"}, lambda f: f > 0),
    "outputs": ({}, lambda f: np.column_stack([f, -f])),
    "through zero": ({"fit_intercept": False, "scale": None}, lambda f: f),
    "the paper's iteration": ({"accelerate": False, "n_projections": 300}, lambda f: f),
    "a sketch": ({"n_projections": 5}, lambda f: f),
}


@pytest.fixture(scope="module")
def table():
    """Return rows of eight columns, two of them far from the units of the others, and f."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 8)) * [1, 1e-3, 1e4, 1, 1, 1, 1, 1]
    f = X[:, 0] + 1e3 * X[:, 1] + 1e-4 * X[:, 2] + 0.3 * rng.standard_normal(250)
    return X, f


@pytest.mark.parametrize("case", CHOICES)
def test_what_is_chosen_is_the_call_with_that_alpha(case, table):
    (X, f), (how, target) = table, CHOICES[case]
    model = srf.drp(X, target(f), rng=0, **how)
    given = srf.drp(X, target(f), rng=0, alpha=model.info.alpha, **how)
    np.testing.assert_array_equal(model.coef, given.coef)
    np.testing.assert_array_equal(model.intercept, given.intercept)
    assert model.info.objective == given.info.objective and model.coef.any()
    assert model.info.chosen == f"alpha={model.info.alpha:.4g}, by the loss on 5 folds"
    assert given.info.chosen is None and given.info.validation_loss is None
    assert 0 < model.info.validation_loss < np.inf


def test_the_seed_of_a_call_is_that_of_its_fit():
    """Where the fit draws a basis: the folds take nothing from a generator that it would not."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6)) @ rng.standard_normal((6, 400))
    y = X[:, 0] + rng.standard_normal(120)
    model = srf.drp(X, y, rng=np.random.default_rng(1))
    given = srf.drp(X, y, rng=np.random.default_rng(1), alpha=model.info.alpha)
    np.testing.assert_array_equal(model.coef, given.coef)
    assert model.info.n_projections > 0


@pytest.mark.parametrize("kind", ["dense", "CSR", "float32"])
def test_the_choice_is_that_of_exact_fits(kind, table):
    """The penalty is the largest within half a standard error of the least loss among those tried,
    and as good as the best of scikit-learn's RidgeCV."""
    X, f = table
    X = X * [1, 1e3, 1e-4, 1, 1, 1, 1, 1]
    new, f_new = X[150:], f[150:]
    rows = {"dense": np.asarray, "CSR": csr_array, "float32": np.float32}[kind](X[:150])
    model = srf.drp(rows, f[:150], scale=None, rng=0)
    best = min(
        np.mean((Ridge(alpha=150 * alpha).fit(X[:150], f[:150]).predict(new) - f_new) ** 2)
        for alpha in np.geomspace(1e-6, 1, 13)
    )
    assert np.mean((model.predict(new) - f_new) ** 2) < 1.05 * best


def test_ridge_regression_of_folds_needs_no_passes(table, monkeypatch):
    """Of few columns and the squared loss the second moments give all penalties; they are those of
    Newton's method."""
    X, f = table
    model, begun = srf.drp(X, f, rng=0), []
    monkeypatch.setattr(
        "sparserf.algorithms.drp.RidgeFit", lambda *a: begun.append(a) or NewtonFit(*a)
    )
    other = srf.drp(X, f, rng=0)
    assert len(begun) == 5  # one a fold
    assert model.info.alpha == other.info.alpha
    assert model.info.validation_loss == pytest.approx(other.info.validation_loss, rel=1e-6)


def test_units_of_columns():
    """In robust units the model is the same, whatever the units of the columns and of y; the
    coefficients are of the columns as seen."""
    rng = np.random.default_rng(0)
    X, units = rng.standard_normal((200, 4)), np.array([1.0, 2.0**30, 2.0**-20, 2.0])
    y = X[:, 0] + X[:, 1] + rng.standard_normal(200)
    one, other = srf.drp(X, y, rng=0), srf.drp(X * units, y, rng=0)
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9)
    np.testing.assert_allclose(one.predict(X), other.predict(X * units), rtol=1e-9)
    raw = srf.drp(X * units, y, alpha=0.1, scale=None)
    assert abs(raw.coef[1]) < 1e-6 < abs(other.coef[1])


def test_more_rows_than_a_fold_have_less_of_a_penalty(table):
    """A penalty beside the mean loss was chosen for four fifths of the rows."""
    X, f = table
    tried = []
    for validation in (0.2, 0.5):
        model = srf.drp(X[:240], f[:240], validation=validation, rng=0)
        tried.append(model.info.alpha / ((1 - validation) * min(1, 100 / (240 * (1 - validation)))))
    steps = np.log(tried[1] / tried[0]) / np.log(5)
    assert abs(steps - round(steps)) < 0.05


BAD = {
    "one row": (1, {}, "X must have at least two rows.*give more"),
    "a row of a class": (3, {"loss": "logistic", "labels": True}, "X must have rows to hold out"),
    "of an alpha": (20, {"alpha": 1.0, "validation": 0.2}, "validation must be None where alpha"),
    "a share": (20, {"validation": 2.0}, "validation must be below 1"),
    "one group": (20, {"groups": np.zeros(20)}, "groups must have at least two groups"),
    "no projections": (20, {"accelerate": False}, "n_projections must be given"),
    "units": (20, {"scale": "z"}, "scale must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_chosen_is_told(case):
    n, how, message = BAD[case]
    X = np.random.default_rng(0).standard_normal((n, 2))
    y = np.arange(n) if how.get("labels") else X[:, 0]
    with pytest.raises(ValueError, match=message):
        srf.drp(X, y, **{key: value for key, value in how.items() if key != "labels"})


NOTHING = {
    "few rows": lambda X, y: (X[:4], y[:4]),
    "a constant": lambda X, y: (X, np.full(60, 3.0)),
    "a constant beside rounding": lambda X, y: (X, np.full(60, 1e-300)),
    "no columns that vary": lambda X, y: (np.ones((60, 3)), y),
    "zeros": lambda X, y: (csr_array((60, 3)), y),
    "noise": lambda X, y: (X, np.random.default_rng(2).standard_normal(60)),
    "a class of one row": lambda X, y: (X, np.arange(60) == 3),
}


@pytest.mark.parametrize("case", NOTHING)
def test_the_constant_where_nothing_is_better(case):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3))
    X, y = NOTHING[case](X, X[:, 0] + rng.standard_normal(60))
    how = {"loss": "logistic"} if y.dtype == bool else {}
    model = srf.drp(X, y, rng=0, **how)
    assert not model.coef.any() and model.info.converged and model.info.alpha is None
    assert model.info.chosen.startswith("the constant, by the loss on ")
    if not how:
        np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-12)


HARD = {
    "y of 1e300": lambda X, y: (X, y * 1e300),
    "X of 1e300": lambda X, y: (X * 1e300, y),
    "a missing column": lambda X, y: (np.where(np.arange(3) == 1, np.nan, X), y),
    "missing cells": lambda X, y: (
        np.where(np.arange(60)[:, None] % 3 == np.arange(3), np.nan, X),
        y,
    ),
    "outputs of other units": lambda X, y: (X, np.column_stack([y, 1e6 * y])),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_tables(case):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3))
    X, y = HARD[case](X, X[:, 0] + 0.1 * rng.standard_normal(60))
    model = srf.drp(X, y, rng=0)
    assert np.isfinite(model.coef).all() and np.isfinite(model.predict(X)).all()
    assert model.coef.any() and model.info.converged
