"""sparse_rf and sparse_rf_path against scikit-learn and plain NumPy, and what their arguments do.
The bounds of the paper are among the invariants."""

import contextlib
import time

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.svm import LinearSVC

from sparserf import (
    ConvergenceWarning,
    FeatureSet,
    Fourier,
    Linear,
    Perceptron,
    RandomNeurons,
    sparse_rf,
    sparse_rf_path,
)

from ..conftest import (
    CONJUGATE,
    KERNELS,
    SLOPE,
    VALUE,
    as_within_a_call,
    bits,
    each_intercept,
    each_loss,
)
from ..features.sets import dictionary_of

RNG = np.random.default_rng(0)
N = 80
X = RNG.uniform(-2, 2, (N, 3))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(N)
SIGNS = np.where(Y > 0.2, 1.0, -1.0)
THREE = np.digitize(Y, [-0.4, 0.5])
WEIGHT = RNG.integers(1, 5, N).astype(float)
ATOMS = Fourier(gamma=0.3).draw(30, 3, rng=0)
MANY = Fourier(gamma=0.3).draw(300, 3, rng=1)
each_weight = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])


def target(loss):
    """Return the target Y, or signs for a classifier."""
    return Y if loss == "squared" else SIGNS


def fit(X=X, y=None, **options):
    """Fit to the optimum over ATOMS, unless other options are given."""
    options = {"alpha": 0.01, "loss": "squared", "exact": True, "tol": 1e-7, **options}
    options.setdefault("features", "gaussian" if "n_components" in options else ATOMS)
    return sparse_rf(X, target(options["loss"]) if y is None else y, **options)


def objective(coef, intercept, phi, *, alpha=0.01, loss="squared", weight=None, y=None):
    """Return (P, P - D), the objective and the duality gap over the features phi, for coefficients
    of all of them."""
    y = target(loss) if y is None else y
    s = np.ones(len(y)) if weight is None else weight / weight.mean()
    z = phi @ coef + intercept
    slope = SLOPE[loss](z, y)
    P = np.mean(s * VALUE[loss](z, y)) + alpha * np.abs(coef).sum()
    c = min(1.0, alpha / np.abs(phi.T @ (s * slope) / len(y)).max())
    return P, P + np.mean(s * CONJUGATE[loss](c * slope, y))


def dense_coef(model, D):
    """Return the coefficients over the whole dictionary."""
    coef = np.zeros((*model.coef.shape[:-1], D))
    coef[..., model.support] = model.coef
    return coef


# The answer of scikit-learn


@each_intercept
@each_weight
def test_lasso(fit_intercept, weight):
    """With the squared loss, the answer is that of scikit-learn's Lasso, with weights, too."""
    phi = ATOMS.transform(X)
    theirs = Lasso(0.01, fit_intercept=fit_intercept, tol=1e-14, max_iter=10**6).fit(
        phi, Y, sample_weight=weight
    )
    ours = fit(fit_intercept=fit_intercept, sample_weight=weight)
    assert dense_coef(ours, 30) == pytest.approx(theirs.coef_, abs=1e-5)
    assert ours.intercept == pytest.approx(theirs.intercept_, abs=1e-5)
    P, _ = objective(theirs.coef_, theirs.intercept_, phi, weight=weight)
    assert ours.info.objective[-1] == pytest.approx(P, rel=1e-9)
    assert ours.predict(X) == pytest.approx(theirs.predict(phi), abs=1e-5)


