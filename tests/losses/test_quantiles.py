"""Several quantiles in one model: levels share terms, their predictions never cross, and hold what
each says alone."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf import sklearn as estimators
from sparserf.losses import Quantile
from sparserf.losses.links import LINKS
from sparserf.losses.regression import pinball_loss

LEVELS = [0.1, 0.5, 0.9]
NEAR = [0.45, 0.5, 0.55]  # whose functions cross
FEW = {"n_components": 200, "rng": 0}
FITS = {
    "sparse_rf": partial(srf.sparse_rf, alpha=0.003, features="gaussian", gamma=0.5, **FEW),
    "default": partial(srf.sparse_rf, effort=0.1, rng=0),
    "harfe": partial(srf.harfe, n_nonzero_coefs=15, alpha=1e-3, **FEW),
    "harfe, chosen": partial(srf.harfe, n_components=50, rng=0),
    "mfga": partial(srf.mfga, n_nonzero_coefs=15, alpha=1e-3, rng=0),
    "mfga, chosen": partial(srf.mfga, n_components=50, rng=0),
    "drp": partial(srf.drp, alpha=0.01, rng=0),
    "drp, chosen": partial(srf.drp, rng=0),
}
ONE_OF_EACH = ["default", "harfe", "mfga", "drp"]
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
each_function = pytest.mark.parametrize("fit", [FITS[k] for k in ONE_OF_EACH], ids=ONE_OF_EACH)
pytestmark = pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")


def rows(n, seed=0):
    """Return rows and a target whose spread differs from row to row."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] + (1 + X[:, 1]) * rng.standard_exponential(n)


X, Y = rows(300)


@pytest.mark.parametrize(
    ("level", "error", "message"),
    [
        ([], ValueError, r"level must be a number, or several, got \[\]"),
        (np.empty(0), ValueError, "level must be a number, or several"),
        ([0.5, 0.1], ValueError, "level must be in ascending order, got 0.1 after 0.5"),
        ([0.1, 0.1], ValueError, "level must be in ascending order, got 0.1 after 0.1"),
        ([0.0, 0.5], ValueError, "level must be finite and > 0, got 0.0"),
        ([0.5, 1.0], ValueError, "level must be below 1, got 1.0"),
        ([0.5, np.nan], ValueError, "level must be finite"),
        ([0.5, "0.9"], TypeError, "level must be a real number, got '0.9'"),
        ([[0.1, 0.5]], TypeError, r"level must be a real number, got \[0.1, 0.5\]"),
        ("median", TypeError, "level must be a real number, got 'median'"),
        ({0.1, 0.9}, TypeError, "level must be a real number"),
    ],
)
def test_levels_that_are_none_are_refused(level, error, message):
    with pytest.raises(error, match=message):
        Quantile(level)


def test_levels_of_any_sequence_are_the_same_and_one_is_a_number():
    for level in (LEVELS, tuple(LEVELS), np.array(LEVELS), pd.Series(LEVELS)):
        assert Quantile(level) == Quantile(LEVELS)
    assert Quantile([0.3]) == Quantile(0.3) and Quantile(0.3).link == "identity"
    assert Quantile(LEVELS).of_output(2) == Quantile(0.9)


def test_the_loss_of_levels_is_that_of_each(rng):
    z, y = rng.standard_normal((2, 3, 50))
    loss = Quantile(LEVELS, smoothing=0.3)
    for method in ("value", "derivative", "curvature"):
        expected = [getattr(loss.of_output(k), method)(z[k], y[k]) for k in range(loss.n_outputs)]
        np.testing.assert_array_equal(getattr(loss, method)(z, y), expected)
    u = loss.derivative(z, y)
    expected = [loss.of_output(k).conjugate(u[k], y[k]) for k in range(3)]
    np.testing.assert_array_equal(loss.conjugate(u, y), expected)


def test_a_loss_of_ones_own_has_one_output():
    class Own(srf.losses.Squared):
        name = "own"
        n_outputs = 3

    with pytest.raises(ValueError, match="loss 'own': n_outputs must be 1, got 3"):
        srf.drp(X, Y, loss=Own(), alpha=0.1)


