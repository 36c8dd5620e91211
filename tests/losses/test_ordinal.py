"""Ordered classes: thresholds that are fitted together with f, and all that follows from them."""

import pickle
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import sparserf as srf
from sparserf import sklearn as estimators
from sparserf.losses import Ordinal
from sparserf.losses.ordinal import class_probabilities, most_probable

from ..conftest import n_examples

FEW = {"n_components": 200, "rng": 0}
FITS = {
    "sparse_rf": partial(srf.sparse_rf, alpha=0.01, features="gaussian", gamma=0.5, **FEW),
    "default": partial(srf.sparse_rf, effort=0.05, rng=0),
    "harfe": partial(srf.harfe, n_nonzero_coefs=8, alpha=1e-3, **FEW),
    "harfe, chosen": partial(srf.harfe, n_components=50, rng=0),
    "mfga": partial(srf.mfga, n_nonzero_coefs=6, alpha=1e-3, rng=0),
    "mfga, chosen": partial(srf.mfga, n_components=50, rng=0),
    "mfga, auto": partial(srf.mfga, features="auto", n_nonzero_coefs=3, alpha=1e-3, rng=0),
    "drp": partial(srf.drp, alpha=0.01, rng=0),
    "drp, chosen": partial(srf.drp, rng=0),
}
PATHS = {
    "sparse_rf_path": partial(
        srf.sparse_rf_path, features="gaussian", gamma=0.5, n_alphas=3, alpha_min_ratio=0.1, **FEW
    ),
    "harfe_path": partial(srf.harfe_path, n_nonzero_coefs=[2, 5], **FEW),
    "mfga_path": partial(srf.mfga_path, n_nonzero_coefs=4, rng=0),
    "drp_path": partial(srf.drp_path, alphas=[0.1, 0.01], rng=0),
}
QUICK = partial(srf.drp, alpha=0.01, loss="ordinal", rng=0)
LEVELS = ["poor", "fair", "good", "fine"]
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
pytestmark = pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")