@each_weight
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_liblinear(loss, weight):
    """With the other losses, the answer is that of liblinear's -s 5 and -s 6 for C = 1 / (n alpha),
    without the intercept that it would penalise."""
    phi, options = (
        ATOMS.transform(X),
        {"C": 1 / (N * 0.01), "tol": 1e-9, "max_iter": 10**6, "fit_intercept": False},
    )
    if loss == "squared_hinge":
        theirs = LinearSVC(
            penalty="l1", loss="squared_hinge", dual=False, random_state=0, **options
        )
    else:
        theirs = LogisticRegression(l1_ratio=1, solver="liblinear", random_state=0, **options)
    theirs.fit(phi, SIGNS, sample_weight=None if weight is None else weight / weight.mean())
    ours = fit(loss=loss, fit_intercept=False, sample_weight=weight)
    P, _ = objective(theirs.coef_[0], 0.0, phi, loss=loss, weight=weight)
    assert ours.info.objective[-1] == pytest.approx(P, rel=1e-7)
    assert dense_coef(ours, 30) == pytest.approx(theirs.coef_[0], abs=2e-3)
    if loss == "logistic":
        assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(phi), abs=1e-3)


def test_logistic_with_intercept():
    """The intercept is not penalised, as in scikit-learn's saga."""
    phi = ATOMS.transform(X)
    theirs = LogisticRegression(
        l1_ratio=1, C=1 / (N * 0.02), solver="saga", tol=1e-9, max_iter=10**5, random_state=0
    )
    theirs.fit(phi, SIGNS)
    ours = fit(loss="logistic", alpha=0.02)
    P, _ = objective(theirs.coef_[0], theirs.intercept_[0], phi, loss="logistic", alpha=0.02)
    assert ours.info.objective[-1] == pytest.approx(P, rel=1e-7)
    assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-3)


# The optimum and its certificate


@pytest.mark.slow
@each_loss
@each_intercept
def test_a_tight_tolerance_is_reached(loss, fit_intercept):
    """On few, well-conditioned features tol=1e-8 is reached, whatever differences of the objective
    rounding hides."""
    for k in range(5, 31):
        # or it warns, an error here
        fit(loss=loss, fit_intercept=fit_intercept, features=ATOMS.take(range(k)), tol=1e-8)


@each_loss
def test_a_tight_tolerance_does_not_cut_the_pass_short(loss):
    """All draws are looked at, also where rounding keeps a batch from being solved to the
    tolerance."""
    infos = []
    try:
        fit(loss=loss, exact=False, features=MANY, batch_size=20, tol=1e-10, callback=infos.append)
    except ConvergenceWarning:
        pass
    assert infos[-1].n_drawn == 300


@each_loss
def test_one_pass_comes_close(loss):
    """Algorithm 1 ends within a few per cent of the optimum over the same draws, and looks at all
    of them."""
    options = {
        "n_components": 2000,
        "batch_size": 200,
        "gamma": 0.3,
        "scale": None,
        "rng": 0,
        "loss": loss,
        "tol": 1e-5,
    }
    once, exact = fit(exact=False, **options), fit(**options)
    assert (
        exact.info.objective[-1] * (1 - 1e-5)
        <= once.info.objective[-1]
        <= 1.05 * exact.info.objective[-1]
    )
    assert once.info.n_drawn == 2000 and once.info.n_iter == 10 and len(once.info.objective) == 10


@pytest.mark.slow
@each_loss
def test_batch_size_does_not_move_the_optimum(loss):
    """Batches of any size lead to the same minimum."""
    fits = [fit(loss=loss, features=MANY, batch_size=size, tol=1e-6) for size in (1, 7, 100, 1000)]
    P = [model.info.objective[-1] for model in fits]
    assert max(P) - min(P) <= 1e-6 * max(P)
    f = np.array([model.decision_function(X) for model in fits])
    assert np.ptp(f, axis=0).max() < 0.02