@pytest.mark.parametrize("smoothing", [1e-9, 0.5])
def test_sorting_lowers_the_loss_of_each_row_in_which_levels_cross(smoothing, rng):
    loss = Quantile([0.05, 0.3, 0.5, 0.51, 0.99], smoothing=smoothing)
    f, y = rng.standard_normal((200, 5)), np.tile(rng.standard_normal(200), (5, 1))
    f[::7].sort(axis=1)
    before = loss.value(f.T, y).sum(axis=0)
    after = loss.value(LINKS[loss.link].predict(f).T, y).sum(axis=0)
    crosses = (np.diff(f) < 0).any(axis=1)
    assert 0 < crosses.sum() < 200
    assert (after[crosses] < before[crosses]).all()
    np.testing.assert_array_equal(after[~crosses], before[~crosses])


@every_fit
def test_predictions_never_cross(fit):
    model = fit(X, Y, loss=Quantile(NEAR))
    far = 5 * np.random.default_rng(1).standard_normal((500, 3))
    f, predicted = model.decision_function(far), model.predict(far)
    assert (np.diff(f) < 0).any()
    np.testing.assert_array_equal(predicted, np.sort(f, axis=1))
    assert (predicted.shape, model.coef.shape[:-1]) == ((500, 3), (3,))


@pytest.mark.nightly
@each_function
def test_a_row_lies_below_a_level_as_often_as_it_says(fit):
    below = []
    for seed in range(5):
        (X, y), (X_new, y_new) = rows(1000, seed), rows(4000, 100 + seed)
        model = fit(X, y, loss=Quantile(LEVELS))
        below.append((y_new[:, None] <= model.predict(X_new)).mean(axis=0))
    np.testing.assert_allclose(np.mean(below, axis=0), LEVELS, atol=0.04)


@pytest.mark.parametrize("name", ["sparse_rf", "harfe", "mfga", "drp"])
def test_each_level_is_what_it_is_alone(name):
    """Levels share a dictionary, in which the fit of each is that of a model of its own."""
    loss = Quantile(LEVELS, smoothing=0.2)
    f = FITS[name](X, Y, loss=loss).decision_function(X)
    for k in range(3):
        alone = FITS[name](X, Y, loss=loss.of_output(k)).predict(X)
        assert np.abs(f[:, k] - alone).max() < 0.02 * Y.std()


@pytest.mark.nightly
def test_levels_of_the_default_share_terms():
    """They have fewer than three models, and predict as well."""
    terms, losses = [], []
    for seed in range(5):
        (X, y), (X_new, y_new) = rows(400, seed), rows(2000, 100 + seed)
        fit = FITS["default"]
        together = fit(X, y, loss=Quantile(LEVELS))
        apart = [fit(X, y, loss=Quantile(level)) for level in LEVELS]
        terms.append([len(together.support), sum(len(each.support) for each in apart)])
        predicted = together.predict(X_new), np.stack([m.predict(X_new) for m in apart], axis=1)
        losses.append(
            [
                sum(pinball_loss(level, q[:, k], y_new).mean() for k, level in enumerate(LEVELS))
                for q in predicted
            ]
        )
    (few, many), (joint, single) = np.mean(terms, axis=0), np.mean(losses, axis=0)
    assert few < many and joint < 1.03 * single


@each_function
def test_the_bits_are_those_of_any_number_of_workers(fit):
    models = [fit(X, Y, loss=Quantile(LEVELS), workers=workers) for workers in (1, 3)]
    assert len({(m.coef.tobytes(), m.intercept.tobytes()) for m in models}) == 1
    np.testing.assert_array_equal(models[0].predict(X), models[0].predict(X, workers=3))


@each_function
def test_rows_of_single_precision(fit):
    model = fit(X.astype(np.float32), Y, loss=Quantile(NEAR))
    predicted = model.predict(X.astype(np.float32))
    assert predicted.dtype == np.float32 and (np.diff(predicted) >= 0).all()
    np.testing.assert_allclose(predicted, model.predict(X), atol=1e-4)


@pytest.mark.slow
def test_a_file_has_the_levels(tmp_path):
    model = FITS["mfga"](X, Y, loss=Quantile(NEAR))
    model.save(tmp_path / "model.npz")
    for again in (
        srf.load(tmp_path / "model.npz"),
        srf.SparseModel.from_json(model.to_json()),
        pickle.loads(pickle.dumps(model)),
    ):
        assert (again.link, again.loss_parameters) == (model.link, model.loss_parameters)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.loss_parameters["level"] == tuple(NEAR) and model.link == "ascending"
    assert "quantiles 0.45, 0.5, 0.55" in str(model.summary(X))