def rows(n, seed=0):
    """Return rows and the places of their classes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    f = 2 * np.sin(X[:, 0]) + X[:, 1]
    return X, np.digitize(f + rng.logistic(size=n), [-2, 0, 2.5])


X, Y = rows(300)


def log_loss(model, X, place):
    """Return the mean log loss of the places of classes."""
    return -np.log(model.predict_proba(X)[np.arange(len(place)), place]).mean()


# -- the loss


@pytest.mark.parametrize(
    ("thresholds", "error", "message"),
    [
        ([1.0, 0.0], ValueError, "thresholds must be in ascending order, got 0.0 after 1.0"),
        ([1.0, 1.0], ValueError, "thresholds must be in ascending order, got 1.0 after 1.0"),
        ([0.0, np.nan], ValueError, "thresholds must be finite"),
        ([0.0, "1"], TypeError, "thresholds must be a real number, got '1'"),
        ([], TypeError, r"thresholds must be numbers in ascending order, got \[\]"),
        (1.0, TypeError, "thresholds must be numbers in ascending order, got 1.0"),
    ],
)
def test_thresholds_that_are_none_are_refused(thresholds, error, message):
    with pytest.raises(error, match=message):
        Ordinal(thresholds)


def test_the_loss_is_right_at_its_own_thresholds():
    srf.losses.check(Ordinal(), np.arange(5.0))
    srf.losses.check(Ordinal([-3.0, 0.0, 0.01, 5.0]), np.arange(5.0))


@settings(max_examples=n_examples(100))
@given(st.lists(st.floats(-20, 20), min_size=2, max_size=5), st.floats(-300, 300))
def test_the_conjugate_is_that_of_the_value(steps, z):
    """L*(L'(z)) = z L'(z) - L(z) for any thresholds, and all is finite."""
    thresholds = np.cumsum(np.exp(steps))
    if not (np.diff(thresholds) > 0).all():
        return
    loss = Ordinal(thresholds)
    y = np.arange(loss.n_classes, dtype=float)
    z = np.full(len(y), z)
    value, slope = loss.value(z, y), loss.derivative(z, y)
    assert np.isfinite(value).all() and (value >= 0).all() and (np.abs(slope) <= 1).all()
    size = 1 + np.abs(value) + np.abs(z) + max(map(abs, loss.thresholds))
    assert (np.abs(loss.conjugate(slope, y) - (slope * z - value)) <= 1e-12 * size).all()
    ends = loss.conjugate(np.array([0.0, 1.0]), y[[0, 0]])
    np.testing.assert_allclose(ends, [0.0, loss.thresholds[0]], rtol=1e-12)


def test_far_decision_values_lose_no_digit():
    """sigmoid(a) - sigmoid(b) is 0 in double precision there."""
    z, y = np.array([60.0, 500.0, -500.0]), np.ones(3)
    value = Ordinal([0.0, 1.0]).value(z, y)
    np.testing.assert_allclose(value, np.abs(z) - [1, 1, 0] - np.log(1 - np.exp(-1)), rtol=1e-15)


@settings(max_examples=n_examples(50))
@given(st.lists(st.floats(-6, 3), min_size=1, max_size=6))
def test_the_most_probable_class_changes_at_cuts(steps):
    thresholds = tuple(np.cumsum(np.exp(steps)).tolist())
    if not all(one < other for one, other in pairwise(thresholds)):
        return
    f = np.linspace(thresholds[0] - 30, thresholds[-1] + 30, 5001)
    p = class_probabilities(thresholds, f)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-13)
    cuts, places = most_probable(thresholds)
    taken = np.array(places)[np.searchsorted(cuts, f)]
    assert (np.diff(taken) >= 0).all()
    assert (p[np.arange(len(f)), taken] >= (1 - 1e-12) * p.max(axis=1)).all()


@pytest.mark.parametrize("size", [0.0, 1e-3, 3.0, 1e4])
def test_thresholds_are_the_best_for_decision_values(size, rng):
    z, weight = size * rng.standard_normal(400), rng.exponential(size=400)
    y = np.digitize(z / (size or 1) + rng.logistic(size=400), [-2, 0, 0.1]).astype(float)
    loss = Ordinal().of_target(y, weight).fitted_to(z, y, weight)

    def mean(theta):
        return weight @ Ordinal(theta).value(z, y) / weight.sum()

    theta = np.array(loss.thresholds)
    for k in range(3):
        for step in (1e-4, -1e-4):
            other = theta.copy()
            other[k] += step
            assert mean(other) > mean(theta)


def test_a_class_of_hardly_any_weight_has_thresholds_apart():
    weight = np.where(Y == 1, 1e-300, 1.0)
    model = QUICK(X, Y, sample_weight=weight)
    theta = model.loss_parameters["thresholds"]
    assert theta[0] < theta[1] < theta[2] and np.isfinite(model.predict_proba(X)).all()


# -- fits


@every_fit
def test_thresholds_ascend_and_are_those_of_the_constant_or_better(fit):
    model = fit(X, Y, loss="ordinal")
    theta, f = model.loss_parameters["thresholds"], model.decision_function(X)
    assert (model.loss, model.link, model.classes.tolist()) == (
        "ordinal",
        "cumulative",
        [0, 1, 2, 3],
    )
    assert (np.diff(theta) > 0).all() and np.shape(model.intercept) == () and f.ndim == 1
    assert abs(f.mean()) < 1e-9
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    share = np.bincount(Y) / len(Y)
    assert log_loss(model, X, Y) < 0.97 * -(share @ np.log(share))
    again = Ordinal(theta).fitted_to(f, Y.astype(float), np.ones(len(Y)))
    np.testing.assert_allclose(again.thresholds, theta, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
def test_models_of_a_path_have_thresholds_of_their_own(path):
    models = path(X, Y, loss="ordinal")
    assert len({model.loss_parameters["thresholds"] for model in models}) == len(models) > 1
    for model in models:
        again = Ordinal(model.loss_parameters["thresholds"])
        again = again.fitted_to(model.decision_function(X), Y.astype(float), np.ones(len(Y)))
        np.testing.assert_allclose(again.thresholds, model.loss_parameters["thresholds"], atol=1e-5)
    losses = [log_loss(model, X, Y) for model in models]
    assert losses[-1] < losses[0]


def test_a_fit_of_a_path_is_that_of_its_penalty():
    models = srf.drp_path(X, Y, alphas=[0.1, 0.01], loss="ordinal", rng=0)
    one = srf.drp(X, Y, alpha=0.01, loss="ordinal", rng=0)
    np.testing.assert_allclose(models[-1].coef, one.coef, rtol=1e-9)
    assert models[-1].loss_parameters == one.loss_parameters


@pytest.mark.slow
def test_a_linear_fit_is_the_joint_optimum_of_an_oracle():
    """Coefficients and thresholds together, by another solver."""
    model = srf.drp(X, Y, alpha=1e-8, scale=None, loss="ordinal", tol=1e-8, rng=0)

    def mean(x):
        theta = np.concatenate([[-np.inf], x[3] + np.cumsum([0, *np.exp(x[4:])]), [np.inf]])
        z = X @ x[:3]
        p = np.diff(1 / (1 + np.exp(z[:, None] - theta)), axis=1)[np.arange(len(Y)), Y]
        return -np.log(p).mean()

    best = minimize(mean, [0, 0, 0, -1, 0, 0], method="BFGS", options={"gtol": 1e-9}).x
    assert log_loss(model, X, Y) <= mean(best) + 1e-9
    np.testing.assert_allclose(model.coef, best[:3], atol=1e-4)
    theta = np.array(model.loss_parameters["thresholds"])
    np.testing.assert_allclose(np.diff(theta), np.exp(best[4:]), atol=1e-4)


@pytest.mark.slow
def test_it_is_the_model_of_statsmodels():
    ordinal_model = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    theirs = ordinal_model.OrderedModel(Y, X, distr="logit").fit(method="bfgs", disp=False)
    ours = srf.drp(X, Y, alpha=1e-8, scale=None, loss="ordinal", rng=0)
    np.testing.assert_allclose(ours.coef, theirs.params[:3], atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict(X), atol=1e-3)


@every_fit
def test_two_classes_are_the_logistic_loss(fit):
    models = [fit(X, Y > 1, loss=loss) for loss in ("ordinal", "logistic")]
    assert {model.loss for model in models} == {"logistic"} and models[0].link == "identity"
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


@pytest.mark.parametrize("fit", [FITS["drp"], FITS["default"]], ids=["drp", "default"])
def test_given_thresholds_stay(fit):
    loss = Ordinal([-2.0, 0.0, 2.5])
    model = fit(X, Y, loss=loss)
    assert model.loss_parameters == {"thresholds": (-2.0, 0.0, 2.5)}
    near = fit(X, Y, loss="ordinal")
    assert abs(log_loss(model, X, Y) - log_loss(near, X, Y)) < 0.1


@pytest.mark.slow
def test_an_intercept_is_where_it_belongs():
    """Without one f is the sum of its terms, and thresholds take what it lacks."""
    shifted = X + np.array([5.0, 0.0, 0.0])
    how = {"alpha": 1e-8, "scale": None, "loss": "ordinal", "rng": 0}
    with_one, without = (srf.drp(shifted, Y, fit_intercept=each, **how) for each in (True, False))
    assert without.intercept == 0 and abs(with_one.decision_function(shifted).mean()) < 1e-12
    np.testing.assert_allclose(
        with_one.predict_proba(shifted), without.predict_proba(shifted), atol=1e-3
    )


@pytest.mark.parametrize("fit", [FITS["drp"], FITS["harfe"], FITS["sparse_rf"]])
def test_a_weight_counts_as_copies(fit, rng):
    weight = rng.integers(0, 3, len(Y))
    copied = np.repeat(np.arange(len(Y)), weight)
    exact = {"scale": None, "loss": "ordinal"}
    one = fit(X, Y, sample_weight=weight, **exact)
    other = fit(X[copied], Y[copied], **exact)
    tolerance = 2e-3  # of the rounds, and of the fits
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=tolerance)


def test_the_order_of_rows_does_not_matter(rng):
    order = rng.permutation(len(Y))
    one, other = QUICK(X, Y), QUICK(X[order], Y[order])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_rounds_warn_once_and_share_their_time():
    with pytest.warns(srf.ConvergenceWarning) as warned:
        srf.sparse_rf(X, Y, alpha=1e-4, features="gaussian", max_iter=1, loss="ordinal", **FEW)
    assert len(warned) == 1
    with warnings.catch_warnings(action="ignore", category=srf.TimeLimitWarning):
        model = srf.sparse_rf(X, Y, loss="ordinal", time_limit=0.5, rng=0)
    assert (np.diff(model.loss_parameters["thresholds"]) > 0).all()


def test_a_callback_ends_all_rounds():
    asked = []
    model = srf.sparse_rf(
        X,
        Y,
        alpha=0.01,
        features="gaussian",
        loss="ordinal",
        callback=lambda info: asked.append(info.progress) or True,
        **FEW,
    )
    assert len(asked) == 1 and np.isfinite(model.predict_proba(X)).all()
    shares = []
    QUICK(X, Y, callback=lambda info: shares.append(info.progress) and None)
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_offsets_are_added_to_f(rng):
    offset = rng.standard_normal(len(Y))
    model = QUICK(X, Y, offset=offset)
    f = model.decision_function(X, offset=offset)
    np.testing.assert_allclose(f, model.decision_function(X) + offset)
    again = Ordinal(model.loss_parameters["thresholds"])
    again = again.fitted_to(f, Y.astype(float), np.ones(len(Y)))
    np.testing.assert_allclose(again.thresholds, model.loss_parameters["thresholds"], atol=1e-6)
    assert model.predict(X, offset=offset + 100).min() == 3


@pytest.mark.slow
def test_a_model_is_monotone_where_it_must_be():
    model = srf.sparse_rf(X, Y, monotone=[1, 1, 0], loss="ordinal", effort=0.05, rng=0)
    line = np.zeros((50, 3))
    line[:, 1] = np.linspace(-2, 2, 50)
    assert (np.diff(model.predict(line)) >= 0).all()
    up_to = np.cumsum(model.predict_proba(line), axis=1)
    assert (np.diff(up_to, axis=0) <= 1e-12).all()
    assert model.is_monotone(1).sign == 1


# -- labels


def test_numbers_are_in_ascending_order():
    labels = np.array([10.5, -3.0, 7.0, 2.0])[Y]
    model = QUICK(X, labels)
    assert model.classes.tolist() == [-3.0, 2.0, 7.0, 10.5]


@pytest.mark.parametrize(
    "ordered",
    [
        lambda y: pd.Categorical.from_codes(y, LEVELS, ordered=True),
        lambda y: pd.Series(pd.Categorical.from_codes(y, [*LEVELS, "never"], ordered=True)),
        lambda y: pl.Series(np.array(LEVELS)[y], dtype=pl.Enum(["never", *LEVELS])),
    ],
    ids=["pandas", "a level without rows", "polars"],
)
def test_levels_say_the_order(ordered):
    model, plain = QUICK(X, ordered(Y)), QUICK(X, Y)
    assert model.classes.tolist() == LEVELS
    np.testing.assert_array_equal(model.coef, plain.coef)
    np.testing.assert_array_equal(model.predict(X), np.array(LEVELS)[plain.predict(X)])


def test_levels_may_be_numbers_in_another_order():
    labels = np.array([3, 1, 4, 2])
    model = QUICK(X, pd.Categorical(labels[Y], labels, ordered=True))
    assert model.classes.tolist() == labels.tolist()
    again = pickle.loads(pickle.dumps(model))
    assert again.classes.tolist() == srf.SparseModel.from_json(model.to_json()).classes.tolist()


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.array(LEVELS)[Y], TypeError, "got strings, such as 'fair', without one: give numbers"),
        (pd.Categorical(np.array(LEVELS)[Y]), TypeError, "classes in an order for loss='ordinal'"),
        (pd.Categorical(Y), TypeError, "got categories without one"),
        (pl.Series(np.array(LEVELS)[Y], dtype=pl.Categorical), TypeError, "got categories"),
        (np.zeros(300), ValueError, "y must have at least two classes"),
        (np.stack([Y, Y], axis=1), ValueError, "y must be one column of labels"),
        (X[:, 0], ValueError, "is it a target for loss='squared'"),
    ],
)
def test_labels_without_an_order_are_refused(y, error, message):
    with pytest.raises(error, match=message):
        QUICK(X, y)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Ordinal([0.0, 1.0]), Y, "thresholds must be one less than the classes, 3, got 2"),
        (Ordinal([0.0]), Y > 1, "thresholds must be None for two classes"),
    ],
)
def test_thresholds_of_other_classes_are_refused(loss, y, message):
    with pytest.raises(ValueError, match=message):
        srf.drp(X, y, alpha=0.1, loss=loss)


def test_what_is_for_other_models_is_refused():
    model = QUICK(X, Y)
    with pytest.raises(ValueError, match="output must be None where a model has one, got 2"):
        model.bounds(output=2)
    with pytest.raises(ValueError, match="lower must be None for loss='ordinal'"):
        srf.sparse_rf(X, Y, loss="ordinal", lower=0)
    with pytest.raises(ValueError, match="two classes"):
        srf.points(model, X)
    with pytest.raises(ValueError, match="loss must be one of"):
        srf.distill(model.predict, X, loss="ordinal")


@pytest.mark.slow
def test_weights_of_classes():
    balanced = QUICK(X, Y, class_weight="balanced")
    p = balanced.predict_proba(X)
    weight = (len(Y) / (4 * np.bincount(Y)))[Y]
    np.testing.assert_allclose(weight @ p / weight.sum(), 0.25, atol=0.02)
    levels = pd.Categorical.from_codes(Y, LEVELS, ordered=True)
    heavy = QUICK(X, levels, class_weight={"fine": 5})
    assert heavy.predict_proba(X)[:, 3].mean() > QUICK(X, levels).predict_proba(X)[:, 3].mean()


# -- models


@pytest.fixture(scope="module")
def model():
    return FITS["default"](X, pd.Categorical.from_codes(Y, LEVELS, ordered=True), loss="ordinal")


@pytest.mark.slow
def test_single_precision_stays(model):
    p = model.predict_proba(X.astype(np.float32))
    assert p.dtype == np.float32 and np.abs(p - model.predict_proba(X)).max() < 1e-4
    single = QUICK(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.predict_proba(X), QUICK(X, Y).predict_proba(X), atol=1e-4)


def test_what_a_model_says_of_itself(model):
    assert "4 classes" in repr(model)
    text = str(model.formula())
    assert "predict gives the most probable class" in text and "for poor" in text
    assert "4 classes in order (poor, fair, good, fine)" in str(model.summary(X))
    told = model.bounds()
    f = model.decision_function(X)
    assert told.least.lower <= f.min() and f.max() <= told.largest.upper


def test_files_keep_the_order_and_are_checked(model, tmp_path):
    model.save(tmp_path / "model.npz")
    again = srf.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.classes.tolist() == LEVELS and again.loss_parameters == model.loss_parameters
    text = model.to_json()
    theta = model.loss_parameters["thresholds"]
    for wrong in (
        text.replace(repr(theta[0]), "1e9"),
        text.replace(f"{theta[0]!r}, ", ""),
        text.replace('"cumulative"', '"softmax"'),
        text.replace('"fair"', '"poor"'),
    ):
        assert wrong != text
        with pytest.raises(ValueError, match="text is not a whole model"):
            srf.SparseModel.from_json(wrong)


def test_fewer_terms_predict_nearly_the_same(model):
    small = srf.prune(model, X, tol=0.01)
    assert small.thresholds == model.thresholds and len(small.features) < len(model.features)
    assert np.abs(small.predict_proba(X) - model.predict_proba(X)).max() < 0.2


@pytest.mark.slow
def test_folds_know_the_order():
    levels = pd.Series(pd.Categorical.from_codes(Y, LEVELS, ordered=True))
    found = srf.cross_validate(QUICK, X, levels, {"alpha": [1e-2, 1e3]}, cv=3, rng=0)
    assert found.model.classes.tolist() == LEVELS and found.measure == "log_loss"
    assert found.best == {"alpha": 1e-2} and found.losses.min() < 1.1


@pytest.mark.slow
def test_calibrated_probabilities_are_less_sure_where_a_fit_was_too_sure():
    sure = partial(srf.drp, loss="ordinal")
    rng = np.random.default_rng(0)
    many = np.column_stack([X, rng.standard_normal((len(Y), 60))])
    model = sure(many, Y, alpha=1e-6, rng=0)
    new, y_new = rows(1000, 1)
    new = np.column_stack([new, rng.standard_normal((1000, 60))])
    of_folds = srf.calibrated(partial(sure, alpha=1e-6), many, Y, rng=0)
    of_rows = srf.calibrated(model, new[:500], y_new[:500])
    for each in (of_folds, of_rows):
        assert (each.loss, each.classes.tolist()) == ("ordinal", [0, 1, 2, 3])
        assert log_loss(each, new[500:], y_new[500:]) < log_loss(model, new[500:], y_new[500:])


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_sets_have_no_gap_and_hold_their_share(method):
    levels = pd.Categorical.from_codes(Y, LEVELS, ordered=True)
    sets = srf.intervals(QUICK, X, levels, coverage=0.8, method=method, rng=0)
    new, y_new = rows(2000, 1)
    inside = sets.predict_set(new)
    assert sets.classes.tolist() == LEVELS
    assert (
        np.abs(np.diff(np.pad(inside.astype(int), [(0, 0), (1, 1)]), axis=1)).sum(axis=1) == 2
    ).all()
    assert 0.74 < inside[np.arange(2000), y_new].mean() < 0.9


def test_an_estimator_has_probabilities():
    estimator = estimators.DRPClassifier(alpha=0.01, loss="ordinal", random_state=0)
    estimator.fit(X, pd.Series(pd.Categorical.from_codes(Y, LEVELS, ordered=True)))
    assert estimator.classes_.tolist() == LEVELS
    assert estimator.predict_proba(X).shape == (300, 4)
    assert estimator.decision_function(X).shape == (300,)
    assert estimator.score(X, np.array(LEVELS)[Y]) > 0.4