@pytest.mark.parametrize(("gamma", "alpha"), [(1e-4, 1e-7), (1e-2, 1e-6), (0.3, 1e-8)])
def test_ill_conditioned(gamma, alpha):
    """Nearly equal features and hardly any penalty still converge, in seconds."""
    start = time.process_time()
    model = fit(n_components=500, gamma=gamma, alpha=alpha, rng=0, tol=1e-4)
    assert model.info.converged and np.isfinite(model.predict(X)).all()
    assert time.process_time() - start < 15


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e9])
def test_the_gap_holds_far_from_zero(offset):
    """Where the target's mean is large, rounding in the sum of the dual point does not hide the
    gap."""
    y = Y + offset
    model = fit(y=y, features=MANY, batch_size=100, tol=1e-6)
    phi, u = MANY.transform(X), model.predict(X) - y
    u, y = u - u.mean(), y - y.mean()
    penalty = 0.01 * np.abs(model.coef).sum()
    c = min(1.0, 0.01 * N / np.abs(phi.T @ u).max())
    gap = np.mean(u**2 / 2 + (c * u) ** 2 / 2 + c * u * y) + penalty
    assert gap <= 2e-6 * (np.mean(u**2 / 2) + penalty)


@pytest.mark.parametrize("value", [0.1, 1e6 / 3])
def test_a_constant_target_needs_no_term(value):
    model = sparse_rf_path(X, np.full(N, value), features=MANY, n_alphas=2, sample_weight=WEIGHT)[
        -1
    ]
    assert len(model.coef) == 0 and model.intercept == pytest.approx(value, rel=1e-15)