@pytest.mark.parametrize("lie", ["links", "outputs", "text", "name"])
def test_a_file_that_lies_of_its_levels_is_refused(lie, tmp_path):
    model = FITS["drp"](X, Y, loss=Quantile(NEAR))
    told = {
        "links": {"link": "identity"},
        "outputs": {"loss_parameters": model.loss_parameters | {"level": (0.1, 0.9)}},
        "name": {"loss": "mine", "loss_parameters": {}},
        "text": {"loss_parameters": model.loss_parameters | {"level": ("a", "b", "c")}},
    }
    replace(model, **told[lie]).save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="is not a whole model"):
        srf.load(tmp_path / "model.npz")


@pytest.mark.slow
def test_limits_offsets_and_weights():
    loss, offset = Quantile(LEVELS), np.linspace(-1, 1, len(Y))
    free = FITS["mfga"](X, Y, loss=loss)
    limited = FITS["harfe"](X, Y, loss=loss, lower=0.0, upper=1.0).predict(3 * X)
    assert (limited.min(), limited.max()) == (0.0, 1.0) and (np.diff(limited) >= 0).all()
    moved = FITS["mfga"](X, Y + offset, loss=replace(loss, smoothing=0.2), offset=offset)
    still = FITS["mfga"](X, Y, loss=replace(loss, smoothing=0.2))
    np.testing.assert_allclose(moved.predict(X), still.predict(X), atol=1e-6)
    np.testing.assert_allclose(
        free.predict(X, offset=offset), free.predict(X) + offset[:, None], atol=1e-12
    )
    twice = FITS["drp"](X[:200], Y[:200], loss=loss, sample_weight=np.repeat([1.0, 2.0], 100))
    rows = np.r_[:200, 100:200]
    np.testing.assert_allclose(
        twice.predict(X), FITS["drp"](X[rows], Y[rows], loss=loss).predict(X), atol=1e-4
    )


@pytest.mark.parametrize("name", ["sparse_rf", "default"])
def test_sorted_predictions_are_monotone(name):
    options = (
        {"features": "auto"} if name == "default" else {"features": srf.Rules(), "gamma": None}
    )
    model = FITS[name](X, Y, loss=Quantile(NEAR), monotone=[1, 0, 0], **options)
    X_new = np.repeat(rows(20)[0], 50, axis=0)
    X_new[:, 0] = np.tile(np.linspace(-2, 2, 50), 20)
    predicted = model.predict(X_new).reshape(20, 50, 3)
    assert (np.diff(predicted, axis=1) >= -1e-9).all() and np.ptp(predicted[:, :, 1], axis=1).any()


def test_what_has_no_meaning_for_levels_is_refused():
    loss = Quantile(LEVELS)
    with pytest.raises(ValueError, match=r"convex must be None for Quantile\(.*got \[1, 0, 0\]"):
        FITS["sparse_rf"](X, Y, loss=loss, convex=[1, 0, 0])
    for name in ONE_OF_EACH:
        with pytest.raises(ValueError, match=r"y must have shape \(300,\)"):
            FITS[name](X, np.stack([Y, Y], axis=1), loss=loss)
    with pytest.raises(ValueError, match="loss must have one output for each value"):
        srf.distill(lambda X: X[:, 0], X, loss=loss)
    estimator = estimators.DRPRegressor(loss=loss, alpha=0.01, random_state=0)
    with pytest.raises(ValueError, match="score needs one prediction of y"):
        estimator.fit(X, Y).score(X, Y)
    with pytest.raises(ValueError, match="offset"):
        FITS["drp"](X, Y, loss=loss, offset=np.zeros((300, 3)))
    model = FITS["drp"](X, Y, loss=loss)
    for start in (FITS["sparse_rf"](X, Y, loss="quantile"), model):
        with pytest.raises(ValueError, match="start must"):
            FITS["sparse_rf"](X, Y, loss=loss if start is not model else "quantile", start=start)