def test_inputs_far_from_zero_end():
    """A fit ends, with a warning at most, where rounding lets no gap be certified and no draw
    violates."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 30))
    y = Z[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(200)
    for offset in (1e4, 1e5, 1e6):
        with contextlib.suppress(ConvergenceWarning):
            fit(X=Z + offset, y=y, features=Linear(), tol=1e-8)


# Classes


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("exact", [False, True])
def test_many_classes_are_one_versus_rest(loss, exact):
    """Each row of coef is, to the bit, that of the class against the rest over the same
    dictionary."""
    options = {
        "loss": loss,
        "exact": exact,
        "n_components": 300,
        "batch_size": 60,
        "rng": 3,
        "tol": 1e-4,
    }
    model = fit(y=THREE, **options)
    binary = [fit(y=THREE == c, **options) for c in range(3)]
    assert model.coef.shape == (3, len(model.features)) and model.intercept.shape == (3,)
    assert np.array_equal(model.support, np.unique(np.concatenate([b.support for b in binary])))
    for c, alone in enumerate(binary):
        assert np.array_equal(dense_coef(model, 300)[c], dense_coef(alone, 300))
        assert model.intercept[c] == alone.intercept
    assert model.decision_function(X).shape == (N, 3)
    f = np.column_stack([alone.decision_function(X) for alone in binary])
    assert model.decision_function(X) == pytest.approx(f, abs=1e-9)
    assert (
        np.array_equal(model.predict(X), f.argmax(axis=1))
        and np.mean(model.predict(X) == THREE) > 0.6
    )
    assert model.info.objective[-1] == pytest.approx(sum(b.info.objective[-1] for b in binary))
    assert model.info.dual_gap == pytest.approx(sum(b.info.dual_gap for b in binary))


@pytest.mark.parametrize(
    "kinds", [(0, 1), (-1, 1), (False, True), (2.5, 7.0), ("no", "yes")], ids=str
)
def test_any_two_labels(kinds):
    """Labels are names; the second in sorted order is the positive class."""
    y = np.where(SIGNS > 0, kinds[1], kinds[0])
    model = fit(y=y, loss="logistic")
    assert bits(model) == bits(fit(loss="logistic"))
    assert model.classes.tolist() == list(kinds) and set(model.predict(X)) <= set(kinds)
    assert np.mean(model.predict(X) == y) > 0.65  # .74 to .95 with other atoms
    p = model.predict_proba(X)
    assert p.shape == (N, 2) and p.sum(axis=1) == pytest.approx(np.ones(N))


# Dictionaries


@pytest.mark.parametrize("name", [*KERNELS, "perceptron"])
def test_named_kernels(name):
    """Every name is a dictionary that fits, the same for the same seed and another one for another
    seed."""
    options = {"features": name, "n_components": 400, "alpha": 0.005, "tol": 1e-4}
    model = fit(rng=0, **options)
    assert np.mean((model.predict(X) - Y) ** 2) < 0.3 * np.var(Y)
    assert bits(model) == bits(fit(rng=0, **options)) != bits(fit(rng=1, **options))


def test_map_in_place_of_a_name():
    """A name with gamma is the Fourier map with that gamma, in the same units."""
    for scale in ({}, {"scale": None}):
        options = {"n_components": 200, "rng": 0, "tol": 1e-4, **scale}
        by_name = fit(features="cauchy", gamma=0.5, **options)
        assert bits(by_name) == bits(fit(features=Fourier("cauchy", 0.5), **options))


@pytest.mark.parametrize("exact", [False, True])
def test_linear_beside_random_features(exact):
    """Inputs come first in the dictionary, beside n_components draws; a linear target needs little
    else."""
    y = 3 * X[:, 0] - X[:, 2]
    options = {
        "features": [Linear(), Fourier(gamma=0.3)],
        "n_components": 200,
        "batch_size": 50,
        "rng": 0,
    }
    model = fit(y=y, exact=exact, alpha=0.1, tol=1e-4, **options)
    assert model.info.n_drawn == 203 and {0, 2} <= set(model.support.tolist())
    assert len(model.features) < 12 and np.mean((model.predict(X) - y) ** 2) < 0.1
    alone = fit(y=y, features=Linear(), scale=None, alpha=0.1)
    assert alone.info.n_drawn == 3 and alone.support.tolist() == [0, 2]
    theirs = Lasso(0.1, tol=1e-12).fit(X, y)
    assert dense_coef(alone, 3) == pytest.approx(theirs.coef_, abs=1e-5)


@pytest.mark.parametrize("exact", [False, True])
def test_support_indexes_the_dictionary(exact):
    """model.features is the dictionary at model.support, in ascending order, for a FeatureSet and
    for draws."""
    model = fit(features=MANY, exact=exact, batch_size=37, tol=1e-5)
    assert (
        np.all(np.diff(model.support) > 0)
        and model.support.dtype == np.int64
        and len(model.support) > 5
    )
    assert np.array_equal(model.features.transform(X), MANY.take(model.support).transform(X))
    maps = [Linear(), Fourier(gamma=0.3), Perceptron(), RandomNeurons("tanh")]
    options = {"n_components": 100, "batch_size": 30, "rng": 5}
    model = fit(features=maps, scale=None, exact=exact, tol=1e-4, **options)
    drawn, everything = dictionary_of(maps, X, **options), FeatureSet((), 3)
    for k in range(drawn.n_batches):
        everything = everything.concat(drawn.batch(k))
    assert len(everything) == len(drawn) == model.info.n_drawn == 103
    assert np.array_equal(model.features.transform(X), everything.take(model.support).transform(X))


# Paths


@each_loss
def test_path(loss):
    """Penalties descend from the largest useful one; each model has the objective of a fit without
    the path."""
    options = {"loss": loss, "features": MANY, "exact": True, "tol": 1e-5}
    models = sparse_rf_path(X, target(loss), n_alphas=8, alpha_min_ratio=0.01, **options)
    alphas = [model.info.alpha for model in models]
    assert np.all(np.diff(alphas) < 0) and alphas[-1] == pytest.approx(0.01 * alphas[0])
    assert [len(model.features) for model in models[:1]] == [0] and len(models[1].features) > 0
    assert np.all(np.diff([model.info.objective[-1] for model in models]) < 0)
    for alpha, model in zip(alphas, models, strict=True):
        cold = sparse_rf(X, target(loss), alpha=alpha, **options)
        assert model.info.objective[-1] == pytest.approx(cold.info.objective[-1], rel=1e-5)
        assert model.decision_function(X) == pytest.approx(cold.decision_function(X), abs=0.05)


def test_path_of_given_penalties():
    """Given penalties are put in descending order; a path of one is that of sparse_rf."""
    models = sparse_rf_path(X, Y, alphas=[0.01, 0.1, 0.03], features=ATOMS)
    assert [model.info.alpha for model in models] == pytest.approx([0.1, 0.03, 0.01])
    for features in ("gaussian", "auto"):
        (alone,) = sparse_rf_path(X, Y, alphas=[0.02], features=features, n_components=200, rng=0)
        assert bits(alone) == bits(
            sparse_rf(X, Y, alpha=0.02, features=features, n_components=200, rng=0)
        )


def test_path_of_many_classes_starts_empty():
    """At the largest penalty no class has a term."""
    models = sparse_rf_path(
        X, THREE, loss="logistic", n_alphas=3, alpha_min_ratio=0.1, features=ATOMS
    )
    assert models[0].coef.shape == (3, 0) and models[-1].coef.shape == (3, len(models[-1].features))


# Stopping


@each_loss
def test_max_iter(loss):
    """A fit that is cut short warns of gap, tolerance and cure; its model is valid, and its gap
    bounds the distance."""
    with pytest.warns(
        ConvergenceWarning, match=r"duality gap of .*above tol=1e-08; raise max_iter"
    ):
        model = fit(loss=loss, features=MANY, alpha=1e-3, max_iter=2, tol=1e-8)
    assert not model.info.converged and np.isfinite(model.coef).all()
    P, _ = objective(
        dense_coef(model, 300), model.intercept, MANY.transform(X), alpha=1e-3, loss=loss
    )
    assert model.info.objective[-1] == pytest.approx(P, rel=1e-9)
    assert (
        model.info.dual_gap
        >= P - fit(loss=loss, features=MANY, alpha=1e-3, tol=1e-4).info.objective[-1]
    )


@pytest.mark.parametrize("activation", ["cos", "sin", "tanh", "sign", "relu"])
def test_largest_value(activation):
    features = (
        RandomNeurons(activation, scale=3.0).draw(20, 3, rng=0).concat(Linear().draw(None, 3))
    )
    assert np.all(
        np.abs(features.transform(10 * X)).max(axis=0) <= features.largest_value * (1 + 1e-15)
    )
    assert np.isinf(features.largest_value).sum() == (23 if activation == "relu" else 3)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_a_fit_that_begins_in_single_precision_is_certified_in_double(loss, exact, monkeypatch):
    """Algorithm 1 and the exact descent come to the optimum of float64 rows, with its gap, through
    float32 or not."""
    options = {
        "loss": loss,
        "exact": exact,
        "features": MANY,
        "batch_size": 300,
        "tol": 1e-9,
        "alpha": 0.003,
    }
    double = fit(**options)
    monkeypatch.setattr("sparserf.algorithms.sparse_rf.descent.WORTH_SINGLE", 0)
    single = fit(**options)
    assert bits(single) != bits(double)
    phi, coef = MANY.transform(X), np.zeros(300)
    coef[single.support] = single.coef
    P, gap = objective(coef, single.intercept, phi, alpha=0.003, loss=loss)
    assert gap <= 1.01e-9 * P and single.info.converged
    assert (
        P
        == pytest.approx(single.info.objective[-1], rel=1e-12)
        == pytest.approx(double.info.objective[-1], rel=1e-8)
    )


@as_within_a_call
def test_rows_in_single_precision_only_where_little_is_lost():
    inputs = Linear().draw(None, 3)
    assert inputs.rows_of(X).in_single().dtype == np.float32
    for other in (
        X.astype(np.float32),
        csr_array(X),
        X + np.array([0, 1e6, 0]),
        X * np.array([1, 1, 1e300]),
    ):
        assert inputs.rows_of(other).in_single() is None


@pytest.mark.parametrize("alpha", [None, 0.01])
def test_features_that_are_given_are_counted_once(alpha):
    """Each fold, and each penalty, searches the same."""
    features = RandomNeurons("tanh").draw(50, 3, rng=0)
    model = sparse_rf(X, X[:, 0] + X[:, 1] ** 2, features=features, alpha=alpha, scale=None)
    assert model.info.n_drawn == 50