@pytest.mark.slow
def test_a_fit_starts_from_a_model_of_levels():
    loss = Quantile(LEVELS)
    for options in ({"alpha": 0.003}, {}):
        model = srf.sparse_rf(X, Y, loss=loss, alpha=0.02, **FEW)
        again = srf.sparse_rf(X, Y, loss=loss, start=model, rng=1, **options)
        assert again.link == "ascending" and again.coef.shape[0] == 3 and len(again.support)


def test_estimators_of_levels():
    estimator = estimators.MFGARegressor(
        loss=Quantile(LEVELS), n_nonzero_coefs=5, alpha=1e-3, random_state=0
    ).fit(X, Y)
    expected = srf.mfga(X, Y, loss=Quantile(LEVELS), n_nonzero_coefs=5, alpha=1e-3, rng=0)
    np.testing.assert_array_equal(estimator.predict(X), expected.predict(X))
    assert estimator.get_params()["loss__level"] == tuple(LEVELS)
    assert estimator.set_params(loss__level=[0.2, 0.8]).loss == Quantile([0.2, 0.8])


@pytest.mark.slow
def test_cross_validation_adds_up_the_losses_of_levels():
    fit = partial(srf.drp, loss=Quantile(LEVELS, smoothing=1e-6))
    found = srf.cross_validate(
        fit, X, Y, {"alpha": [0.01]}, cv=[(np.r_[:200], np.r_[200:300])], rng=0
    )
    model = fit(X[:200], Y[:200], alpha=0.01, rng=0)
    predicted = model.predict(X[200:])
    expected = sum(pinball_loss(a, predicted[:, k], Y[200:]) for k, a in enumerate(LEVELS)).mean()
    assert found.losses[0, 0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_a_page_tells_the_loss_and_the_share_of_each_level():
    import json
    import re

    model = FITS["mfga"](X, Y, loss=Quantile(LEVELS))
    page = model.to_html(X=X, y=Y, time_limit=0.1)
    assert "quantile 0.1" in page
    for k, level in enumerate(LEVELS):
        loss = pinball_loss(level, model.predict(X)[:, k], Y).mean()
        (told,) = re.findall(rf'"mean pinball loss of quantile {level:g}", ?([^\],]*)', page)
        assert json.loads(told) == pytest.approx(loss, rel=1e-4)


# Intervals


@pytest.mark.parametrize("levels", [[0.05, 0.95], [0.3, 0.5, 0.7], [0.001, 0.999]])
@pytest.mark.parametrize("method", ["split", "cv+", "model"])
def test_intervals_of_quantiles_hold_the_share_that_was_asked_for(method, levels):
    """Also of quantiles that hold too few rows, or too many."""
    fit, held = partial(srf.drp, loss=Quantile(levels), alpha=0.01), []
    for seed in range(5):
        (X, y), (X_new, y_new) = rows(600, seed), rows(2000, 100 + seed)
        if method == "model":
            bands = srf.intervals(fit(X[:300], y[:300], rng=0), X[300:], y[300:], rng=0)
        else:
            bands = srf.intervals(fit, X, y, method=method, rng=0)
        lower, upper = bands.predict(X_new)
        assert (lower <= upper).all()
        held.append(np.mean((lower <= y_new) & (y_new <= upper)))
    assert abs(np.mean(held) - 0.9) < 0.03


def test_intervals_of_quantiles_add_one_number_to_both_ends():
    X_new = rows(50, 9)[0]
    model = srf.drp(X[:150], Y[:150], loss=Quantile([0.2, 0.8]), alpha=0.01, rng=0)
    bands = srf.intervals(model, X[150:], Y[150:], coverage=0.8, rng=0)
    (low, high), (lower, upper) = model.predict(X[150:]).T, bands.predict(X_new)
    score = np.sort(np.maximum(low - Y[150:], Y[150:] - high))[int(np.ceil(0.8 * 151)) - 1]
    np.testing.assert_allclose(lower, model.predict(X_new)[:, 0] - score)
    np.testing.assert_allclose(upper, model.predict(X_new)[:, 1] + score)
    assert np.ptp(upper - lower) > 0.5 and "beyond its quantiles" in bands._repr_html_()
    with pytest.raises(ValueError, match="to_html needs intervals about one prediction"):
        bands.to_html()
    outputs = srf.drp(X, np.stack([Y, Y], axis=1), alpha=0.01, rng=0)
    with pytest.raises(ValueError, match="function_or_model must have a real target for each"):
        srf.intervals(outputs, X, Y)
